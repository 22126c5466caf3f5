"""How blocks ended, and what became of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cfproto_plugin.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """How a block ended.

    name: of its file of answers. rows: in it. found: of these, how many have a counterfactual. size: of the file in
    bytes. seconds, cpu_seconds: what it took. failed: why there is no file.
    """

    name: str
    rows: int
    found: int = 0
    size: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    failed: str | None = None


@dataclass
class DatasetReport:
    """What became of a job.

    blocks, rows: of the source, as far as it can be read. found: rows that have a counterfactual. done_before: blocks
    that an earlier run had finished. failed: by block or file, why it has no answers. seconds: of this run.
    """

    sink: Path
    blocks: int = 0
    rows: int = 0
    found: int = 0
    done_before: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a block."""
        self.blocks += 1
        self.rows += outcome.rows
        self.found += outcome.found
        if outcome.failed is not None:
            self.failed[outcome.name] = outcome.failed

    def raise_for_status(self) -> Self:
        """Raise an InputError that names the blocks that failed; return self if there are none."""
        if self.failed:
            raise InputError(f"{len(self.failed)} of {self.blocks} blocks failed: {in_lines(self.failed)}")
        return self


def in_lines(failed: Mapping[str, str]) -> str:
    """Blocks and why they failed."""
    return "\n".join(f"{name}: {reason}" for name, reason in failed.items())
