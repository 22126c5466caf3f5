"""Three spaces and the way between them: the user's columns, what the model takes, and where the search moves.

The search moves in flat rows (n, D) of standardised numbers; the user has arrays of any shape or DataFrames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Column, Features
from cfproto_plugin.protocols import Array


class Rows(NamedTuple):
    """Rows to explain and how far each of their cells may move, all (n, D)."""

    x: Array
    z: Array
    lower: Array
    upper: Array

    def take(self, rows: Array) -> Rows:
        """A subset of the rows."""
        return Rows(*(part[rows] for part in self))


def is_frame(data: Any) -> bool:
    """Whether data is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def as_batch(x: Any) -> Any:
    """A pandas Series, one row of a frame, as a frame of one row; anything else as it is."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(x, pandas.Series):
        return x.to_frame().T.infer_objects()
    return x


@dataclass(frozen=True)
class FeatureSpace:
    """What was learned from the training data about its columns."""

    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    dtypes: tuple[Any, ...] | None
    low: Array
    high: Array
    declared: Array
    offset: Array
    factor: Array
    integer: Array
    features: Features
    frames: bool

    @classmethod
    def learn(cls, data: Any, features: Features, *, scale: bool, accepts_frames: bool) -> tuple[FeatureSpace, Array]:
        """Read the training data; return the space and the data as flat rows (n, D)."""
        names = tuple(data.columns) if is_frame(data) else None
        dtypes = tuple(data.dtypes) if is_frame(data) else None
        values = _numbers(data)
        if values.ndim < 2:  # noqa: PLR2004
            raise InputError(
                f"the training data has shape {values.shape}; expected rows, (n, features) or (n, h, w, channels)"
            )
        if values.size == 0:
            raise InputError(f"the training data is empty: shape {values.shape}; expected at least two rows")
        shape, flat = values.shape[1:], values.reshape(len(values), -1)
        _refuse_infinite(flat, names)
        missing = np.isnan(flat).all(axis=0)
        if missing.any():
            raise InputError(f"column {_label(names, int(missing.argmax()))} of the training data has no value at all")
        n_columns = flat.shape[1]
        low, high = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
        declared = np.zeros(n_columns, dtype=bool)
        for column, (lowest, highest) in features.ranges.items():
            i = _index(column, names, n_columns, "ranges")
            low[i], high[i], declared[i] = lowest, highest, True
        integer = (
            np.array([dtype.kind in "iub" for dtype in dtypes], dtype=bool)
            if dtypes
            else np.zeros(n_columns, dtype=bool)
        )
        integer[_indices(features.integer, names, n_columns, "integer")] = True
        offset = np.nanmean(flat, axis=0)
        spread = np.nanstd(flat, axis=0) if scale else np.ones(n_columns)
        space = cls(
            shape=shape,
            names=names,
            dtypes=dtypes,
            low=low,
            high=high,
            declared=declared,
            offset=offset if scale or np.isnan(flat).any() else np.zeros(n_columns),
            factor=np.where(spread > 0, spread, 1.0),
            integer=integer,
            features=features,
            frames=accepts_frames and names is not None,
        )
        for rule in ("immutable", "increasing", "decreasing"):
            space._columns(rule)
        return space, flat

    @cached_property
    def is_identity(self) -> bool:
        """Whether the search moves in the user's own numbers."""
        return not self.offset.any() and bool((self.factor == 1).all())

    @cached_property
    def has_integers(self) -> bool:
        """Whether decoding rounds."""
        return bool(self.integer.any())

    def read(self, x: Any) -> Array:
        """The user's rows as flat floats (n, D), checked; one row may come without its batch dimension."""
        if is_frame(x) and self.names is not None:
            x = self._ordered(x)
        values = _numbers(x)
        if values.ndim == len(self.shape):
            values = values[None]
        if values.shape[1:] != self.shape:
            wanted = f"{self.shape[0]} columns" if len(self.shape) == 1 else f"rows of shape {self.shape}"
            raise InputError(f"x has shape {np.shape(x)}; expected {wanted}, as in the training data")
        if not len(values):
            raise InputError("x has no rows; expected at least one")
        flat = values.reshape(len(values), -1)
        _refuse_infinite(flat, self.names)
        return flat

    def rows(self, x: Array) -> Rows:
        """Attach the bounds of every cell, in search space, to rows in the user's numbers."""
        free = ~self.declared
        lower = np.where(free, np.fmin(self.low, x), self.low)
        upper = np.where(free, np.fmax(self.high, x), self.high)
        rising, falling, fixed = (self._columns(rule) for rule in ("increasing", "decreasing", "immutable"))
        lower[:, rising] = np.fmax(lower[:, rising], x[:, rising])
        upper[:, falling] = np.fmin(upper[:, falling], x[:, falling])
        lower[:, fixed] = np.where(self.declared[fixed], np.fmax(lower[:, fixed], x[:, fixed]), x[:, fixed])
        upper[:, fixed] = np.where(self.declared[fixed], np.fmin(upper[:, fixed], x[:, fixed]), x[:, fixed])
        return Rows(x, self.to_search(x), lower.astype(x.dtype), upper.astype(x.dtype))

    def to_search(self, x: Array) -> Array:
        """z = (x - mean) / standard deviation; a missing value stands at the mean."""
        if self.is_identity:
            return x
        z = (x - self.offset.astype(x.dtype)) / self.factor.astype(x.dtype)
        return np.asarray(np.where(np.isnan(z), 0, z))

    def bounds(self, rows: Rows) -> tuple[Array, Array]:
        """The bounds in search space."""
        return self.to_search(rows.lower), self.to_search(rows.upper)

    def decode(self, z: Array, rows: Rows) -> Array:
        """Search points in the user's numbers: cells that did not move are exactly the row's, others within bounds."""
        if self.is_identity and not self.has_integers:
            return z
        x = z if self.is_identity else z * self.factor.astype(z.dtype) + self.offset.astype(z.dtype)
        if self.has_integers:
            x = np.where(self.integer, np.rint(x), x)
        inside = np.fmin(np.fmax(x, rows.lower), rows.upper)
        moved = (z != rows.z) | (rows.x < rows.lower) | (rows.x > rows.upper)
        return np.asarray(np.where(moved, inside, rows.x))

    def broken(self, x: Array, rows: Rows) -> Array:
        """Which counterfactuals break a rule: (n,) bool, on the user's numbers."""
        outside = (x < rows.lower) | (x > rows.upper)
        fraction = self.integer & (x != np.rint(x)) & (x != rows.x)
        vanished = np.isnan(x) & ~np.isnan(rows.x)
        return np.asarray((outside | fraction | vanished).any(axis=1))

    def to_model(self, x: Array) -> Any:
        """Flat rows as the model takes them."""
        if not self.frames:
            return x.reshape(len(x), *self.shape)
        return self._frame(x, self.dtypes, None)

    def to_user(self, x: Array, like: Any) -> Any:
        """Flat rows in the type, columns, dtypes and index of what the user gave; an empty cell may be missing."""
        if is_frame(like):
            frame = self._frame(
                x, tuple(like[name].dtype for name in self.names or like.columns), like.index, like.columns
            )
            return frame[list(like.columns)]
        return x.reshape(len(x), *self.shape)

    def describe(self, column: int) -> str:
        """The name of a column, for messages."""
        return _label(self.names, column)

    def _frame(self, x: Array, dtypes: tuple[Any, ...] | None, index: Any, columns: Any = None) -> Any:
        import pandas as pd

        names = list(self.names) if self.names is not None else list(columns)
        frame = pd.DataFrame(x, columns=names, index=index)
        kept = dict(zip(names, dtypes or (), strict=True))
        missing = frame.isna().any()
        changed = {
            name: _nullable(dtype) if missing[name] else dtype
            for name, dtype in kept.items()
            if dtype != frame[name].dtype
        }
        return frame.astype(changed) if changed else frame

    def _ordered(self, frame: Any) -> Any:
        names = list(self.names or ())
        given = list(frame.columns)
        absent = [name for name in names if name not in given]
        extra = [name for name in given if name not in names]
        if absent:
            raise InputError(f"x has no column {absent[0]!r}; its columns are {given}.{did_you_mean(absent[0], given)}")
        if extra:
            raise InputError(
                f"x has a column {extra[0]!r} that the training data had not.{did_you_mean(extra[0], names)}"
            )
        return frame[names]

    def _columns(self, rule: str) -> list[int]:
        return _indices(getattr(self.features, rule), self.names, len(self.low), rule)


