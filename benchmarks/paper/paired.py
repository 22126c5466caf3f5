"""Two settings on the same rows: the mean difference of a measure and its 95 % bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from common import number


class Difference(NamedTuple):
    """Ours minus the other's, of the rows that have both."""

    ours: float  # mean
    other: float  # mean
    mean: float
    lower: float
    upper: float
    n: int

    @property
    def is_less(self) -> bool:
        """Ours is below the other's, beyond the bounds."""
        return bool(self.upper < 0)

    @property
    def text(self) -> str:
        """For a table."""
        return f"{_signed(self.mean)} ({_signed(self.lower)} to {_signed(self.upper)})"


def paired(ours: np.ndarray, other: np.ndarray, confidence: float = 0.95) -> Difference:
    """By Student's t of the differences of values (n,); rows with NaN in either are left out."""
    from scipy.stats import t

    both = ~(np.isnan(ours) | np.isnan(other))
    ours, other = ours[both].astype(float), other[both].astype(float)
    gap, n = ours - other, int(both.sum())
    if not n:
        return Difference(*[np.nan] * 5, 0)
    half = float(t.ppf((1 + confidence) / 2, n - 1) * gap.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    mean = float(gap.mean())
    return Difference(float(ours.mean()), float(other.mean()), mean, mean - half, mean + half, n)


class Change(NamedTuple):
    """The relative change of a mean, -0.5 for half as much, of the rows that have both."""

    mean: float
    lower: float
    upper: float
    n: int


def change(ours: np.ndarray, other: np.ndarray, rows: np.ndarray, confidence: float = 0.95) -> Change:
    """mean(ours) / mean(other) - 1 of values (n,), with bounds by Student's t of the logarithm of the ratio.

    No bounds for a single row. rows (n,) says which row or image a value is of. Values of one row with several
    networks are not independent and count as one: with sums s and t of a row, the error of the logarithm is that of
    the mean of s / mean(s) - t / mean(t).
    """
    from scipy.stats import t

    both = ~(np.isnan(ours) | np.isnan(other))
    _, group = np.unique(rows[both], return_inverse=True)
    sums = [np.bincount(group, weights=np.asarray(values[both], dtype=float)) for values in (ours, other)]
    n, groups = int(both.sum()), len(sums[0])
    if not n or sums[1].mean() <= 0 or sums[0].mean() <= 0:
        return Change(*[np.nan] * 3, n)
    ratio = float(np.log(sums[0].mean() / sums[1].mean()))
    if groups == 1:
        return Change(float(np.expm1(ratio)), np.nan, np.nan, n)
    gap = sums[0] / sums[0].mean() - sums[1] / sums[1].mean()
    half = float(t.ppf((1 + confidence) / 2, groups - 1) * gap.std(ddof=1) / np.sqrt(groups))
    return Change(*(float(np.expm1(value)) for value in (ratio, ratio - half, ratio + half)), n)


def mean(values: np.ndarray) -> float:
    """Of the values that are known; NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def plain(line: Mapping[str, np.ndarray]) -> dict[str, list[float | None]]:
    """For JSON: numbers to six decimals, None for NaN."""
    return {name: [None if np.isnan(v) else round(float(v), 6) for v in part] for name, part in line.items()}


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"
