"""Ours: its presets with the model, the same on the model as a plain function, and under the peers' own objectives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cases import BETA, Case
from method import PROOF_SECONDS, Explain, Method

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

PACKAGES = ("cfproto-plugin", "numpy", "scikit-learn", "xgboost-cpu")
FUNCTION = ", function"


def _with(search: SearchConfig, function: bool = False) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        explainer = CounterfactualExplainer(case.proba if function else case.model, search=search).fit(case.train)

        def explain(rows: np.ndarray) -> np.ndarray:
            e = explainer.explain(rows, progress=False)
            explain.calls = e.meta["n_predict_calls"]  # type: ignore[attr-defined]
            return np.asarray(e.counterfactual)

        return explain

    return prepare


def _proving(case: Case) -> Explain:
    """With certify="optimal": in place of the digits that `decimals` would leave out, all of them."""
    search = SearchConfig.close(certify="optimal", beta=BETA)
    explainer = CounterfactualExplainer(case.model, search=search, features=Features(decimals=None)).fit(case.train)

    def explain(row: np.ndarray) -> np.ndarray:
        e = explainer.explain(row, progress=False, time_budget=PROOF_SECONDS)
        explain.proved = bool(e.gap[0] == 0)  # type: ignore[attr-defined]
        return np.asarray(e.counterfactual)

    return explain


SETTINGS = {
    "ours": SearchConfig(),
    "ours, close": SearchConfig.close(),
    "ours, few": SearchConfig.few(),
    "ours, few with floors": SearchConfig(few_changes=3.0),  # the default's floors
    "ours, typical": SearchConfig.typical(),
    "ours, stable": SearchConfig.stable(),
    "ours, close, beta=10": SearchConfig.close(beta=10.0),  # L1, the objective of treecf and NICE proximity
    "ours, theta=100": SearchConfig.close(theta=100.0),  # alibi's objective
}
AS_FUNCTIONS = ("ours", "ours, close", "ours, few", "ours, close, beta=10")

METHODS = (
    *(
        Method(name, _with(search), batch=_with(search), many=name == "ours, close")
        for name, search in SETTINGS.items()
    ),
    *(
        Method(name + FUNCTION, _with(SETTINGS[name], function=True), batch=_with(SETTINGS[name], function=True))
        for name in AS_FUNCTIONS
    ),
    Method("ours, certify", _proving),
)
