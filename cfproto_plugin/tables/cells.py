"""Single columns and what they hold: numbers as floats, categories as codes, and back without losing a value."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import library_of, load_pandas, names_of
from cfproto_plugin.protocols import Array

_LISTED = 12
_SHOWN = 60  # characters of a cell in a message
_MISSING = {kind: object() for kind in ("None", "NaN", "NAType", "NaTType")}  # equal to no category


def is_frame(data: Any) -> bool:
    """Whether data is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_category(dtype: Any) -> bool:
    """Strings, categories, booleans and objects are categories; numbers are not."""
    return getattr(dtype, "kind", "O") not in "iuf"


def is_loose(dtype: Any) -> bool:
    """Whether a column of this dtype holds text or objects of any kind: what people write, not what they mean."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "OUS"
    return str(dtype).startswith(("str", "large_str"))


def holds_days(dtype: Any) -> bool:
    """Whether a pandas column of this dtype holds Arrow's dates, which have no time of day."""
    return str(getattr(dtype, "pyarrow_dtype", "")).startswith("date")


def zone_of(dtype: Any) -> Any:
    """The time zone of a column of dates, by its dtype in any library; None without."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    return getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None) or getattr(arrow, "tz", None)


def lacks_zone(dtype: Any, known: Any) -> bool:
    """Whether a column of dates has no time zone where the one of training had."""
    return getattr(dtype, "kind", "O") == "M" and zone_of(dtype) is None and zone_of(known) is not None


def with_categories(dtype: Any, values: Sequence[Any]) -> Any:
    """A categorical dtype that holds these values too; another dtype as it is."""
    if not hasattr(dtype, "categories"):
        return dtype
    known = list(dtype.categories)
    new = [value for value in values if not is_missing(value) and value not in known]
    return type(dtype)([*known, *new], ordered=dtype.ordered) if new else dtype


def as_array(data: Any) -> Array:
    """Anything but a frame as an array; a list keeps numbers beside strings, and a cell that is itself a list."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data  # which NumPy does not know
    if not isinstance(data, (list, tuple)):
        return np.asarray(data)
    try:
        array = np.asarray(data)
    except ValueError as error:  # rows of different shapes, or a cell that is a list
        return _by_cells(data, error)
    return np.asarray(data, dtype=object) if array.dtype.kind == "U" else array


def _by_cells(data: Sequence[Any], error: ValueError) -> Array:
    rows = list(data) if any(isinstance(row, (list, tuple)) for row in data) else [data]
    widths = {len(row) if isinstance(row, (list, tuple)) else -1 for row in rows}
    if len(widths) > 1 or -1 in widths:
        raise InputError(f"the rows of the list differ in length: {error}") from error
    array = np.empty((len(rows), *widths), dtype=object)
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            array[at, column] = cell
    return array


def in_native_order(frame: Any) -> Any:
    """A frame of its own, whose columns of the other byte order are swapped: pandas cannot take rows of them."""
    for at, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            frame.isetitem(at, frame.iloc[:, at].to_numpy().astype(dtype.newbyteorder("=")))
    return frame


def column_of(raw: Any, at: int) -> Any:
    """One column of a frame or an array."""
    if is_frame(raw):
        return raw.iloc[:, at]
    return raw.reshape(len(raw), -1)[:, at] if library_of(raw) is None else raw[names_of(raw)[at]]


def number_dtype(dtype: Any) -> Any:
    """The NumPy dtype of a column of numbers or truth values, native or not; None if it holds anything else."""
    dtype = getattr(dtype, "numpy_dtype", dtype.subtype if type(dtype).__name__ == "SparseDtype" else dtype)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "iufb" else None


def as_floats(column: Any) -> tuple[Array, Array]:
    """A column of numbers as floats, and which cells (n,) bool are none; float32 stays float32, others are float64.

    Strings are numbers only in an array of strings, which cannot hold them otherwise.
    """
    dtype = number_dtype(column.dtype)
    width = np.float32 if dtype is not None and dtype.newbyteorder("=") == np.float32 else np.float64
    if dtype is not None:
        frame_column = hasattr(column, "to_numpy")
        floats = column.to_numpy(dtype=width, na_value=np.nan) if frame_column else column.astype(width)
        return np.asarray(floats), np.zeros(len(column), dtype=bool)
    texts = not hasattr(column, "to_numpy") and column.dtype.kind in "US"
    numbers = [_number(cell, texts=texts) for cell in column.tolist()]
    bad = np.array([number is None for number in numbers], dtype=bool)
    return np.array([np.nan if number is None else number for number in numbers], dtype=float), bad


