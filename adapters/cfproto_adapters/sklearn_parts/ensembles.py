"""Models made of other models: voting, stacking, calibration, one class against the rest, a moved threshold.

A forest inside one of them costs as much as a forest alone. `walking` gives a copy of the outer model whose trees are
walked (`sklearn_parts.trees`); how the parts are combined stays the outer model's own code. The fitted model itself is
left as it is.
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
    """Return a shallow copy whose methods walk the trees in the model; the model itself if there are none."""
    model = unwrap(model)
    walk = walked(model)
    if walk is not None:
        methods: dict[str, Any] = {"predict_proba": walk.predict_proba}
        if walk.has_decision:
            methods["decision_function"] = walk.decision_function
        return _copy(model, **methods)
    if kind(model) == "Pipeline":
        *before, (label, last) = model.steps
        twin = walking(last)
        return model if twin is last else _copy(model, steps=[*before, (label, twin)])
    if kind(model) in SIDE_BY_SIDE:
        parts = [walking(part) for part in model.estimators_]
        same = all(part is twin for part, twin in zip(model.estimators_, parts, strict=True))
        return model if same else _copy(model, estimators_=parts)
    if kind(model) == "CalibratedClassifierCV":
        found = [(part, walking(part.estimator)) for part in model.calibrated_classifiers_]
        if all(part.estimator is twin for part, twin in found):
            return model
        return _copy(model, calibrated_classifiers_=[_copy(part, estimator=twin) for part, twin in found])
    return model


def _copy(model: Any, **attributes: Any) -> Any:
    """A copy with other attributes: a function among them stands before the method of its class."""
    twin = copy(model)
    vars(twin).update(attributes)
    return twin
