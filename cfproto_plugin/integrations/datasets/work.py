"""The work of a job that any process can do: the answers to one block."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from cfproto_plugin.errors import CfprotoError
from cfproto_plugin.integrations.datasets.blocks import Block, read, write
from cfproto_plugin.integrations.datasets.frames import FrameExplainer
from cfproto_plugin.integrations.datasets.outcomes import Outcome

_LONGEST = 500  # characters of a reason


@dataclass(frozen=True)
class Work:
    """What every process of a job knows. folder: of the source. job: the checksum of what was asked."""

    folder: Path
    sink: Path
    explain: FrameExplainer
    job: str

    def do(self, block: Block) -> Outcome:
        """Read, explain and write a block. What is wrong with it is its outcome, not an error of the job."""
        start, cpu = time.perf_counter(), time.process_time()
        found, size, failed = 0, 0, None
        try:
            rows = read(self.folder, block, self.explain.columns)
            features = rows.drop_columns([name for name in self.explain.beside_features if name in rows.column_names])
            table, found = self.explain.answers(features.to_pandas(), rows)
            size = write(self.sink / block.name, table, {"digest": block.digest(self.job), "found": found})
        except Exception as error:  # noqa: BLE001 whatever a damaged file or a model raises
            found, failed = 0, _reason(block, error)
        took = time.perf_counter() - start, time.process_time() - cpu
        return Outcome(block.name, block.rows, found, size, *took, failed)


def _reason(block: Block, error: Exception) -> str:
    kind = "" if isinstance(error, CfprotoError) else f"{type(error).__name__}: "
    where = f"rows {block.start} to {block.start + block.rows - 1} of row group {block.group} of {block.file}"
    return f"{where}: {kind}{str(error)[:_LONGEST]}"