def _number(cell: Any, *, texts: bool) -> float | None:
    """A cell as a float, NaN where it is missing; None if it is no number."""
    if is_missing(cell):
        return float("nan")
    try:
        if isinstance(cell, (Number, np.bool_)) or (texts and isinstance(cell, str)):
            return float(cell)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        pass
    return None


def as_numbers(raw: Any) -> Array | None:
    """A table without categories, or images, as floats (n, ...); None if that takes a look at its cells.

    float32 stays float32, everything else becomes float64.
    """
    if is_frame(raw):
        dtypes = [number_dtype(dtype) for dtype in raw.dtypes]
        if any(dtype is None for dtype in dtypes):
            return None
        if not all(isinstance(dtype, np.dtype) for dtype in raw.dtypes):
            return np.stack([as_floats(raw.iloc[:, at])[0] for at in range(raw.shape[1])], axis=1)
        single = all(dtype.newbyteorder("=") == np.float32 for dtype in dtypes)
        return np.ascontiguousarray(raw.to_numpy(dtype=np.float32 if single else np.float64))
    if raw.dtype.kind not in "iufb":
        return None
    single = raw.dtype.newbyteorder("=") == np.float32
    return np.asarray(raw, dtype=np.float32 if single else np.float64)


def categories(column: Any, name: Any) -> Any:
    """The values that occur, in order, a missing one last; of the column's own dtype."""
    if getattr(column.dtype, "kind", "O") == "O":
        _refuse_containers(column, name)
    try:
        if hasattr(column, "array") and column.dtype != object:
            seen = column.drop_duplicates()
            present = seen.dropna().sort_values().array
            return present.take([*range(len(present)), -1], allow_fill=True) if seen.isna().any() else present
        cells = np.asarray(column)
        missing = np.fromiter(map(is_missing, cells), dtype=bool, count=len(cells))
        kinds = {str(missing_kind(cell)): cell for cell in cells[missing].tolist()}
        return np.append(np.unique(cells[~missing]), np.array([kinds[k] for k in sorted(kinds)], dtype=cells.dtype))
    except TypeError as error:
        raise InputError(
            f"column {name!r} holds values that cannot be ordered as categories ({error}); make them all strings",
            column=name,
        ) from error


def _refuse_containers(column: Any, name: Any) -> None:
    """Raise an error that names the first cell that cannot be a category: a list, a set, an array."""
    for row, cell in enumerate(column.tolist()):
        try:
            hash(cell)
        except TypeError:
            raise InputError(
                f"row {row} of the training data holds the {type(cell).__name__} {str(cell)[:_SHOWN]} in column "
                f"{name!r}; expected a number or a category. Give every part of it a column of its own, or make it a "
                "string.",
                row=row,
                column=name,
            ) from None


def lookup(levels: Any) -> dict[Any, int]:
    """Code by category."""
    return {key_of(level): code for code, level in enumerate(levels)}


def code_of(codes: Mapping[Any, int], value: Any) -> int:
    """The code of a value in what `lookup` gave, -1 if it is none of the categories.

    Where the column has one kind of missing value, every kind stands for it.
    """
    if not isinstance(value, Hashable):
        return -1
    missing = [codes[key] for key in _MISSING.values() if key in codes] if is_missing(value) else []
    return codes.get(key_of(value), missing[0] if len(missing) == 1 else -1)


def codes_of(column: Any, levels: Any) -> tuple[Array, list[Any], Array]:
    """Place of every value of a column (n,) among the categories; values that are none of them follow in order.

    Returns the codes, those other values, and which cells (n,) bool cannot be a category, such as a list.
    """
    known = lookup(levels)
    others: list[Any] = []
    codes = np.empty(len(column))
    bad = np.zeros(len(column), dtype=bool)
    for row, value in enumerate(column.tolist()):
        try:
            code = known.setdefault(key_of(value), len(levels) + len(others))
        except TypeError:
            codes[row], bad[row] = 0, True
            continue
        if code == len(levels) + len(others):
            others.append(value)
        codes[row] = code
    return codes, others, bad


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


