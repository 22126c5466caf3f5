"""NICE: the nearest unlike training row, and its three greedy ways from the row towards it.

With more than two classes its rewards for proximity and plausibility raise unless they are told one class: they get
that of its own nearest unlike row. Plausibility needs an autoencoder, which NICE leaves to its user: here a small
network on the standardised rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cases import Case
from method import Explain, Method
from nice import NICE
from reconstruction import reconstruction

PACKAGES = ("NICEx", "numpy", "scikit-learn", "xgboost-cpu")


def _with(optimization: str) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        explainer = NICE(
            case.proba,
            case.train.copy(),
            cat_feat=[],
            y_train=case.labels,
            optimization=optimization,
            num_normalization="std",
            auto_encoder=reconstruction(case) if optimization == "plausibility" else None,
        )
        several = optimization in {"proximity", "plausibility"} and case.proba(case.rows[:1]).shape[1] > 2

        def explain(row: np.ndarray) -> np.ndarray:
            wanted = [_nearest_class(explainer, row)] if several else "other"
            return np.asarray(explainer.explain(row[None].copy(), wanted))[0]

        return explain

    return prepare


def _nearest_class(explainer: NICE, row: np.ndarray) -> int:
    explainer.data.fit_to_X(row[None].copy(), "other")
    near = explainer.nearest_neighbour.find_neighbour(explainer.data.X)
    return int(explainer.data.predict_fn(near).argmax())


METHODS = tuple(Method(f"NICE {name}", _with(name)) for name in ("none", "sparsity", "proximity", "plausibility"))
