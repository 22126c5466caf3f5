"""Data frames of every kind: pandas, polars and pyarrow. The core reads pandas; the others become pandas here.

`helpers.native` makes them again. No library of frames is imported before a frame needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, MissingPackageError
from cfproto_plugin.protocols import Array

# How frames that are not in memory, or not in the memory of this process, are brought there.
_ELSEWHERE = {
    "dask": "x.compute()",
    "modin": "x.modin.to_pandas()",
    "pyspark": "x.toPandas()",
    "cudf": "x.to_pandas()",
    "ibis": "x.to_pandas()",
    "duckdb": "x.df()",
}
_SHOWN = 40  # characters of a text in a message


def load_pandas() -> Any:
    """Import pandas, or say how to install it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError(
            "data frames need pandas, which is not installed: pip install 'cfproto-plugin[pandas]'"
        ) from error
    return pd


def library_of(x: Any) -> str | None:
    """The library of a data frame in memory: "pandas", "polars" or "pyarrow"; None for anything else."""
    if isinstance(x, np.ndarray):
        return None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(x, pandas.DataFrame):
        return "pandas"
    for cls in type(x).__mro__:
        root = cls.__module__.partition(".")[0]
        if (root, cls.__name__) in {("polars", "DataFrame"), ("pyarrow", "Table")}:
            return root
    return None


def in_memory(x: Any) -> Any:
    """The frame inside a narwhals frame, the table of a record batch, anything else as it is.

    InputError for frames that are lazy or distributed, sparse matrices, masked arrays, arrays of records, iterators,
    dicts and what holds no rows.
    """
    cls = type(x)
    if cls is np.ndarray and x.dtype.names is None:
        return x
    root = cls.__module__.partition(".")[0]
    if root == "narwhals" and hasattr(x, "to_native"):
        return in_memory(x.to_native())
    if root == "pyarrow" and cls.__name__ == "RecordBatch":
        return import_module("pyarrow").Table.from_batches([x])
    for refused, what, remedy in _refused(x, root):
        if refused:
            raise InputError(f"the rows are {what}; expected an array or a data frame in memory: pass {remedy}")
    return x


def _refused(x: Any, root: str) -> Iterator[tuple[bool, str, str]]:
    """Whether the rows are of a kind that is not read, what that is, and how to make an array or a frame of them."""
    name = f"a {root} {type(x).__name__}"
    fields = getattr(x.dtype, "names", None) if isinstance(x, np.ndarray) else None
    yield root == "polars" and type(x).__name__ == "LazyFrame", name, "x.collect()"
    yield root in _ELSEWHERE, name, _ELSEWHERE.get(root, "")
    yield root == "scipy" and hasattr(x, "toarray"), name, "x.toarray()"
    yield root == "torch" and getattr(x, "is_sparse", False), "a sparse torch tensor", "x.to_dense()"
    yield isinstance(x, np.ma.MaskedArray), "a masked array", "x.astype(float).filled(np.nan), or x.filled(value)"
    yield isinstance(x, Iterator), f"an iterator ({type(x).__name__})", "list(x)"
    yield (
        isinstance(x, Mapping),
        f"a {type(x).__name__}",
        "pandas.DataFrame([x]) for one row, pandas.DataFrame(x) for columns",
    )
    yield _holds_dicts(x), f"a {type(x).__name__} of dicts", "pandas.DataFrame(x)"
    yield isinstance(x, AbstractSet), f"a {type(x).__name__}, which has no order", "a list"
    text = repr(x)[:_SHOWN] if isinstance(x, str | bytes) else ""
    yield bool(text), f"the text {text}", "what a reader such as pandas.read_csv makes of the file"
    yield x is None, "None", "rows"
    yield fields is not None, f"an array of records with the fields {fields}", "pandas.DataFrame(x)"


def _holds_dicts(x: Any) -> bool:
    return isinstance(x, list | tuple) and any(isinstance(row, Mapping) for row in x[:1])


def to_pandas(x: Any) -> Any:
    """A polars or pyarrow frame as a pandas frame that holds the same values; anything else as it is.

    Integers and booleans with missing values get pandas' nullable dtypes, categories stay categories, and everything
    that NumPy has no type for is kept as objects.
    """
    if library_of(x) not in {"polars", "pyarrow"}:
        return x
    import narwhals as nw

    names = names_of(x)
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InputError(f"the frame has two columns {twice[0]!r}; expected every name once", column=twice[0])
    pd = load_pandas()
    columns = {at: _as_pandas(each, nw, pd) for at, each in enumerate(nw.from_native(x).iter_columns())}
    frame = pd.DataFrame(columns, index=range(len(x)), copy=False)
    frame.columns = pd.Index(names)
    return frame


