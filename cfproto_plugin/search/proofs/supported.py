"""Which models and tables proofs are for."""

from __future__ import annotations

from typing import Any

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.plugins import Adapted, type_name
from cfproto_plugin.tables.columns import Columns


def check_certifiable(what: str, model: Adapted, columns: Columns, *, encoders: bool, itself: Any) -> None:
    """Refuse proofs about models that do not say their trees, or that do not decide by them alone.

    itself: the user's model, which the message names.
    """
    if encoders or len(columns.shape) > 1:
        raise ConfigError(f"{what} is for tables without encoders and autoencoders; leave it out")
    if model.trees is None:
        raise ConfigError(
            f"{what} needs the trees of the model, and {model.owner} has none for "
            f"{'this model' if itself is None else type_name(itself)}{_of_pipelines(itself)}. Models that have them: "
            "XGBoost's (splits by category from version 3.1 on), scikit-learn's trees, forests, bagging and boosting "
            "of trees, and those of plugins whose adapters have trees(). Splits by category, such as those of "
            "HistGradientBoostingClassifier with categorical_features, are known of XGBoost alone. "
            "Leave it out, or use such a model"
        )
    if model.labels is not None:
        raise ConfigError(f"{what} needs a model that decides for its largest probability, and {model.owner} does not")
    for attribute in columns.attributes:
        if attribute.dates is not None:
            raise ConfigError(f"{what} needs numbers and categories; column {attribute.name!r} holds dates")


def _of_pipelines(model: Any) -> str:
    """Why a pipeline has no trees, whatever its last step is, and what to do."""
    if not hasattr(model, "named_steps"):
        return ""
    return (
        ": its trees split what the steps before them make, not the columns of the rows. Encode the columns before the "
        "model and explain the model alone, or give XGBoost columns of the dtype category (enable_categorical=True) in "
        "place of an encoder"
    )
