"""Models made of other models: voting, stacking, calibration, one class against the rest, a moved threshold.

A forest inside one of them costs as much as a forest alone. `walking` gives a copy of the outer model whose forests are
walked (`sklearn_trees`); how the parts are combined stays the outer model's own code, so its probabilities keep their
bits. The fitted model itself is left as it is.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from cfproto_adapters.sklearn_parts.inputs import kind, unwrap
from cfproto_adapters.sklearn_parts.trees import walked

SIDE_BY_SIDE = ("VotingClassifier", "StackingClassifier", "OneVsRestClassifier")
THRESHOLDED = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


def inside(model: Any) -> list[Any]:
    """Return the fitted classifiers that see the rows of a model made of them, none for all other models."""
    if kind(model) in SIDE_BY_SIDE:
        return list(model.estimators_)
    if kind(model) == "CalibratedClassifierCV":
        return [calibrated.estimator for calibrated in model.calibrated_classifiers_]
    if kind(model) in THRESHOLDED:
        return [getattr(model, "estimator_", None) or model.estimator]
    return []


def walking(model: Any) -> Any:
    """Return the model, or a shallow copy whose methods walk the trees in it."""
    model = unwrap(model)
    walk = walked(model)
    if walk is not None:
        methods = ("predict_proba", "decision_function")
        return _copy(model, **{method: getattr(walk, method) for method in methods if hasattr(walk, method)})
    if kind(model) == "Pipeline":
        *before, (label, last) = model.steps
        return _copy(model, steps=[*before, (label, walking(last))])
    if kind(model) in SIDE_BY_SIDE:
        return _copy(model, estimators_=[walking(part) for part in model.estimators_])
    if kind(model) == "CalibratedClassifierCV":
        parts = [_copy(part, estimator=walking(part.estimator)) for part in model.calibrated_classifiers_]
        return _copy(model, calibrated_classifiers_=parts)
    return model


def _copy(model: Any, **attributes: Any) -> Any:
    """A copy with other attributes: a function among them stands before the method of its class."""
    twin = copy(model)
    vars(twin).update(attributes)
    return twin
