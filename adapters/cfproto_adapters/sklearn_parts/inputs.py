"""What a scikit-learn model is, and the rows it wants: arrays, or frames with the column names it was fitted with."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers import FrameColumns, load_pandas, to_pandas
from cfproto_plugin.protocols import Array

SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")


def kind(model: Any) -> str:
    """Return the class name of scikit-learn's own models, "" for all others: a subclass may change what they do."""
    cls = type(model)
    return str(cls.__name__) if cls.__module__.partition(".")[0] == "sklearn" else ""


def name(model: Any) -> str:
    """Return the class name of any model, with the steps of a pipeline, for messages."""
    if kind(model) == "Pipeline":
        return f"Pipeline({', '.join(step if isinstance(step, str) else name(step) for _, step in model.steps)})"
    return type(model).__name__


def unwrap(model: Any) -> Any:
    """Return the model that predicts: the best one of a search, the content of a frozen one."""
    if kind(model) in SEARCHES and hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_)
    if kind(model) == "FrozenEstimator":
        return unwrap(model.estimator)
    return model


def active_steps(pipeline: Any) -> list[Any]:
    """Return the steps of a pipeline that do something."""
    return [step for _, step in pipeline.steps if step is not None and not isinstance(step, str)]


class Rows:
    """Hands a model its rows in the form it was fitted with.

    - fitted with column names: frames are passed on with their columns in the model's order, arrays become frames with
      those names (scikit-learn would warn);
    - fitted without: frames become arrays;
    - a model that does not say (own transformers at the head of a pipeline): rows are passed on as they are.

    Arrays of images are flattened to one line per row.
    """

    def __init__(self, model: Any) -> None:
        steps = active_steps(model) if kind(model) == "Pipeline" else [model]
        first = unwrap(steps[0]) if steps else None
        names = getattr(first, "feature_names_in_", None)
        self.names: list[str] | None = None if names is None else [str(column) for column in names]
        self.n_columns: int | None = getattr(first, "n_features_in_", None)
        self.accepts_frames = self.names is not None or self.n_columns is None
        self._model = name(model)
        self._columns = FrameColumns(self.names)

    def native(self, x: Any) -> Any:
        """Return the rows as the model's own methods want them."""
        if hasattr(x, "columns"):
            return self._in_order(x) if self.accepts_frames else _without_na(to_pandas(x).to_numpy())
        rows = _flat(x)
        return rows if self.names is None or not isinstance(rows, np.ndarray) else self._frame(rows)

    def array(self, x: Any) -> Array:
        """Return the rows as a float array (n, columns) for a model that is recomputed."""
        if hasattr(x, "columns"):
            x = _without_na(to_pandas(self._columns(x)).to_numpy())
        rows: Array = _flat(np.asarray(x))
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:  # noqa: PLR2004
            raise InputError(f"rows of shape {rows.shape[1:]} for {self._model}; expected {self.n_columns} columns.")
        return rows

    def _in_order(self, frame: Any) -> Any:
        """The frame itself if its columns are not those of the model, which then takes them or says what is wrong."""
        try:
            return self._columns(frame)
        except InputError:
            return frame

    def _frame(self, rows: Array) -> Any:
        if rows.shape[1] != len(self.names or ()):
            raise InputError(f"rows of {rows.shape[1]} columns for {self._model}; it was fitted with {self.names}.")
        return load_pandas().DataFrame(rows, columns=self.names)


def _flat(x: Any) -> Any:
    return x.reshape(len(x), -1) if getattr(x, "ndim", 2) > 2 else x  # noqa: PLR2004


def _without_na(x: Array) -> Array:
    """NaN in place of pandas' NA, which NumPy and scikit-learn do not know."""
    if x.dtype != object:
        return x
    is_na = np.array([type(value).__name__ == "NAType" for value in x.flat], dtype=bool)
    return np.where(is_na.reshape(x.shape), np.nan, x)
