"""Ensembles of trees as plain arrays, and walked.

    trees, forests, bagged trees    p = mean over the trees of the class fractions in the leaf
    AdaBoost                        p = softmax(f / (k - 1)), f the weighted mean of the trees' votes: 1 for the class
                                    that a tree predicts, -1 / (k - 1) for each of the others
    gradient boosting               the logistic function or softmax of a constant plus the leaves

`predict_proba` of 100 trees spends 7 ms on validation and scheduling in a forest, 30 ms on asking tree by tree in
AdaBoost, whatever the number of rows; the walk takes 0.1 ms for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from cfproto_adapters.numpy_chain import agree
from cfproto_adapters.sklearn_parts.inputs import Rows, kind
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import take, tree_probabilities, tree_scores
from cfproto_plugin.protocols import Array, Tree, TreeEnsemble

TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
NODE = {"feature_idx", "num_threshold", "is_leaf", "left", "right", "missing_go_to_left", "value"}


def walked(model: Any) -> Walk | None:
    """Return the walk of a model that is a sum of trees; None for all others."""
    ensemble = tree_ensemble(model)
    return None if ensemble is None else Walk(model, ensemble)


def tree_ensemble(model: Any) -> TreeEnsemble | None:
    """Return the model as a sum of trees; None if it is none, or if its trees split by categories."""
    if kind(model) in TREES:
        return _mean(model, [model])
    if kind(model) in FORESTS or (kind(model) == "BaggingClassifier" and _plain_bagging(model)):
        return _mean(model, model.estimators_)
    if kind(model) == "AdaBoostClassifier" and _plain_boosting(model):
        return _votes(model)
    if kind(model) == "GradientBoostingClassifier":
        return _gradient_boosting(model)
    if kind(model) == "HistGradientBoostingClassifier":
        return _histogram_boosting(model)
    return None


class Walk:
    """The probabilities of a sum of trees, recomputed from its arrays, which are not pickled but made again.

    Rows (n, columns) are arrays or frames. The walk checks nothing: sparse rows, infinite values, and NaN where the
    model refuses it, go to the model itself.
    """

    def __init__(self, model: Any, ensemble: TreeEnsemble) -> None:
        self._model = model
        self._rows = Rows(model)
        self._takes_nan = _takes_nan(model)
        self._ensemble: TreeEnsemble | None = ensemble
        self._compiled = _compiled(model)
        self.has_decision = hasattr(model, "decision_function")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_ensemble": None, "_compiled": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compiled = _compiled(self._model)

    def __call__(self, x: Any) -> Array:
        """Return the probabilities (n, k). Where the largest are equal, one with a decision is asked which it takes."""
        p = self.predict_proba(x)
        if self.has_decision:
            tied = np.flatnonzero((p == p.max(axis=1, keepdims=True)).sum(axis=1) > 1)
            return as_predicted(p, tied, self._model, self._rows.native(x)) if tied.size else p
        return p

    def ensemble(self) -> TreeEnsemble:
        """Return the trees."""
        if self._ensemble is None:
            self._ensemble = tree_ensemble(self._model)
        if self._ensemble is None:
            raise ModelError(f"{kind(self._model)} is no longer a sum of trees. Make a new adapter of the model.")
        return self._ensemble

    def predict_proba(self, x: Any) -> Array:
        """Return what the model's own method does, (n, k), up to rounding."""
        rows = self._walkable(x)
        if rows is None:
            return self._own("predict_proba", x)
        return tree_probabilities(self.ensemble(), rows, self._compiled)

    def decision_function(self, x: Any) -> Array:
        """Return what the model's own method does, (n,) for two classes and (n, k) for more, up to rounding."""
        rows = self._walkable(x)
        if rows is None:
            return self._own("decision_function", x)
        scores = tree_scores(self.ensemble(), rows, self._compiled) / _score_of_decision(self._model)
        return scores if scores.shape[1] > 2 else np.asarray(np.diff(scores, prepend=0.0)[:, -1])  # noqa: PLR2004

    def _walkable(self, x: Any) -> Array | None:
        """The rows in the dtype in which they are compared; None where only the model knows what to do."""
        if issparse(x):
            return None
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, which the model reports
            rows = self._rows.array(x).astype(self.ensemble().dtype, copy=False)
        known = np.isfinite(rows).all() or (self._takes_nan and not np.isinf(rows).any())
        return rows if known else None

    def _own(self, method: str, x: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(getattr(self._model, method)(x if issparse(x) else self._rows.native(x)))


def as_predicted(p: Array, asked: Array, model: Any, native: Any) -> Array:
    """Exchange probabilities (n, k) so that the largest of the rows `asked` is that of the class `predict` gives.

    native: all rows as the model wants them. A label that is not among the classes (of outliers) changes nothing.
    """
    if not asked.size:
        return p
    rows = native if len(asked) == len(p) else take(native, asked)
    is_label = np.asarray(model.predict(rows)).reshape(-1, 1) == np.asarray(model.classes_)
    top = p.argmax(axis=1)
    top[asked] = np.where(is_label.any(axis=1), is_label.argmax(axis=1), top[asked])
    return agree(p, top)


def _compiled(model: Any) -> list[Callable[[Array], Array]] | None:
    """What finds the leaves of each tree in compiled code, which holds no state; histogram boosting has none."""
    if kind(model) == "HistGradientBoostingClassifier":
        return None
    if kind(model) in TREES:
        return [model.tree_.apply]
    stages = model.estimators_.flat if isinstance(model.estimators_, np.ndarray) else model.estimators_
    return [estimator.tree_.apply for estimator in stages]


def _mean(model: Any, estimators: Iterable[Any]) -> TreeEnsemble:
    trees = tuple(_tree(estimator.tree_, estimator.tree_.value[:, 0, :]) for estimator in estimators)
    base = np.zeros(trees[0].value.shape[1])
    return TreeEnsemble(trees, base, model.n_features_in_, "identity", True, "float32", divisor=len(trees))


def _votes(model: Any) -> TreeEnsemble:
    """f / (k - 1), where the votes of one tree are 1 and -1 / (k - 1)."""
    k, classes = len(model.classes_), np.asarray(model.classes_)
    trees = []
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=False):  # 0 for trees never grown
        predicted = estimator.classes_.take(estimator.tree_.value[:, 0, :].argmax(axis=1))
        votes = np.where(predicted[:, None] == classes, weight, -1 / (k - 1) * weight)
        trees.append(_tree(estimator.tree_, votes))
    return _boosted(model, trees, np.zeros(k), "float32", float(model.estimator_weights_.sum()) * (k - 1))


