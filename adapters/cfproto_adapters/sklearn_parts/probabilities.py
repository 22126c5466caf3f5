"""Probabilities whose largest is the class `model.predict` returns, for every classifier of scikit-learn.

predict_proba                      as it is, where predict is its argmax
decision_function only             1 / (1 + exp(-d)) for two classes, softmax(d) for more
SVC, NuSVC                         from the decisions, even with probability=True: predict does not follow
                                   predict_proba. Several classes: softmax of votes plus confidence, and the class
                                   with most votes, the first of equals, comes out on top (break_ties: the largest)
Fixed/TunedThresholdClassifier     the threshold moves to one half (see `_centred`)
StackingClassifier                 the probabilities of the final estimator, by this same table
all others                         where predict disagrees, its class and the largest exchange their probabilities

`probabilities` asks the model's own methods. `recomputed` gives the same up to rounding, from the trees and weights of
the model (`sklearn_parts.trees`, `sklearn_parts.chains`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from cfproto_adapters.sklearn_parts.chains import classifier_chain
from cfproto_adapters.sklearn_parts.ensembles import THRESHOLDED, inside, walking
from cfproto_adapters.sklearn_parts.gradients import Chain, agree
from cfproto_adapters.sklearn_parts.inputs import Rows, active_steps, kind, name, unwrap
from cfproto_adapters.sklearn_parts.trees import FORESTS, TREES, as_predicted, walked
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import softmax, two_columns
from cfproto_plugin.protocols import Array

Probabilities: TypeAlias = Callable[[Any], Array]

ARGMAX = {  # predict is the argmax of predict_proba, or of what it is a monotone function of
    "BaggingClassifier",
    "BernoulliNB",
    "CalibratedClassifierCV",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
    "VotingClassifier",
    *TREES,
    *FORESTS,
}
FOLLOWS_SCORES = {  # predict compares scores that predict_proba is a monotone function of: only rounding separates them
    "AdaBoostClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MLPClassifier",
}
NEAR = 1e-6  # how near two probabilities of such a model may be before it is asked for its class
BOOSTED_ARGMAX = ("binary:logistic", "multi:softprob")


def probabilities(model: Any) -> Probabilities:
    """Return rows, arrays or frames, -> (n, k) probabilities of a fitted classifier, by its own methods."""
    model = unwrap(model)
    if kind(model) == "Pipeline":
        *before, last = active_steps(model)
        return partial(_after_steps, before, Rows(model), probabilities(last)) if before else probabilities(last)
    if kind(model) in THRESHOLDED:
        (inner,) = inside(model)
        return _thresholded(model, inner)
    if kind(model) == "StackingClassifier":
        return partial(_stacked, model, Rows(model), probabilities(model.final_estimator_))
    return _from_methods(model, Rows(model))


def recomputed(model: Any) -> Probabilities | None:
    """Return the same as `probabilities`, equal up to rounding, without the model's checks and slow parts.

    None where nothing in the model can be recomputed: neither trees nor linear models nor networks.
    """
    model = unwrap(model)
    if kind(model) == "Pipeline":
        *before, last = active_steps(model)
        quick = recomputed(last)
        return quick if quick is None or not before else partial(_after_steps, before, Rows(model), quick)
    chain = classifier_chain(model)
    if chain is not None:
        return partial(_chained, chain, Rows(model))
    walk = walked(model)
    if walk is not None:
        return walk
    if kind(model) in THRESHOLDED:
        (inner,) = inside(model)
        twin = walking(inner)
        return None if twin is inner else _thresholded(model, twin)
    twin = walking(model)
    if kind(model) == "StackingClassifier":
        last = recomputed(model.final_estimator_)
        slow = twin is model and last is None
        return None if slow else partial(_stacked, twin, Rows(model), last or probabilities(model.final_estimator_))
    return None if twin is model else _from_methods(twin, Rows(model))


def _after_steps(before: list[Any], rows: Rows, last: Probabilities, x: Any) -> Array:
    """Step by step: a part of a pipeline would ask whether it is fitted, which a user's own steps need not know."""
    x = rows.native(x)
    for step in before:
        x = step.transform(x)
    return last(x)


def _chained(chain: Chain, rows: Rows, x: Any) -> Array:
    """What a pipeline's earlier steps made may be sparse."""
    return chain(rows.array(x.toarray() if hasattr(x, "toarray") else x))


def _stacked(model: Any, rows: Rows, last: Probabilities, x: Any) -> Array:
    return last(model.transform(rows.native(x)))


def _from_methods(model: Any, rows: Rows) -> Probabilities:
    if kind(model) in {"SVC", "NuSVC"}:
        return partial(_votes, model, rows)
    if hasattr(model, "predict_proba"):
        return partial(_own_method if _predicts_argmax(model) else _reconciled, model, "predict_proba", rows)
    if hasattr(model, "decision_function"):
        return partial(_reconciled, model, "decision_function", rows)
    hint = "fit it with voting='soft'" if kind(model) == "VotingClassifier" else "wrap it in CalibratedClassifierCV"
    raise ModelError(
        f"{name(model)} has neither predict_proba nor decision_function, so it gives no probabilities: {hint}, "
        "or pass a function x -> probabilities."
    )


