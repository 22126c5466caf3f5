"""What a classifier of scikit-learn answers, and scores that lead to its class where its probabilities do not.

`answers` asks the model's own methods, always those of the object that the user passed: fitted again, it is another.

predict_proba, predict follows it  as it is; at a tie, the class that predict returns gets 1e-9 more
predict_proba, predict does not    as it is, and `labels` from predict: SVC, thresholds, subclasses, unknown classes
decision_function only             as `scores`

`scores` gives probabilities whose largest is the class that `predict` returns, for the search:

predict_proba                      as it is, where predict is its argmax
decision_function only             1 / (1 + exp(-d)) for two classes, softmax(d) for more
SVC, NuSVC                         from the decisions, even with probability=True: predict does not follow
                                   predict_proba. Several classes: softmax of votes plus confidence, and the class
                                   with most votes, the first of equals, comes out on top (break_ties: the largest)
Fixed/TunedThresholdClassifier     the threshold moves to one half (see `_centred`)
StackingClassifier                 the probabilities of the final estimator, by this same table
all others                         where predict disagrees, its class and the largest exchange their probabilities

`recomputed` gives the same up to rounding, from the trees and weights of the model (`sklearn_parts.trees`,
`sklearn_parts.chains`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from cfproto_adapters.numpy_chain import Chain, agree
from cfproto_adapters.sklearn_parts.chains import classifier_chain
from cfproto_adapters.sklearn_parts.ensembles import THRESHOLDED, inside, walking
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
    "GaussianProcessClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "KNeighborsClassifier",
    "LabelPropagation",
    "LabelSpreading",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MLPClassifier",
    "SGDClassifier",
}
NEAR = 1e-6  # how near two probabilities of such a model may be before it is asked for its class
BOOSTED_ARGMAX = ("binary:logistic", "multi:softprob")


def answers(source: Any) -> tuple[Probabilities, Probabilities | None]:
    """Return rows -> (n, k) probabilities, and rows -> columns (n,) that the model decides for.

    The second is None where it decides for the largest probability.
    """
    rows, last = Rows(unwrap(source)), final(source)
    if not hasattr(source, "predict_proba"):
        return _from_decisions(source, last, rows), None
    if _predicts_argmax(last):
        return partial(_own_method, source, "predict_proba", rows), None
    if _follows(last):
        return partial(_reconciled, source, "predict_proba", rows, NEAR), None
    return partial(_filled_method, source, rows), partial(_decided, source, rows)


def final(model: Any) -> Any:
    """Return the classifier that decides: the last step of a pipeline, the final estimator of a stacked model."""
    model = unwrap(model)
    if kind(model) == "Pipeline":
        return final(active_steps(model)[-1])
    return final(model.final_estimator_) if kind(model) == "StackingClassifier" else model


def _follows(model: Any) -> bool:
    """Whether predict compares scores that predict_proba is a monotone function of."""
    if kind(model) == "OneVsRestClassifier":
        return all(kind(unwrap(part)) in FOLLOWS_SCORES | ARGMAX for part in model.estimators_)
    return kind(model) in FOLLOWS_SCORES


def _from_decisions(source: Any, last: Any, rows: Rows) -> Probabilities:
    if kind(last) in {"SVC", "NuSVC"}:
        return partial(_votes, source, last, rows)
    if kind(last) in THRESHOLDED:
        return partial(_anew, source)
    if hasattr(source, "decision_function"):
        return partial(_reconciled, source, "decision_function", rows, np.inf)
    raise _no_probabilities(source, last)


def _anew(source: Any, x: Any) -> Array:
    """Read the threshold and the model inside at every call: fitted again, they are others."""
    return scores(source)(x)


def _no_probabilities(source: Any, last: Any) -> ModelError:
    hints = {
        "VotingClassifier": "fit it with voting='soft'",
        "OutputCodeClassifier": "use OneVsRestClassifier with an estimator that has probabilities",
        "OneVsOneClassifier": "use OneVsRestClassifier with an estimator that has probabilities",
    }
    hint = hints.get(kind(last), "wrap it in CalibratedClassifierCV")
    return ModelError(
        f"{name(source)} has neither predict_proba nor decision_function, so it gives no probabilities: {hint}, "
        "or pass a function x -> probabilities."
    )


def _filled_method(source: Any, rows: Rows, x: Any) -> Array:
    return _filled(np.asarray(source.predict_proba(rows.native(x))))


def _decided(source: Any, rows: Rows, x: Any) -> Array:
    """The columns (n,) of the labels that predict returns."""
    labels = np.asarray(source.predict(rows.native(x))).reshape(-1, 1)
    is_label = labels == np.asarray(source.classes_)
    unknown = np.flatnonzero(~is_label.any(axis=1))
    if len(unknown):
        raise ModelError(
            f"predict of {name(source)} returned {labels[unknown[0], 0]!r}, which is none of its classes_ "
            f"{list(source.classes_)}"
        )
    return np.asarray(is_label.argmax(axis=1))


def scores(model: Any) -> Probabilities:
    """Return rows, arrays or frames, -> (n, k) probabilities whose largest is the class that the model decides for."""
    model = unwrap(model)
    if kind(model) == "Pipeline":
        *before, last = active_steps(model)
        return partial(_after_steps, before, Rows(model), scores(last)) if before else scores(last)
    if kind(model) in THRESHOLDED:
        (inner,) = inside(model)
        return _thresholded(model, inner)
    if kind(model) == "StackingClassifier":
        return partial(_stacked, model, Rows(model), scores(model.final_estimator_))
    return _from_methods(model, Rows(model))


def recomputed(model: Any) -> Probabilities | None:
    """Return the same as `scores`, equal up to rounding, without the model's checks and slow parts.

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
        return None if slow else partial(_stacked, twin, Rows(model), last or scores(model.final_estimator_))
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
    if kind(model) in {"SVC", "NuSVC"} or not hasattr(model, "predict_proba"):
        return _from_decisions(model, model, rows)
    if _predicts_argmax(model):
        return partial(_own_method, model, "predict_proba", rows)
    return partial(_reconciled, model, "predict_proba", rows, NEAR if _follows(model) else np.inf)


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


def _reconciled(model: Any, method: str, rows: Rows, within: float, x: Any) -> Array:
    """Ask the model for its classes too, where the largest probabilities are no farther apart than `within`.

    The first method gets rows of its own, which it may change.
    """
    native = rows.native(x)
    scores = np.asarray(getattr(model, method)(native.copy() if hasattr(native, "copy") else native))
    p = _filled(scores) if method == "predict_proba" else from_decision(scores)
    second, first = np.sort(p, axis=1)[:, -2:].T
    near = np.flatnonzero(first - second < within)
    return as_predicted(p, near, model, native)


def _filled(p: Array) -> Array:
    """Rows of zeros or NaN, far from all training rows of some models, become uniform."""
    known = np.isfinite(p).all(axis=1) & (p.sum(axis=1) > 0)
    return p if known.all() else np.where(known[:, None], p, 1 / p.shape[1])


def _votes(source: Any, model: Any, rows: Rows, x: Any) -> Array:
    """Pairs of classes vote; the sum of their confidences, squeezed into (-1/3, 1/3), is added to the votes.

    source: the model, or the pipeline that ends with it.
    """
    decision = np.asarray(source.decision_function(rows.native(x)))
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
