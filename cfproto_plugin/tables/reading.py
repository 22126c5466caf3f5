"""The user's rows as a table of numbers and codes. A row that cannot be read is named, and the others are read."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.attributes import Attribute
from cfproto_plugin.tables.cells import as_floats, as_numbers, codes_of, column_of, is_frame
from cfproto_plugin.tables.dates import Dates
from cfproto_plugin.tables.numerals import all_read_as_numbers, reads_as_number

if TYPE_CHECKING:
    from cfproto_plugin.tables.columns import Columns

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


class Read(NamedTuple):
    """What was found in n rows."""

    table: Array  # (n, A); the rows that could not be read hold missing values
    errors: dict[int, InputError]  # by row: why it cannot be read
    unknown: dict[int, list[Any]]  # by attribute: categories that are new here, which follow the known ones


def read_table(columns: Columns, raw: Any) -> Read:
    """Read an array (n, *shape) or a frame with the columns of the training data in their order."""
    errors: dict[int, InputError] = {}
    unknown: dict[int, list[Any]] = {}
    numbers = as_numbers(raw) if columns.plain else None
    if numbers is not None:
        table = numbers.reshape(len(raw), -1)
    else:
        parts = [_part(raw, at, attribute, errors, unknown) for at, attribute in enumerate(columns.attributes)]
        table = np.stack(parts, axis=1)
        if not is_frame(raw) and raw.dtype == np.float32:
            table = table.astype(np.float32, copy=False)
    for row, at in zip(*(part.tolist() for part in np.isinf(table).nonzero()), strict=True):
        cell = f"{table[row, at]} in column {columns.describe(at)}"
        text = f"holds {cell}; expected a finite number: replace it, or leave the row out"
        _note(errors, row, text, columns.attributes[at].name)
    if errors:
        table = table.copy()
        table[list(errors)] = np.nan
    return Read(table, errors, unknown)


def _part(
    raw: Any, at: int, attribute: Attribute, errors: dict[int, InputError], unknown: dict[int, list[Any]]
) -> Array:
    """One column (n,) of the table."""
    if attribute.group:
        return _group(raw, attribute, errors)
    column, name = column_of(raw, attribute.sources[0]), attribute.name
    if attribute.dates is not None:
        days, bad = attribute.dates.days(column)
        for row in np.flatnonzero(bad).tolist():
            expected = _date(attribute.dates, column.iloc[row])
            _note(errors, row, f"holds {_cell(column, row)} in column {name!r}; expected {expected}", name)
        return days
    if attribute.levels is None:
        return _numbers(column, name, errors)
    codes, others, bad = codes_of(column, attribute.levels)
    if others:
        unknown[at] = others
    for row in np.flatnonzero(bad).tolist():
        cell = _cell(column, row)
        _note(errors, row, f"holds {cell} in column {name!r}; expected a category, such as a string or a number", name)
    return codes


def _numbers(column: Any, name: Any, errors: dict[int, InputError]) -> Array:
    floats, bad = as_floats(column)
    if bad.any():
        _refuse_numerals(column, name, bad, floats)
    for row in np.flatnonzero(bad).tolist():
        cell = column.iloc[row] if hasattr(column, "iloc") else column[row]
        what = (
            "text that reads as a number: convert it by pd.to_numeric"
            if reads_as_number(cell)
            else (
                "which is not a number; it is a column of numbers: correct the cell, or name the column in "
                "Features(categorical=...) before fit"
            )
        )
        _note(errors, row, f"holds {_cell(column, row)} in column {name!r}, {what}", name)
    return floats


def _refuse_numerals(column: Any, name: Any, bad: Array, floats: Array) -> None:
    """One error for a column of numbers that came as text: no row of it can be read, and all for the same reason."""
    if np.isnan(floats).all() and all_read_as_numbers(column[bad].tolist()):
        first = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"column {name!r} holds text that reads as numbers, such as {_cell(column, first)}; expected numbers: "
            f"convert the column by pd.to_numeric",
            column=name,
        )


def _group(raw: Any, attribute: Attribute, errors: dict[int, InputError]) -> Array:
    ones = np.stack([_numbers(column_of(raw, at), attribute.name, errors) for at in attribute.sources], axis=1)
    total = ones.sum(axis=1)
    good = np.isin(ones, (0, 1)).all(axis=1) & ((total == 1) | ((total == 0) & bool(attribute.dropped)))
    wanted = "at most one 1" if attribute.dropped else "exactly one 1"
    for row in np.flatnonzero(~good).tolist():
        text = f"holds {ones[row]} in the one-hot columns {attribute.name!r}; expected {wanted}"
        _note(errors, row, text, attribute.name)
    return np.where(total == 0, 0, ones.argmax(axis=1) + attribute.dropped).astype(float)


def _date(dates: Dates, cell: Any) -> str:
    """What was expected instead of a cell."""
    if dates.durations:
        return "a duration"
    if dates.zone is not None:
        return f"a date, of the time zone {dates.zone} or without one"
    hint = ", as in the training data: remove it by .dt.tz_localize(None)" if getattr(cell, "tzinfo", None) else ""
    return f"a date without a time zone{hint}"


def _cell(column: Any, row: int) -> str:
    cell = column.iloc[row] if hasattr(column, "iloc") else column[row]
    return _short.repr(cell.item() if isinstance(cell, np.generic) else cell)


def _note(errors: dict[int, InputError], row: int, text: str, column: Any) -> None:
    """Remember the first reason of a row."""
    errors.setdefault(row, InputError(f"row {row} {text}", row=row, column=column))
