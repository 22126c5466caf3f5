"""Where a tree model splits the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from cfproto_plugin.protocols import Array


class Splits:
    """Split values of all columns in one sorted array: complex numbers are ordered by column, then by value."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self.values = np.concatenate([np.asarray(values, dtype=float) for values in columns])
        self._keys = np.repeat(np.arange(len(columns)), [len(values) for values in columns]) + 1j * self.values
        self._ends = np.cumsum([0, *(len(values) for values in columns)])
        single = self.values.astype(np.float32)
        self._sides = np.array([np.nextafter(single, np.float32(end)) for end in (-np.inf, np.inf)], dtype=float)

    def of(self, column: int) -> Array:
        """The split values of a column, sorted."""
        return self.values[self._ends[column] : self._ends[column + 1]]

    def across(self, start: Array, end: Array, most: int) -> Array:
        """Values (..., A, most) just beyond the splits between start (..., A) and end (..., A), seen from the start.

        The end itself where there are fewer splits, or one of the two is missing.
        """
        if not len(self.values):
            return np.repeat(end[..., None], most, axis=-1)
        ends = np.empty((2, *start.shape), dtype=complex)
        ends.real = np.arange(start.shape[-1])
        np.minimum(start, end, out=ends.imag[0])
        np.maximum(start, end, out=ends.imag[1])
        low, high = np.searchsorted(self._keys, ends)
        count = high - low
        at = low[..., None] + np.arange(most) * count[..., None] // most
        beyond = self._sides[(end > start).view(np.int8)[..., None], np.minimum(at, len(self.values) - 1)]
        beyond = beyond.astype(start.dtype, copy=False)
        start, end = start[..., None], end[..., None]
        inside = (beyond - start) * (beyond - end) <= 0
        return np.where(_distinct(most)[np.minimum(count, most)] & inside, beyond, end)


@cache
def _distinct(most: int) -> Array:
    """(most + 1, most) bool: of `most` places spread evenly over 0, 1, ... splits, those that repeat none before."""
    count = np.arange(most + 1)[:, None]
    return (np.diff(np.arange(most) * count // most, axis=1, prepend=-1) > 0) & (count > 0)
