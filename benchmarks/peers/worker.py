"""Measure one peer in its own environment: `python worker.py <peer> <folder> <round> <output> [method ...]`.

Writes what every method gave and how long it took; nothing is judged here. What a method raises is kept as its answer.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case, load
from method import Explain, Method


def timed(explain: Explain, x: np.ndarray) -> tuple[Any, float]:
    """The answer and the milliseconds it took."""
    start = time.perf_counter()
    found = explain(x)
    return found, 1000 * (time.perf_counter() - start)


def plain(found: np.ndarray | None) -> list[float] | None:
    """One counterfactual for JSON; None where there is none."""
    return None if found is None or np.isnan(found).any() else np.asarray(found, dtype=float).ravel().tolist()


def one_by_one(method: Method, case: Case) -> dict[str, Any]:
    """Every row alone; where it is quick after one that is not counted, which pays for what is loaded on first use."""
    explain = method.prepare(case)
    if method.rounds > 1:
        explain(case.many[0])
    answers, calls, proved = [], [], []
    for row in case.rows[: method.rows]:
        answers.append(timed(explain, row))
        calls.append(getattr(explain, "calls", None))
        proved.append(getattr(explain, "proved", None))
    times, found = [ms for _, ms in answers], [plain(found) for found, _ in answers]
    return {"ms": times, "found": found, "calls": calls, "proved": proved}


def together(method: Method, case: Case, rows: np.ndarray) -> float:
    """Milliseconds per row of one call for all."""
    explain = method.batch(case)
    explain(case.many[:2])
    return timed(explain, rows)[1] / len(rows)


def measure(method: Method, case: Case, number: int) -> dict[str, Any]:
    """One method on one case."""
    result = {"data": case.data, "model": case.kind, "method": method.name}
    try:
        result |= one_by_one(method, case)
        if method.batch is not None:
            result["batch_ms"] = together(method, case, case.rows)
        if method.many and number == 0:
            result["many_ms"] = together(method, case, case.many)
    except Exception as error:  # noqa: BLE001 whatever a peer raises is its answer
        result["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return result


def main(peer: str, folder: Path, number: int, output: Path, names: list[str]) -> None:
    """The methods of the peer that take part in this round, on all cases; with names only these."""
    module = importlib.import_module(f"peer_{peer}")
    results = []
    for data, kind in CASES:
        case = load(folder, data, kind)
        todo = [method for method in module.METHODS if number < method.rounds]
        todo = [method for method in todo if not names or method.name in names]
        results += [_told(measure(method, case, number)) for method in todo]
    versions = {package: version(package) for package in module.PACKAGES}
    output.write_text(json.dumps({"versions": versions, "results": results}))


def _told(result: dict[str, Any]) -> dict[str, Any]:
    what = result.get("error") or f"{np.median(result['ms']):.3g} ms"
    print(f"  {result['data']} {result['model']} {result['method']}: {what}", flush=True)
    return result


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
