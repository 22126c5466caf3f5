"""Ask one peer in its own environment: `python ask.py` with the case, the methods and the output as JSON.

Writes the cells of every answer and the time it took; nothing is judged here. A row on which a method raises or takes
more processor time than its limit has no answer, and the error is kept.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

from cases import Case, load
from method import Method
from worker import plain, timed


class TooSlowError(Exception):
    """A row took more processor time than its limit."""


def _stop(*_: Any) -> None:
    raise TooSlowError


def asked(method: Method, case: Case, rows: int, seconds: int, in_all: float = float("inf")) -> dict[str, Any]:
    """The answers of one method; an error of `prepare` is the answer to all rows.

    ms is by the clock, cpu the milliseconds of processor time. A row begins only while less than `in_all` seconds of
    processor time have passed; there is no entry for the rows after it.
    """
    try:
        explain = method.prepare(case)
    except Exception as error:  # noqa: BLE001 whatever a peer raises is its answer
        return {"cells": [None] * rows, "ms": [], "cpu": [], "errors": [_text(error)] * rows}
    found: dict[str, Any] = {"cells": [], "ms": [], "cpu": [], "errors": []}
    begun = time.process_time()
    for row in case.rows[:rows]:
        start = time.process_time()
        if start - begun > in_all:
            break
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            cells, ms = timed(explain, row)
            answer, error = plain(cells), None
        except Exception as raised:  # noqa: BLE001
            answer, ms, error = None, None, _text(raised)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        cpu = None if ms is None else 1000 * (time.process_time() - start)
        for name, value in zip(found, (answer, ms, cpu, error), strict=True):
            found[name].append(value)
    return found


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(peer: str, folder: Path, data: str, kind: str, methods: dict[str, int], seconds: int, output: Path) -> None:
    """All methods named, on one case."""
    signal.signal(signal.SIGPROF, _stop)
    module = importlib.import_module(f"peer_{peer}")
    case = load(folder, data, kind)
    by_name = {method.name: method for method in module.METHODS}
    found = {name: asked(by_name[name], case, rows, seconds) for name, rows in methods.items()}
    versions = {package: version(package) for package in module.PACKAGES}
    output.write_text(json.dumps({"versions": versions, "methods": found}))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(
        given["peer"],
        Path(given["folder"]),
        given["data"],
        given["kind"],
        given["methods"],
        given["seconds"],
        Path(given["output"]),
    )
