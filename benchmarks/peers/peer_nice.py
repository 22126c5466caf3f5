"""NICE: the nearest unlike training row, and its two greedy ways from the row towards it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cases import Case
from method import Explain, Method
from nice import NICE

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
        )
        return lambda row: np.asarray(explainer.explain(row[None].copy()))[0]

    return prepare


METHODS = tuple(Method(f"NICE {name}", _with(name)) for name in ("none", "sparsity", "proximity"))
