"""The job of dataset_runs.py, disturbed: a worker is killed, or the job is stopped and started again.

Are the files those of a job that nobody disturbed, byte for byte, and were finished blocks left alone? Run it after
dataset_runs.py, in the same environment: .venv-ray/bin/python benchmarks/dataset_disturbed.py. Adds to
results/datasets.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dataset_runs import RESULTS, digest, prepare

from cfproto_plugin.integrations.datasets import explain_dataset

CASES = (
    *(("local", 1, what) for what in ("SIGINT", "SIGKILL")),
    *(("local", 2, what) for what in ("worker killed", "SIGINT", "SIGKILL")),
    *(("ray", 2, what) for what in ("worker killed", "SIGINT", "SIGKILL")),
)
BLOCKS = 6  # of twenty that are done when it happens
SECONDS = 1200


def job(folder: Path, sink: Path, engine: Any, workers: int, session: str) -> None:
    """What the process that is disturbed does."""
    if engine == "ray":
        import ray

        ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR", _temp_dir=session)
        ray.data.DataContext.get_current().enable_progress_bars = False
    explain_dataset(
        folder / "explainer.zip", folder / "rows.parquet", sink, keep="key", engine=engine, workers=workers
    ).raise_for_status()


@contextmanager
def started(folder: Path, sink: Path, engine: str, workers: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The job as a process, and the folder that is on the command line of Ray's; all of them are ended afterwards."""
    session = tempfile.mkdtemp(prefix="ray-")
    command = [sys.executable, __file__, "--job", folder, sink, engine, str(workers), session]
    environment = {**os.environ, "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, env=environment)
    try:
        yield process, session
    finally:
        for pid in processes(process.pid, session):
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
        shutil.rmtree(session, ignore_errors=True)


def processes(leader: int, session: str) -> dict[int, bytes]:
    """The command lines of the processes that a job started, by id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                if os.getsid(int(entry.name)) == leader or session.encode() in line:
                    found[int(entry.name)] = line
            except OSError:
                continue
    return found


def workers_of(leader: int, session: str, engine: str) -> list[int]:
    """The processes that explain."""
    mark = b"MapBatches" if engine == "ray" else b"spawn_main"
    return sorted(pid for pid, line in processes(leader, session).items() if mark in line)


def times(sink: Path) -> dict[str, int]:
    """When every file of answers was written."""
    return {path.name: path.stat().st_mtime_ns for path in sink.glob("*.parquet")}


def disturbed(folder: Path, engine: str, workers: int, what: str) -> dict[str, Any]:
    """One job that is disturbed, and finished."""
    sink = folder / f"{engine}-{workers}-{what}"
    with started(folder, sink, engine, workers) as (process, session):
        while len(times(sink)) < BLOCKS:
            if process.poll() is not None:
                raise RuntimeError(f"{engine}, {workers}: it ended before it was disturbed")
            time.sleep(0.05)
        if what == "worker killed":
            os.kill(workers_of(process.pid, session, engine)[0], signal.SIGKILL)
        else:
            process.send_signal(signal.Signals[what])
        status = process.wait(SECONDS)
    before = times(sink)
    if what != "worker killed":
        with started(folder, sink, engine, workers) as (process, _):
            if process.wait(SECONDS):
                raise RuntimeError(f"{engine}, {workers}, {what}: it did not go on")
    after = times(sink)
    return {
        "engine": engine,
        "workers": workers,
        "what": what,
        "status": status,
        "blocks_before": len(before),
        "blocks": len(after),
        "done_again": sum(after[name] != moment for name, moment in before.items()),
        "sha256": digest(sink),
    }


def as_lines(results: dict[str, Any]) -> list[str]:
    """The lines of the table on the page."""
    expected = results["lines"][0]["sha256"]
    return [
        f"| {line['engine']}, {line['workers']} | {line['what']} | {line['blocks_before']} of {line['blocks']} | "
        f"{line['done_again']} | {'yes' if line['sha256'] == expected else 'NO'} |"
        for line in results["disturbed"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", nargs=5, metavar=("FOLDER", "SINK", "ENGINE", "WORKERS", "SESSION"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.job:
        folder, sink, engine, workers, session = given.job
        job(Path(folder), Path(sink), engine, int(workers), session)
        return
    results = json.loads(given.output.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="cf", ignore_cleanup_errors=True) as name:
        prepare(Path(name), results["about"]["rows"])
        results["disturbed"] = []
        for case in CASES:
            results["disturbed"].append(disturbed(Path(name), *case))
            print(json.dumps(results["disturbed"][-1]), flush=True)
    given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(as_lines(results)))


if __name__ == "__main__":
    main()
