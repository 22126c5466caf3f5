"""Single columns and what they hold: numbers as floats, categories as codes, and back without losing a value."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.protocols import Array

_LISTED = 12
_MISSING = object()


def is_frame(data: Any) -> bool:
    """Whether data is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_category(dtype: Any) -> bool:
    """Strings, categories, booleans and objects are categories; numbers are not."""
    return getattr(dtype, "kind", "O") not in "iuf"


def as_array(data: Any) -> Array:
    """Anything but a frame as an array; a list of numbers and strings keeps both."""
    array = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
    return np.asarray(data, dtype=object) if array.dtype.kind == "U" and isinstance(data, (list, tuple)) else array


def column_of(raw: Any, at: int) -> Any:
    """One column of a frame or an array."""
    return raw.iloc[:, at] if is_frame(raw) else raw.reshape(len(raw), -1)[:, at]


def as_float(column: Any, name: Any) -> Array:
    """A column of numbers as floats: float32 stays float32, everything else becomes float64."""
    width = np.float32 if column.dtype == np.float32 else np.float64
    try:
        if not hasattr(column, "to_numpy"):
            return np.asarray(column, dtype=width)
        if not is_category(column.dtype) or column.dtype.kind == "b" or column.isna().all():
            return np.asarray(column.to_numpy(dtype=width, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} was numbers in the training data: {error}", column=name) from error
    raise InputError(f"column {name!r} holds {column.dtype}; it was numbers in the training data", column=name)


def as_numbers(raw: Any) -> Array:
    """A table without categories, or images, as floats: float32 stays float32, everything else becomes float64."""
    if is_frame(raw):
        dtypes = list(raw.dtypes)
        if all(isinstance(dtype, np.dtype) and dtype.kind in "iufb" for dtype in dtypes):
            width = np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64
            return np.ascontiguousarray(raw.to_numpy(dtype=width))
        columns = [as_float(raw.iloc[:, at], name) for at, name in enumerate(raw.columns)]
        return np.stack(columns, axis=1)
    if raw.dtype.kind in "iufb":
        return np.asarray(raw if raw.dtype in (np.float32, np.float64) else raw.astype(np.float64))
    try:
        return np.asarray(raw.astype(np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the data holds {raw.dtype} values that are not numbers: {error}. Name their columns in "
            "Features(categorical=...)."
        ) from error


def categories(column: Any, name: Any) -> Any:
    """The values that occur, in order, a missing one last; of the column's own dtype."""
    try:
        if hasattr(column, "array"):
            seen = column.drop_duplicates()
            present = seen.dropna().sort_values().array
            return present.take([*range(len(present)), -1], allow_fill=True) if seen.isna().any() else present
        missing = np.fromiter(map(is_missing, column), dtype=bool)
        return np.concatenate([np.unique(column[~missing]), column[missing][:1]])
    except TypeError as error:
        raise InputError(
            f"column {name!r} holds values that cannot be ordered as categories ({error}); make them all strings",
            column=name,
        ) from error


def lookup(levels: Any) -> dict[Any, int]:
    """Code by category; all kinds of missing are one."""
    return {_key(level): code for code, level in enumerate(levels)}


def code_of(codes: Mapping[Any, int], value: Any) -> int:
    """The code of a value in what `lookup` gave, -1 if it is none of the categories."""
    return codes.get(_key(value), -1) if isinstance(value, Hashable) else -1


def codes_of(column: Any, levels: Any, name: Any) -> Array:
    """Place of every value of a column among the categories."""
    known = lookup(levels)
    values = column.tolist()
    codes = np.array([code_of(known, value) for value in values], dtype=float)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"row {row} holds {values[row]!r} in column {name!r}, which the training data had not."
            f"{did_you_mean(values[row], levels)} There are: {listed(levels)}",
            row=row,
            column=name,
        )
    return codes


def listed(levels: Any) -> str:
    """The first categories, for messages."""
    return ", ".join(map(repr, list(levels)[:_LISTED])) + (", ..." if len(levels) > _LISTED else "")


def cells_of(part: Array, levels: Any) -> Any:
    """The categories of codes; missing where the code is."""
    missing = np.isnan(part)
    codes = np.where(missing, 0, part).astype(int)
    if isinstance(levels, np.ndarray):
        cells = levels[codes] if levels.dtype.kind in "iufb" else levels[codes].astype(object)
        return np.where(missing, np.nan, cells) if missing.any() else cells
    return levels.take(np.where(missing, -1, codes), allow_fill=True) if missing.any() else levels.take(codes)


def cast(frame: Any, dtypes: Mapping[Any, Any], *, nullable: bool) -> Any:
    """Give the columns of a frame these dtypes wherever they hold the values exactly.

    nullable: integers and booleans with missing values get their nullable dtypes; else they are left as they are.
    """
    for (name, dtype), present in zip(dtypes.items(), list(frame.dtypes), strict=True):
        if dtype == present:
            continue
        column = frame[name]
        lacks = isinstance(dtype, np.dtype) and dtype.kind in "iub" and bool(column.isna().any())
        if lacks and not nullable:
            continue
        made = _exactly(column, _nullable(dtype) if lacks else dtype)
        if made is not None:
            frame[name] = made
    return frame


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA."""
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or bool(value != value)  # noqa: PLR0124


def _key(value: Any) -> Any:
    return _MISSING if is_missing(value) else value


def _nullable(dtype: Any) -> str:
    return {"b": "boolean", "i": "Int", "u": "UInt"}[dtype.kind] + (
        "" if dtype.kind == "b" else f"{8 * dtype.itemsize}"
    )


def _exactly(column: Any, dtype: Any) -> Any:
    """The column as dtype, or None if a value would not survive: 2.5 as an integer, a category that has no code."""
    there = ~np.asarray(column.isna())
    if hasattr(dtype, "categories") and not column[there].isin(dtype.categories).all():
        return None
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            made = column.astype(dtype)
    except (TypeError, ValueError):
        return None
    numbers = not is_category(made.dtype) and not is_category(column.dtype)
    kind = {} if numbers else {"dtype": object}
    same = made[there].to_numpy(**kind) == column[there].to_numpy(**kind)
    return made if np.all(same) else None
