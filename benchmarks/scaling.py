"""How time grows with rows, columns, trees and training size.

A random forest on made-up data with default settings, one thread. One of the four numbers is varied at a time from 50
rows to explain, 20 columns, 100 trees and 2,000 training rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer

BASE = {"rows": 50, "columns": 20, "trees": 100, "training": 2000}
VARIED = {
    "rows": (1, 10, 50, 250, 1000),
    "columns": (5, 20, 80),
    "trees": (25, 100, 400),
    "training": (500, 2000, 8000, 32000),
}


def measure() -> list[dict[str, Any]]:
    """One line per size."""
    return [_line(name, {**BASE, name: value}) for name, values in VARIED.items() for value in values]


def _line(varied: str, size: dict[str, int]) -> dict[str, Any]:
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    x, y = make_classification(
        size["training"] + size["rows"], size["columns"], n_informative=size["columns"] // 2, random_state=0
    )
    train, test = x[: size["training"]], x[size["training"] :]
    model = RandomForestClassifier(size["trees"], random_state=0).fit(train, y[: len(train)])
    start = time.perf_counter()
    explainer = CounterfactualExplainer(model).fit(train)
    fitted = time.perf_counter() - start
    explainer.explain(test[:1])
    start = time.perf_counter()
    e = explainer.explain(test)
    taken = time.perf_counter() - start
    return {
        "varied": varied,
        **size,
        "fit_s": fitted,
        "ms_per_row": 1000 * taken / len(test),
        "predict_calls": e.meta["n_predict_calls"],
        "found": float(np.mean(e.status == "found")),
    }
