"""`explain_dataset` on Ray Data: the same files as without Ray, whoever is killed meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.integrations.datasets import explain_dataset

pytestmark = [pytest.mark.needs("ray"), pytest.mark.needs("xgboost"), pytest.mark.slow]
ROWS, BLOCK = 200, 10
SECONDS = 300
JOB = """
import os, signal, sys, time
import ray
from cfproto_plugin.integrations.datasets import explain_dataset, frames

answers = frames.FrameExplainer.answers
class Slow(frames.FrameExplainer):
    def answers(self, frame, arrow=None):
        time.sleep(0.3)
        return answers(self, frame, arrow)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell runs in the background
    saved, source, sink, workers, folder = sys.argv[1:]
    ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR", _temp_dir=folder)
    import ray.data
    ray.data.DataContext.get_current().enable_progress_bars = False
    from cfproto_plugin.integrations.datasets import job
    job.FrameExplainer = Slow
    report = explain_dataset(saved, source, sink, block_rows=10, workers=int(workers), engine="ray", progress=False)
    print("\\nREPORT", report.blocks, report.rows, report.done_before, len(report.failed), flush=True)
    ray.shutdown()
"""


def loans(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round(2)})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    from xgboost import XGBClassifier

    x = loans(200)
    model = XGBClassifier(n_estimators=10, n_jobs=1).fit(x, (x.income + 20 * x.age > 4000).astype(int))
    path = tmp_path_factory.mktemp("saved") / "explainer.zip"
    CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).save(path)
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    loans(ROWS, seed=1).to_parquet(folder / "a.parquet", row_group_size=50)
    return folder


@pytest.fixture(scope="module")
def expected(saved, source, tmp_path_factory):
    """The files of the local default."""
    sink = tmp_path_factory.mktemp("local")
    explain_dataset(saved, source, sink, block_rows=BLOCK)
    return contents(sink)


def ended(said):
    """What the job printed of its report; Ray prints too, also afterwards."""
    (line,) = (line for line in said.splitlines() if line.startswith("REPORT "))
    return line.split()[1:]


def contents(sink):
    return {path.relative_to(sink).as_posix(): path.read_bytes() for path in sorted(sink.rglob("*.parquet"))}


@pytest.fixture
def job(saved, source, tmp_path, tmp_path_factory):
    """Starts the job in a session of its own; all its processes are ended with the test."""
    script, started = tmp_path / "job.py", []
    script.write_text(JOB)

    def start(sink, workers=2):
        folder = tempfile.mkdtemp(prefix="ray-")  # not pytest's: Ray's sockets need a short name
        process = subprocess.Popen(
            [sys.executable, script, saved, source, sink, str(workers), folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"},
        )
        started.append((process, folder))
        return process

    yield start
    for process, folder in started:
        for pid in of_session(process.pid, folder):
            os.kill(pid, signal.SIGKILL)
        process.stdout.close()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def of_session(leader, folder):
    """The processes that a job started, Ray's among them, which have its folder on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                own = os.getsid(int(entry.name)) == leader or folder.encode() in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if own:
                found.append(int(entry.name))
    return found


def wait_for(sink, blocks, process):
    end = time.monotonic() + SECONDS
    while len(contents(sink)) < blocks:
        assert process.poll() is None, "it ended before it was disturbed"
        assert time.monotonic() < end
        time.sleep(0.05)


def actors(leader, folder):
    """The processes that explain."""
    named = ((pid, Path(f"/proc/{pid}/cmdline")) for pid in of_session(leader, folder))
    return [
        pid
        for pid, path in named
        if path.exists() and path.read_bytes().startswith(b"ray::") and b"MapBatches" in path.read_bytes()
    ]


def test_two_actors_write_the_same_files_as_the_local_default(job, expected, tmp_path):
    process = job(tmp_path / "answers")
    said, _ = process.communicate(timeout=SECONDS)
    assert ended(said) == ["20", "200", "0", "0"]
    assert contents(tmp_path / "answers") == expected


def test_an_actor_that_is_killed_changes_nothing_in_the_result(job, expected, tmp_path):
    sink = tmp_path / "answers"
    process = job(sink)
    wait_for(sink, 3, process)
    victims = actors(process.pid, process.args[-1])
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    said, _ = process.communicate(timeout=SECONDS)
    assert ended(said)[1:] == ["200", "0", "0"]
    assert contents(sink) == expected


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_job_that_is_stopped_goes_on_by_the_manifest(job, expected, saved, source, tmp_path, sign):
    sink = tmp_path / "answers"
    process = job(sink)
    wait_for(sink, 3, process)
    process.send_signal(sign)
    process.wait(SECONDS)
    for pid in of_session(process.pid, process.args[-1]):  # what Ray left running
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    done = {name: (sink / name).stat().st_mtime_ns for name in contents(sink)}
    assert 3 <= len(done) < len(expected)
    said, _ = job(sink).communicate(timeout=SECONDS)
    assert ended(said) == ["20", "200", str(len(done)), "0"]
    assert {name: (sink / name).stat().st_mtime_ns for name in done} == done
    assert contents(sink) == expected
    assert explain_dataset(saved, source, sink, block_rows=BLOCK).done_before == len(expected)
