"""The user's data as one table of numbers, and back: numbers stay numbers, categories become codes.

An array of numbers or images is that table already. A group of one-hot columns is one column of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Column, Features
from cfproto_plugin.protocols import Array

_LISTED = 12


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
class Attribute:
    """One column of the table: a number, a category in a column of its own, or a category in a group of columns."""

    name: Any
    sources: tuple[int, ...]  # the user's columns
    levels: Any = None  # the categories in the order of their codes, None for a number
    integer: bool = False
    dropped: bool = False  # the last category of a one-hot group has no column: all are zero

    @property
    def is_group(self) -> bool:
        """Whether it is a one-hot group."""
        return self.levels is not None and len(self.sources) > 1


@dataclass(frozen=True)
class Columns:
    """What was learned about the columns of the training data."""

    shape: tuple[int, ...]  # of a row
    names: tuple[Any, ...] | None
    dtypes: tuple[Any, ...] | None
    attributes: tuple[Attribute, ...]
    frames: bool  # whether the model is given DataFrames

    @classmethod
    def learn(cls, data: Any, features: Features, *, accepts_frames: bool) -> tuple[Columns, Array]:
        """Find the categories; return the columns and the data as a table (n, A)."""
        frame = is_frame(data)
        raw: Any = data if frame else _array(data)
        if np.ndim(raw) < 2:  # noqa: PLR2004
            raise InputError(
                f"the training data has shape {np.shape(raw)}; expected rows, (n, features) or (n, h, w, channels)"
            )
        if 0 in np.shape(raw):
            raise InputError(f"the training data is empty: shape {np.shape(raw)}; expected at least two rows")
        names = tuple(raw.columns) if frame else None
        shape = tuple(raw.shape[1:])
        count = int(np.prod(shape))
        attributes = _attributes(raw, names, count, features)
        dtypes = tuple(raw.dtypes) if frame else None
        strings = frame and any(_is_category(dtype) for dtype in dtypes or ())
        columns = cls(shape, names, dtypes, attributes, names is not None and (accepts_frames or strings))
        return columns, columns.read(data)

    @cached_property
    def categories(self) -> dict[int, Attribute]:
        """The categorical attributes by their place in the table."""
        return {at: attribute for at, attribute in enumerate(self.attributes) if attribute.levels is not None}

    @cached_property
    def plain(self) -> bool:
        """Whether the table is the user's array itself: no categories, no groups."""
        return not self.categories

    def read(self, x: Any) -> Array:
        """The user's rows as a table (n, A), checked; one row may come without its batch dimension."""
        if is_frame(x) and self.names is not None:
            x = self._ordered(x)
        raw = x if is_frame(x) else _array(x)
        if not is_frame(raw) and raw.ndim == len(self.shape):
            raw = raw[None]
        if tuple(raw.shape[1:]) != self.shape:
            wanted = f"{self.shape[0]} columns" if len(self.shape) == 1 else f"rows of shape {self.shape}"
            raise InputError(f"x has shape {np.shape(x)}; expected {wanted}, as in the training data")
        if not len(raw):
            raise InputError("x has no rows; expected at least one")
        table = _numbers(raw).reshape(len(raw), -1) if self.plain else self._mixed(raw)
        infinite = np.isinf(table)
        if infinite.any():
            row, at = np.argwhere(infinite)[0]
            raise InputError(f"row {row} holds {table[row, at]} in column {self.describe(at)}; expected finite numbers")
        return table

    def to_model(self, table: Array) -> Any:
        """A table as the model takes it."""
        return self._frame(table, self.dtypes, None) if self.frames else self._raw(table)

    def to_user(self, table: Array, like: Any) -> Any:
        """A table in the type, columns, dtypes and index of what the user gave; a row may be missing."""
        if not is_frame(like):
            return self._raw(table)
        names = self.names or tuple(like.columns)
        frame = self._frame(table, tuple(like[name].dtype for name in names), like.index, names)
        return frame[list(like.columns)]

    def describe(self, at: int) -> str:
        """The name of an attribute, for messages."""
        name = self.attributes[at].name
        return repr(name) if isinstance(name, str) else str(name)

    def find(self, column: Column, rule: str) -> int:
        """The place in the table of a column named in a rule: by name, by index, or by the name of a one-hot group."""
        for at, attribute in enumerate(self.attributes):
            if attribute.name == column and type(attribute.name) is type(column):
                return at
        user = position(column, self.names, int(np.prod(self.shape)), rule)
        return next(at for at, attribute in enumerate(self.attributes) if user in attribute.sources)

    def code(self, at: int, value: Any, what: str) -> int:
        """The code of a category, or an error that names it."""
        attribute = self.attributes[at]
        if attribute.levels is None:
            raise ConfigError(f"{what}: column {self.describe(at)} is a number; use ranges for it")
        known = list(attribute.levels)
        if value not in known:
            listed = ", ".join(map(repr, known[:_LISTED]))
            raise ConfigError(f"{what}: {value!r} is no category.{did_you_mean(value, known)} There are: {listed}")
        return known.index(value)

    def _mixed(self, raw: Any) -> Array:
        parts = [self._part(raw, attribute) for attribute in self.attributes]
        return np.stack(parts, axis=1)

    def _part(self, raw: Any, attribute: Attribute) -> Array:
        if attribute.is_group:
            return self._group(raw, attribute)
        column = _column(raw, attribute.sources[0])
        if attribute.levels is None:
            return _as_float(column, attribute.name)
        return _codes(column, attribute)

    def _group(self, raw: Any, attribute: Attribute) -> Array:
        ones = np.stack([_as_float(_column(raw, at), attribute.name) for at in attribute.sources], axis=1)
        total = ones.sum(axis=1)
        good = np.isin(ones, (0, 1)).all(axis=1) & ((total == 1) | ((total == 0) & attribute.dropped))
        if not good.all():
            row = int(np.argmin(good))
            wanted = "at most one 1" if attribute.dropped else "exactly one 1"
            raise InputError(f"row {row} of the one-hot columns {attribute.name!r} is {ones[row]}; expected {wanted}")
        return np.where(total == 0, len(attribute.sources), ones.argmax(axis=1)).astype(float)

    def _raw(self, table: Array) -> Array:
        if self.plain:
            return table.reshape(len(table), *self.shape)
        width = int(np.prod(self.shape))
        strings = any(attribute.levels.dtype.kind not in "iufb" for attribute in self.categories.values())
        out = np.full((len(table), width), np.nan, dtype=object if strings else table.dtype)
        for at, attribute in enumerate(self.attributes):
            for source, cells in zip(attribute.sources, _cells(table[:, at], attribute), strict=True):
                out[:, source] = cells
        return out.reshape(len(table), *self.shape)

    def _frame(self, table: Array, dtypes: Sequence[Any] | None, index: Any, names: Any = None) -> Any:
        import pandas as pd

        names = list(self.names or names)
        if self.plain:
            frame = pd.DataFrame(table, columns=names, index=index)
            return _cast(frame, dict(zip(names, dtypes or (), strict=True)))
        columns = {
            source: cells
            for at, attribute in enumerate(self.attributes)
            for source, cells in zip(attribute.sources, _cells(table[:, at], attribute), strict=True)
        }
        frame = pd.DataFrame({source: columns[source] for source in range(len(names))}, index=index)
        frame.columns = names
        return _cast(frame, dict(zip(names, dtypes or (), strict=True)))

    def _ordered(self, frame: Any) -> Any:
        names = list(self.names or ())
        given = list(frame.columns)
        absent = [name for name in names if name not in given]
        extra = [name for name in given if name not in names]
        if absent:
            raise InputError(f"x has no column {absent[0]!r}; its columns are {given}.{did_you_mean(absent[0], given)}")
        if extra:
            raise InputError(
                f"x has a column {extra[0]!r} that the training data had not; leave it out."
                f"{did_you_mean(extra[0], names)}"
            )
        return frame[names]


