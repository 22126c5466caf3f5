"""`mlflow models serve` as a process of its own, for as long as a test needs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 240  # to start, at most; about 40 on an idle machine


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def scoring_server(arguments: list[str], port: int, log: Path, **environment: str) -> Iterator[str]:
    """Its address, once it answers. arguments: those of `mlflow`, without the port."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]  # where `serve` looks for uvicorn
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *arguments, "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **environment, "PATH": os.pathsep.join(folders)},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/ping", log)
        yield f"http://127.0.0.1:{port}/invocations"
    finally:
        _stop(process)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310 our own server
                return
        except OSError:
            time.sleep(0.5)
    said = log.read_text(encoding="utf-8")[-3000:]
    raise TimeoutError(f"the server ended, or did not answer in {SECONDS} seconds:\n{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the processes that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(20)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
        break
    process.wait(20)
