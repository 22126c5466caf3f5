"""Cells, rows and tables compared strictly."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from cfproto_plugin import Explanation


def brought(x: pd.DataFrame, library: str, otherwise: Any) -> Any:
    """A DataFrame in another library's type; `otherwise` if it is not installed or cannot hold it as it is."""
    if find_spec(library) is None or find_spec("pyarrow") is None:
        return otherwise
    try:
        if library == "polars":
            import polars as pl

            other = pl.from_pandas(x.reset_index(drop=True))
        else:
            import pyarrow as pa

            other = pa.Table.from_pandas(x, preserve_index=False)
        back = as_pandas(other)
    except Exception:  # noqa: BLE001 lists beside texts, mixed columns: their types cannot hold them
        return otherwise
    same = [all(map(is_same, back[name], x[name])) for name in x]
    return other if all(same) else otherwise


def as_pandas(x: Any) -> pd.DataFrame:
    return x if isinstance(x, pd.DataFrame) else x.to_pandas()


def schema_changes(given: Any, e: Explanation) -> list[str]:
    """Tables of Polars and Arrow come back in their type, with their columns and, if all rows are answered, dtypes."""
    new = e.counterfactual
    if type(new) is not type(given):
        return [f"{type(new)} for {type(given)}"]
    before, after = schema(given), schema(new)
    same = before == after if e.found.all() else [name for name, _ in before] == [name for name, _ in after]
    return [] if same else [f"schema {after} for {before}"]


def schema(x: Any) -> list[tuple[str, str]]:
    """The columns of a table of Polars or Arrow with their types."""
    names = x.schema.names() if callable(x.schema.names) else x.schema.names
    types = x.schema.dtypes() if hasattr(x.schema, "dtypes") else x.schema.types
    return [(name, str(dtype)) for name, dtype in zip(names, types, strict=True)]


def in_pandas(x: pd.DataFrame, e: Explanation) -> Explanation:
    """The same result in the pandas types of the case's rows."""
    frames = {name: as_pandas(getattr(e, name)) for name in ("original", "counterfactual")}
    for name, frame in frames.items():
        frame.index = x.index[e.row]
        if name == "original" or e.found.all():
            frames[name] = frame.astype(dict(zip(x.columns, x.dtypes, strict=True)))
    return replace(e, **frames)


def fingerprint(x: Any) -> Any:
    """Everything about a table, array or target that a user could see change."""
    if isinstance(x, pd.DataFrame):
        columns = [fingerprint(x.iloc[:, at]) for at in range(x.shape[1])]
        return ("frame", repr(list(x.columns)), repr(x.columns.names), columns)
    if isinstance(x, pd.Series):
        return (str(x.dtype), repr(x.name), repr(list(x.index)), [(type(cell), repr(cell)) for cell in x])
    if isinstance(x, np.ndarray):
        cells = [repr(cell) for cell in x.ravel()] if x.dtype == object else x.tobytes()
        return (x.dtype.str, x.shape, x.flags.writeable, cells)
    if hasattr(x, "to_pandas"):
        return (schema(x), repr(x.to_pydict() if hasattr(x, "to_pydict") else x.to_dict(as_series=False)))
    return (type(x), repr(x))


def rows_of(x: Any) -> list[dict[Any, Any]]:
    """The cells of every row by name or place, each in its own type."""
    if isinstance(x, pd.DataFrame):
        return [dict(zip(x.columns, cells, strict=True)) for cells in zip(*(x[name] for name in x), strict=True)]
    return [dict(enumerate(cells)) for cells in x]


def is_missing(cell: Any) -> bool:
    return (
        cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, (float, np.floating)) and math.isnan(cell))
    )


def is_same(a: Any, b: Any) -> bool:
    if is_missing(a) or is_missing(b):
        return is_missing(a) and is_missing(b)
    if np.ndim(a) or np.ndim(b):  # a list in a cell
        return repr(list(a)) == repr(list(b)) if np.ndim(a) == np.ndim(b) else False
    return bool(a == b)


def is_kept(a: Any, b: Any) -> bool:
    """Whether a cell has kept its value where its dtype had to become another; -0.0 is not 0.0."""
    if is_missing(a) and is_missing(b):
        return True
    a, b = value_of(a), value_of(b)
    return repr(float(a) if isinstance(a, bool) else a) == repr(float(b) if isinstance(b, bool) else b)


def value_of(cell: Any) -> Any:
    """A cell as Python has it: numbers of NumPy without their type, a missing number as NaN."""
    if cell is pd.NA:
        return math.nan
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, bool):
        return cell
    return float(cell) if isinstance(cell, float) or (isinstance(cell, int) and abs(cell) < 2**53) else cell