def position(column: Column, names: tuple[Any, ...] | None, count: int, rule: str) -> int:
    """The place of a column among the user's."""
    if names is not None and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and -count <= column < count:
        return int(column) % count
    known = ", ".join(map(str, names[:_LISTED])) if names is not None else f"0 to {count - 1}"
    raise ConfigError(
        f"{rule} names column {column!r}, which is not there.{did_you_mean(column, names or ())} There are: {known}"
    )


def _attributes(raw: Any, names: tuple[Any, ...] | None, count: int, features: Features) -> tuple[Attribute, ...]:
    """Numbers and categories in the order of the user's columns; a group stands where its first column stood."""
    categorical = {position(column, names, count, "categorical") for column in features.categorical}
    groups = {
        name: tuple(position(column, names, count, f"one_hot[{name!r}]") for column in columns)
        for name, columns in features.one_hot.items()
    }
    grouped = {at: name for name, columns in groups.items() for at in columns}
    if len(grouped) < sum(map(len, groups.values())) or categorical & set(grouped):
        raise ConfigError(
            f"a column belongs to two groups of one_hot, or to one and to categorical: {features.one_hot}"
        )
    integer = {position(column, names, count, "integer") for column in features.integer}
    found = []
    for at in range(count):
        if at in grouped:
            if groups[grouped[at]][0] == at:
                found.append(_one_hot(raw, names, grouped[at], groups[grouped[at]]))
            continue
        name = names[at] if names is not None else at
        dtype = raw.dtypes.iloc[at] if names is not None else raw.dtype
        if at in categorical or (names is not None and _is_category(dtype)):
            found.append(Attribute(name, (at,), _categories(_column(raw, at), name)))
        else:
            found.append(Attribute(name, (at,), integer=at in integer or (names is not None and dtype.kind in "iu")))
    return tuple(found)


