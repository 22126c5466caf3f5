"""Ask a method row by row, with a limit of processor time for every row and for all of them."""

from __future__ import annotations

import signal
import time
from typing import Any

import numpy as np
from cases import Case
from method import Explain, Method

FIELDS = ("cells", "ms", "cpu", "calls", "proved", "errors")


class TooSlowError(Exception):
    """A row took more processor time than its limit."""


def watch() -> None:
    """Let the limits of this process be heard."""
    signal.signal(signal.SIGPROF, _stop)


def _stop(*_: Any) -> None:
    raise TooSlowError


def timed(explain: Explain, x: np.ndarray) -> tuple[Any, float]:
    """The answer and the milliseconds it took by the clock."""
    start = time.perf_counter()
    found = explain(x)
    return found, 1000 * (time.perf_counter() - start)


def plain(found: np.ndarray | None) -> list[float] | None:
    """One counterfactual for JSON; None where there is none."""
    return None if found is None or np.isnan(found).any() else np.asarray(found, dtype=float).ravel().tolist()


def asked(method: Method, case: Case, rows: int, seconds: float, in_all: float = float("inf")) -> dict[str, Any]:
    """The answers of one method; an error of `prepare` is the answer to all rows.

    ms is by the clock, cpu the milliseconds of processor time. A row begins only while less than `in_all` seconds of
    processor time have passed; there is no entry for the rows after it.
    """
    try:
        explain = method.prepare(case)
    except Exception as error:  # noqa: BLE001 whatever a peer raises is its answer
        return {name: [] for name in FIELDS} | {"cells": [None] * rows, "errors": [_text(error)] * rows}
    found: dict[str, Any] = {name: [] for name in FIELDS}
    begun = time.process_time()
    for row in case.rows[:rows]:
        if time.process_time() - begun > in_all:
            break
        for name, value in zip(FIELDS, _one(explain, row, seconds), strict=True):
            found[name].append(value)
    return found


def _one(explain: Explain, row: np.ndarray, seconds: float) -> tuple[Any, ...]:
    """The fields of one row."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        cells, ms = timed(explain, row)
        cpu = 1000 * (time.process_time() - start)
        return plain(cells), ms, cpu, getattr(explain, "calls", None), getattr(explain, "proved", None), None
    except Exception as error:  # noqa: BLE001 whatever a peer raises is its answer
        return None, None, None, None, None, _text(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
