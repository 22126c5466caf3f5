"""New cells in the user's own columns, in their dtype wherever it holds them; and rows without any value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.attributes import Attribute
from cfproto_plugin.tables.cells import holds_days, is_missing, lookup, nullable, number_dtype

_EXACT = 2**53  # the integers up to here are float64 numbers


def written(column: Any, at: Array, cells: Any) -> Any:
    """A pandas column with these cells at the places (m,); of a wider dtype if it has to be."""
    cells = _plain(cells)
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb" and cells.dtype.kind in "iufb":
        fits = np.array_equal(cells.astype(dtype), cells, equal_nan=True)
        values = np.array(column, dtype=dtype if fits else np.result_type(dtype, cells.dtype))
        values[at] = cells
        return _like(column, values)
    if not (isinstance(dtype, np.dtype) and dtype.kind == "O"):
        made = _set(column, at, cells)
        if made is not None:
            return made
    values = column.to_numpy(dtype=object, copy=True)
    values[at] = cells
    return _like(column, values, dtype=object)


def _set(column: Any, at: Array, cells: Array) -> Any:
    """Likewise in the dtype of an extension; None where that cannot hold the cells."""
    if hasattr(column, "cat"):
        new = [cell for cell in dict.fromkeys(cells.tolist()) if cell == cell and cell is not None]  # noqa: PLR0124
        column = column.cat.add_categories([cell for cell in new if cell not in column.cat.categories])
    if holds_days(column.dtype):
        cells = _days(cells)
    values = column.array.copy()
    try:
        values[at] = cells
    except (TypeError, ValueError, NotImplementedError):
        try:
            whole = column.to_numpy(dtype=object, copy=True)
            whole[at] = cells
            values = load_pandas().array(whole, dtype=column.dtype)
        except (TypeError, ValueError):
            return None
    same = list(lookup(values[at].tolist())) == list(lookup(cells.tolist()))
    return _like(column, values) if same else None


def _days(cells: Array) -> Array:
    """Moments at midnight as dates, the others as they are."""
    days = np.asarray(cells, dtype=object).copy()
    for at, cell in enumerate(cells):
        if isinstance(cell, dt.datetime) and not is_missing(cell) and cell.time() == dt.time():
            days[at] = cell.date()
    return days


def blanked(frame: Any, gone: Array) -> Any:
    """A frame whose rows `gone` (n,) bool are missing; integers and truth values get their nullable dtypes."""
    for at, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, at]
        held = nullable(dtype.subtype if type(dtype).__name__ == "SparseDtype" else dtype)
        if isinstance(held, str):
            column = column.astype(held)
        frame.isetitem(at, column.mask(gone))
    return frame


def written_array(flat: Array, at: Array, column: int, cells: Any) -> Array:
    """An array (n, columns) with these cells at the places (m,) of a column; of a wider dtype if it has to be."""
    cells = _plain(cells)
    if flat.dtype.kind in "US":
        cells = cells.astype(flat.dtype.kind)
        flat = flat.astype(np.result_type(flat.dtype, cells.dtype))
    elif flat.dtype != object:
        number = cells.dtype.kind in "iufb"
        if not (number and np.array_equal(cells.astype(flat.dtype), cells, equal_nan=True)):
            flat = flat.astype(np.result_type(flat.dtype, cells.dtype) if number else object)
    flat[at, column] = cells
    return flat


def blanked_array(rows: Array, gone: Array) -> Array:
    """An array whose rows `gone` (n,) bool are missing: NaN, or None beside integers that float64 cannot hold."""
    missing: Any = np.nan
    if rows.dtype.kind in "iub":
        large = rows.dtype.kind != "b" and rows.size and max(int(rows.max()), -int(rows.min())) > _EXACT
        missing = None if large else np.nan
        rows = rows.astype(object if large else np.float64)
    elif rows.dtype.kind in "US":
        rows = rows.astype(object)
    rows[gone] = missing
    return rows


def _plain(cells: Any) -> Array:
    """Cells as an array of numbers or of objects."""
    dtype = number_dtype(cells.dtype)
    if dtype is not None and not (hasattr(cells, "isna") and cells.isna().any()):
        return np.asarray(cells, dtype=dtype)
    plain = np.empty(len(cells), dtype=object)
    for at, cell in enumerate(cells.tolist()):
        plain[at] = cell
    return plain


def _like(column: Any, values: Any, dtype: Any = None) -> Any:
    return type(column)(values, index=column.index, name=column.name, dtype=dtype)


def without_strangers(attributes: Sequence[Attribute], frame: Any, table: Array) -> Any:
    """A frame for rows (m, A) without categories in its dtypes that training did not have and no row has.

    A model may refuse a column for a category that its dtype names and another row of the call has.
    """
    for at, attribute in enumerate(attributes):
        if attribute.unknown and hasattr(column := frame.iloc[:, attribute.sources[0]], "cat"):
            first = len(attribute.levels) - attribute.unknown
            absent = set(range(first, len(attribute.levels))) - set(table[:, at].tolist())
            strangers = [attribute.levels[code] for code in absent]
            gone = [name for name in column.cat.categories if name in strangers]
            frame.isetitem(attribute.sources[0], column.cat.remove_categories(gone))
    return frame
