"""`explain_dataset`: a job over Parquet files that can be stopped at any time and started again."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from cfproto_plugin.checks import is_count, shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.features import Features
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.integrations.datasets.blocks import Block, blocks_of, files_of, types_in
from cfproto_plugin.integrations.datasets.frames import FrameExplainer
from cfproto_plugin.integrations.datasets.loading import load_pyarrow
from cfproto_plugin.integrations.datasets.local import here, in_processes
from cfproto_plugin.integrations.datasets.manifest import Manifest, open_manifest
from cfproto_plugin.integrations.datasets.outcomes import DatasetReport, Outcome
from cfproto_plugin.integrations.datasets.work import Work
from cfproto_plugin.integrations.serving import known
from cfproto_plugin.search.clock import Done, Progress, reporting

log = logging.getLogger(__name__)
Engine = Literal["local", "ray"]
BLOCK_ROWS = 1000
_TRIAL = 0.1  # seconds


def explain_dataset(
    explainer: Any,
    source: str | os.PathLike[str],
    sink: str | os.PathLike[str],
    *,
    target: Any = None,
    n: int = 1,
    features: Features | None = None,
    time_budget: float | None = None,
    preset: str | None = None,
    keep: Sequence[str] | str = (),
    block_rows: int = BLOCK_ROWS,
    workers: int | Literal["all"] = 1,
    engine: Engine = "local",
    trusted: Sequence[str] = (),
    progress: Progress = None,
) -> DatasetReport:
    """Explain every row of Parquet files; write one file of answers per block of rows, and a manifest.

    explainer: a fitted one, or the path of a saved one; trusted: what loading it may restore.
    source: a Parquet file, or a folder of them. sink: a new folder, or that of the same job that was stopped: blocks
    that are finished are not done again. Each file of answers is there whole or not at all.
    target, n, features: as in `explain`. time_budget: seconds per block. preset: close, few, typical or stable.
    keep: columns of the rows that the answers have too, such as a key.
    block_rows: rows in a block, at most. They share calls of the model, and are in memory together.
    workers: 1 is this process; more are processes that load the explainer once each; "all" is one per core.
    engine: "local", or "ray" for Ray Data on the cluster that `ray.init` joined, with that many actors.
    progress: True, False, or a function that is called with the fraction done.

    A block that cannot be read or explained is named in `failed` of the report, and tried again by the next run; the
    others are done.
    """
    start = time.perf_counter()
    pa = load_pyarrow()
    count = _workers(workers)
    _check(block_rows, engine)
    folder, files = files_of(Path(source))
    sink = Path(sink)
    inside = sink.resolve() == folder.resolve() or folder.resolve() in sink.resolve().parents
    if inside and Path(source).is_dir():
        raise InputError(f"the sink {str(sink)!r} lies in the source {str(folder)!r}; choose a folder outside it")
    report = DatasetReport(sink)
    blocks = _blocks(folder, files, block_rows, report)
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    types = _kept(folder, files, names, report) if names else {}
    explain = FrameExplainer(
        explainer,
        target=target,
        n=n,
        features=features,
        time_budget=time_budget,
        preset=preset,
        keep=types,
        trusted=trusted,
    )
    _try(explain)
    if count > 1 or engine == "ray":
        explain.stored.check_complete()
    asked = {
        "explainer": explain.stored.identity,
        **vars(explain.request),
        "keep": {name: str(kind) for name, kind in types.items()},
        "block_rows": block_rows,
        "version": version("cfproto-plugin"),
        "pyarrow": pa.__version__,
    }
    with open_manifest(sink, asked) as manifest:
        work = Work(folder.resolve(), sink.resolve(), explain, manifest.job)
        todo = _todo(blocks, manifest, report)
        manifest.remove_outdated(blocks, todo)
        with reporting(progress, "explaining") as tick:
            _run(_runner(engine, count)(work, todo), manifest, report, sum(block.rows for block in blocks), tick)
        if stale := manifest.stale(blocks):
            log.warning(
                "%s holds %d files that belong to no block of the source, such as %s", sink, len(stale), stale[0]
            )
    report.seconds = time.perf_counter() - start
    return report


def _run(
    outcomes: Iterator[tuple[Block, Outcome]],
    manifest: Manifest,
    report: DatasetReport,
    rows: int,
    tick: Callable[[Done], None],
) -> None:
    """Note every outcome as it comes."""
    for block, outcome in outcomes:
        manifest.add(outcome, block)
        report.add(outcome)
        tick(Done(report.rows / rows, rows, report.rows, report.found))


def _runner(engine: Engine, workers: int) -> Callable[[Work, Sequence[Block]], Iterator[tuple[Block, Outcome]]]:
    if engine == "ray":
        from cfproto_plugin.integrations.ray import on_ray

        return lambda work, blocks: on_ray(work, blocks, workers)
    return here if workers == 1 else lambda work, blocks: in_processes(work, blocks, workers)


def _blocks(folder: Path, files: Sequence[str], block_rows: int, report: DatasetReport) -> list[Block]:
    """All blocks in order. A file whose footer cannot be read is named in the report."""
    found: list[Block] = []
    for file in files:
        try:
            found += blocks_of(folder, file, block_rows)
        except (OSError, ValueError) as error:  # pyarrow's are among them
            report.failed[file] = f"{file} cannot be read: {error}"
    return found


def _kept(folder: Path, files: Sequence[str], names: Sequence[str], report: DatasetReport) -> Mapping[str, Any]:
    """The types of columns to keep, those of the first file that can be read."""
    readable = next((file for file in files if file not in report.failed), None)
    return {} if readable is None else types_in(folder, readable, names)


def _todo(blocks: Sequence[Block], manifest: Manifest, report: DatasetReport) -> list[Block]:
    """The blocks that no earlier run has finished; the others are counted."""
    found = []
    for block in blocks:
        outcome = manifest.finished(block)
        if outcome is None:
            found.append(block)
        else:
            report.add(outcome)
            report.done_before += 1
    return found


def _try(explain: FrameExplainer) -> None:
    """Ask the same for a training row: a wrong target or rule is an error of the job, not of every block."""
    served = explain.served
    row = take(known(served.explainer).data, np.arange(1))
    request = explain.request
    limit = _TRIAL if request.time_budget is None else request.time_budget
    served.explain(row, type(request)(**{**vars(request), "time_budget": limit}))


def _workers(given: Any) -> int:
    count = (os.cpu_count() or 1) if isinstance(given, str) and given == "all" else given
    if not is_count(count):
        raise InputError(f"workers is {shown(given)}; expected a number of at least 1, or 'all'")
    return int(count)


def _check(block_rows: Any, engine: Any) -> None:
    if not is_count(block_rows):
        raise InputError(f"block_rows is {shown(block_rows)}; expected how many rows a block may have, at least 1")
    if engine not in get_args(Engine):
        raise InputError(
            f"engine is {shown(engine)}; expected one of {', '.join(get_args(Engine))}."
            f"{did_you_mean(engine, get_args(Engine))}"
        )
