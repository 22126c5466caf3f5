"""Which XGBoost models are taken, and why others are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cfproto_plugin.errors import ModelError, NotFittedError

if TYPE_CHECKING:
    from xgboost import Booster

FROM_VALUES = ("binary:logistic", "reg:logistic", "binary:hinge", "multi:softprob")
FROM_MARGINS = ("binary:logitraw", "multi:softmax")


def booster_of(model: Any) -> Booster:
    from xgboost import Booster

    try:
        booster = model if isinstance(model, Booster) else model.get_booster()
        booster.num_features()
    except ValueError as error:  # XGBoostError of an empty Booster, scikit-learn's NotFittedError of an estimator
        raise NotFittedError(f"{name(model)} is not trained; call fit() first, or load a trained model.") from error
    return booster


def checked_objective(model: Any, config: dict[str, Any]) -> str:
    objective = str(config["objective"]["name"])
    if objective not in FROM_VALUES + FROM_MARGINS:
        raise ModelError(
            f"{name(model)} has the objective {objective!r}, which gives no classes; expected one of "
            f"{', '.join(FROM_VALUES + FROM_MARGINS)}. Train an XGBClassifier, or pass a function x -> probabilities."
        )
    if int(config["learner_model_param"]["num_target"]) > 1:
        raise ModelError(
            f"{name(model)} predicts several labels at once; pass a function x -> probabilities of one label."
        )
    if getattr(model, "n_classes_", 2) < 2:  # noqa: PLR2004
        raise ModelError(f"{name(model)} was trained on a single class; there is no other class to reach.")
    return objective


def column_name(label: Any) -> str:
    """As XGBoost spells it: strings, and the levels of a MultiIndex joined by a blank."""
    return " ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def without_stack_trace(error: Exception) -> str:
    """The message between "[time] file:line: " and the C++ stack trace."""
    return re.sub(r"^\[[\d:]+\] \S+: ", "", str(error).split("\nStack trace:")[0]).strip()


def name(model: Any) -> str:
    return type(model).__name__
