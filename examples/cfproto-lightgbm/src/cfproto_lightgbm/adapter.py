"""LightGBM classifiers, `LGBMClassifier` and the native `Booster`.

What the objectives give:

    binary, cross_entropy    (1 - p, p)
    cross_entropy_lambda     (1 - p, p) with p = 1 - exp(-lambda): LightGBM returns the intensity lambda
    multiclass               p
    multiclassova            p divided by its sum, since one-against-all probabilities do not sum to one

A model that stopped early uses its trees up to the best iteration, as LightGBM's own `predict` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cfproto_plugin.errors import ModelError, NotFittedError
from cfproto_plugin.helpers import FrameColumns, numbers_of, table_rows, tree_thresholds, two_columns
from cfproto_plugin.protocols import Array, Role, TreeEnsemble

from cfproto_lightgbm.trees import ZERO, Dump

if TYPE_CHECKING:
    from lightgbm import Booster

OBJECTIVES = ("binary", "cross_entropy", "cross_entropy_lambda", "multiclass", "multiclassova")


def load_booster(path: Path, *, model: Any = None, trusted: Any = ()) -> Booster:  # noqa: ARG001
    """Read what `Booster.save_model` wrote."""
    from lightgbm import Booster

    return Booster(model_file=path)


class LightGBMAdapter:
    """Columns in, probabilities out.

    num_threads: threads of a prediction; by default the classifier's n_jobs, or as many as LightGBM likes.
    """

    def __init__(self, model: Any, *, role: Role = "classifier", num_threads: int | None = None) -> None:
        name = type(model).__name__
        if role != "classifier":
            raise ModelError(f"{name} cannot be used as {role!r}: LightGBM models are classifiers. Pass a network.")
        self._booster = _booster(model, name)
        self._dump = Dump(self._booster.dump_model())  # the trees that predict uses
        self._objective = _checked_objective(model, name, self._dump.objective)
        self._threads = max(0, getattr(model, "n_jobs", None) or 0) if num_threads is None else num_threads
        self._categorical = bool(self._booster.pandas_categorical)
        self.feature_names = self._dump.feature_names
        self.accepts_frames = self.feature_names is not None
        self._columns = FrameColumns(self.feature_names, _spelled)
        self.classes: Array = np.asarray(getattr(model, "classes_", np.arange(max(2, self._dump.n_scores))))

    def predict(self, x: Array) -> Array:
        rows = self._frame(x) if hasattr(x, "columns") else x
        if isinstance(rows, np.ndarray):
            rows = table_rows(rows, self._dump.n_columns, "the LightGBM model")
        try:
            y = np.asarray(self._booster.predict(rows, num_threads=self._threads))
        except ValueError as error:
            raise ModelError(
                f"LightGBM cannot predict these rows: {error} Columns that were categorical in training must be so "
                "here: frame.astype({name: 'category'})."
            ) from error
        if self._objective == "cross_entropy_lambda":
            y = -np.expm1(-y)
        if self._objective == "multiclassova":
            y = y / y.sum(axis=1, keepdims=True)
        return y if y.ndim == 2 else two_columns(y)  # noqa: PLR2004

    def trees(self) -> TreeEnsemble | None:
        """The model as a sum of trees, if its splits and its link can be said so."""
        if not self._dump.plain or self._objective == "multiclassova":
            return None
        return self._dump.ensemble("softmax" if self._objective == "multiclass" else "logistic")

    def thresholds(self) -> list[Array] | None:
        """Per column the t of the splits x <= t. Splits by category have none; linear leaves change between splits."""
        if self._dump.linear:
            return None
        found = tree_thresholds(self._dump.ensemble("identity"))
        return [np.union1d(at, (-ZERO, ZERO)) if i in self._dump.zeros else at for i, at in enumerate(found)]

    def _frame(self, x: Any) -> Any:
        """LightGBM takes the columns of a frame by position, whatever their names: put them in order here."""
        x = self._columns(x)
        numbers = None if self._categorical else numbers_of(x)
        return x if numbers is None else numbers


def _booster(model: Any, name: str) -> Booster:
    from lightgbm import Booster

    try:
        booster: Booster = model if isinstance(model, Booster) else model.booster_
    except ValueError as error:  # scikit-learn's NotFittedError
        raise NotFittedError(f"{name} is not trained; call fit() first.") from error
    if booster.num_trees() == 0:
        raise NotFittedError(f"{name} has no trees; train it, or load a trained model.")
    return booster


def _checked_objective(model: Any, name: str, objective: str) -> str:
    if objective not in OBJECTIVES:
        raise ModelError(
            f"{name} has the objective {objective!r}, which gives no classes; expected one of {', '.join(OBJECTIVES)}. "
            "Train an LGBMClassifier, or pass a function x -> probabilities."
        )
    if getattr(model, "n_classes_", 2) < 2:  # noqa: PLR2004
        raise ModelError(f"{name} was trained on a single class; there is no other class to reach.")
    return objective


def _spelled(label: Any) -> str:
    """The name of a column as LightGBM spells it."""
    return str(label).replace(" ", "_")