def _gradient_boosting(model: Any) -> TreeEnsemble | None:
    """The start of the sum is a constant unless it is an estimator of the user's, which depends on the row."""
    start = getattr(model, "_raw_predict_init", None)  # no public attribute has it
    if start is None or not (model.init is None or isinstance(model.init, str)):
        return None
    factor = _score_of_decision(model)
    base = start(np.zeros((1, model.n_features_in_)))[0] * factor
    stages = [[(tree.tree_, tree.tree_.value[:, 0, 0]) for tree in stage] for stage in model.estimators_]
    trees = [
        _tree(tree, _column(values * model.learning_rate * factor, k, len(base)))
        for stage in stages
        for k, (tree, values) in enumerate(stage)
    ]
    return _boosted(model, trees, base, "float32")


def _histogram_boosting(model: Any) -> TreeEnsemble | None:
    """No public attribute has the nodes; categories are coded and moved to the front."""
    stages = getattr(model, "_predictors", None)
    base = getattr(model, "_baseline_prediction", None)
    if not stages or base is None or getattr(model, "is_categorical_", None) is not None:
        return None
    found = [(getattr(tree, "nodes", None), k) for stage in stages for k, tree in enumerate(stage)]
    base = np.ravel(base)
    if not all(isinstance(nodes, np.ndarray) and set(nodes.dtype.names or ()) >= NODE for nodes, _ in found):
        return None
    return _boosted(model, [_histogram_tree(nodes, k, len(base)) for nodes, k in found], base, "float64")


def _boosted(
    model: Any, trees: list[Tree], base: Array, dtype: Literal["float32", "float64"], divisor: float = 1.0
) -> TreeEnsemble:
    link: Literal["logistic", "softmax"] = "logistic" if len(base) == 1 else "softmax"
    return TreeEnsemble(tuple(trees), base, model.n_features_in_, link, True, dtype, divisor=divisor)


def _tree(tree: Any, value: Array) -> Tree:
    """A fitted `sklearn.tree` tree with values (nodes, m); it marks leaves by the column -2."""
    column = np.maximum(tree.feature, -1)
    return Tree(column, tree.threshold, tree.children_left, tree.children_right, tree.missing_go_to_left != 0, value)


def _histogram_tree(nodes: Any, k: int, m: int) -> Tree:
    """Its leaves, unlike its splits, have the children 0."""
    column = np.where(nodes["is_leaf"] != 0, -1, nodes["feature_idx"].astype(np.intp))
    left, right = (nodes[side].astype(np.intp) for side in ("left", "right"))
    value = _column(nodes["value"], k, m)
    return Tree(column, nodes["num_threshold"], left, right, nodes["missing_go_to_left"] != 0, value)


def _column(values: Array, k: int, m: int) -> Array:
    """Values (nodes,) as column k of (nodes, m), the others 0."""
    table = np.zeros((len(values), m))
    table[:, k] = values
    return table


def _score_of_decision(model: Any) -> float:
    """The factor from the model's decision to the score whose logistic function or softmax is the probability."""
    if kind(model) == "AdaBoostClassifier":
        return 1 / (len(model.classes_) - 1)
    return 2.0 if getattr(model, "loss", "") == "exponential" else 1.0


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


def _takes_nan(model: Any) -> bool:
    """Whether the model, and the trees of an ensemble, take NaN; those that must be monotone refuse it."""
    import sklearn.utils

    tags = getattr(sklearn.utils, "get_tags", None)  # new in 1.6
    inner = getattr(model, "estimators_", ())
    parts = [model, inner[0]] if isinstance(inner, list) and inner else [model]
    return tags is not None and all(
        tags(part).input_tags.allow_nan and getattr(part, "monotonic_cst", None) is None for part in parts
    )