def _nullable(dtype: Any) -> Any:
    """The dtype that holds what dtype holds and missing values too."""
    name = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(dtype.kind)
    return name or dtype


def _numbers(data: Any) -> Array:
    """Data as a float array: float32 stays float32, everything else becomes float64."""
    if is_frame(data):
        for name, dtype in data.dtypes.items():
            if dtype.kind not in "iufb":
                raise InputError(
                    f"column {name!r} holds {dtype}; expected numbers. Encode it, or leave it out of the model."
                )
        float32 = all(dtype == np.float32 for dtype in data.dtypes)
        return np.asarray(data.to_numpy(dtype=np.float32 if float32 else np.float64, na_value=np.nan))
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    values = np.asarray(data)
    if values.dtype.kind not in "iufb":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the data holds {values.dtype} values that are not numbers: {error}") from error
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _refuse_infinite(flat: Array, names: tuple[str, ...] | None) -> None:
    infinite = np.isinf(flat)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InputError(
            f"row {row} holds {flat[row, column]} in column {_label(names, int(column))}; expected finite numbers"
        )


def _label(names: tuple[str, ...] | None, column: int) -> str:
    return repr(names[column]) if names is not None else str(column)


def _indices(columns: Iterable[Column], names: tuple[str, ...] | None, n_columns: int, rule: str) -> list[int]:
    return [_index(column, names, n_columns, rule) for column in columns]


def _index(column: Column, names: tuple[str, ...] | None, n_columns: int, rule: str) -> int:
    if names is not None and column in names:
        return names.index(str(column)) if isinstance(column, str) else list(names).index(column)
    if isinstance(column, (int, np.integer)) and -n_columns <= column < n_columns:
        return int(column) % n_columns
    known = ", ".join(map(str, names[:12])) if names is not None else f"0 to {n_columns - 1}"
    raise ConfigError(
        f"{rule} names column {column!r}, which is not there.{did_you_mean(column, names or ())} There are: {known}"
    )
