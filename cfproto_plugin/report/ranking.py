"""Which changes are the largest: what text, HTML and sentences name first."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any

from cfproto_plugin.tables.cells import is_missing

if TYPE_CHECKING:
    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.records import Line

_FIRST = ("class", "")  # what changes that come first are needed for
CATEGORY = 1.0  # standard deviations that another category counts as


def ranked(explanation: Line) -> list[Change]:
    """The changes, largest first: pixels by their difference, columns by `size_of`; of equals the first column.

    Changes that the class needs, or of which that is not known, come before those that have another purpose.
    Another category, and a number in place of a missing one, counts as one standard deviation. Where these are not
    known, as in older files, such changes come first.
    """
    if explanation.column_names is None:
        return sorted(explanation.changes(), key=lambda change: -abs(change.after - change.before))
    scales = scales_of(explanation)
    no_number = math.inf if scales is None else CATEGORY

    def place(change: Change) -> tuple[bool, float]:
        return change.needed_for not in _FIRST, -abs(size_of(change, scales) or no_number)

    return sorted(explanation.changes(), key=place)


def scales_of(explanation: Line) -> dict[str, float] | None:
    """The standard deviation of every column in the training data; None where it is not known."""
    if explanation.deviations is None or explanation.column_names is None:
        return None
    return dict(zip(explanation.column_names, explanation.deviations.tolist(), strict=True))


def size_of(change: Change, scales: dict[str, float] | None) -> float:
    """A change of a number in standard deviations of the training data, or 0 if one of its two values is no number.

    Without scales it is relative to the larger absolute value, from -1 to 1.
    """
    before, after = number_of(change.before), number_of(change.after)
    if not (math.isfinite(before) and math.isfinite(after)):
        return 0.0
    if scales is None:
        return min(max((after - before) / max(abs(before), abs(after)), -1.0), 1.0)
    scale = scales.get(str(change.feature), math.nan)
    return (after - before) / scale if scale > 0 else 0.0


def direction(change: Change) -> str:
    """Where a change goes, in one or two words: higher, lower, later, earlier, different, filled in or emptied."""
    if is_missing(change.before):
        return "filled in"
    if is_missing(change.after):
        return "emptied"
    before, after = number_of(change.before), number_of(change.after)
    if math.isnan(before) or math.isnan(after) or before == after:
        return "different"
    if isinstance(change.after, datetime):
        return "later" if after > before else "earlier"
    return "higher" if after > before else "lower"


def number_of(value: Any) -> float:
    """A number, a date or a duration in days, and NaN for anything else."""
    if isinstance(value, datetime):
        zone = None if value.tzinfo is None else UTC
        value -= datetime(1970, 1, 1, tzinfo=zone)
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
