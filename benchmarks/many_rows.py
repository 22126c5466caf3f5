"""Ten and a hundred thousand rows in one call, against a million training rows.

20 Gaussian columns, a logistic regression, default settings, one thread; each line from a process of its own.
`before_gb` is what the process holds when the call begins, `peak_gb` the most during the call, `rows_gb` the rows and
the arrays that are returned for them, and `search_gb` what is left of the difference. Rows are searched in portions;
what still grows with their number are messages, records of how each was found, and arrays on their way to the result.
`bar` is how often the progress bar was written, `last` what it said at last.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from contextlib import redirect_stderr, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from million import MANY, SEEN, in_child, model_of, peak_gb, rows_of

from cfproto_plugin import CounterfactualExplainer, Explanation

SIZES = (10_000, 100_000)


def measure() -> list[dict[str, Any]]:
    """One line per number of rows."""
    return [in_child(Path(__file__), str(rows)) for rows in SIZES]


def _line(rows: int) -> dict[str, Any]:
    x, y = rows_of("Gaussian", MANY + rows)
    model = model_of("LogisticRegression").fit(x[:SEEN], y[:SEEN])
    explainer = CounterfactualExplainer(model).fit(x[:MANY])
    test = x[MANY:].copy()
    del x, y
    explainer.explain(test[:10])
    before, bar = _begin(), io.StringIO()
    wall, start = time.perf_counter(), time.process_time()
    with redirect_stderr(bar):
        explanation = explainer.explain(test, progress=True)
    taken, peak = time.process_time() - start, peak_gb()
    shown = [text for text in bar.getvalue().split("\r") if text.strip()]
    own = (test.nbytes + _bytes(explanation)) / 1e9
    return {
        "rows": rows,
        "found": float(np.mean(explanation.status == "found")),
        "seconds": time.perf_counter() - wall,
        "cpu_ms_per_row": 1000 * taken / rows,
        "before_gb": before,
        "peak_gb": peak,
        "rows_gb": own,
        "search_gb": peak - before - own,
        "bar": len(shown),
        "last": re.sub(r"\s*\d+%.*", "", shown[-1]) if shown else "",
    }


def _begin() -> float:
    """Forget the peak so far, where the system can; what the process holds now, in GB."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e9


def _bytes(explanation: Explanation) -> int:
    """Of the arrays that an explanation holds."""
    parts = [getattr(explanation, each.name) for each in fields(explanation)]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


if __name__ == "__main__":
    print(json.dumps(_line(int(sys.argv[1]))))
