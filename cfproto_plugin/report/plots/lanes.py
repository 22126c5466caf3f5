"""One column of a change plot: where the typical rows of the new class lie, in units of the lane from 0 to 1."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.report.ranking import number_of
from cfproto_plugin.report.words import percent, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change

_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
_FOUR_DIGITS, _LONG = 1e4, 1e9  # numbers between are written to the unit, larger ones with an exponent


class Lane(NamedTuple):
    """A change on a line from 0 to 1. Numbers have quantiles, categories have parts; None where there is none."""

    change: Change
    before: float  # NaN for a missing value
    after: float
    quantiles: tuple[float, ...] | None = None  # 1, 10, 50, 90 and 99 % of the new class
    parts: tuple[tuple[str, float, float], ...] | None = None  # category, begin and end: its share of the new class
    typical: str = ""  # in words

    @property
    def rises(self) -> bool | None:
        """Whether a number rises; None for other changes."""
        known = self.parts is None and not math.isnan(self.before) and not math.isnan(self.after)
        return self.after > self.before if known else None


def number_lane(change: Change, cells: Sequence[Any]) -> Lane:
    """A number on a scale that holds it and 98 % of the cells of the new class."""
    known = np.array([number_of(cell) for cell in cells], dtype=float)
    known = known[np.isfinite(known)]
    ends = [number_of(change.before), number_of(change.after)]
    quantiles = np.quantile(known, _SHARES) if len(known) else np.array([])
    every = [value for value in (*ends, *quantiles.tolist()) if math.isfinite(value)]
    low, high = min(every), max(every)
    room = high - low

    def place(value: float) -> float:
        if math.isinf(room):
            return 0.5 if math.isfinite(value) else math.nan
        return (value - low) / room if room else (0.5 if math.isfinite(value) else math.nan)

    before, after = (place(end) for end in ends)
    if not len(known):
        return Lane(change, before, after, typical="no known value")
    like = change.after if math.isfinite(ends[1]) else change.before
    texts = [_in_units(float(quantiles[at]), like) for at in (1, 3)]
    typical = texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"
    return Lane(change, before, after, tuple(map(place, quantiles.tolist())), typical=typical)


def category_lane(change: Change, cells: Sequence[Any]) -> Lane:
    """A category on a line that is divided by how often the new class has each, most often first."""
    counts = Counter(value_text(cell) for cell in cells)
    before, after = value_text(change.before), value_text(change.after)
    for text in (after, before):
        counts.setdefault(text, 0)
    total, begin, parts = max(sum(counts.values()), 1), 0.0, []
    for text, count in counts.most_common():
        parts.append((text, begin, begin + count / total))
        begin += count / total
    middle = {text: (low + high) / 2 for text, low, high in parts}
    shares = [f"{_clipped(text)} {percent(counts[text] / total)}" for text in (before, after)]
    return Lane(change, middle[before], middle[after], parts=tuple(parts), typical=", ".join(shares))


def _clipped(text: str, most: int = 18) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _in_units(value: float, like: Any) -> str:
    """A number as text; days as the date or duration that the column holds."""
    if isinstance(like, datetime):
        return str((datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=value)).astimezone(like.tzinfo or UTC).date())
    if isinstance(like, timedelta):
        return str(timedelta(days=round(value))).removesuffix(", 0:00:00")
    return f"{value:.0f}" if _FOUR_DIGITS <= abs(value) < _LONG else f"{value:.4g}"
