"""XGBoost classifiers, `XGBClassifier` and the native `Booster`, by in-place prediction.

What the objectives give:

    binary:logistic, reg:logistic   (1 - p, p)
    multi:softprob                  p
    multi:softmax                   the softmax of the margins, since its own predictions are labels
    binary:logitraw                 the logistic function of the margin. `XGBClassifier.predict` compares this margin
                                    with 0.5 instead of 0: 0.5 is then subtracted first, so that the classes are its own
    binary:hinge                    0 and 1: a hinge margin is not a log-odds, and `predict_proba` says the same

A model that stopped early uses its trees up to the best iteration, as `XGBClassifier.predict_proba` does.
"""

from __future__ import annotations

import json
import math
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_adapters.files import XGBOOST
from cfproto_adapters.xgboost_parts.in_place import in_place
from cfproto_adapters.xgboost_parts.models import (
    FROM_MARGINS,
    booster_of,
    checked_objective,
    column_name,
    name,
    without_stack_trace,
)
from cfproto_adapters.xgboost_parts.saved import categories_of, is_plain, log_odds, one_tree, splits_by_category
from cfproto_plugin import AdapterSpec, hookimpl
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import (
    FrameColumns,
    numbers_of,
    softmax,
    table_rows,
    tree_scores,
    tree_thresholds,
    two_columns,
)
from cfproto_plugin.protocols import Array, Role, TreeEnsemble

if TYPE_CHECKING:
    from xgboost import Booster

_MOST_ROUNDING = 1e-5  # of the sum of the trees in float32, of the size of their leaves
_LINEAR_LOCK = threading.Lock()  # XGBoost predicts safely from several threads with trees only


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    # XGBModel also catches regressors and rankers, which scikit-learn's BaseEstimator would otherwise take.
    claims = ("xgboost.sklearn:XGBClassifier", "xgboost.sklearn:XGBModel", "xgboost.core:Booster")
    return [AdapterSpec("xgboost", claims=claims, factory=xgboost_adapter, files=XGBOOST)]


def xgboost_adapter(
    model: Any, *, role: Role = "classifier", iteration_range: tuple[int, int] | None = None
) -> XGBoostAdapter:
    """Return the adapter for the model.

    iteration_range: the boosting rounds to use, first and last + 1; (0, 0) for all; default: up to the best one.
    """
    if role != "classifier":
        raise ModelError(
            f"{name(model)} cannot be used as {role!r}: XGBoost models are used as classifiers only. Pass a network."
        )
    booster = booster_of(model)
    own = type(model).__module__.partition(".")[0] != "xgboost"  # a subclass may predict in a way of its own
    if own and hasattr(model, "predict_proba") and iteration_range is None:
        return XGBoostSubclassAdapter(model, booster, json.loads(booster.save_config())["learner"])
    config = json.loads(booster.save_config())["learner"]
    linear = config["gradient_booster"]["name"] == "gblinear"
    return (XGBoostLinearAdapter if linear else XGBoostTreeAdapter)(model, booster, config, iteration_range)