def _as_pandas(column: Any, nw: Any, pd: Any) -> Any:
    """A narwhals Series as an array that a pandas column can be made of."""
    dtype = column.dtype
    if dtype in {nw.Int128, nw.UInt128}:
        raise InputError(f"column {column.name!r} holds {dtype}; cast it to Int64 or Float64", column=column.name)
    if dtype.is_integer() or dtype == nw.Boolean:
        missing = column.is_null().to_numpy().astype(bool)
        if not missing.any():
            return column.to_numpy()
        nullable = pd.arrays.IntegerArray if dtype.is_integer() else pd.arrays.BooleanArray
        return nullable(column.fill_null(0 if dtype.is_integer() else False).to_numpy().copy(), missing)
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        return pd.DatetimeIndex(column.to_numpy()).tz_localize("UTC").tz_convert(dtype.time_zone)
    if dtype.is_float() or (dtype.is_temporal() and dtype != nw.Time):
        return column.to_numpy()
    values = column.to_list()
    if isinstance(dtype, (nw.Categorical, nw.Enum)):  # an Enum with categories is not equal to the bare type
        known = (
            dtype.categories if isinstance(dtype, nw.Enum) else sorted({value for value in values if value is not None})
        )
        return pd.Categorical(values, categories=list(known), ordered=isinstance(dtype, nw.Enum))
    return objects(values)


def objects(values: Sequence[Any]) -> Array:
    """(n,) objects, lists and tuples among them."""
    made = np.empty(len(values), dtype=object)
    made[:] = [None] * len(values)
    for at, value in enumerate(values):
        made[at] = value
    return made


def values_of(column: Any) -> list[Any]:
    """The values of a polars or pyarrow column, None where missing."""
    found: list[Any] = column.to_list() if hasattr(column, "to_list") else column.to_pylist()
    return found


def names_of(frame: Any) -> list[Any]:
    """The names of a frame's columns."""
    return list(frame.column_names if library_of(frame) == "pyarrow" else frame.columns)


def select(frame: Any, names: Sequence[Any]) -> Any:
    """The frame with these columns in this order."""
    return frame.select(list(names)) if library_of(frame) == "pyarrow" else frame[list(names)]


def take(x: Any, lines: Any) -> Any:
    """Rows of an array or a frame by their numbers or a slice."""
    library = library_of(x)
    if library == "pandas":
        return x.iloc[lines]
    if library is not None and isinstance(lines, slice):
        lines = np.arange(len(x))[lines]
    return _taken(x, np.asarray(lines)) if library == "pyarrow" else x[lines]


def _taken(table: Any, lines: Array) -> Any:
    """Rows of a pyarrow table by their numbers (n,); some types, such as string_view, can only be sliced."""
    try:
        return table.take(lines)
    except NotImplementedError:
        parts = [table.slice(int(line), 1) for line in lines]
        return import_module("pyarrow").concat_tables(parts or [table.slice(0, 0)])


def can_join(x: Any, other: Any) -> bool:
    """Whether rows of one can follow rows of the other without a change of dtype. Arrays and pandas frames can."""
    if isinstance(x, np.ndarray) or isinstance(other, np.ndarray):
        return type(x) is type(other) and x.dtype == other.dtype and x.dtype != object
    if library_of(x) != "pandas" or library_of(other) != "pandas":
        return False
    return bool(x.columns.equals(other.columns)) and list(x.dtypes) == list(other.dtypes)


def join(x: Any, other: Any) -> Any:
    """The rows of one array or pandas frame after those of another."""
    if not len(x) or not len(other):
        return x if len(x) else other
    if isinstance(x, np.ndarray):
        return np.concatenate([x, other], dtype=x.dtype)
    return load_pandas().concat([x, other], ignore_index=True)


def cells_of(x: Any) -> Array:
    """The cells (n, ...) of an array, or of a frame as objects, as its own library gives them; None where missing."""
    library = library_of(x)
    if library is None:
        return np.asarray(x)
    if library == "pandas":
        columns = [x.iloc[:, at].to_numpy(dtype=object) for at in range(x.shape[1])]
    else:
        columns = [objects(values_of(x[name])) for name in names_of(x)]
    return np.stack(columns, axis=1) if columns else np.empty((len(x), 0), dtype=object)