def _own_method(model: Any, method: str, rows: Rows, x: Any) -> Array:
    return np.asarray(getattr(model, method)(rows.native(x)))


def from_decision(decision: Any) -> Array:
    """1 / (1 + exp(-d)) for one column, the softmax for several."""
    decision = np.asarray(decision, dtype=np.float64)
    return softmax(decision) if decision.ndim > 1 and decision.shape[1] > 1 else two_columns(expit(decision))


def _predicts_argmax(model: Any) -> bool:
    root = type(model).__module__.partition(".")[0]
    if kind(model) == "KNeighborsClassifier":
        return bool(model.weights == "uniform")
    if type(model).__name__ == "XGBClassifier" and root == "xgboost":
        return model.objective in BOOSTED_ARGMAX
    return kind(model) in ARGMAX


def _reconciled(model: Any, method: str, rows: Rows, x: Any) -> Array:
    """Ask the model for its classes too, where they may differ."""
    native = rows.native(x)
    scores = np.asarray(getattr(model, method)(native))
    p = _filled(scores) if method == "predict_proba" else from_decision(scores)
    near = np.arange(len(p))
    if kind(model) in FOLLOWS_SCORES:
        second, first = np.sort(p, axis=1)[:, -2:].T
        near = np.flatnonzero(first - second < NEAR)
    return as_predicted(p, near, model, native)


def _filled(p: Array) -> Array:
    """Rows of zeros or NaN, far from all training rows of some models, become uniform."""
    known = np.isfinite(p).all(axis=1) & (p.sum(axis=1) > 0)
    return p if known.all() else np.where(known[:, None], p, 1 / p.shape[1])


def _votes(model: Any, rows: Rows, x: Any) -> Array:
    """Pairs of classes vote; the sum of their confidences, squeezed into (-1/3, 1/3), is added to the votes."""
    decision = np.asarray(model.decision_function(rows.native(x)))
    if decision.ndim == 1:
        return agree(from_decision(decision), (decision >= 0).astype(np.intp))
    scores = decision if model.decision_function_shape == "ovr" else _pairs(decision, len(model.classes_))
    top = scores.argmax(axis=1) if model.break_ties else np.rint(scores).argmax(axis=1)
    return agree(softmax(scores), top)


def _pairs(decision: Array, k: int) -> Array:
    """(n, k (k-1) / 2) decisions, positive for the first class of the pairs (0, 1), (0, 2) ..., to (n, k) scores."""
    first, second = np.triu_indices(k, 1)
    side = np.eye(k)[first] - np.eye(k)[second]
    confidence = decision @ side
    votes = (decision > 0) @ np.eye(k)[first] + (decision <= 0) @ np.eye(k)[second]
    return np.asarray(votes + confidence / (3 * (np.abs(confidence) + 1)))


def _thresholded(model: Any, inner: Any) -> Probabilities:
    """inner: the model whose scores are compared with the threshold, or a copy of it that walks its trees."""
    proba = model.response_method != "decision_function" and hasattr(inner, "predict_proba")
    score = partial(_own_method, inner, "predict_proba" if proba else "decision_function", Rows(inner))
    cut, label = _threshold(model, default=0.5 if proba else 0.0)
    positive = 1 if label is None else int(np.flatnonzero(np.asarray(inner.classes_) == label)[0])
    return partial(_above if proba else _above_decision, score, cut, positive)


def _above(score: Probabilities, cut: float, positive: int, x: Any) -> Array:
    """p >= cut is the positive class, whose probability then is at least one half."""
    p = score(x)[:, positive]
    return _oriented(_centred(p, cut), p >= cut, positive)


def _above_decision(score: Probabilities, cut: float, positive: int, x: Any) -> Array:
    """d >= cut is the positive class: the logistic function of d - cut. d is turned round for the first class."""
    decision = score(x) if positive else -score(x)
    return _oriented(expit(decision - cut), decision >= cut, positive)


def _oriented(p: Array, above: Array, positive: int) -> Array:
    both = two_columns(p) if positive else two_columns(1 - p)
    return agree(both, np.where(above, positive, 1 - positive))


def _threshold(model: Any, default: float) -> tuple[float, Any]:
    """The threshold and the label of the class above it, None for the second."""
    if kind(model) == "FixedThresholdClassifier":
        return (default if model.threshold == "auto" else float(model.threshold)), model.pos_label
    scorer = model._curve_scorer  # noqa: SLF001 the label is not kept anywhere else
    return float(model.best_threshold_), scorer._get_pos_label()  # noqa: SLF001


def _centred(p: Array, cut: float) -> Array:
    """Map [0, cut, 1] to [0, 1/2, 1], linear in between."""
    below = p / (2 * cut) if cut > 0 else np.zeros_like(p)
    above = 1 - (1 - p) / (2 * (1 - cut)) if cut < 1 else np.ones_like(p)
    return np.where(p >= cut, above, below)
