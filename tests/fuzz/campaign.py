"""Many cases one after another, and what they came to."""

from __future__ import annotations

import itertools
import json
import platform
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from . import tables
from .check import run
from .draw import draw

PACKAGES = ("cfproto-plugin", "numpy", "pandas", "scikit-learn", "torch", "keras", "xgboost")
SAVED = 20  # cases after which the results are written


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def one(seed: int, batch: int) -> int:
    """Run one case and print everything about it."""
    case = draw(seed, batch)
    say(str(case))
    problems, statuses = run(case)
    say(f"statuses {statuses}")
    for problem in problems:
        say(f"  {problem}")
    return int(bool(problems))


def campaign(rows: int, start: int | None, batch: int, results: Path) -> int:
    """Cases until so many rows were explained; adds to the file of results."""
    known = json.loads(results.read_text()) if results.exists() and start is None else fresh()
    seed = known["next_seed"] if start is None else start
    begin = time.perf_counter()
    while known["rows"] < rows:
        case = draw(seed, batch)
        problems, statuses = run(case)
        add(known, case, problems, statuses)
        for problem in problems[:3]:
            say(f"seed {seed} ({case.name}): {problem}")
        seed += 1
        known["next_seed"] = seed
        if seed % SAVED == 0 or known["rows"] >= rows:
            now = time.perf_counter()
            known["seconds"], begin = round(known["seconds"] + now - begin, 1), now
            results.write_text(json.dumps(known, indent=1) + "\n")
    say(f"{known['rows']} rows, {known['cases']} cases, {len(known['kinds'])} kinds, {len(known['findings'])} findings")
    return int(bool(known["findings"]))


def on_tables(rows: int, results: Path) -> int:
    """So many rows of each of the thirty tables, with a forest and with XGBoost; writes the file of results."""
    known = fresh()
    for name, model in itertools.product(tables.NAMES, tables.MODELS):
        case, begin = tables.case_of(name, model, rows), time.perf_counter()
        problems, statuses = run(case)
        known["seconds"] = round(known["seconds"] + time.perf_counter() - begin, 1)
        add(known, case, problems, statuses)
        for problem in problems[:3]:
            say(f"{case.name}: {problem}")
    results.write_text(json.dumps(known, indent=1) + "\n")
    say(f"{known['rows']} rows, {known['cases']} cases, {_listed(known)}, {len(known['findings'])} findings")
    return int(bool(known["findings"]))


def _listed(known: dict[str, Any]) -> str:
    return ", ".join(f"{count} {status}" for status, count in known["statuses"].items())


def fresh() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{p: metadata.version(p) for p in PACKAGES if _there(p)}},
        "rows": 0,
        "cases": 0,
        "seconds": 0.0,
        "next_seed": 0,
        "statuses": {},
        "kinds": {},
        "findings": [],
    }


def _there(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def add(known: dict[str, Any], case: Any, problems: list[str], statuses: dict[str, int]) -> None:
    known["rows"] += len(case.x)
    known["cases"] += 1
    known["statuses"] = dict(sorted((Counter(known["statuses"]) + Counter(statuses)).items()))
    known["kinds"][case.name] = known["kinds"].get(case.name, 0) + len(case.x)
    if problems:
        known["findings"].append({"seed": case.seed, "kind": case.name, "problems": problems[:5]})
