"""Reading fitted scikit-learn models as chains of stages with exact gradients; None where that cannot be done.

Probabilities of linear models that have only a decision d(x): 1 / (1 + exp(-d)) for two classes, the softmax of the
decisions for more. LogisticRegression and LinearDiscriminantAnalysis say the same. Where scikit-learn normalises
one-against-rest probabilities (OneVsRestClassifier, SGDClassifier with log_loss), so does the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cfproto_adapters.numpy_chain import (
    Chain,
    Dense,
    Logistic,
    OneVsRest,
    Relu,
    Scale,
    Sigmoid,
    Softmax,
    Stage,
    Tanh,
)
from cfproto_adapters.sklearn_parts.inputs import kind, unwrap
from cfproto_plugin.protocols import Array

DECISION_ONLY = ("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier")
LOG_LINEAR = ("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV")
SCALERS: dict[str, Callable[[Any], Scale]] = {
    "StandardScaler": lambda s: Scale(s.mean_ if s.with_mean else None, s.scale_ if s.with_std else None),
    "RobustScaler": lambda s: Scale(s.center_ if s.with_centering else None, s.scale_ if s.with_scaling else None),
    "MaxAbsScaler": lambda s: Scale(divisor=s.scale_),
    "MinMaxScaler": lambda s: Scale(factor=s.scale_, offset=s.min_),
}
ACTIVATIONS: dict[str, list[Stage]] = {"identity": [], "relu": [Relu()], "tanh": [Tanh()], "logistic": [Logistic()]}


def classifier_chain(model: Any) -> Chain | None:
    """Return rows -> probabilities as a chain."""
    stages = _classifier(model)
    return None if stages is None else Chain(stages)


def transform_chain(model: Any) -> Chain | None:
    """Return the affine transformer, or the multi-layer regressor, as a chain."""
    stages = _transformer(model)
    return None if stages is None else Chain(stages)


def _classifier(model: Any) -> list[Stage] | None:
    model = unwrap(model)
    if kind(model) == "Pipeline":
        return _joined([_affine(step) for _, step in model.steps[:-1]] + [_classifier(model.steps[-1][1])])
    if kind(model) == "MLPClassifier":
        return _perceptron(model, Sigmoid() if model.out_activation_ == "logistic" else Softmax())
    if kind(model) == "OneVsRestClassifier":
        return _one_vs_rest(model)
    head = _linear_head(model)
    return (
        None
        if head is None or issparse(model.coef_)
        else [_dense(np.atleast_2d(model.coef_).T, model.intercept_), head]
    )


def _transformer(model: Any) -> list[Stage] | None:
    model = unwrap(model)
    if kind(model) == "Pipeline":
        return _joined([_affine(step) for _, step in model.steps[:-1]] + [_transformer(model.steps[-1][1])])
    if kind(model) == "MLPRegressor":
        return _perceptron(model, None) if model.out_activation_ == "identity" else None
    return _affine(model)


def _joined(parts: list[list[Stage] | None]) -> list[Stage] | None:
    known = [part for part in parts if part is not None]
    return [stage for part in known for stage in part] if len(known) == len(parts) else None


def _linear_head(model: Any) -> Stage | None:
    """What turns the decisions of a linear model into its probabilities."""
    what = kind(model)
    if what not in {*DECISION_ONLY, *LOG_LINEAR, "SGDClassifier"}:
        return None
    binary = len(model.classes_) == 2  # noqa: PLR2004
    if what == "SGDClassifier" and model.loss == "modified_huber":
        return None
    if what in LOG_LINEAR and _own_multi_class(model, binary=binary):
        return None
    if binary:
        return Sigmoid()
    return OneVsRest() if what == "SGDClassifier" and model.loss == "log_loss" else Softmax()


def _own_multi_class(model: Any, *, binary: bool) -> bool:
    """scikit-learn before 1.8 lets LogisticRegression normalise in other ways than by the softmax."""
    chosen = getattr(model, "multi_class", "auto")
    if binary:
        return bool(chosen == "multinomial")
    return bool(chosen == "ovr" or getattr(model, "solver", "") == "liblinear")


def _one_vs_rest(model: Any) -> list[Stage] | None:
    """Plain logistic regressions side by side."""
    parts = model.estimators_
    if any(kind(part) != "LogisticRegression" or _linear_head(part) is None or issparse(part.coef_) for part in parts):
        return None
    weight = np.concatenate([part.coef_ for part in parts]).T
    bias = np.concatenate([np.broadcast_to(part.intercept_, 1) for part in parts])
    return [_dense(weight, bias), Sigmoid() if len(parts) == 1 else OneVsRest()]


def _perceptron(model: Any, head: Stage | None) -> list[Stage] | None:
    between = ACTIVATIONS.get(model.activation)
    if between is None:
        return None
    stages: list[Stage] = []
    for weight, bias in zip(model.coefs_, model.intercepts_, strict=True):
        stages += [*between, _dense(weight, bias)] if stages else [_dense(weight, bias)]
    return stages if head is None else [*stages, head]


def _dense(weight: Array, bias: Any) -> Dense:
    """The arrays as they are: in their own memory order BLAS rounds as it does for the model."""
    return Dense(weight, np.broadcast_to(np.asarray(bias, dtype=weight.dtype), weight.shape[1]))


def _affine(step: Any) -> list[Stage] | None:
    """The stages of a transformer y = A x + b."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    step = unwrap(step)
    if kind(step) == "Pipeline":
        return _joined([_affine(inner) for _, inner in step.steps])
    if kind(step) in SCALERS:
        return None if getattr(step, "clip", False) else [SCALERS[kind(step)](step)]
    return _projection(step)


def _projection(step: Any) -> list[Stage] | None:
    """PCA: (x - mean) V^T, divided by the standard deviations if whitened; TruncatedSVD: x V^T."""
    if kind(step) == "TruncatedSVD":
        return [_dense(step.components_.T, 0.0)]
    if kind(step) not in {"PCA", "IncrementalPCA"}:
        return None
    stages: list[Stage] = [_dense(step.components_.T, -step.mean_ @ step.components_.T)]
    if step.whiten:
        deviation = np.sqrt(step.explained_variance_)
        stages.append(Scale(divisor=np.maximum(deviation, np.finfo(deviation.dtype).eps)))
    return stages
