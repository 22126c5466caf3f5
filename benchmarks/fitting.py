"""Fitting at scale: a million rows by twenty columns.

`fit` labels the training data by the model and builds a k-d tree per class. `predict_s` is the model's own
`predict_proba` of the million rows and `trees_s` SciPy's k-d trees of the standardised rows by class: what cannot be
saved. `data_gb` is the size of the rows, `arrays_gb` the most that NumPy's arrays took beside them while fitting again.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer

ROWS, COLUMNS, SEEN = 1_000_000, 20, 20_000


def measure() -> list[dict[str, Any]]:
    """One line per model."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from xgboost import XGBClassifier

    x, y = make_classification(ROWS, COLUMNS, n_informative=10, n_classes=3, random_state=0)
    models = (LogisticRegression(), XGBClassifier(n_estimators=100))
    return [_line(model.fit(x[:SEEN], y[:SEEN]), x) for model in models]


def _line(model: Any, x: np.ndarray) -> dict[str, Any]:
    from scipy.spatial import KDTree

    fitted = _seconds(lambda: CounterfactualExplainer(model).fit(x))
    labels = np.empty(0)

    def predict() -> None:
        nonlocal labels
        labels = model.predict_proba(x).argmax(axis=1)

    predicted = _seconds(predict)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    built = _seconds(lambda: [KDTree(z[labels == label]) for label in np.unique(labels)])
    return {
        "model": type(model).__name__,
        "fit_s": fitted,
        "predict_s": predicted,
        "trees_s": built,
        "ratio": fitted / (predicted + built),
        "data_gb": x.nbytes / 1e9,
        "arrays_gb": _arrays(lambda: CounterfactualExplainer(model).fit(x)),
    }


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _arrays(work: Any) -> float:
    """Gigabytes."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e9
