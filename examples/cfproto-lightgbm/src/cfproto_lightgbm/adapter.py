"""LightGBM classifiers, `LGBMClassifier` and the native `Booster`.

What the objectives give:

    binary, cross_entropy    (1 - p, p)
    cross_entropy_lambda     (1 - p, p) with p = 1 - exp(-lambda): LightGBM returns the intensity lambda
    multiclass               p
    multiclassova            p divided by its sum, since one-against-all probabilities do not sum to one

A model that stopped early uses its trees up to the best iteration, as LightGBM's own `predict` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from cfproto_plugin.errors import ModelError, NotFittedError
from cfproto_plugin.helpers import two_columns
from cfproto_plugin.protocols import Array, Role

if TYPE_CHECKING:
    from lightgbm import Booster

OBJECTIVES = ("binary", "cross_entropy", "cross_entropy_lambda", "multiclass", "multiclassova")
ZERO = float(np.float32(1e-35))  # with zero_as_missing, numbers from -ZERO to ZERO count as missing


def lightgbm_adapter(model: Any, *, role: Role = "classifier", **options: Any) -> LightGBMAdapter:
    """Return the adapter for the model: trees with constant leaves have thresholds, linear trees have none."""
    if role != "classifier":
        raise ModelError(
            f"{_name(model)} cannot be used as {role!r}: LightGBM models are classifiers here. Pass a network."
        )
    booster = _booster(model)
    dump = booster.dump_model()  # the trees that predict uses
    linear = any("leaf_coeff" in node for node in _nodes(dump))
    return (LightGBMAdapter if linear else LightGBMTreeAdapter)(model, booster, dump, **options)


class LightGBMAdapter:
    """Columns in, probabilities out.

    num_threads: threads of a prediction; by default the classifier's n_jobs, or as many as LightGBM likes.
    """

    def __init__(
        self, model: Any, booster: Booster, dump: dict[str, Any], *, num_threads: int | None = None, **_options: Any
    ) -> None:
        self._booster = booster
        self._objective = _checked_objective(model, dump)
        self._threads = max(0, getattr(model, "n_jobs", None) or 0) if num_threads is None else num_threads
        self._n_columns = booster.num_feature()
        self._names = _own_names(dump["feature_names"])
        self._categorical = bool(booster.pandas_categorical)
        self.accepts_frames = self._names is not None
        self.classes: Array = np.asarray(getattr(model, "classes_", np.arange(max(2, dump["num_class"]))))

    def predict(self, x: Array) -> Array:
        rows = self._rows(x)
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

    def _rows(self, x: Any) -> Any:
        """Frames with the model's columns in the model's order, arrays with as many columns as it has."""
        if hasattr(x, "columns"):
            return self._frame(x)
        x = np.asarray(x)
        if x.ndim > 2:  # noqa: PLR2004
            x = x.reshape(len(x), math.prod(x.shape[1:]))
        if x.ndim != 2 or x.shape[1] != self._n_columns:  # noqa: PLR2004
            raise ModelError(
                f"rows have shape {x.shape}; the LightGBM model was trained with {self._n_columns} columns."
            )
        return x

    def _frame(self, x: Any) -> Any:
        """LightGBM takes the columns of a frame by position, whatever their names: put them in order here."""
        labels = {_column_name(label): label for label in x.columns}
        names = self._names or list(labels)
        if set(labels) != set(names) or len(x.columns) != self._n_columns:
            raise ModelError(
                f"the frame has {len(x.columns)} columns, the LightGBM model was trained with {self._n_columns}; "
                f"missing: {sorted(set(names) - set(labels))}, unknown: {sorted(set(labels) - set(names))}."
            )
        if list(labels) != names:
            x = x[[labels[name] for name in names]]
        plain = not self._categorical and all(isinstance(t, np.dtype) and t.kind in "fiub" for t in x.dtypes)
        return x.to_numpy(np.float64) if plain else x


class LightGBMTreeAdapter(LightGBMAdapter):
    """Trees whose leaves are constants: nothing changes between two splits."""

    def __init__(self, model: Any, booster: Booster, dump: dict[str, Any], **options: Any) -> None:
        super().__init__(model, booster, dump, **options)
        found: list[set[float]] = [set() for _ in range(self._n_columns)]
        for node in _nodes(dump):
            if node.get("decision_type") == "<=":
                found[node["split_feature"]].update(_values(node))
        self._thresholds = [np.array(sorted(values), dtype=np.float64) for values in found]

    def thresholds(self) -> list[Array]:
        """Per column the values t of the splits x <= t, in double precision. Splits by category have none."""
        return [values.copy() for values in self._thresholds]


def _nodes(dump: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node and leaf of every tree."""
    stack = [tree["tree_structure"] for tree in dump["tree_info"]]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node[side] for side in ("left_child", "right_child") if side in node)


def _values(node: dict[str, Any]) -> tuple[float, ...]:
    """Where the way taken at a node changes. With zero_as_missing, zero goes its own way."""
    at = float(node["threshold"])
    return (at, -ZERO, ZERO) if node["missing_type"] == "Zero" else (at,)


def _booster(model: Any) -> Booster:
    from lightgbm import Booster

    try:
        booster: Booster = model if isinstance(model, Booster) else model.booster_
    except ValueError as error:  # scikit-learn's NotFittedError
        raise NotFittedError(f"{_name(model)} is not trained; call fit() first.") from error
    if booster.num_trees() == 0:
        raise NotFittedError(f"{_name(model)} has no trees; train it, or load a trained model.")
    return booster


def _checked_objective(model: Any, dump: dict[str, Any]) -> str:
    objective = str(dump.get("objective", "custom")).partition(" ")[0]  # such as "binary sigmoid:1"
    if objective not in OBJECTIVES:
        raise ModelError(
            f"{_name(model)} has the objective {objective!r}, which gives no classes; expected one of "
            f"{', '.join(OBJECTIVES)}. Train an LGBMClassifier, or pass a function x -> probabilities."
        )
    if getattr(model, "n_classes_", 2) < 2:  # noqa: PLR2004
        raise ModelError(f"{_name(model)} was trained on a single class; there is no other class to reach.")
    return objective


def _own_names(names: list[str]) -> list[str] | None:
    """The names of a model trained on a frame; LightGBM makes names up for arrays."""
    return None if names == [f"Column_{i}" for i in range(len(names))] else names


def _column_name(label: Any) -> str:
    """As LightGBM spells it."""
    return str(label).replace(" ", "_")


def _name(model: Any) -> str:
    return type(model).__name__
