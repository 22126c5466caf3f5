"""What an answer costs a model that only predicts.

The standardised Breast Cancer data, XGBoost (100 trees of depth 4) as the function `model.predict_proba` and nothing
else, three splits, 60 held-back rows each, in one call and the first twenty alone. `predicted` is the number of rows
that the function was asked about, for each row explained; `distance` is the median of 0.1·L1 + L2. `close()` without
decimals is what a nearest answer costs, the default has its floors beside that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

SPLITS, ROWS, ALONE = (0, 1, 2), 60, 20
SEARCHES = {
    "close(), decimals=None": (SearchConfig.close(), Features(decimals=None)),
    "close()": (SearchConfig.close(), Features()),
    "few()": (SearchConfig.few(), Features()),
    "default": (SearchConfig(), Features()),
}


def measure() -> list[dict[str, Any]]:
    """One line per search, over all splits."""
    cases = list(_cases())
    return [_line(name, cases) for name in SEARCHES]


def _cases() -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    x, y = load_breast_cancer(return_X_y=True)
    for seed in SPLITS:
        train, rest, labels, _ = train_test_split(x, y, test_size=1 / 3, random_state=seed)
        scaler = StandardScaler().fit(train)
        train, rest = scaler.transform(train), scaler.transform(rest)
        yield XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1).fit(train, labels), train, rest[:ROWS]


def _line(name: str, cases: list[tuple[Any, np.ndarray, np.ndarray]]) -> dict[str, Any]:
    search, features = SEARCHES[name]
    batch, alone, calls, distance = [], [], [], []
    for model, train, rows in cases:
        explainer = CounterfactualExplainer(model.predict_proba, search=search, features=features).fit(train)
        together = explainer.explain(rows, progress=False)
        batch.append(together.meta["n_predicted_rows"] / len(rows))
        distance += together.distance.tolist()
        for row in rows[:ALONE]:
            e = explainer.explain(row, progress=False)
            alone.append(e.meta["n_predicted_rows"])
            calls.append(e.meta["n_predict_calls"])
    return {
        "search": name,
        "rows": len(distance),
        "predicted, one call": round(float(np.mean(batch))),
        "predicted, alone": round(float(np.mean(alone))),
        "calls, alone": round(float(np.mean(calls))),
        "distance": float(np.median(distance)),
    }