def _one_hot(raw: Any, names: tuple[Any, ...] | None, name: Any, columns: tuple[int, ...]) -> Attribute:
    ones = np.stack([_as_float(_column(raw, at), name) for at in columns], axis=1)
    dropped = bool((ones.sum(axis=1) == 0).any())
    labels = [names[at] if names is not None else at for at in columns]
    values = np.empty(len(labels) + dropped, dtype=object)
    values[: len(labels)] = labels
    return Attribute(name, columns, values, dropped=dropped)


def _is_category(dtype: Any) -> bool:
    """Strings, categories, booleans and objects are categories; numbers are not."""
    return getattr(dtype, "kind", "O") not in "iufc"


def _categories(column: Any, name: Any) -> Any:
    """The values that occur, in order, a missing one last; of the column's own dtype."""
    if hasattr(column, "array"):
        seen = column.drop_duplicates()
        present = seen.dropna()
        try:
            present = present.sort_values()
        except TypeError as error:
            raise InputError(f"column {name!r} mixes values that have no order: {error}") from error
        import pandas as pd

        return pd.concat([present, seen[seen.isna()]]).array
    try:
        return np.unique(column)
    except TypeError as error:
        raise InputError(f"column {name!r} mixes values that have no order: {error}") from error


def _codes(column: Any, attribute: Attribute) -> Array:
    """Place of every value among the categories."""
    if hasattr(column, "array"):
        import pandas as pd

        codes = pd.Index(attribute.levels).get_indexer(pd.Index(column.array))
        values: Any = column.array
    else:
        at = np.minimum(np.searchsorted(attribute.levels, column), len(attribute.levels) - 1)
        codes = np.where(attribute.levels[at] == column, at, -1)
        values = column
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        known = list(attribute.levels)
        listed = ", ".join(map(str, known[:_LISTED]))
        raise InputError(
            f"row {row} holds {values[row]!r} in column {attribute.name!r}, which the training data had not."
            f"{did_you_mean(values[row], known)} There are: {listed}"
        )
    return np.asarray(codes, dtype=float)


def _cells(part: Array, attribute: Attribute) -> Iterable[Any]:
    """What the user's columns of an attribute hold."""
    if attribute.levels is None:
        return [part]
    missing = np.isnan(part)
    codes = np.where(missing, 0, part).astype(int)
    if attribute.is_group:
        return [np.where(missing, np.nan, codes == k) for k in range(len(attribute.sources))]
    if isinstance(attribute.levels, np.ndarray):
        cells = attribute.levels[codes]
        return [np.where(missing, np.nan, cells) if missing.any() else cells]
    if not missing.any():
        return [attribute.levels.take(codes)]
    import pandas as pd

    cells = pd.Series(attribute.levels.take(codes))
    kept = cells.astype("boolean") if cells.dtype == bool else cells
    return [kept.mask(missing).array]


def _cast(frame: Any, dtypes: dict[Any, Any]) -> Any:
    """A frame with the given dtypes, nullable where values are missing."""
    changed = {}
    for name, dtype in dtypes.items():
        if dtype == frame[name].dtype:
            continue
        nullable = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(getattr(dtype, "kind", "O"))
        changed[name] = nullable if nullable and frame[name].isna().any() else dtype
    return frame.astype(changed) if changed else frame


def _column(raw: Any, at: int) -> Any:
    return raw.iloc[:, at] if is_frame(raw) else raw.reshape(len(raw), -1)[:, at]


def _as_float(column: Any, name: Any) -> Array:
    try:
        if hasattr(column, "to_numpy"):
            return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
        return np.asarray(column, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} was numbers in the training data: {error}") from error


def _array(data: Any) -> Array:
    return np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)


def _numbers(raw: Any) -> Array:
    """Data as floats: float32 stays float32, everything else becomes float64."""
    if is_frame(raw):
        float32 = all(dtype == np.float32 for dtype in raw.dtypes)
        for name, dtype in raw.dtypes.items():
            if _is_category(dtype) and dtype.kind != "b":
                raise InputError(f"column {name!r} holds {dtype}; it was numbers in the training data")
        return np.asarray(raw.to_numpy(dtype=np.float32 if float32 else np.float64, na_value=np.nan))
    if raw.dtype.kind not in "iufb":
        try:
            return np.asarray(raw.astype(np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the data holds {raw.dtype} values that are not numbers: {error}. Name their columns in "
                "Features(categorical=...)."
            ) from error
    return np.asarray(raw if raw.dtype in (np.float32, np.float64) else raw.astype(np.float64))
