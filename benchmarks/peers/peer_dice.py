"""DiCE: random sampling and the genetic algorithm, one counterfactual per row.

With more than two classes it must be told which one: the second most likely.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from cases import Case
from method import Explain, Method

PACKAGES = ("dice-ml", "numpy", "pandas", "scikit-learn", "xgboost")


class _OnArrays:
    """The model behind the DataFrames that DiCE hands over; it was trained on arrays."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def predict_proba(self, x: Any) -> np.ndarray:
        return self.case.proba(np.asarray(x, dtype=float))

    def predict(self, x: Any) -> np.ndarray:
        return self.predict_proba(x).argmax(axis=1)


def _with(method: str) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        names = [f"f{i}" for i in range(case.train.shape[1])]
        frame = pd.DataFrame(case.train, columns=names).assign(label=case.labels)
        data = dice_ml.Data(dataframe=frame, continuous_features=names, outcome_name="label")
        explainer = dice_ml.Dice(data, dice_ml.Model(model=_OnArrays(case), backend="sklearn"), method=method)
        seed = {"random_seed": 0} if method == "random" else {}

        def explain(row: np.ndarray) -> np.ndarray | None:
            wanted = int(case.proba(row[None])[0].argsort()[-2])
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                found = explainer.generate_counterfactuals(
                    pd.DataFrame(row[None], columns=names), total_CFs=1, desired_class=wanted, **seed
                )
            frame = found.cf_examples_list[0].final_cfs_df
            return None if frame is None or frame.empty else frame[names].to_numpy(dtype=float)[0]

        return explain

    return prepare


METHODS = tuple(Method(f"DiCE {name}", _with(name)) for name in ("random", "genetic"))
