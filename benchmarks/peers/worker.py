"""Ask one tool in its own environment: `python worker.py` with the tool, the folders, cells and limits as JSON.

A cell is a data set, a model and a method. Each is a file of its own, written when it is answered, and one that exists
is not asked again. Nothing is judged here. What a method raises is kept as its answer.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from asking import TooSlowError, asked, plain, watch
from cases import Case, load
from method import Method


def main(given: dict[str, Any]) -> None:
    """All cells of the tool that have no file yet."""
    watch()
    warnings.simplefilter("ignore")
    module = importlib.import_module(f"peer_{given['tool']}")
    methods = {method.name: method for method in module.METHODS}
    versions = {package: version(package) for package in module.PACKAGES}
    for data, kind, name in given["cells"]:
        file = Path(given["output"]) / f"{data}-{kind}-{name}.json"
        if file.exists():
            continue
        start, found = time.perf_counter(), {}
        with contextlib.suppress(TooSlowError):  # a signal that arrives after its row
            found = cell(methods[name], load(Path(given["folder"]), data, kind), given)
        if found:
            part = file.with_suffix(".part")
            part.write_text(json.dumps(found | {"versions": versions, "code": given["code"]}))
            part.rename(file)
            solved = sum(answer is not None for answer in found["cells"])
            print(f"{file.stem}: {solved} of {len(found['cells'])}, {time.perf_counter() - start:.1f} s", flush=True)


def cell(method: Method, case: Case, given: dict[str, Any]) -> dict[str, Any]:
    """The answers to all rows, one by one; of a method with batches also the time per row of all rows in one call.

    With `alone` such a method is asked only that many rows one by one, and its answers are those of the one call. same:
    to how many rows asked one by one that call gives the same answer.
    """
    alone = given["alone"] if method.batch is not None else None
    found = asked(method, case, alone or len(case.rows), given["row_seconds"], given["cell_seconds"])
    if method.batch is not None and any(found["ms"]):
        answers, found["batch_ms"] = together(method, case, case.rows)
        known = [np.nan if answer is None else answer for answer in found["cells"]]
        pairs = zip(known, answers, strict=False)
        found["same"] = sum(np.allclose(one, other, rtol=1e-6, equal_nan=True) for one, other in pairs)
        if alone:
            found["cells"] = [plain(row) for row in answers]
        if method.many and len(case.many) > len(case.rows):
            _, found["many_ms"] = together(method, case, case.many)
    return found


def together(method: Method, case: Case, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The answers of one call for all rows, after one for two, and its milliseconds of processor time per row."""
    explain = method.batch(case)
    explain(case.many[:2])
    start = time.process_time()
    found = explain(rows)
    return np.asarray(found, dtype=float), 1000 * (time.process_time() - start) / len(rows)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
