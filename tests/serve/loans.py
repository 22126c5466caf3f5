"""Data, models and explainers that the tests of servers share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from cfproto_plugin import CounterfactualExplainer, SearchConfig


def loans(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round(2)})


def write_models(folder: Path) -> CounterfactualExplainer:
    """An XGBoost model, its explainer with the model, and the same without it."""
    from xgboost import XGBClassifier

    x = loans()
    model = XGBClassifier(n_estimators=10, n_jobs=1).fit(x, (x.income + 20 * x.age > 4000).astype(int))
    model.save_model(folder / "model.json")
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x)
    explainer.save(folder / "explainer.zip")
    explainer.save(folder / "without.zip", model="reference")
    return explainer


def v2(rows: pd.DataFrame, request_id: str | None = None, **params: object) -> dict[str, object]:
    """A V2 request with one tensor per column."""
    kinds = {"i": "INT64", "f": "FP64"}
    inputs = [
        {"name": name, "shape": [len(rows), 1], "datatype": kinds[rows[name].dtype.kind], "data": rows[name].tolist()}
        for name in rows.columns
    ]
    body: dict[str, object] = {"inputs": inputs, "parameters": {"explain_parameters": params}}
    return body if request_id is None else {**body, "id": request_id}
