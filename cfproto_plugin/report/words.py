"""Numbers, changes and columns as words: what text and HTML share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from cfproto_plugin.explanation import column_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Change, Explanation

_DIGITS = 4
_LARGEST_PLAIN = 9  # numbers of more digits before the point are written with an exponent, and those below 1e-4


def pair(before: Any, after: Any) -> tuple[str, str]:
    """Both values with four significant digits, or as many as it takes to tell them apart."""
    texts = [(value_text(before, digits), value_text(after, digits)) for digits in range(_DIGITS, 18)]
    return next((text for text in texts if text[0] != text[1]), texts[-1])


def value_text(value: Any, digits: int = _DIGITS) -> str:
    if not isinstance(value, Real) or isinstance(value, (bool, Integral)) or not math.isfinite(value) or value == 0:
        return f"{value:g}" if isinstance(value, float) else str(value)
    exponent = math.floor(math.log10(abs(value)))
    if not -_DIGITS <= exponent < _LARGEST_PLAIN:
        return f"{value:.{digits}g}"
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines of equal columns two spaces apart; the columns in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if j in right else "<" for j in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip() for row in rows]


def ranked(explanation: Explanation) -> list[Change]:
    """The changes, largest first; pixels share a unit, columns are compared relative to their size, words lead."""
    if column_names(explanation) is None:
        return sorted(explanation.changes(), key=lambda change: -abs(change.after - change.before))
    return sorted(explanation.changes(), key=lambda change: -abs(swing(change) or math.inf))


def swing(change: Change) -> float:
    """The change relative to the larger of the two values, from -1 to 1; 0 if they are not finite numbers."""
    before, after = change.before, change.after
    numbers = isinstance(before, Real) and isinstance(after, Real) and not isinstance(before, bool)
    if not numbers or not (math.isfinite(before) and math.isfinite(after)):
        return 0.0
    return min(max(float(after - before) / float(max(abs(before), abs(after))), -1.0), 1.0)


def feature_name(change: Change) -> str:
    return change.feature if isinstance(change.feature, str) else str(list(change.feature))


def classes_text(line: Explanation, arrow: str) -> str:
    new = line.counterfactual_class[0]
    return f"{line.original_class[0]} {arrow} {'?' if new is None else new}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
