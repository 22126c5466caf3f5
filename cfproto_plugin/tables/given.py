"""The user's own rows of one call. What comes back, and what the model is asked, are these rows with changed cells.

A cell that did not change is never read and written again: None stays None, and integers that floats cannot hold stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import library_of, names_of, select, take
from cfproto_plugin.helpers.native import blanked_native, written_native
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import column_of, is_frame
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.writing import blanked, blanked_array, without_strangers, written, written_array

if TYPE_CHECKING:
    from cfproto_plugin.tables.columns import Columns

_Change = tuple[Array, int, Any]  # lines (m,), a column of the user's, its new cells (m,)
_LARGE = 2.0**62
_EXACT = 2.0**53  # up to which every whole number is a float


@dataclass(frozen=True)
class Given:
    """Rows of one call."""

    rows: Any  # a copy of the user's: an array (n, *shape), or a frame with the columns in the order of training
    table: Array  # (n, A) their numbers and codes; missing where a row cannot be read
    columns: Columns  # as these rows hold them
    errors: dict[int, InputError]  # by row: why it cannot be read
    order: Any = None  # the columns of the user's frame, in their own order
    native: Any = None  # the user's frame where it is not of pandas; `rows` are the same in pandas
    loose: Columns | None = None  # `columns` with text and objects left as they are, where training had neither

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def beyond_floats(self) -> bool:
        """Whether a number may be too large for a float to hold all of its digits."""
        return bool((np.abs(self.table) >= _EXACT).any())

    @property
    def index(self) -> Any:
        """The index of the user's frame; None for what has none."""
        return self.rows.index if is_frame(self.rows) and self.native is None else None

    def original(self, row: Array) -> Any:
        """The user's rows (m,), as they came."""
        return self._as_given(take(self._own, row))

    def answers(self, table: Array, row: Array, there: Array) -> Any:
        """The rows (m,) with the cells changed that differ in a table (m, A); all missing where not `there` (m,)."""
        made = self._written(self._own, table, row, there)
        if not there.all():
            made = _blanked(made, ~there)
        return self._as_given(made)

    def for_model(self, table: Array, row: Array) -> Any:
        """The same rows as the model takes them: cell by cell what `answers` returns."""
        columns, frame = self.columns, is_frame(self.rows)
        if columns.frames != frame or (not frame and columns.plain and self.rows.dtype.kind not in "iufb"):
            return columns.to_model(table)
        same = columns.kind is not None and columns.kind.is_of(self.native)
        made = self._written(self.native if same else self.rows, table, row)
        if not frame or same:
            return made
        return columns.native(without_strangers(columns.attributes, columns.named(made.reset_index(drop=True)), table))

    @property
    def _own(self) -> Any:
        return self.rows if self.native is None else self.native

    def _as_given(self, rows: Any) -> Any:
        if self.order is None:
            return rows
        if self.native is not None:
            return rows if list(self.order) == names_of(rows) else select(rows, list(self.order))
        if not rows.columns.equals(self.order):
            rows = rows[list(self.order)]
        return rows.set_axis(self.order, axis=1)

    def _written(self, rows: Any, table: Array, row: Array, there: Array | None = None) -> Any:
        """Rows (m,) with the changed cells of a table (m, A), where `there` (m,) bool."""
        whole, rows = rows, take(rows, row)
        differs = changed(table, self.table.take(row, axis=0))
        if there is not None:
            differs &= there[:, None]
        changes = self._changes(whole, table, row, differs)
        if library_of(rows) is not None:
            return self._written_frame(rows, table, differs, changes)
        if self.columns.plain and rows.dtype.kind in "iufb":
            flat = rows.reshape(len(rows), -1)
            flat[differs] = table[differs].astype(rows.dtype)
            return rows
        flat = rows.reshape(len(rows), -1)
        for line, source, cells in changes:
            flat = written_array(flat, line, source, cells)
        return flat.reshape(rows.shape)

    def _written_frame(self, frame: Any, table: Array, differs: Array, changes: Iterable[_Change]) -> Any:
        if self.columns.plain and is_frame(frame) and (frame.dtypes == table.dtype).all():
            values = frame.to_numpy(copy=True)  # all at once: column by column takes milliseconds
            values[differs] = table[differs]
            return type(frame)(values, index=frame.index, columns=frame.columns).__finalize__(frame)
        for line, source, cells in changes:
            if is_frame(frame):
                frame.isetitem(source, written(frame.iloc[:, source], line, cells))
            else:
                frame = written_native(frame, line, source, cells)
        return frame

    def _changes(self, whole: Any, table: Array, row: Array, differs: Array) -> Iterator[_Change]:
        """Lines, the user's column and its new cells, for every column that changes. whole: all rows of the call."""
        for at in np.flatnonzero(differs.any(axis=0)).tolist():
            attribute, line = self.columns.attributes[at], np.flatnonzero(differs[:, at])
            part = table[line, at]
            if attribute.integer and (np.rint(part) == part).all() and np.abs(part).max() < _LARGE:
                part = part.astype(np.int64)  # for columns of objects: 3, not 3.0
            found = attribute.cells(part)
            if attribute.dates is not None:
                found = [attribute.dates.like(found[0], column_of(whole, attribute.sources[0]), row[line])]
            for source, cells in zip(attribute.sources, found, strict=True):
                yield line, source, cells


def _blanked(rows: Any, gone: Array) -> Any:
    """Rows of any kind, missing where `gone` (m,) bool."""
    library = library_of(rows)
    if library is None:
        return blanked_array(rows, gone)
    return blanked(rows, gone) if library == "pandas" else blanked_native(rows, gone)
