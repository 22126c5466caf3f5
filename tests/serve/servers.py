"""Servers as processes of their own, for as long as a test needs them; and a small client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 300  # to start, at most; some 20 on an idle machine


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def running(
    command: Sequence[Any], ready: str, log: Path, cwd: Path | None = None, **environment: str
) -> Iterator[int]:
    """The id of a server process, from when `ready` answers. command: a program of this environment."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [Path(sys.executable).parent / command[0], *map(str, command[1:])],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            cwd=cwd,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _wait(process, ready, log)
        yield process.pid
    finally:
        _stop(process)


def call(
    address: str, body: Any = None, seconds: float = 120, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """Status and JSON of an answer, an error's too."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json", **(headers or {})})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:  # noqa: S310 our own server
            return response.status, _parsed(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _parsed(error.read())


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode()


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if call(address, seconds=5)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise TimeoutError(f"the server ended, or was not ready in {SECONDS} seconds:\n{log.read_text()[-4000:]}")


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
    process.wait(20)
