"""One minute of concurrent requests to MLServer: is any lost or answered with another's, does memory grow, how fast?

Run it in the environment of `make test-serve`: .venv-mlserver/bin/python benchmarks/serving_load.py. The server is a
process of its own on this machine, and the clients are another. Results: benchmarks/results/serving.json.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from xgboost import XGBClassifier

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.integrations.service.service import as_answers

RESULTS = Path(__file__).parent / "results" / "serving.json"
RUNTIME = "cfproto_plugin.integrations.mlserver.runtime.CounterfactualRuntime"
ROWS, CLIENTS, WARM_UP = 200, 16, 10.0
STARTING = 300  # seconds


def make(folder: Path) -> tuple[list[bytes], list[Any], float, float]:
    """Requests, the answers of the same explainer in a loop, how many rows a second the loop explains, CPU per row."""
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1, random_state=0).fit(x[ROWS:], y[ROWS:])
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x[ROWS:])
    explainer.save(folder / "explainer.zip")
    rows = [x[at : at + 1].reset_index(drop=True) for at in range(ROWS)]
    explainer.explain(rows[0])
    start, cpu = time.perf_counter(), time.process_time()
    found = [explainer.explain(row) for row in rows]
    rate, cpu = ROWS / (time.perf_counter() - start), (time.process_time() - cpu) / ROWS
    bodies = [
        {
            "id": f"row-{at}",
            "inputs": [{"name": "rows", "shape": [1, 30], "datatype": "FP64", "data": row.to_numpy().ravel().tolist()}],
            "outputs": [{"name": "answers"}],
        }
        for at, row in enumerate(rows)
    ]
    return [json.dumps(body).encode() for body in bodies], [as_answers(each)[0] for each in found], rate, cpu


def serve(folder: Path, batching: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    """A server that is ready, and its port."""
    ports = []
    for _ in range(3):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            ports.append(found.getsockname()[1])
    named = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", **named, "parallel_workers": 0}))
    about = {"name": "tumours", "implementation": RUNTIME, "parameters": {"uri": str(folder / "explainer.zip")}}
    (folder / "model-settings.json").write_text(json.dumps({**about, **batching}))
    with (folder / "log").open("w") as log:
        command = [Path(sys.executable).parent / "mlserver", "start", folder]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=folder)
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/v2/models/tumours/ready", timeout=5):
                return process, ports[0]
        except OSError:
            time.sleep(0.3)
    raise TimeoutError((folder / "log").read_text()[-3000:])


def client(port: int, first: int, until: float, requests: list[bytes], expected: list[Any], done: list[Any]) -> None:
    """Send one request after the other; note when each began, what it took, and how it ended."""
    connection, at = http.client.HTTPConnection("127.0.0.1", port, timeout=120), first
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            connection.request("POST", "/v2/models/tumours/infer", requests[at], {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = json.loads(response.read())
            done.append((start, time.monotonic() - start, _judged(response.status, body, at, expected)))
        except (OSError, ValueError, http.client.HTTPException) as error:
            done.append((start, time.monotonic() - start, f"lost: {type(error).__name__}"))
            connection.close()
        at = (at + CLIENTS) % ROWS
    connection.close()


def _judged(status: int, body: Any, at: int, expected: list[Any]) -> str:
    if status != http.HTTPStatus.OK:
        return f"status {status}"
    answer = json.loads(body["outputs"][0]["data"][0])
    return "right" if body["id"] == f"row-{at}" and answer == expected[at] else "another's"


def memory_of(pid: int) -> float:
    """Megabytes in use."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(folder: Path, name: str, batching: dict[str, Any], seconds: float, made: Any) -> dict[str, Any]:
    """The figures of a minute, after a warm-up that does not count."""
    requests, expected, rate, loop_cpu = made
    process, port = serve(folder, batching)
    try:
        done: list[Any] = []
        begin = time.monotonic() + WARM_UP
        arguments = (begin + seconds, requests, expected, done)
        threads = [threading.Thread(target=client, args=(port, at, *arguments)) for at in range(CLIENTS)]
        for thread in threads:
            thread.start()
        time.sleep(WARM_UP)
        memory, cpu = [], cpu_of(process.pid)
        while any(thread.is_alive() for thread in threads):
            memory.append(memory_of(process.pid))
            time.sleep(1)
        cpu = cpu_of(process.pid) - cpu
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
    counted = [(took, how) for start, took, how in done if start >= begin]
    latency = np.array([took for took, _ in counted])
    together = [int(line.rpartition("together=")[2]) for line in _log(folder) if "together=" in line]
    return {
        "batching": name,
        "clients": CLIENTS,
        "seconds": seconds,
        "requests": len(counted),
        "ended": dict(Counter(how for _, how in counted)),
        "requests_per_second": len(counted) / seconds,
        "loop_rows_per_second": rate,
        "cpu_ms_per_request": 1000 * cpu / len(counted),
        "loop_cpu_ms_per_row": 1000 * loop_cpu,
        "latency_ms": {f"p{q}": float(np.percentile(latency, q) * 1000) for q in (50, 90, 95, 99)},
        "mean_together": float(np.mean(together)),
        "memory_mb": {"first_10_s": float(np.mean(memory[:10])), "last_10_s": float(np.mean(memory[-10:]))},
    }


def _log(folder: Path) -> list[str]:
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def as_lines(results: dict[str, Any]) -> list[str]:
    """The lines of the table on the page."""
    found = []
    for line in results["lines"]:
        latency = [f"{line['latency_ms'][each]:.0f}" for each in ("p50", "p90", "p99")]
        memory = ", ".join(f"{value:.0f}" for value in line["memory_mb"].values())
        cells = [line["batching"], line["requests"], f"{line['requests_per_second']:.1f}", *latency]
        cells.append(f"{line['cpu_ms_per_request']:.1f}")
        found.append(f"| {' | '.join(map(str, cells))} | {line['mean_together']:.1f} | {memory} |")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    settings = {"on": {"max_batch_size": 16, "max_batch_time": 0.005}, "off": {}}
    with tempfile.TemporaryDirectory(prefix="cf") as name:
        made = make(Path(name))
        lines = [load(Path(name), which, batching, given.seconds, made) for which, batching in settings.items()]
    names = ("mlserver", "numpy", "pandas", "xgboost-cpu")
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), **{each: version(each) for each in names}},
    }
    given.output.write_text(json.dumps({"about": about, "lines": lines}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