class XGBoostAdapter:
    """What trees and linear boosters share: columns in, probabilities out."""

    def __init__(
        self,
        model: Any,
        booster: Booster,
        config: dict[str, Any],
        iteration_range: tuple[int, int] | None = None,
    ) -> None:
        self._booster = booster
        self._source = model
        self._config = config
        self._linear = config["gradient_booster"]["name"] == "gblinear"
        self._objective = checked_objective(model, config)
        self._margin = self._objective in FROM_MARGINS
        self._missing = getattr(model, "missing", math.nan)
        self._n_columns = int(config["learner_model_param"]["num_feature"])
        self._n_groups = max(1, int(config["learner_model_param"]["num_class"]))
        self.feature_names: list[str] | None = booster.feature_names
        self._columns = FrameColumns(self.feature_names, column_name)
        self._categorical = "c" in (booster.feature_types or ())
        self._iterations = iteration_range or (0, getattr(booster, "best_iteration", -1) + 1)  # (0, 0) is all of them
        self._cut = 0.0
        self.accepts_frames = self.feature_names is not None
        if hasattr(model, "n_classes_"):
            self._cut = 0.5

    @property
    def classes(self) -> Array:
        """The labels that an XGBClassifier names now; a booster has none."""
        return np.asarray(self._source.classes_)

    def predict(self, x: Array) -> Array:
        self._require_same_booster()
        rows = self._rows(x)
        try:
            y = self._output(rows).reshape(-1, self._n_groups)
        except ValueError as error:
            raise ModelError(f"XGBoost cannot predict these rows: {without_stack_trace(error)}") from error
        if self._objective == "binary:logitraw":
            margin = y[:, 0].astype(np.float64) - self._cut
            return softmax(np.stack([np.zeros_like(margin), margin], axis=1))
        if self._objective == "multi:softmax":
            return softmax(y)
        return y if self._n_groups > 1 else two_columns(y)

    def _require_same_booster(self) -> None:
        """`XGBClassifier.fit` makes a new booster."""
        if self._source is not self._booster and self._source.get_booster() is not self._booster:
            raise ModelError(
                f"{name(self._source)} was fitted again: the model changed after explainer.fit. Call explainer.fit "
                "again with the model as it is now."
            )

    def _output(self, rows: Any) -> Array:
        return np.asarray(
            self._booster.inplace_predict(
                rows,
                iteration_range=self._iterations,
                predict_type="margin" if self._margin else "value",
                missing=self._missing,
                validate_features=False,  # `_rows` has done so
            )
        )

    def _rows(self, x: Any) -> Any:
        """Frames with the model's columns in the model's order, arrays with as many columns as it has."""
        if not isinstance(x, np.ndarray) and hasattr(x, "columns"):
            return self._frame(x)
        return table_rows(np.asarray(x), self._n_columns, "the XGBoost model")

    def _frame(self, frame: Any) -> Any:
        ordered = self._columns(frame)
        if ordered.shape[1] != self._n_columns:
            raise ModelError(
                f"the frame has {ordered.shape[1]} columns; the XGBoost model was trained with {self._n_columns}."
            )
        numbers = None if self._categorical else numbers_of(ordered)
        return ordered if numbers is None else numbers


