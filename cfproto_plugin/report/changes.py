"""The changes of a line as texts, largest first: what cards in notebooks and in the report show."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cfproto_plugin.report.purposes import only_for
from cfproto_plugin.report.ranking import direction, number_of, ranked, scales_of, size_of
from cfproto_plugin.report.words import feature_name, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.records import Record

UNITS = ("in percent of the value before", "in standard deviations (sd) of the training data")  # by: these are known


class Shown(NamedTuple):
    """A change as it is shown."""

    feature: str
    before: str
    after: str
    direction: str  # higher, lower, ...
    much: str  # +1.2 sd, or +12 %; "" where there is no such number
    size: float  # in standard deviations, or relative to the larger value; 0 where one of the two is no number
    step: float | None  # after minus before, in the units of the column; None where one of the two is no number
    unit: str  # of the step: "days" for dates and durations, else ""
    only: str  # `only for typicality`; "" where the class needs it, or that is not known


def shown_changes(line: Record) -> list[Shown]:
    """The changes, largest first."""
    changes, scales = ranked(line), scales_of(line)
    sizes = [size_of(change, scales) for change in changes]
    return [
        Shown(
            feature_name(change),
            value_text(change.before),
            value_text(change.after),
            direction(change),
            _how_much(change, size, scales),
            size,
            *_step(change, scales),
            only_for(change),
        )
        for change, size in zip(changes, sizes, strict=True)
    ]


def full_width(line: Record, changes: Sequence[Shown]) -> float:
    """The size of a change whose bar has full width: a standard deviation, or the largest change if that is larger."""
    return 1.0 if line.deviations is None else max([1.0, *(abs(change.size) for change in changes)])


def row_name(line: Record) -> str:
    """Row 3, followed by its label in the DataFrame's index if that is not the same number."""
    name = f"Row {line.row[0]}"
    return name if line.label in {"", name, str(line.row[0])} else f"{name} (label {line.label})"


def _step(change: Change, scales: dict[str, float] | None) -> tuple[float | None, str]:
    """After minus before, and its unit; None for categories and where one of the two is no number."""
    step = number_of(change.after) - number_of(change.before)
    is_number = math.isfinite(step) and not (scales is not None and math.isnan(scales.get(str(change.feature), 0.0)))
    unit = "days" if isinstance(change.after, (datetime, timedelta)) else ""
    return (step, unit) if is_number else (None, "")


def _how_much(change: Change, size: float, scales: dict[str, float] | None) -> str:
    """The change in standard deviations, without these in percent of the value before; nothing if it is no number."""
    if not size:
        return ""
    if scales is not None:
        digits = ".2g" if abs(size) < 1 else ".1f"
        return f"{size:+,{digits}} sd".replace("-", "−")  # noqa: RUF001 a minus sign as wide as the plus
    before, after = number_of(change.before), number_of(change.after)
    share = math.floor(100 * (after - before) / abs(before) + 0.5) if before else 0
    return f"{share:+,} %".replace("-", "−") if share else ""  # noqa: RUF001
