"""The user's data as one table of numbers, and back: numbers stay numbers, categories become codes.

An array of numbers or images is that table already. A group of one-hot columns is one column of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.checks import is_number, shown
from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Column, Features
from cfproto_plugin.helpers.frames import column_order
from cfproto_plugin.helpers.kinds import in_memory, library_of, select
from cfproto_plugin.helpers.native import Kind
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.attributes import Attribute, attributes_of, check_dtypes, check_unique, position
from cfproto_plugin.tables.cells import (
    as_array,
    cast,
    code_of,
    holds_days,
    in_native_order,
    is_category,
    is_frame,
    is_loose,
    is_missing,
    lacks_zone,
    listed,
    lookup,
    with_categories,
)
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.held import Held, held_in, same_held
from cfproto_plugin.tables.opening import opened
from cfproto_plugin.tables.reading import read_table
from cfproto_plugin.tables.writing import without_strangers

__all__ = ["Attribute", "Columns", "is_frame"]


@dataclass(frozen=True)
class Columns:
    """What was learned about the columns of the training data."""

    shape: tuple[int, ...]  # of a row
    names: tuple[Any, ...] | None
    dtypes: tuple[Any, ...] | None  # of the columns of frames
    attributes: tuple[Attribute, ...]
    frames: bool  # whether the model is given DataFrames
    held: tuple[Held, ...] = ()  # what the numbers of the rows are held in
    dtype: Any = None  # of arrays for the model; None for frames, objects and text
    labels: Any = None  # the names as pandas keeps them: one object for all frames, which spares looking at them again
    kind: Kind | None = None  # of the frames that the model is given, where they are not of pandas

    @classmethod
    def learn(cls, data: Any, features: Features, *, accepts_frames: bool) -> tuple[Columns, Given]:
        """Find the categories; return the columns and the training rows, which can all be read."""
        data = in_memory(data)
        if type(data).__name__ == "Series":
            raise InputError(
                f"the training data is a Series of {len(data)} values; expected a table of columns, such as a "
                "DataFrame. The labels are not needed: the model says them."
            )
        rows = opened(data, None, None, library_of(data))
        frame = is_frame(rows)
        raw: Any = rows if frame else as_array(rows)
        if np.ndim(raw) < 2:  # noqa: PLR2004
            raise InputError(
                f"the training data has shape {np.shape(raw)}; expected rows, (n, features) or (n, h, w, channels)"
            )
        if 0 in np.shape(raw):
            raise InputError(f"the training data is empty: shape {np.shape(raw)}; expected at least two rows")
        names = tuple(raw.columns) if frame else None
        check_unique(names or (), "the training data")
        check_dtypes(raw, names)
        attributes = attributes_of(raw, names, features)
        dtypes = tuple(raw.dtypes) if frame else None
        strings = frame and any(is_category(dtype) for dtype in dtypes or ())
        found = cls(
            tuple(raw.shape[1:]),
            names,
            dtypes,
            attributes,
            names is not None and (accepts_frames or strings),
            labels=raw.columns if frame else None,
            kind=Kind.of(data),
        )
        given = found.given(data if frame else raw)
        for error in given.errors.values():
            hint = "" if frame else " Name columns of categories in Features(categorical=...)."
            raise InputError(f"the training data: {error}.{hint}", row=error.row, column=error.column)
        return given.columns, given

    @cached_property
    def categories(self) -> dict[int, Attribute]:
        """The categorical attributes by their place in the table."""
        return {at: attribute for at, attribute in enumerate(self.attributes) if attribute.levels is not None}

    @cached_property
    def places(self) -> Array:
        """(columns,) the attributes that the user's columns belong to."""
        found = np.full(self.shape[0], -1)
        for at, attribute in enumerate(self.attributes):
            found[list(attribute.sources)] = at
        return found

    @cached_property
    def plain(self) -> bool:
        """Whether the table is the user's array itself: no categories, no groups, no dates."""
        return not self.categories and all(attribute.dates is None for attribute in self.attributes)

    def given(self, x: Any) -> Given:
        """The rows of one call, read; one row may come without its batch dimension.

        What concerns the call raises: another shape, other columns, no rows. A row that cannot be read does not.
        """
        own = in_memory(x)
        x = opened(own, self.names, self.dtypes, self.kind.library if self.kind else "pandas")
        if is_frame(x) and self.names is not None:
            order = column_order(x.columns, self.names, "x")
            raw = x.copy() if order is None else x[order]
            own = own if order is None or own is x else select(own, order)
        else:
            raw = x.copy() if is_frame(x) else self._array(x)
        if tuple(raw.shape[1:]) != self.shape:
            wanted = f"{self.shape[0]} columns" if len(self.shape) == 1 else f"rows of shape {self.shape}"
            raise InputError(f"x has shape {np.shape(x)}; expected {wanted}, as in the training data")
        if not len(raw):
            raise InputError("x has no rows; expected at least one")
        check_dtypes(raw, tuple(raw.columns) if is_frame(raw) else None)
        if is_frame(raw):
            raw = in_native_order(raw)
        kind = Kind.of(own)
        if kind is not None:
            raw = self._with_missing_of_training(raw)
        table, errors, unknown = read_table(self, raw)
        columns = self._of_rows(raw, unknown)
        if kind is not None and self.kind is not None and kind.library == self.kind.library:
            bare = map(lacks_zone, raw.dtypes, self.dtypes or ())
            pairs = zip(bare, kind.types, self.kind.types, strict=True)
            types = tuple(known if is_bare else own for is_bare, own, known in pairs)
            columns = replace(columns, kind=replace(kind, types=types, nan=self.kind.nan))
        order = x.columns if is_frame(x) else None
        return Given(raw, table, columns, errors, order, None if kind is None else own, columns.loose(raw))

    def _with_missing_of_training(self, raw: Any) -> Any:
        """A frame that knew one null only, with the missing value that the training data has in columns of objects."""
        import pandas as pd

        for attribute in self.categories.values():
            missing = [level for level in attribute.levels if is_missing(level)]
            column = raw.iloc[:, attribute.sources[0]]
            absent = np.asarray(column.isna())
            if not attribute.group and column.dtype == object and len(missing) == 1 and absent.any():
                cells = column.to_numpy(dtype=object, copy=True)
                cells[absent] = missing[0]
                raw.isetitem(attribute.sources[0], pd.Series(cells, index=raw.index, dtype=object))
        return raw

    def _array(self, x: Any) -> Array:
        """A copy of rows (n, *shape); a list has no dtype of its own and takes that of the training data, if it can."""
        raw = as_array(x)
        if isinstance(x, (list, tuple)) and raw.dtype.kind in "iuf" and not any(a.integer for a in self.attributes):
            whole = len(self.held) == 1 and self.held[0].where.all()
            raw = raw.astype(self.held[0].dtype if whole else np.float64)
        return np.array(raw[None] if raw.ndim == len(self.shape) else raw)

    def _of_rows(self, raw: Any, unknown: Mapping[int, Sequence[Any]]) -> Columns:
        """The columns as these rows hold them: their dtypes, and the categories that are new in them."""
        dtypes = self._dtypes_of(raw, unknown)
        found = held_in(raw, self.attributes, dtypes)
        held = self.held if found is None else found
        dtype = None if is_frame(raw) or raw.dtype.kind in "OUS" else raw.dtype
        if not unknown and same_held(held, self.held) and dtypes == self.dtypes and dtype == self.dtype:
            return self
        whole = np.zeros(len(self.attributes), dtype=bool)
        for each in held:
            whole |= each.where & (each.dtype.kind in "iub")
        attributes = [
            replace(a, integer=True) if whole[at] and not a.integer else a for at, a in enumerate(self.attributes)
        ]
        for at, others in unknown.items():
            attributes[at] = attributes[at].with_unknown(others)
        return replace(self, dtypes=dtypes, attributes=tuple(attributes), held=held, dtype=dtype)

    def _dtypes_of(self, raw: Any, unknown: Mapping[int, Sequence[Any]]) -> tuple[Any, ...] | None:
        """What frames for the model are made of: the dtypes of the rows.

        Those of training where the rows hold text or objects in a column that was neither: strings stand for
        categories, and one cell that is no number makes a column of objects. Those of training as well for dates
        without a time zone where it had one.
        """
        if not is_frame(raw) or self.dtypes is None:
            return self.dtypes
        loose = [is_loose(dtype) for dtype in raw.dtypes]
        pairs = zip(loose, raw.dtypes, self.dtypes, strict=True)
        found = [
            known if (free and not is_loose(known)) or lacks_zone(own, known) else own for free, own, known in pairs
        ]
        for at, others in unknown.items():
            source = self.attributes[at].sources[0]
            found[source] = with_categories(found[source], others)
        return tuple(found)

    def loose(self, raw: Any) -> Columns | None:
        """The columns with the text and objects of these rows left as they are; None if they are."""
        if not is_frame(raw) or self.dtypes is None:
            return None
        pairs = zip(raw.dtypes, self.dtypes, strict=True)
        dtypes = tuple(own if is_loose(own) and not holds_days(dtype) else dtype for own, dtype in pairs)
        return None if dtypes == self.dtypes else replace(self, dtypes=dtypes)

    def to_model(self, table: Array, *, floats: bool = False) -> Any:
        """A table as the model takes it; floats: arrays as floats of 32 or 64 bits, whatever the dtype of the rows."""
        if self.frames:
            return self.native(without_strangers(self.attributes, self._frame(table), table))
        raw = self._raw(table)
        if self.dtype is None or (floats and self.dtype != np.float32):
            return raw
        return raw.astype(self.dtype, copy=False)

    def named(self, frame: Any) -> Any:
        """A frame with the columns of the training data as all frames for the model have them: names and dtypes."""
        frame = frame.set_axis(self.labels, axis=1)
        return cast(frame, dict(zip(self.names or (), self.dtypes or (), strict=True)))

    def native(self, frame: Any) -> Any:
        """A pandas frame in the kind of the training data."""
        return frame if self.kind is None else self.kind.frame(frame)

    def to_named(self, table: Array) -> Any:
        """A table as the user gave the training data: a frame or an array."""
        return self._raw(table) if self.names is None else self.native(self._frame(table))

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

    def number(self, at: int, value: Any, what: str) -> float:
        """A value that a rule gives for a column of numbers or dates, as the table holds it."""
        dates = self.attributes[at].dates
        if dates is not None:
            days = None if is_number(value) else dates.number(value)
            if days is None or np.isnan(days):
                zone = "without a time zone" if dates.zone is None else f"in {dates.zone}"
                kind = "durations" if dates.durations else f"dates {zone}"
                raise ConfigError(
                    f"{what} has {shown(value)}, but {self.describe(at)} holds {kind}",
                    column=self.attributes[at].name,
                )
            return days
        if not (is_number(value) and np.isfinite(value)):
            name = self.attributes[at].name
            raise ConfigError(f"{what} has {shown(value)}, but {self.describe(at)} is a number", column=name)
        return float(value)

    def shown(self, at: int, number: float) -> str:
        """A number of the table, for messages."""
        dates = self.attributes[at].dates
        return f"{number:g}" if dates is None else dates.in_words(number)

    def code(self, at: int, value: Any, what: str) -> int:
        """The code of a category, or an error that names it."""
        attribute = self.attributes[at]
        code = code_of(lookup(attribute.levels), value)
        if code < 0:
            raise ConfigError(
                f"{what}: {value!r} is no category.{did_you_mean(value, attribute.levels)} "
                f"There are: {listed(attribute.levels)}",
                column=attribute.name,
            )
        return code

    def _raw(self, table: Array) -> Array:
        if self.plain:
            return table.reshape(len(table), *self.shape)
        kinds = {attribute.levels.dtype.kind for attribute in self.categories.values() if not attribute.group}
        cells = self._cells(table)
        out = np.empty((len(table), len(cells)), dtype=table.dtype if kinds <= set("iufb") else object)
        for at, column in cells.items():
            out[:, at] = column
        return out.reshape(len(table), *self.shape)

    def _frame(self, table: Array) -> Any:
        import pandas as pd

        names = list(self.names or ())
        if self.plain:
            frame = pd.DataFrame(table, columns=self.labels, copy=True)
        else:
            cells = self._cells(table)
            # objects as a Series, else pandas would make a column of strings of them and lose None
            series = {at: pd.Series(part, dtype=object) if part.dtype == object else part for at, part in cells.items()}
            frame = pd.DataFrame({at: series[at] for at in range(len(names))})
            frame.columns = self.labels
        return cast(frame, dict(zip(names, self.dtypes or (), strict=True)))

    def _cells(self, table: Array) -> dict[int, Any]:
        """The user's columns by their place."""
        return {
            source: cells
            for at, attribute in enumerate(self.attributes)
            for source, cells in zip(attribute.sources, attribute.cells(table[:, at]), strict=True)
        }
