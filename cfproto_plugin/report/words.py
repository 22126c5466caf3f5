"""Values and changes in words: what text and HTML share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Change, Explanation

_DIGITS = 4
_LARGEST_PLAIN = 9  # numbers from 1e9 and below 1e-4 are written with an exponent


def pair(before: Any, after: Any) -> tuple[str, str]:
    """Both values with four significant digits, or with as many as it takes to tell them apart."""
    texts = [(value_text(before, digits), value_text(after, digits)) for digits in range(_DIGITS, 18)]
    return next((text for text in texts if text[0] != text[1]), texts[-1])


def value_text(value: Any, digits: int = _DIGITS) -> str:
    """A float with that many significant digits and no trailing zeros; anything else as Python prints it."""
    if not isinstance(value, Real) or isinstance(value, (bool, Integral)) or not math.isfinite(value) or value == 0:
        return f"{value:g}" if isinstance(value, float) else str(value)
    exponent = math.floor(math.log10(abs(value)))
    if not -_DIGITS <= exponent < _LARGEST_PLAIN:
        return f"{value:.{digits}g}"
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines with aligned columns, two spaces apart; the columns in `right` are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if j in right else "<" for j in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip() for row in rows]


def ranked(explanation: Explanation) -> list[Change]:
    """The changes, largest first: pixels by their difference, columns by `swing`, cells that are no numbers on top."""
    if explanation.column_names is None:
        return sorted(explanation.changes(), key=lambda change: -abs(change.after - change.before))
    return sorted(explanation.changes(), key=lambda change: -abs(swing(change) or math.inf))


def swing(change: Change) -> float:
    """The change divided by the larger absolute value, cut to [-1, 1]; 0 if one of the two is not a finite number."""
    before, after = change.before, change.after
    numbers = isinstance(before, Real) and isinstance(after, Real) and not isinstance(before, bool)
    if not numbers or not (math.isfinite(before) and math.isfinite(after)):
        return 0.0
    return min(max(float(after - before) / float(max(abs(before), abs(after))), -1.0), 1.0)


def feature_name(change: Change) -> str:
    """The name of the column, or the index of the pixel as [2, 0]."""
    return change.feature if isinstance(change.feature, str) else str(list(change.feature))


def classes_text(line: Explanation, arrow: str) -> str:
    """The classes `old -> new` for an explanation of one line; ? where no new one was found."""
    if line.original_class[0] is None:
        return "not explained"
    old, new = ("?" if label is None else label for label in (line.original_class[0], line.counterfactual_class[0]))
    return f"{old} {arrow} {new}"


def counted(number: int, noun: str) -> str:
    """1 row, 2 rows, 1,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
