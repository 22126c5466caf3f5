"""Values and changes in words: what text and HTML share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.helpers.kinds import library_of, take, to_pandas
from cfproto_plugin.tables.cells import is_missing, number_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.records import Line

_DOUBLE = 8  # bytes
_MISSING = "missing"


def value_text(value: Any) -> str:
    """A value with every digit: a float by its shortest decimal, anything else as Python prints it.

    Two values of a column have two texts: the text "missing" is in quotes, unlike a value that is missing.
    """
    if is_missing(value):
        return _MISSING
    if isinstance(value, str):
        return f"'{value}'" if value.strip("'") == _MISSING else value
    if isinstance(value, Real) and not isinstance(value, (bool, Integral)):
        return str(value).removesuffix(".0")
    return str(value).removesuffix(" 00:00:00")  # of a date


def percent(proba: float) -> str:
    """58 %; >99 % and <1 % where rounding would make it certain. Halves are rounded up, as the report's script does."""
    whole = math.floor(100 * proba + 0.5)
    if whole in {0, 100} and proba not in {0, 1}:
        return ">99 %" if whole else "<1 %"
    return f"{whole} %"


def plain_cell(cell: Any, dtype: Any = None) -> Any:
    """A cell as a plain Python object; one of a column of narrow floats (dtype) as its shortest decimal.

    The float32 next to 0.1 is 0.1, which is the same number again in a float32 column.
    """
    dtype = cell.dtype if isinstance(cell, np.floating) else dtype
    if dtype is not None and dtype.kind == "f" and dtype.itemsize < _DOUBLE and isinstance(cell, (float, np.floating)):
        return float(str(dtype.type(cell)))
    return cell.item() if isinstance(cell, np.generic) else cell


def number_dtypes(x: Any) -> list[Any]:
    """The dtypes of the columns of a frame, None for one that holds no numbers; empty for an array."""
    return [] if library_of(x) is None else [number_dtype(dtype) for dtype in to_pandas(take(x, slice(0, 1))).dtypes]


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines with aligned columns, two spaces apart; the columns in `right` are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if j in right else "<" for j in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip() for row in rows]


def feature_name(change: Change) -> str:
    """The name of the column, or the index of the pixel as [2, 0]."""
    return change.feature if isinstance(change.feature, str) else str(list(change.feature))


def classes_text(line: Line, arrow: str) -> str:
    """The classes `old -> new` for an explanation of one line; ? where no new one was found."""
    if line.original_class[0] is None:
        return "not explained"
    labels = (line.original_class[0], line.counterfactual_class[0])
    old, new = ("?" if label is None else line.class_name(label) for label in labels)
    return f"{old} {arrow} {new}"


def row_text(line: Line) -> str:
    """The position of the row of a line, and its label in the index if that is another: 0 (532)."""
    return f"{line.row[0]} ({line.index_labels[0]})" if line.index_labels else str(line.row[0])


def counted(number: int, noun: str) -> str:
    """1 row, 2 rows, 1,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def both(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
