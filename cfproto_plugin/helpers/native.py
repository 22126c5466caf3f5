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
        types = tuple(frame.dtypes if library == "polars" else frame.schema.types)
        return cls(str(library), types, tuple(_has_nan(frame[name]) for name in names_of(frame)))

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

    def overwritten(self, given: Any, cells: Any, differ: Array) -> Any:
        """The user's frame with the cells of a pandas frame wherever `differ` (n, columns) is true."""
        names = names_of(given)
        made = []
        for at, name in enumerate(names):
            column = given[name]
            if differ[:, at].any():
                values = objects(values_of(column))
                new = objects(cells.iloc[:, at].tolist())
                values[differ[:, at]] = [None if _is_missing(value) else value for value in new[differ[:, at]]]
                column = native_column(self.library, name, values.tolist(), self.types[at], nan=True)
            made.append(column)
        return native_frame(self.library, names, made)


def _has_nan(column: Any) -> bool:
    """Whether numbers are missing as NaN."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True)
    return bool(series.dtype.is_float() and series.is_nan().any())


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value  # noqa: PLR0124


def _plain(column: Any) -> Any:
    """A pandas column as an array of NumPy numbers, or as a list with None for what is missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        return column.to_numpy()
    return [None if _is_missing(value) else value for value in column.tolist()]


def native_column(library: str, name: str, values: Any, kind: Any, *, nan: bool = False) -> Any:
    """A column of polars or pyarrow from an array of numbers or a list.

    kind: its type; where that cannot hold the values, and if it is None, the library chooses one. nan: keep NaN, which
    is null otherwise.
    """
    module = import_module(library)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isnan(values).any() and not _is_float(kind):
        values = [None if math.isnan(v) else int(v) if v.is_integer() else v for v in values.tolist()]
    if library == "polars":
        column = _or_inferred(lambda kind: module.Series(name, values, dtype=kind, strict=kind is not None), kind)
        return column if nan or not column.dtype.is_float() else column.fill_nan(None)
    return _or_inferred(lambda kind: module.array(values, type=kind, from_pandas=not nan), kind)


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
