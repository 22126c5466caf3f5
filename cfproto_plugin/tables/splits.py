"""Where a tree model splits the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

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
        self._beside = np.append(self._sides, np.nan)  # all below the splits, all above, and one for none
        self._spread: dict[int, Array] = {}

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
        return self._across(start, end, below[0], below[1] - below[0], most)

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
        apart = below[1:] - below[:-1]
        if not len(self.values):
            values = np.stack([current, beyond, current], axis=-1)
            values = np.repeat(values, [inward, -(-inward // every), 2 * around], axis=-1)
        else:
            across = self._across(ends[:2], ends[1:], below[:2], apart, inward)
            near, exists = self._near(original.dtype, below[0], around)
            first, last = original[..., None], current[..., None]
            among = ((near - first) * (near - last) <= 0) & (np.abs(apart[0]) <= inward)[..., None]
            near = np.where(exists > among, near, last)
            values = np.concatenate([across[0], across[1, ..., ::every], near], axis=-1)
        return values, (apart[0] != 0) | np.isnan(ends[:2]).any(axis=0)

    def place(self, original: Array, current: Array, inward: int, number: int) -> tuple[Array, Array]:
        """One value (..., A, 1) of the first kind of `places` alone, and the second of what these return."""
        ends = np.array([original, current])
        below = self._below(ends)
        apart = below[1] - below[0]
        some = slice(number, number + 1)
        value = (
            self._across(original, current, below[0], apart, inward, some) if len(self.values) else current[..., None]
        )
        return value, (apart != 0) | np.isnan(ends).any(axis=0)

    @property
    def are_exact(self) -> bool:
        """Whether it is known on which side of a split every number lies."""
        return self._equal_left is not None and self._dtype is not None

    def _across(
        self, start: Array, end: Array, below: Array, apart: Array, most: int, some: slice = slice(None)
    ) -> Array:
        """Some values of `across`; below, apart: (..., A) splits below the start, and how many more below the end."""
        spread = self._spread_over(most)[:, some]
        at = below[..., None] + spread.take(apart + len(spread) // 2, axis=0, mode="clip")
        beyond = self._beside.take(at, mode="clip").astype(start.dtype, copy=False)
        start, end = start[..., None], end[..., None]
        return np.where((beyond - start) * (beyond - end) <= 0, beyond, end)

    def _spread_over(self, most: int) -> Array:
        """`most` places spread evenly over the splits between two values, in `_beside`, from the first of the two.

        (2·C + 1, most) for -C to C splits, C those of the column with most of them; the end for places that repeat.
        """
        if most not in self._spread:
            widest = int(np.diff(self._ends).max(initial=0))
            apart = np.arange(-widest, widest + 1)[:, None]
            at = np.arange(most) * np.abs(apart) // most
            repeats = (np.diff(at, axis=1, prepend=-1) == 0) | (apart == 0)
            at += np.where(apart > 0, len(self.values), apart)
            self._spread[most] = np.where(repeats, len(self._beside), at).astype(np.int32)
        return self._spread[most]

    def _near(self, dtype: Any, below: Array, most: int) -> tuple[Array, Array]:
        """Values (..., A, 2·most) just beyond the nearest splits below and above a value, and which of them exist.

        below: (..., A) how many splits lie below the value.
        """
        at, n = below[..., None] + _steps(most, len(self.values)), len(self.values)
        exists = [at[..., :most] >= self._ends[:-1, None], at[..., most:] < n + self._ends[1:, None]]
        return self._beside.take(at, mode="clip").astype(dtype, copy=False), np.concatenate(exists, axis=-1)

    def _below(self, x: Array) -> Array:
        """How many splits, of all columns up to its own, lie below each cell (..., A) as the model compares them."""
        keys = np.empty(x.shape, dtype=complex)
        with np.errstate(over="ignore"):
            keys.real, keys.imag = np.arange(x.shape[-1]), x.astype(self._dtype or x.dtype)
        return self._keys.searchsorted(keys, side="right" if self._equal_left is False else "left")

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
def _steps(most: int, n: int) -> Array:
    """From the number of splits below a value to the sides (2·most,) of those next to it, in 2·n sides."""
    return np.concatenate([-1 - np.arange(most), n + np.arange(most)])
