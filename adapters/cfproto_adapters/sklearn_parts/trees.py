"""Ensembles of trees walked tree by tree.

`predict_proba` of 100 trees spends 7 ms on validation and scheduling in a forest, 30 ms on asking tree by tree in
AdaBoost, whatever the number of rows. Here each fitted tree is asked for its leaves directly and what the leaves say
is added in the ensemble's own order, so the sum is the same to the last bit. The compiled walk holds no state: several
threads may share an ensemble.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cfproto_adapters.sklearn_parts.inputs import Rows, kind
from cfproto_plugin.helpers import softmax
from cfproto_plugin.protocols import Array

TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")


def walked(model: Any) -> Walk | None:
    """Return the walk of a model that averages trees over the same columns, or lets them vote; None for all others."""
    if kind(model) in TREES:
        return Forest(model, [model])
    if kind(model) in FORESTS or (kind(model) == "BaggingClassifier" and _plain_bagging(model)):
        return Forest(model, model.estimators_)
    if kind(model) == "AdaBoostClassifier" and _plain_boosting(model):
        return Boosting(model)
    return None


def _plain_bagging(model: Any) -> bool:
    """Trees only, each grown on all columns in their order and on all classes."""
    columns = np.arange(model.n_features_in_)
    return all(
        kind(tree) in TREES and len(tree.classes_) == model.n_classes_ and np.array_equal(features, columns)
        for tree, features in zip(model.estimators_, model.estimators_features_, strict=True)
    )


def _plain_boosting(model: Any) -> bool:
    """Trees only, with one vote each: scikit-learn before 1.6 can also add up the logarithms of their fractions."""
    return getattr(model, "algorithm", "") != "SAMME.R" and all(kind(tree) in TREES for tree in model.estimators_)


class Walk(ABC):
    """f(x) = sum over the trees of what the leaf of x says."""

    def __init__(self, model: Any, estimators: list[Any]) -> None:
        self._model = model
        self._rows = Rows(model)
        self._takes_nan = _takes_nan(model) and _takes_nan(estimators[0])
        self.trees = [estimator.tree_ for estimator in estimators]

    def __call__(self, x: Any) -> Array:
        return self.predict_proba(x)

    def predict_proba(self, x: Any) -> Array:
        """Return what the model's own method does."""
        rows = self._walkable(x)
        return self._own("predict_proba", x) if rows is None else self._proba(rows)

    @abstractmethod
    def _proba(self, rows: Array) -> Array: ...

    def _walkable(self, x: Any) -> Array | None:
        """The rows as trees compare them, in float32; None where only the model knows what to do.

        The compiled walk checks nothing: infinite values, and NaN where the model refuses it, are left to the model.
        """
        if issparse(x):
            return None
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, which the model reports
            rows = np.ascontiguousarray(self._rows.array(x), dtype=np.float32)
        known = np.isfinite(rows).all() or (self._takes_nan and not np.isinf(rows).any())
        return rows if known else None

    def _own(self, method: str, x: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(getattr(self._model, method)(x if issparse(x) else self._rows.native(x)))


class Forest(Walk):
    """p(x) = mean over the trees of the class fractions in the leaf of x."""

    def __init__(self, model: Any, estimators: list[Any]) -> None:
        super().__init__(model, estimators)
        self._leaves = [(tree.apply, tree.value[:, 0, :]) for tree in self.trees]

    def _proba(self, rows: Array) -> Array:
        total = np.zeros((len(rows), self._leaves[0][1].shape[1]))
        for leaves, values in self._leaves:
            total += values.take(leaves(rows), axis=0)
        total /= len(self._leaves)
        return total


class Boosting(Walk):
    """f(x) = weighted mean over the trees of their votes: 1 for the class they predict, -1 / (k - 1) for the others.

    Two classes: d = f_1 - f_0 and p = softmax(-d / 2, d / 2); more: p = softmax(f / (k - 1)). Classes are kept as the
    rows of the arrays, as scikit-learn does: sums over many classes round by the order in memory.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model, model.estimators_)
        self._norm = model.estimator_weights_.sum()
        pairs = zip(model.estimators_, model.estimator_weights_, strict=False)  # weights of trees never grown are 0
        self._leaves = [(tree.tree_.apply, _votes(tree, weight, model.classes_)) for tree, weight in pairs]

    def decision_function(self, x: Any) -> Array:
        """Return what the model's own method does: (n,) for two classes, (n, k) for more."""
        rows = self._walkable(x)
        return self._own("decision_function", x) if rows is None else self._decision(rows)

    def proba(self, decision: Array) -> Array:
        """Return what `predict_proba` makes of the decision."""
        if decision.ndim == 1:
            return softmax(np.stack([-decision, decision]).T / 2)
        return softmax(decision / (decision.shape[1] - 1))

    def _proba(self, rows: Array) -> Array:
        return self.proba(self._decision(rows))

    def _decision(self, rows: Array) -> Array:
        total = np.zeros((len(self._model.classes_), len(rows)))
        for leaves, votes in self._leaves:
            total += votes.take(leaves(rows), axis=1)
        total /= self._norm
        return total[1] - total[0] if len(total) == 2 else total.T  # noqa: PLR2004


def _votes(tree: Any, weight: float, classes: Array) -> Array:
    """The weighted votes (k, nodes) of a tree: every node's first most frequent class against the others."""
    predicted = tree.classes_.take(tree.tree_.value[:, 0, :].argmax(axis=1))
    return np.where(predicted == classes[:, None], weight, -1 / (len(classes) - 1) * weight)


def _takes_nan(model: Any) -> bool:
    import sklearn.utils

    tags = getattr(sklearn.utils, "get_tags", None)  # new in 1.6
    return bool(tags is not None and tags(model).input_tags.allow_nan and getattr(model, "monotonic_cst", None) is None)
