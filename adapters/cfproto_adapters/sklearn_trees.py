"""Forests walked tree by tree.

`predict_proba` of a forest spends 7 ms on validation and on scheduling its trees, whatever the number of rows. Here
each fitted tree is asked for its leaves directly and the leaf values are added in the forest's own order, so the sum is
the same to the last bit. The compiled walk holds no state: several threads may share a forest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from cfproto_adapters.sklearn_inputs import Rows, kind
from cfproto_plugin.protocols import Array

TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")


def forest(model: Any) -> Forest | None:
    """Return the trees of a model that averages trees over the same columns and classes; None for all others."""
    if kind(model) in TREES:
        return Forest(model, [model])
    if kind(model) in FORESTS or (kind(model) == "BaggingClassifier" and _plain_bagging(model)):
        return Forest(model, model.estimators_)
    return None


def _plain_bagging(model: Any) -> bool:
    """Trees only, each grown on all columns in their order and on all classes."""
    columns = np.arange(model.n_features_in_)
    return all(
        kind(tree) in TREES and len(tree.classes_) == model.n_classes_ and np.array_equal(features, columns)
        for tree, features in zip(model.estimators_, model.estimators_features_, strict=True)
    )


class Forest:
    """p(x) = mean over the trees of the class fractions in the leaf of x."""

    def __init__(self, model: Any, estimators: list[Any]) -> None:
        self._model = model
        self._rows = Rows(model)
        self._trees = [estimator.tree_ for estimator in estimators]
        self._walks = [(tree.apply, tree.value[:, 0, :]) for tree in self._trees]
        self._takes_nan = _takes_nan(estimators[0])

    def __call__(self, x: Any) -> Array:
        if issparse(x):
            return np.asarray(self._model.predict_proba(x))
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, which the model reports
            rows = np.ascontiguousarray(self._rows.array(x), dtype=np.float32)
            if not self._walkable(rows):
                return np.asarray(self._model.predict_proba(self._rows.native(x)))
        total = np.zeros((len(rows), self._walks[0][1].shape[1]))
        for leaves, values in self._walks:
            total += values.take(leaves(rows), axis=0)
        total /= len(self._walks)
        return total

    def thresholds(self) -> list[Array]:
        """Return the t of all splits x <= t by column; x is rounded to float32 before it is compared."""
        features = np.concatenate([tree.feature for tree in self._trees])
        values = np.concatenate([tree.threshold for tree in self._trees])
        splits = (features >= 0) & np.isfinite(values)  # leaves have no column; missing against present has no value
        features, values = features[splits], values[splits]
        return [np.unique(values[features == column]) for column in range(self._trees[0].n_features)]

    def _walkable(self, rows: Array) -> bool:
        """The compiled walk checks nothing: infinite values, and NaN where trees refuse it, are left to the model."""
        if np.isfinite(rows).all():
            return True
        return self._takes_nan and not np.isinf(rows).any()


def _takes_nan(tree: Any) -> bool:
    import sklearn.utils

    tags = getattr(sklearn.utils, "get_tags", None)  # new in 1.6
    return bool(tags is not None and tags(tree).input_tags.allow_nan and getattr(tree, "monotonic_cst", None) is None)
