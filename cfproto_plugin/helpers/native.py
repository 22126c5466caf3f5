"""Frames of polars and pyarrow, made of pandas columns: in the library and with the types of the user's own frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from cfproto_plugin.helpers.kinds import library_of, names_of, objects, values_of
from cfproto_plugin.protocols import Array


@dataclass(frozen=True)
class Kind:
    """The library of a polars or pyarrow frame and the types of its columns, to make others like it."""

    library: str
    types: tuple[Any, ...]
    nan: tuple[bool, ...]  # whether a missing number is NaN; null otherwise

    @classmethod
    def of(cls, frame: Any) -> Kind | None:
        """The kind of a frame; None for pandas frames and for anything else."""
        library = library_of(frame)
        if library not in {"polars", "pyarrow"}:
            return None
        return cls(str(library), tuple(types_of(frame)), tuple(_has_nan(frame[name]) for name in names_of(frame)))

    def is_of(self, frame: Any) -> bool:
        """Whether a frame is of this library and has these types."""
        return library_of(frame) == self.library and tuple(types_of(frame)) == self.types

    def frame(self, frame: Any, types: Sequence[Any] | None = None) -> Any:
        """A pandas frame with the same columns as one of this kind. types: of its columns if they are others."""
        nan = self.nan if types is None else [False] * len(types)
        made = [
            native_column(self.library, str(name), _plain(frame.iloc[:, at]), kind, nan=keeps)
            for at, (name, kind, keeps) in enumerate(
                zip(frame.columns, self.types if types is None else types, nan, strict=True)
            )
        ]
        return native_frame(self.library, list(map(str, frame.columns)), made)


def written_native(frame: Any, lines: Array, at: int, cells: Any) -> Any:
    """A frame of polars or pyarrow with these cells at the lines (m,) of its column number `at`."""
    library, name = str(library_of(frame)), names_of(frame)[at]
    plain = _plain(cells)
    if isinstance(plain, np.ndarray) and plain.dtype.kind in "mM":
        return _with_column(
            frame, at, _with_cells(frame[name], lines, _temporal(library, name, plain, types_of(frame)[at]))
        )
    values, kind = objects(values_of(frame[name])), types_of(frame)[at]
    values[lines] = objects([_fitting(cell, str(kind).lower()) for cell in _plain(cells)])
    return _with_column(frame, at, native_column(library, name, values.tolist(), kind, nan=True))


def _with_cells(column: Any, lines: Array, cells: Any) -> Any:
    """A column of polars or pyarrow with other cells (m,) at these lines; the others stay to the last nanosecond."""
    order = np.arange(len(column))
    order[lines] = len(column) + np.arange(len(lines))
    if hasattr(column, "combine_chunks"):
        arrow = import_module("pyarrow")
        return arrow.chunked_array([*column.chunks, cells]).take(arrow.array(order))
    return column.clone().append(cells)[order]


def _fitting(cell: Any, kind: str) -> Any:
    """A float as the whole number or truth value that a column of this kind holds in its place."""
    if not isinstance(cell, float) or not cell.is_integer():
        return cell
    return bool(cell) if kind.startswith("bool") else int(cell) if "int" in kind else cell


def blanked_native(frame: Any, gone: Array) -> Any:
    """A frame of polars or pyarrow whose rows `gone` (n,) bool are null."""
    for at in range(frame.shape[1]):
        frame = written_native(frame, np.flatnonzero(gone), at, np.full(int(gone.sum()), None))
    return frame


def types_of(frame: Any) -> list[Any]:
    """The types of the columns of a frame of polars or pyarrow."""
    return list(frame.dtypes if library_of(frame) == "polars" else frame.schema.types)


def _with_column(frame: Any, at: int, column: Any) -> Any:
    if library_of(frame) == "polars":
        return frame.with_columns(column)
    return frame.set_column(at, frame.schema.names[at], column)


def _has_nan(column: Any) -> bool:
    """Whether numbers are missing as NaN."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True)
    return bool(series.dtype.is_float() and series.is_nan().any())


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value  # noqa: PLR0124


def _plain(column: Any) -> Any:
    """Cells of pandas or NumPy as an array of numbers, or as a list with None for what is missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM":
        return np.asarray(column)
    if getattr(column.dtype, "kind", "O") == "M" and getattr(column.dtype, "tz", None) is not None:
        return np.asarray(getattr(column, "array", column).tz_convert("UTC").tz_localize(None))
    return [None if _is_missing(value) else value for value in column.tolist()]


def native_column(library: str, name: str, values: Any, kind: Any, *, nan: bool = False) -> Any:
    """A column of polars or pyarrow from an array of numbers or a list.

    kind: its type; where that cannot hold the values, and if it is None, the library chooses one. nan: keep NaN, which
    is null otherwise.
    """
    module = import_module(library)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return _temporal(library, name, values, kind)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isnan(values).any() and not _is_float(kind):
        values = [None if math.isnan(v) else int(v) if v.is_integer() else v for v in values.tolist()]
    if library == "polars":
        column = _or_inferred(lambda kind: module.Series(name, values, dtype=kind, strict=kind is not None), kind)
        return column if nan or not column.dtype.is_float() else column.fill_nan(None)
    return _or_inferred(lambda kind: _arrow(module.array(values, type=kind, from_pandas=not nan), kind), kind)


def _arrow(column: Any, kind: Any) -> Any:
    """The column in the type that was asked for: before version 26, pyarrow makes the codes of categories signed."""
    return column if kind is None or column.type == kind else column.cast(kind)


def _temporal(library: str, name: str, values: Array, kind: Any) -> Any:
    """A column of dates or durations from an array (n,) of them, in UTC where the column has a time zone."""
    module = import_module(library)
    if library == "pyarrow":
        column = module.array(values, from_pandas=True)
        return column if kind is None else _or_inferred(lambda kind: column.cast(kind or column.type, safe=False), kind)
    whole = np.datetime_data(values.dtype)[0] == "s"  # which polars does not know
    column = module.Series(name, values.astype(f"{values.dtype.kind}8[ms]") if whole else values)
    if kind is not None and getattr(kind, "time_zone", None) is not None:
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone)
    return column if kind is None else _or_inferred(lambda kind: column.cast(kind or column.dtype), kind)


def _is_float(kind: Any) -> bool:
    return kind is None or "float" in str(kind).lower() or "double" in str(kind)


def _or_inferred(make: Any, kind: Any) -> Any:
    try:
        return make(kind)
    except Exception:  # polars and pyarrow have a dozen exceptions for a value that does not fit
        if kind is None:
            raise
        return make(None)


def native_frame(library: str, names: Sequence[str], columns: Iterable[Any]) -> Any:
    """A frame of polars or pyarrow from its columns."""
    module = import_module(library)
    if library == "polars":
        return module.DataFrame(dict(zip(names, columns, strict=True)))
    return module.table(list(columns), names=list(names))
