"""Adult with its raw strings: 500 rows, sex, race and native-country immutable, age only increasing.

The table goes in as it was published, all 14 columns. An answer is valid if the model predicts the claimed class for
the raw row that is returned and no rule is broken on it; `changed` is the mean number of columns that differ.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.datasets import load_adult
from cfproto_plugin.errors import InputError

IMMUTABLE = ["sex", "race", "native-country"]
ROWS = 500


def models(train: Any) -> dict[str, Any]:
    """Pipelines from raw strings to a class."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xgboost import XGBClassifier

    numbers, strings = train.select_dtypes("number").columns, train.select_dtypes(exclude="number").columns
    classifiers = {
        "pipeline, XGBoost": XGBClassifier(n_estimators=100, random_state=0),
        "pipeline, random forest": RandomForestClassifier(100, max_depth=14, random_state=0),
        "pipeline, network": MLPClassifier((40, 40), early_stopping=True, n_iter_no_change=3, random_state=0),
    }
    return {
        name: make_pipeline(
            make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), strings)),
            classifier,
        )
        for name, classifier in classifiers.items()
    }


def valid(e: Explanation, model: Any, rows: Any) -> int:
    """How many answers keep what they promise."""
    found = np.isin(e.status, ("found", "fallback"))
    before, after = rows[found], e.counterfactual[found]
    keeps = (before[IMMUTABLE] == after[IMMUTABLE]).all(axis=1) & (after["age"] >= before["age"])
    return int((keeps & (model.predict(after) == e.counterfactual_class[found])).sum())


def line(name: str, model: Any, train: Any, rows: Any) -> dict[str, Any]:
    """Fit the explainer on the training rows and explain the others."""
    start = time.perf_counter()
    rules = Features(immutable=IMMUTABLE, increasing=["age"])
    explainer = CounterfactualExplainer(model, features=rules).fit(train)
    fitted = time.perf_counter() - start
    start = time.perf_counter()
    e = explainer.explain(rows)
    seconds = time.perf_counter() - start
    return {
        "model": name,
        "rows": len(e),
        **{status: int((e.status == status).sum()) for status in ("found", "fallback", "infeasible", "not_found")},
        "valid": valid(e, model, rows),
        "seconds": seconds,
        "predict_calls": e.meta["n_predict_calls"],
        "predicted_rows": e.meta["n_predicted_rows"],
        "changed": len(e.changes()) / max(int(np.isin(e.status, ("found", "fallback")).sum()), 1),
        "fit_s": fitted,
    }


def measure() -> list[dict[str, Any]]:
    """One line per model; none, and the reason, where the data is not at hand."""
    try:
        (train, income), (test, _) = load_adult(split="train"), load_adult(split="test")
    except InputError as error:
        print(f"left out: {error}")
        return []
    labels = (income == ">50K").astype(int)
    rows = test.drop_duplicates().sample(ROWS, random_state=0)
    return [line(name, model.fit(train, labels), train, rows) for name, model in models(train).items()]
