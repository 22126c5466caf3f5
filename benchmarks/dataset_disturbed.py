"""The job of dataset_runs.py, disturbed: a worker is killed, the job is stopped and started again, twice.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dataset_runs import RESULTS, digest, prepare

from cfproto_plugin.integrations.datasets import explain_dataset

CASES = (  # what happens, and after how many of twenty blocks
    ("ray", 2, (("worker killed", 3), ("SIGINT", 7), ("SIGKILL", 12))),
    ("local", 2, (("worker killed", 3), ("SIGINT", 7), ("SIGKILL", 12))),
    ("local", 1, (("SIGINT", 4), ("SIGKILL", 9))),
)
SECONDS = 1200


def job(folder: Path, sink: Path, engine: Any, workers: int, session: str) -> None:
    """What the process that is disturbed does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
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


def done_again(before: dict[str, int], after: dict[str, int]) -> int:
    """How many of the files that were there before were written again."""
    return sum(after.get(name) != moment for name, moment in before.items())


def disturbed(folder: Path, engine: str, workers: int, events: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """One job that is disturbed, started again after each time that it was stopped, and finished."""
    sink, todo, done = folder / f"{engine}-{workers}-disturbed", [*events], []
    stopped: dict[str, int] = {}
    while True:
        ended_by_us = False
        with started(folder, sink, engine, workers) as (process, session):
            while todo and process.poll() is None:
                if len(times(sink)) < todo[0][1]:
                    time.sleep(0.05)
                    continue
                what, _ = todo.pop(0)
                done.append({"what": what, "blocks_before": len(times(sink))})
                if what != "worker killed":
                    process.send_signal(signal.Signals[what])
                    ended_by_us = True
                    break
                os.kill(workers_of(process.pid, session, engine)[0], signal.SIGKILL)
            status = process.wait(SECONDS)
        after = times(sink)
        if stopped and done_again(stopped, after):
            raise RuntimeError(f"{engine}, {workers}: {done_again(stopped, after)} finished blocks were done again")
        if status == 0:
            break
        if not ended_by_us:
            raise RuntimeError(f"{engine}, {workers}: it ended with status {status}")
        stopped = after
        done[-1]["blocks_before"] = len(after)
    return {
        "engine": engine,
        "workers": workers,
        "blocks": len(after),
        "events": done,
        "left_out": [what for what, _ in todo],
        "sha256": digest(sink),
    }


def as_lines(results: dict[str, Any]) -> list[str]:
    """The lines of the table on the page."""
    lines = []
    for job in results["disturbed"]:
        for event in job["events"]:
            same = "yes" if job["sha256"] == job["undisturbed"] else "NO"
            cells = [
                f"{job['engine']}, {job['workers']}",
                event["what"],
                f"{event['blocks_before']} of {job['blocks']}",
            ]
            lines.append(f"| {' | '.join(cells)} | {same} |")
    return lines


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
            found = disturbed(Path(name), *case)
            results["disturbed"].append({**found, "undisturbed": results["lines"][0]["sha256"]})
            print(json.dumps(results["disturbed"][-1]), flush=True)
    given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(as_lines(results)))


if __name__ == "__main__":
    main()
