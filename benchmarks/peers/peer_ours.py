"""Ours: with its default settings, without polish, and with few changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import BETA, Case
from method import Explain, Method

from cfproto_plugin import CounterfactualExplainer, SearchConfig

PACKAGES = ("cfproto-plugin", "numpy", "scikit-learn", "xgboost-cpu")


def _with(**settings: Any) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        explainer = CounterfactualExplainer(case.model, search=SearchConfig(beta=BETA, **settings)).fit(case.train)

        def explain(rows: np.ndarray) -> np.ndarray:
            e = explainer.explain(rows, progress=False)
            explain.calls = e.meta["n_predict_calls"]  # type: ignore[attr-defined]
            return np.asarray(e.counterfactual)

        return explain

    return prepare


def _method(name: str, many: bool = False, **settings: Any) -> Method:
    return Method(name, _with(**settings), batch=_with(**settings), many=many)


METHODS = (
    _method("ours, no polish", many=True, polish=0),
    _method("ours", many=True),
    _method("ours, few_changes=1", few_changes=1.0),
)
