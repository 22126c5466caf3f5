"""What the settings of the search buy: starts, theta, polishing, few changes and floors.

Twenty held-back rows of Breast Cancer, standardised, 100 trees, each setting on top of `SearchConfig.close()`. `starts`
is the number of prototypes per class; EN and 5NN are means of 0.1·L1 + L2 and of the distance to the five nearest
training rows of the new class, `changed` is the mean number of columns that differ, `ms` the time per row of one call
with all twenty, best of three. Floors that are given are rules: a row that cannot reach them is not found.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.prototypes.kdtree import KDTreePrototypes

VARIED: tuple[dict[str, Any], ...] = (
    {"starts": 1},
    {"starts": 4},
    {"starts": 8},
    {"starts": 16},
    {"polish": False},
    {"polish": False, "theta": 5.0},
    {"theta": 0.5},
    {"theta": 5.0},
    {"few_changes": 0.5},
    {"few_changes": 1.0},
    {"few_changes": 3.0},
    {"max_changes": 5},
    {"min_typicality": 0.1},
    {"min_stability": 0.9},
)


def measure() -> list[dict[str, Any]]:
    """One line per model and setting."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    x, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    held, rest = order[:20], order[20:]
    x = StandardScaler().fit(x[rest]).transform(x)
    lines = []
    for model in (XGBClassifier(n_estimators=100), RandomForestClassifier(100, random_state=0)):
        model.fit(x[rest], y[rest])
        lines += [_line(model, x[rest], x[held], dict(varied)) for varied in VARIED]
    return lines


def _line(model: Any, train: np.ndarray, rows: np.ndarray, varied: dict[str, Any]) -> dict[str, Any]:
    from sklearn.neighbors import NearestNeighbors

    settings = dict(varied)
    prototypes = KDTreePrototypes(per_class=settings.pop("starts", 8))
    explainer = CounterfactualExplainer(model, prototypes=prototypes, search=SearchConfig.close(**settings)).fit(train)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        e = explainer.explain(rows, progress=False)
        times.append(time.perf_counter() - start)
    found = np.isin(e.status, ("found", "fallback"))
    after, kinds = e.counterfactual[found], e.counterfactual_class[found]
    delta = after - rows[found]
    labels = model.predict(train)
    near = [
        NearestNeighbors(n_neighbors=5).fit(train[labels == kind]).kneighbors(row[None])[0].mean()
        for row, kind in zip(after, kinds, strict=True)
    ]
    return {
        "model": type(model).__name__,
        "setting": ", ".join(f"{name}={value}" for name, value in varied.items()),
        "found": int(found.sum()),
        "EN": float((0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)).mean()),
        "changed": float((delta != 0).sum(axis=1).mean()),
        "5NN": float(np.mean(near)),
        "ms": 1000 * min(times) / len(rows),
    }
