"""Tree models with default settings: how many rows, how long, how many predict calls."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer


def measure() -> list[dict[str, Any]]:
    """One line per data set and model: train on two thirds, explain the rest."""
    from sklearn import datasets
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from xgboost import XGBClassifier

    lines = []
    for name in ("breast_cancer", "wine", "digits"):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        train, test, labels, _ = train_test_split(x, y, test_size=1 / 3, random_state=0, stratify=y)
        for model in (RandomForestClassifier(100, random_state=0), XGBClassifier(n_estimators=100)):
            model.fit(train, labels)
            explainer = CounterfactualExplainer(model).fit(train)
            start = time.perf_counter()
            e = explainer.explain(test)
            batch = time.perf_counter() - start
            alone = [explainer.explain(row).meta for row in test[:20]]
            spread = train.std(axis=0)
            delta = (e.counterfactual - test) / np.where(spread > 0, spread, 1)
            valid = np.isin(e.status, ("found", "fallback")) & (
                model.predict(e.counterfactual) == e.counterfactual_class
            )
            lines.append(
                {
                    "data": name,
                    "model": type(model).__name__,
                    "rows": len(test),
                    "valid": int(valid.sum()),
                    "batch_ms_per_row": 1000 * batch / len(test),
                    "single_row_ms": 1000 * float(np.median([meta["seconds"] for meta in alone])),
                    "calls_per_row": max(meta["n_predict_calls"] for meta in alone),
                    "median_en": float(np.median(0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1))),
                }
            )
    return lines
