"""Ours: with its default settings, as close as possible, with few changes, and close to the class without polish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from cases import BETA, Case
from method import Explain, Method

from cfproto_plugin import CounterfactualExplainer, SearchConfig

PACKAGES = ("cfproto-plugin", "numpy", "scikit-learn", "xgboost-cpu")


def _with(search: SearchConfig) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        explainer = CounterfactualExplainer(case.model, search=replace(search, beta=BETA)).fit(case.train)

        def explain(rows: np.ndarray) -> np.ndarray:
            e = explainer.explain(rows, progress=False)
            explain.calls = e.meta["n_predict_calls"]  # type: ignore[attr-defined]
            return np.asarray(e.counterfactual)

        return explain

    return prepare


def _method(name: str, search: SearchConfig, many: bool = False) -> Method:
    return Method(name, _with(search), batch=_with(search), many=many)


METHODS = (
    _method("ours, no polish", SearchConfig.close(theta=5.0, polish=False), many=True),
    _method("ours", SearchConfig(), many=True),
    _method("ours, close", SearchConfig.close(), many=True),
    _method("ours, few_changes=1", SearchConfig.close(few_changes=1.0)),
)
