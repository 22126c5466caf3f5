"""Where a tree model splits the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.geometry import Grid

_NEAR = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # steps from the number of the grid that is nearest to a split


class Splits:
    """Split values of all columns in one sorted array: complex numbers are ordered by column, then by value.

    equal_left: whether a value that equals a split lies below it; dtype: in which the two are compared; None if it is
    not known. grid: the numbers that the columns can hold.
    """

    def __init__(
        self,
        columns: Sequence[Array],
        *,
        equal_left: bool | None = None,
        dtype: str | None = None,
        grid: Grid | None = None,
    ) -> None:
        self._columns, self._equal_left, self._dtype, self._grid = columns, equal_left, dtype, grid
        self.values = np.concatenate([np.asarray(values, dtype=float) for values in columns])
        self._column = np.repeat(np.arange(len(columns)), [len(values) for values in columns])
        self._keys = self._column + 1j * self.values
        self._ends = np.cumsum([0, *(len(values) for values in columns)])
        single = self.values.astype(np.float32)
        self._sides = np.array([np.nextafter(single, np.float32(end)) for end in (-np.inf, np.inf)], dtype=float)
        if grid is not None and grid.stepped:
            self._sides = self._on_grid(grid)
        self._flat_sides = self._sides.ravel()

    def on(self, grid: Grid) -> Splits:
        """The same splits for columns that hold other numbers."""
        known = self._grid
        if grid is known or (known is not None and np.array_equal(grid.step, known.step) and grid.held is known.held):
            return self
        return Splits(self._columns, equal_left=self._equal_left, dtype=self._dtype, grid=grid)

    def of(self, column: int) -> Array:
        """The split values of a column, sorted."""
        return self.values[self._ends[column] : self._ends[column + 1]]

    def above(self, column: int) -> Array:
        """The values just above the splits of a column, as it can hold them."""
        return self._sides[1, self._ends[column] : self._ends[column + 1]]

    def across(self, start: Array, end: Array, most: int) -> Array:
        """Values (..., A, most) just beyond the splits between start (..., A) and end (..., A), seen from the start.

        The end itself where there are fewer splits, or one of the two is missing.
        """
        if not len(self.values):
            return np.repeat(end[..., None], most, axis=-1)
        below = self._below(np.array([start, end]))
        return self._across(start, end, below[0], below[1], most)

    def places(
        self, original: Array, current: Array, beyond: Array, inward: int, every: int, around: int
    ) -> tuple[Array, Array]:
        """Values (..., A, V) that polishing tries: three kinds, from one search of the splits.

        `inward` values across the splits from the original to the current value; from there to `beyond` likewise, but
        only one of `every`; and `around` values on either side of the original. The current value stands for those of
        the last kind that are missing or among the first. Second, (..., A): whether a split lies between the original
        and the current value; a missing value is on a side of its own.
        """
        ends = np.array([original, current, beyond])
        below = self._below(ends)
        if not len(self.values):
            values = np.stack([current, beyond, current], axis=-1)
            values = np.repeat(values, [inward, -(-inward // every), 2 * around], axis=-1)
        else:
            across = self._across(ends[:2], ends[1:], below[:2], below[1:], inward)
            near = self._near(current, below[0], around)
            some, first, last = np.abs(below[0] - below[1]) > inward, original[..., None], current[..., None]
            near = np.where(some[..., None] | ~((near - first) * (near - last) <= 0), near, last)
            values = np.concatenate([across[0], across[1, ..., ::every], near], axis=-1)
        return values, (below[0] != below[1]) | np.isnan(ends[:2]).any(axis=0)

    @property
    def are_exact(self) -> bool:
        """Whether it is known on which side of a split every number lies."""
        return self._equal_left is not None and self._dtype is not None

    def _across(self, start: Array, end: Array, from_start: Array, from_end: Array, most: int) -> Array:
        """The values of `across`; from_start, from_end: (..., A) how many splits lie below the two."""
        low = np.minimum(from_start, from_end)
        count = np.maximum(from_start, from_end) - low
        at = low[..., None] + np.arange(most) * count[..., None] // most
        up = end > start
        beyond = self._flat_sides.take(at + np.where(up, len(self.values), 0)[..., None], mode="clip")
        beyond = beyond.astype(start.dtype, copy=False)
        start, end = start[..., None], end[..., None]
        inside = (beyond - start) * (beyond - end) <= 0
        inside &= _distinct(most).take(count, axis=0, mode="clip")
        return np.where(inside, beyond, end)

    def _near(self, instead: Array, at: Array, most: int) -> Array:
        """Values (..., A, 2·most) just beyond the nearest splits below and above a value; `instead` (..., A) for none.

        at: (..., A) how many splits lie below the value.
        """
        at, instead, steps = at[..., None], instead[..., None], np.arange(most)
        below, above = at - 1 - steps, at + steps
        found = np.concatenate(
            [self._sides[0].take(below, mode="clip"), self._sides[1].take(above, mode="clip")], axis=-1
        )
        exists = np.concatenate([below >= self._ends[:-1, None], above < self._ends[1:, None]], axis=-1)
        return np.where(exists, found.astype(instead.dtype, copy=False), instead)

    def _below(self, x: Array) -> Array:
        """How many splits, of all columns up to its own, lie below each cell (..., A) as the model compares them."""
        keys = np.empty(x.shape, dtype=complex)
        with np.errstate(over="ignore"):
            keys.real, keys.imag = np.arange(x.shape[-1]), x.astype(self._dtype or x.dtype)
        return np.searchsorted(self._keys, keys, side="right" if self._equal_left is False else "left")

    def _on_grid(self, grid: Grid) -> Array:
        """The sides (2, N): the nearest numbers of the grid below and above each split, as the model compares them."""
        stepped = np.flatnonzero(grid.step[self._column] > 0)
        column, split = self._column[stepped], self.values[stepped]
        count = np.rint(split / grid.step[column]) + _NEAR[:, None]
        near = grid.multiple_of(column, count)  # (5, N) ascending
        seen = [near.astype(dtype) for dtype in ("float32", "float64") if self._dtype in {dtype, None}]
        or_equal = self._equal_left
        below = np.all([each <= split if or_equal is True else each < split for each in seen], axis=0)
        above = np.all([each >= split if or_equal is False else each > split for each in seen], axis=0)
        sides, each = self._sides.copy(), np.arange(len(stepped))
        last = len(_NEAR) - 1 - below[::-1].argmax(axis=0)
        sides[0, stepped] = np.where(below.any(axis=0), near[last, each], sides[0, stepped])
        sides[1, stepped] = np.where(above.any(axis=0), near[above.argmax(axis=0), each], sides[1, stepped])
        return sides


@cache
def _distinct(most: int) -> Array:
    """(most + 1, most) bool: of `most` places spread evenly over 0, 1, ... splits, those that repeat none before."""
    count = np.arange(most + 1)[:, None]
    return (np.diff(np.arange(most) * count // most, axis=1, prepend=-1) > 0) & (count > 0)
