"""The user's data as one table of numbers, and back: numbers stay numbers, categories become codes.

An array of numbers or images is that table already. A group of one-hot columns is one column of it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Column, Features
from cfproto_plugin.helpers.frames import column_order
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.attributes import Attribute, attributes_of, check_dtypes, position
from cfproto_plugin.tables.cells import (
    as_array,
    as_float,
    as_numbers,
    cast,
    code_of,
    codes_of,
    column_of,
    is_category,
    is_frame,
    listed,
    lookup,
)

__all__ = ["Attribute", "Columns", "as_batch", "is_frame"]


def as_batch(x: Any) -> Any:
    """A pandas Series, one row of a frame, as a frame of one row; anything else as it is."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(x, pandas.Series):
        return x.to_frame().T.infer_objects()
    return x


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
        raw: Any = data if frame else as_array(data)
        if np.ndim(raw) < 2:  # noqa: PLR2004
            raise InputError(
                f"the training data has shape {np.shape(raw)}; expected rows, (n, features) or (n, h, w, channels)"
            )
        if 0 in np.shape(raw):
            raise InputError(f"the training data is empty: shape {np.shape(raw)}; expected at least two rows")
        names = tuple(raw.columns) if frame else None
        check_dtypes(raw, names)
        shape = tuple(raw.shape[1:])
        attributes = attributes_of(raw, names, features)
        dtypes = tuple(raw.dtypes) if frame else None
        strings = frame and any(is_category(dtype) for dtype in dtypes or ())
        columns = cls(shape, names, dtypes, attributes, names is not None and (accepts_frames or strings))
        return columns, columns.read(data)

    @cached_property
    def categories(self) -> dict[int, Attribute]:
        """The categorical attributes by their place in the table."""
        return {at: attribute for at, attribute in enumerate(self.attributes) if attribute.levels is not None}

    @cached_property
    def single(self) -> Array:
        """(A,) bool: numbers that the user's column holds in 32 bits and the table in 64."""
        narrow = [str(dtype).lower() == "float32" for dtype in self.dtypes or ()]
        if not any(narrow) or all(narrow):
            return np.zeros(len(self.attributes), dtype=bool)
        return np.array([a.levels is None and narrow[a.sources[0]] for a in self.attributes])

    @cached_property
    def _labels(self) -> Any:
        """The names as pandas keeps them: the same object for every frame, which spares looking at them again."""
        import pandas as pd

        return pd.Index(list(self.names or ()))

    @cached_property
    def plain(self) -> bool:
        """Whether the table is the user's array itself: no categories, no groups."""
        return not self.categories

    def read(self, x: Any) -> Array:
        """The user's rows as a table (n, A), checked; one row may come without its batch dimension."""
        if is_frame(x) and self.names is not None:
            x = self._ordered(x)
        raw = x if is_frame(x) else as_array(x)
        if not is_frame(raw) and raw.ndim == len(self.shape):
            raw = raw[None]
        if tuple(raw.shape[1:]) != self.shape:
            wanted = f"{self.shape[0]} columns" if len(self.shape) == 1 else f"rows of shape {self.shape}"
            raise InputError(f"x has shape {np.shape(x)}; expected {wanted}, as in the training data")
        if not len(raw):
            raise InputError("x has no rows; expected at least one")
        table = as_numbers(raw).reshape(len(raw), -1) if self.plain else self._mixed(raw)
        infinite = np.isinf(table)
        if infinite.any():
            row, at = np.argwhere(infinite)[0].tolist()
            raise InputError(
                f"row {row} holds {table[row, at]} in column {self.describe(at)}; expected finite numbers",
                row=row,
                column=self.attributes[at].name,
            )
        return table

    def to_model(self, table: Array) -> Any:
        """A table as the model takes it."""
        return self._frame(table, self.dtypes, None, nullable=False) if self.frames else self._raw(table)

    def to_named(self, table: Array) -> Any:
        """A table as the user gave the training data: a DataFrame or an array."""
        return self._raw(table) if self.names is None else self._frame(table, self.dtypes, None, nullable=False)

    def to_user(self, table: Array, like: Any) -> Any:
        """A table in the type, columns, dtypes and index of what the user gave; a row may be missing."""
        if not is_frame(like):
            return self._raw(table)
        given = list(like.columns)
        dtypes = dict(zip(given, like.dtypes, strict=True))
        names = list(self.names or given)
        frame = self._frame(table, [dtypes[name] for name in names], like.index, names, nullable=True)
        return frame if given == names else frame[given]

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
            raise ConfigError(
                f"{what}: column {self.describe(at)} is a number; use ranges for it", column=attribute.name
            )
        code = code_of(lookup(attribute.levels), value)
        if code < 0:
            raise ConfigError(
                f"{what}: {value!r} is no category.{did_you_mean(value, attribute.levels)} "
                f"There are: {listed(attribute.levels)}",
                column=attribute.name,
            )
        return code

    def _mixed(self, raw: Any) -> Array:
        single = not is_frame(raw) and raw.dtype == np.float32
        parts = [self._part(raw, attribute) for attribute in self.attributes]
        return np.stack(parts, axis=1).astype(np.float32 if single else np.float64, copy=False)

    def _part(self, raw: Any, attribute: Attribute) -> Array:
        if attribute.group:
            return self._group(raw, attribute)
        column = column_of(raw, attribute.sources[0])
        if attribute.levels is None:
            return as_float(column, attribute.name)
        return codes_of(column, attribute.levels, attribute.name)

    def _group(self, raw: Any, attribute: Attribute) -> Array:
        ones = np.stack([as_float(column_of(raw, at), attribute.name) for at in attribute.sources], axis=1)
        total = ones.sum(axis=1)
        good = np.isin(ones, (0, 1)).all(axis=1) & ((total == 1) | ((total == 0) & bool(attribute.dropped)))
        if not good.all():
            row = int(np.argmin(good))
            wanted = "at most one 1" if attribute.dropped else "exactly one 1"
            raise InputError(
                f"row {row} of the one-hot columns {attribute.name!r} is {ones[row]}; expected {wanted}",
                row=row,
                column=attribute.name,
            )
        return np.where(total == 0, 0, ones.argmax(axis=1) + attribute.dropped).astype(float)

    def _raw(self, table: Array) -> Array:
        if self.plain:
            return table.reshape(len(table), *self.shape)
        kinds = {attribute.levels.dtype.kind for attribute in self.categories.values() if not attribute.group}
        cells = self._cells(table)
        out = np.empty((len(table), len(cells)), dtype=table.dtype if kinds <= set("iufb") else object)
        for at, column in cells.items():
            out[:, at] = column
        return out.reshape(len(table), *self.shape)

    def _frame(self, table: Array, dtypes: Any, index: Any, names: Any = None, *, nullable: bool) -> Any:
        import pandas as pd

        names = list(self.names or names)
        if self.plain:
            frame = pd.DataFrame(table, index=index, columns=self._labels if self.names else names, copy=True)
        else:
            cells = self._cells(table)
            frame = pd.DataFrame({at: cells[at] for at in range(len(names))}, index=index)
            frame.columns = self._labels if self.names else names
        return cast(frame, dict(zip(names, dtypes, strict=True)), nullable=nullable)

    def _cells(self, table: Array) -> dict[int, Any]:
        """The user's columns by their place."""
        return {
            source: cells
            for at, attribute in enumerate(self.attributes)
            for source, cells in zip(attribute.sources, attribute.cells(table[:, at]), strict=True)
        }

    def _ordered(self, frame: Any) -> Any:
        order = column_order(frame.columns, self.names or (), "x")
        return frame if order is None else frame[order]