def cast(frame: Any, dtypes: Mapping[Any, Any]) -> Any:
    """Give the columns of a frame for the model these dtypes wherever they hold the values exactly."""
    for (name, dtype), present in zip(dtypes.items(), list(frame.dtypes), strict=True):
        if dtype == present:
            continue
        column = frame[name]
        lacks = isinstance(dtype, np.dtype) and dtype.kind in "iub" and bool(column.isna().any())
        if lacks and not is_loose(present):
            continue
        made = _exactly(column, np.dtype(np.float64) if lacks else dtype)  # as pandas does with a missing integer
        if made is not None:
            frame[name] = made
    return frame


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA."""
    return missing_kind(value) is not None


def missing_kind(value: Any) -> str | None:
    """Which of None, NaN, NaT and NA a value is, by name; None if it is there. Encoders tell them apart."""
    if value is None:
        return "None"
    name = type(value).__name__
    if name in {"NAType", "NaTType"}:
        return name
    try:
        return "NaN" if bool(value != value) else None  # noqa: PLR0124
    except (TypeError, ValueError):  # an array in a cell
        return None


def key_of(value: Any) -> Any:
    """The value, or what stands for its kind of missing: it equals itself and no value."""
    kind = missing_kind(value)
    return value if kind is None else _MISSING[kind]


def nullable(dtype: Any) -> Any:
    """The pandas dtype that holds these integers or truth values beside missing ones; itself if it can do that."""
    if not (isinstance(dtype, np.dtype) and dtype.kind in "iub"):
        return dtype
    return "boolean" if dtype.kind == "b" else {"i": "Int", "u": "UInt"}[dtype.kind] + f"{8 * dtype.itemsize}"


def _exactly(column: Any, dtype: Any) -> Any:
    """The column as dtype, or None if a value would not survive: 2.5 as an integer, a category that has no code."""
    there = ~np.asarray(column.isna())
    if getattr(dtype, "kind", "O") == "M" and is_loose(column.dtype):
        return _dated(column, dtype)
    if lacks_zone(column.dtype, dtype):
        column = _localized(column, zone_of(dtype))
        made = _exactly(column, dtype)
        return column if made is None else made
    if hasattr(dtype, "categories") and not column[there].isin(dtype.categories).all():
        return None
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            made = column.astype(dtype)
    except (TypeError, ValueError):
        return None
    if (
        holds_days(dtype) and getattr(column.dtype, "kind", "O") == "M"
    ):  # a date equals no moment: what comes back is compared
        return made if (made[there].astype(column.dtype) == column[there]).all() else None
    numbers = not is_category(made.dtype) and not is_category(column.dtype)
    kind = {} if numbers else {"dtype": object}
    same = made[there].to_numpy(**kind) == column[there].to_numpy(**kind)
    return made if np.all(same) else None


def _localized(column: Any, zone: Any) -> Any:
    """A column of dates without a time zone in this one; of an hour that the clock shows twice the first is meant."""
    if hasattr(column.dtype, "pyarrow_dtype"):
        column = load_pandas().to_datetime(column.astype(object))
    return column.dt.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")


def _dated(column: Any, dtype: Any) -> Any:
    """A column of texts or objects as dates, those without a time zone in that of the dtype; None if one is no date."""
    pandas, zone = load_pandas(), zone_of(dtype)
    try:
        stamps = [pandas.NaT if is_missing(cell) else pandas.Timestamp(cell) for cell in column]
        if zone is not None:
            bare = [stamp is not pandas.NaT and stamp.tz is None for stamp in stamps]
            stamps = [
                stamp.tz_localize(zone, ambiguous=True, nonexistent="shift_forward") if is_bare else stamp
                for stamp, is_bare in zip(stamps, bare, strict=True)
            ]
        return pandas.Series(stamps, index=column.index, name=column.name, dtype=dtype)
    except (TypeError, ValueError):
        return None
