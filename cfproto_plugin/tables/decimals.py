"""With how many decimals the numbers of a column are written, and the numbers next to a value that have no more."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.held import Held

_MOST = 6  # decimals; numbers with more were measured or computed, not written down
_SHARE = 0.99  # of the values that must have no more
_ROWS = 5_000  # that are looked at, evenly spaced
_FEWEST = 10  # values that tell how a column is written
_FIRST = 500  # values that are looked at first
_ROOM = 2  # floats of the column between two numbers of its grid: with fewer, every float has so few decimals
_LARGEST = 1e15  # numerators and denominators up to here leave room for a division that rounds once


def written_steps(train: Array, numbers: Array, held: Sequence[Held]) -> Array:
    """(A,) 10^-d for columns of training rows (n, A) that are written with d decimals, 0 for others.

    Columns whose whole numbers end in d noughts have 10^d; those of other integers 0, their dtype says what they hold.
    numbers: (A,) bool: which columns hold numbers. held: the dtypes that are narrower than the table; a float32 is
    written with the decimals it takes to tell it from other float32.
    """
    rows = train[:: -(-len(train) // _ROWS)].astype(np.float64)
    there = np.isfinite(rows)
    known, largest = there.sum(axis=0), np.abs(rows, where=there, out=np.zeros_like(rows)).max(axis=0, initial=0)
    precision = _precision(train.dtype, held, len(known))
    apart = _ROOM * largest * precision
    steps, left = np.zeros(len(known)), np.flatnonzero(numbers & (known >= _FEWEST) & (precision > 0))
    for decimals in range(_MOST + 1):
        step = 1 / 10.0**decimals
        left = left[step >= apart[left]]
        good = left
        for some in (rows[:_FIRST], rows):  # most columns show by their first values that these decimals are too few
            good = good[_finer(some[:, good], good, decimals, train.dtype, held) <= (1 - _SHARE) * known[good]]
        steps[good] = step
        left = np.setdiff1d(left, good)
    whole = numbers & (known >= _FEWEST) & ((steps == 1) | (precision == 0))
    return _with_noughts(rows, steps, np.flatnonzero(whole), largest)


def _with_noughts(rows: Array, steps: Array, whole: Array, largest: Array) -> Array:
    """The steps (A,) with 10, 100, 1000, ... for those columns of whole numbers that hold nothing between them.

    A nought alone tells nothing: columns of fewer than ten other values keep their step.
    """
    values = rows[:, whole]
    told = (np.isfinite(values) & (values != 0)).sum(axis=0)
    step, left = 10.0, np.flatnonzero(told >= _FEWEST)
    while len(left):
        left = left[step <= largest[whole[left]]]
        between = np.fmod(values[:, left], step)
        left = left[(np.isfinite(between) & (between != 0)).sum(axis=0) <= (1 - _SHARE) * told[left]]
        steps[whole[left]], step = step, 10 * step
    return steps


def _precision(dtype: np.dtype[Any], held: Sequence[Held], count: int) -> Array:
    """(A,) the distance of the floats of every column, relative to their size; 0 for integers."""
    found = np.full(count, np.finfo(dtype).eps, dtype=float)
    for each in held:
        found[each.where] = np.finfo(each.dtype).eps if each.is_float else 0.0
    return found


def _finer(values: Array, columns: Array, decimals: int, dtype: np.dtype[Any], held: Sequence[Held]) -> Array:
    """How many of the values (n, q) of these columns (q,) have more decimals, in the dtypes of the columns."""
    near = np.rint(values * 10.0**decimals) / 10.0**decimals
    seen = []
    for x in (near, values):
        y = x.astype(dtype).astype(np.float64)
        for each in held:
            if each.is_float:
                y = np.where(each.where[columns], each.rounded(x), y)
        seen.append(y)
    return np.asarray(((seen[0] != seen[1]) & np.isfinite(values)).sum(axis=0))


def as_ratio(step: float) -> tuple[float, float]:
    """A step as numerator and denominator of the decimal it is written as, so that multiples of it round once.

    0.1 is 1 / 10, and three times it 3 / 10, which is 0.3 and not 0.30000000000000004.
    """
    ratio = Fraction(repr(float(step)))
    if ratio.numerator <= _LARGEST and ratio.denominator <= _LARGEST:
        return float(ratio.numerator), float(ratio.denominator)
    return float(step), 1.0
