"""Tables: CSV and Parquet by pandas."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cfproto_plugin.cli.models import reason
from cfproto_plugin.cli.rules import column_names
from cfproto_plugin.errors import InputError, did_you_mean, is_meant
from cfproto_plugin.helpers.kinds import load_pandas

TABLES = (".csv", ".csv.gz", ".parquet")
_LISTED = 5
_CELLS = (
    "Give every column a name, and put cells that hold a comma in quotes; a comma at the end of a line counts as a cell"
)


def suffix_of(path: Path, known: Sequence[str], what: str) -> str:
    """The suffix that says what a file holds."""
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{what} {str(path)!r} has no suffix that says what it is; expected one of {', '.join(known)}")


def check_format(path: Path) -> None:
    """Whether what the format needs is there."""
    if path.name.lower().endswith(".parquet"):
        try:
            importlib.import_module("pyarrow")
        except ImportError as error:
            raise InputError(
                f"{path}: Parquet needs pyarrow, which is not installed: pip install pyarrow, or use CSV"
            ) from error


def read_table(path: Path, like: Any = None) -> Any:
    """A CSV file as `pandas.read_csv` reads it, or a Parquet file.

    like: the training table. What is text there is text here, even if every value happens to look like a number; what
    is a number there is one here, but for the cells that are none.
    """
    pandas = load_pandas()
    suffix = suffix_of(path, TABLES, "the table")
    check_format(path)
    texts = [] if like is None else [name for name in like.columns if is_text(like[name])]
    try:
        if suffix == ".parquet":
            return pandas.read_parquet(path, engine="pyarrow")
        table = pandas.read_csv(path, dtype=dict.fromkeys(texts, str))
    except (OSError, ValueError) as error:
        hint = f". {_CELLS}" if "fields in line" in str(error) else ""
        raise InputError(f"the table {path} cannot be read: {reason(error)}{hint}") from error
    if len(table) and not isinstance(table.index, pandas.RangeIndex):  # pandas takes the first cells as the index
        given, names = table.shape[1] + table.index.nlevels, list(table.columns)
        raise InputError(
            f"the table {path} cannot be read: the line below the names has {given} cells for {len(names)} names, "
            f"{_shown(names)}. {_CELLS}"
        )
    return table if like is None else _with_numbers(table, like)


def _with_numbers(table: Any, like: Any) -> Any:
    """A CSV has no dtypes: one cell that is no number makes a column of text, and whole numbers hide decimals."""
    for name in table.columns.intersection(like.columns):
        wanted, column = like[name].dtype.kind, table[name]
        if wanted == "f" and column.dtype.kind in "iu":
            table[name] = column.astype(float)
        elif wanted in "iu" and column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
            table[name] = column.astype("Int64")  # whole numbers, some of them missing
        elif wanted in "iuf" and is_text(column):
            table[name] = _numbers_beside_text(column)
    return table


def with_dates(table: Any, named: Sequence[str], path: Path) -> Any:
    """The table with columns of text as dates; rows may hold their dates as text, which comes back as text."""
    pandas, names = load_pandas(), column_names(named, list(table.columns))
    for name in names:
        if name not in table.columns:
            raise InputError(f"--dates {name}: {path} has no such column.{did_you_mean(name, table.columns)}")
        try:
            table[name] = pandas.to_datetime(table[name])
        except (ValueError, TypeError) as error:
            raise InputError(f"--dates {name}: a cell of {path} is no date: {reason(error)}") from error
    return table


def read_otherwise(path: Path, table: Any) -> str:
    """For errors: the columns of a CSV with cells that may have been text, such as 007 or NA; "" if there are none."""
    if path.name.lower().endswith(".parquet"):
        return ""
    found, raw = [], load_pandas().read_csv(path, dtype=str, keep_default_na=False)
    for name in table.columns:
        padded = raw[name].str.fullmatch("0[0-9]+") & (table[name].dtype.kind in "iuf")
        odd = raw[name][padded | (table[name].isna() & (raw[name] != ""))]
        found += [f"{name!r} ({odd.iloc[0]!r})"] if len(odd) else []
    if not found:
        return ""
    return (
        f"\nCells of {', '.join(found[:_LISTED])} were read as numbers or missing values, as pandas.read_csv does. If "
        "the model was trained on text there, give the tables as Parquet, which keeps it."
    )


def _numbers_beside_text(column: Any) -> Any:
    """A column of text with every cell that is a number as one: whole as it is written, such as 49, not 49.0."""
    numbers = load_pandas().to_numeric(column, errors="coerce")
    whole = column.str.fullmatch(r"\s*[+-]?[0-9]+\s*").fillna(value=False)
    cells = [
        int(text) if is_whole else text if number != number and isinstance(text, str) else number  # noqa: PLR0124
        for text, number, is_whole in zip(column, numbers, whole, strict=True)
    ]
    return load_pandas().Series(cells, index=column.index, dtype=object)


def write_table(table: Any, path: Path) -> None:
    """Write CSV or Parquet, by the suffix."""
    if suffix_of(path, TABLES, "the output") == ".parquet":
        table.to_parquet(path, engine="pyarrow", index=False)
    else:
        table.to_csv(path, index=False)


def is_text(column: Any) -> bool:
    """Whether every value that is there is a string."""
    return str(load_pandas().api.types.infer_dtype(column, skipna=True)) == "string"


def without(tables: Sequence[Any], drop: Sequence[str]) -> list[Any]:
    """The tables without some columns, each of which must be in one of them."""
    known = [name for table in tables for name in table.columns]
    names = column_names(drop, known)
    for name in names:
        if name not in known:
            raise InputError(f"--drop {name}: no table has such a column.{did_you_mean(name, known)}")
    return [table.drop(columns=names, errors="ignore") for table in tables]


def select(table: Any, names: Sequence[str], path: Path, owner: str) -> Any:
    """The columns that the owner, the model or the training table, has; it is an error if they are not the same."""
    given = list(table.columns)
    absent = [name for name in names if name not in given]
    extra = [name for name in given if name not in names]
    if absent:
        raise InputError(
            f"{path} lacks {_listed(absent)}, which {owner} has.{is_meant(absent[0], extra)} "
            f"Its columns are {', '.join(map(repr, given))}"
        )
    if extra:
        flags = " ".join(f"--drop {name!r}" if " " in name else f"--drop {name}" for name in map(str, extra[:_LISTED]))
        raise InputError(
            f"{path} has {_listed(extra)}, which {owner} does not have. Leave out what is no feature: {flags}"
        )
    return table


def _listed(names: Sequence[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(map(repr, names[:_LISTED]))}{more}"
