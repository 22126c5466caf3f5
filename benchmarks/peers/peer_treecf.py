"""treecf: its default genetic backend, alone and in batches, and its exact backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case
from method import PROOF_SECONDS, Explain, Method
from treecf import Explainer, Target, TreecfWarning

PACKAGES = ("treecf", "numpy", "scikit-learn", "xgboost-cpu")

warnings.simplefilter("ignore", TreecfWarning)  # the exact backend says so when its time is up


def _target(case: Case, wanted: int) -> Target:
    """The other side of one half: a probability for XGBoost; a forest has no link, its raw output is one already."""
    space = Target.probability if case.kind == "xgboost" else Target.raw
    return space(range=(0.5 + 1e-6, 1.0)) if wanted else space(range=(0.0, 0.5))


def _explainer(case: Case) -> Explainer:
    """Distances in standard deviations, as EN is; by default it divides by the columns' median deviations."""
    return Explainer(case.model, background=case.train, normalizers=case.scale)


def _with(**settings: Any) -> Callable[[Case], Explain]:
    def prepare(case: Case) -> Explain:
        explainer = _explainer(case)

        def explain(row: np.ndarray) -> np.ndarray | None:
            wanted = 1 - int(case.proba(row[None]).argmax())
            found = explainer.explain(row, _target(case, wanted), seed=0, **settings)
            if "backend" in settings:
                explain.proved = getattr(found, "proof", None) == "optimal"  # type: ignore[attr-defined]
            return getattr(found, "x_cf", None)

        return explain

    return prepare


def _batch(case: Case) -> Explain:
    """A call of `explain_batch` has one target, so there is one call per class."""
    explainer = _explainer(case)

    def explain(rows: np.ndarray) -> np.ndarray:
        result = np.full(rows.shape, np.nan)
        own = case.proba(rows).argmax(axis=1)
        for wanted in (0, 1):
            index = np.flatnonzero(own != wanted)
            for record in explainer.explain_batch(rows[index], _target(case, wanted), ids=index.tolist()).records:
                if record.feasible:
                    result[record.id] = record.x_cf
        return result

    return explain


METHODS = (
    Method("treecf", _with(), batch=_batch, many=True),
    Method("treecf exact", _with(backend="exact", time_budget_s=PROOF_SECONDS)),
)
