"""Ours: with its default settings, as close as possible, with few changes, and close to the class without polish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from cases import BETA, Case
from method import PROOF_SECONDS, Explain, Method

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

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


def _proving(case: Case) -> Explain:
    """With certify="optimal": in place of the digits that `decimals` would leave out, all of them."""
    search = SearchConfig.close(certify="optimal", beta=BETA)
    explainer = CounterfactualExplainer(case.model, search=search, features=Features(decimals=None)).fit(case.train)

    def explain(row: np.ndarray) -> np.ndarray:
        e = explainer.explain(row, progress=False, time_budget=PROOF_SECONDS)
        explain.proved = bool(e.gap[0] == 0)  # type: ignore[attr-defined]
        return np.asarray(e.counterfactual)

    return explain


METHODS = (
    _method("ours, no polish", SearchConfig.close(theta=5.0, polish=False), many=True),
    _method("ours", SearchConfig(), many=True),
    _method("ours, close", SearchConfig.close(), many=True),
    _method("ours, few_changes=1", SearchConfig.close(few_changes=1.0)),
    Method("ours, certify", _proving, rows=10, rounds=1),
)