class XGBoostTreeAdapter(XGBoostAdapter):
    """gbtree and dart."""

    row_by_row = True

    def __init__(
        self, model: Any, booster: Booster, config: dict[str, Any], iteration_range: tuple[int, int] | None = None
    ) -> None:
        super().__init__(model, booster, config, iteration_range)
        self._in_place = in_place(booster, self._iterations, self._missing, margin=self._margin)

    def _output(self, rows: Any) -> Array:
        found = self._in_place(rows) if self._in_place is not None and isinstance(rows, np.ndarray) else None
        return super()._output(rows) if found is None else found

    def __getstate__(self) -> dict[str, Any]:
        """Without the function, which holds a place in memory, and without the trees, which the booster has."""
        return {name: value for name, value in vars(self).items() if name not in {"_in_place", "_saved", "_ensemble"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._in_place = in_place(self._booster, self._iterations, self._missing, margin=self._margin)

    def trees(self) -> TreeEnsemble | None:
        """Return the trees.

        None if leaves have several values, for hinge models, and if it is not known which category has which code: for
        categories with letters beyond ASCII, and before XGBoost 3.1.
        """
        return self._ensemble if self._ensemble_is_exact else None

    def thresholds(self) -> list[Array] | None:
        """Return the t of the splits x < t by column where `trees` gives none; categories have none."""
        return None if self._ensemble_is_exact else tree_thresholds(self._ensemble)

    @cached_property
    def _saved(self) -> dict[str, Any]:
        saved: dict[str, Any] = json.loads(bytes(self._booster.save_raw("json")))["learner"]
        return saved

    @property
    def _model(self) -> dict[str, Any]:
        booster: dict[str, Any] = self._saved["gradient_booster"]
        model: dict[str, Any] = booster.get("gbtree", booster)["model"]  # dart is a gbtree with weights
        return model

    @cached_property
    def _ensemble_is_exact(self) -> bool:
        """Whether it gives what the model gives; tried on rows too, because how a base score is saved has changed.

        Margins are compared: of a probability near 1, five digits say nothing about the base score.
        """
        trees = self._model["trees"]
        if self._objective == "binary:hinge" or not all(map(is_plain, trees)):
            return False
        if categories_of(self._model) is None and any(map(splits_by_category, trees)):
            return False
        rows = np.stack([np.zeros(self._n_columns), np.full(self._n_columns, np.nan)])
        margin = self._booster.inplace_predict(
            rows, iteration_range=self._iterations, predict_type="margin", missing=self._missing
        )
        sizes = [np.abs(tree.value).max() for tree in self._ensemble.trees]
        error = np.abs(tree_scores(self._ensemble, rows) - (np.reshape(margin, (2, -1)) - self._zero))
        return bool(error.max() <= _MOST_ROUNDING * (1 + np.abs(self._ensemble.base).max() + sum(sizes)))

    @cached_property
    def _ensemble(self) -> TreeEnsemble:
        """The trees in use: x < t in float32 to the left."""
        model = self._model
        rounds = model["iteration_indptr"]
        used = slice(rounds[self._iterations[0]], rounds[self._iterations[1] or -1])
        weights = self._saved["gradient_booster"].get("weight_drop", [1.0] * len(model["trees"]))  # of dart
        parts = zip(model["trees"][used], model["tree_info"][used], weights[used], strict=True)
        return TreeEnsemble(
            tuple(one_tree(tree, group, weight, self._n_groups) for tree, group, weight in parts),
            self._base(),
            self._n_columns,
            link="softmax" if self._n_groups > 1 else "logistic",
            equal_left=False,
            dtype="float32",
            missing=self._missing,
            categories=categories_of(model),
        )

    def _base(self) -> Array:
        """The margins (groups,) before any tree. Versions before 3 have one base score for all groups."""
        base = np.ravel(json.loads(self._saved["learner_model_param"]["base_score"])).astype(float)
        if self._n_groups > 1:
            return np.broadcast_to(base, self._n_groups).copy()
        return base - self._zero if self._objective == "binary:logitraw" else log_odds(base)

    @property
    def _zero(self) -> float:
        """The margin at which both classes are as likely."""
        return self._cut if self._objective == "binary:logitraw" else 0.0


class XGBoostSubclassAdapter(XGBoostAdapter):
    """A class of the user's: its own `predict_proba` and `predict`. The splits of its trees guide the search."""

    def predict(self, x: Array) -> Array:
        self._require_same_booster()
        return np.asarray(self._source.predict_proba(self._rows(x)))

    def labels(self, x: Array) -> Array:
        """Return the columns (n,) of the labels that its `predict` returns."""
        found = np.asarray(self._source.predict(self._rows(x))).reshape(-1, 1)
        is_label = found == self.classes
        if not is_label.any(axis=1).all():
            row = int(np.argmin(is_label.any(axis=1)))
            raise ModelError(
                f"predict of {name(self._source)} returned {found[row, 0]!r}, which is none of its classes_ "
                f"{list(self.classes)}"
            )
        return np.asarray(is_label.argmax(axis=1))

    def thresholds(self) -> list[Array] | None:
        """Return the t of the splits x < t by column; None for a linear booster."""
        if self._linear:
            return None
        trees = XGBoostTreeAdapter(self._booster, self._booster, self._config)
        found = trees.trees()
        return trees.thresholds() if found is None else tree_thresholds(found)


class XGBoostLinearAdapter(XGBoostAdapter):
    """gblinear, which has neither in-place prediction nor iterations to choose from."""

    def _output(self, rows: Any) -> Array:
        from xgboost import DMatrix

        with _LINEAR_LOCK:
            matrix = DMatrix(rows, missing=self._missing, enable_categorical=True)
            y = self._booster.predict(matrix, output_margin=self._margin, validate_features=False)
        return np.asarray(y)
