"""What changed, what a column can hold, and how a value is clipped: defined once, for search, rules and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.decimals import as_ratio
from cfproto_plugin.tables.held import Held

_ROOM = 2.0**20  # for sums of squares
_TOLERANCE = 1e-9  # how far a multiple of a step may be from a whole number, relatively


def changed(x: Array, original: Array, x_missing: Array | None = None, original_missing: Array | None = None) -> Array:
    """Which cells differ, elementwise; two missing values do not.

    x, original: arrays that broadcast against each other. Without masks a missing value is one that differs from
    itself, as NaN does; cells of other types need their masks.
    """
    differ = np.asarray(x != original, dtype=bool)
    original_missing = np.asarray(original != original, dtype=bool) if original_missing is None else original_missing  # noqa: PLR0124
    if not np.count_nonzero(original_missing):
        return differ
    x_missing = np.asarray(x != x, dtype=bool) if x_missing is None else x_missing  # noqa: PLR0124
    return np.asarray(differ & ~(x_missing & original_missing))


def count_changed(x: Array, original: Array) -> Array:
    """How many columns differ: (..., A) to (...)."""
    return np.asarray(changed(x, original).sum(axis=-1))


def diversity(differ: Array, group: Array) -> Array:
    """How different the changes of lines are from those of the others of their group: (n,), NaN where it is alone.

    The mean over these of the share of changed cells that they do not have in common, 1 - |A and B| / |A or B|.
    differ: (n, A) bool. group: (n,). A line that changes nothing does not count.
    """
    found = np.full(len(group), np.nan)
    lines = np.flatnonzero(differ.any(axis=1))
    lines = lines[np.argsort(group[lines], kind="stable")]
    for at in np.split(lines, np.flatnonzero(np.diff(group[lines])) + 1):
        if len(at) > 1:
            cells = differ[at].astype(float)
            common, count = cells @ cells.T, cells.sum(axis=1)
            either = count[:, None] + count - common
            found[at] = (1 - common / either).sum(axis=1) / (len(at) - 1)
    return found


def filled(train: Array) -> tuple[Array, Array]:
    """Training rows (n, A) with 0 in the columns that have no value at all, and which these are: (A,) bool."""
    empty = np.isnan(train[0])
    if empty.any():
        empty = np.isnan(train).all(axis=0)
    return np.where(empty, 0, train).astype(train.dtype) if empty.any() else train, empty


def moments(x: Array) -> tuple[Array, Array]:
    """Means and standard deviations (A,) of columns (n, A), each without its missing values.

    The squares of very large and very small numbers are no floats: such columns are divided by a power of two first.
    """
    size = np.nanmax(np.abs(x), axis=0)
    most = np.sqrt(np.finfo(x.dtype).max) / _ROOM
    beyond = (size > most) | ((size < 1 / most) & (size > 0))
    unit = np.exp2(np.floor(np.log2(np.where(beyond, size, 1)))).astype(x.dtype)
    if beyond.any():
        x = x / unit
    return np.nanmean(x, axis=0) * unit, np.nanstd(x, axis=0) * unit


def middles(x: Array) -> tuple[Array, Array]:
    """The middles and halves of the ranges (A,) of columns (n, A), each without its missing values."""
    low, high = np.nanmin(x, axis=0) / 2, np.nanmax(x, axis=0) / 2  # the range itself may be no float
    return high + low, high - low


def clip(x: Array, lower: Array, upper: Array) -> Array:
    """The nearest values inside the bounds, all broadcast together; a missing bound does not bind."""
    return np.asarray(np.fmin(np.fmax(x, lower), upper))


@dataclass(frozen=True)
class Grid:
    """The numbers that the columns of a table can hold.

    step: (A,) a changed value is a multiple of it; 0 where every value is possible.
    held: what the user's columns can hold.
    listed: by column, the only values (V,) it may have, ascending.
    written: (A,) bool: the step is the last decimal that values are written with.
    shortened: (A,) bool: values have no step, and are to be written with few digits.
    """

    step: Array
    held: tuple[Held, ...] = ()
    listed: Mapping[int, Array] = field(default_factory=dict)
    written: Array | None = None
    shortened: Array | bool = False

    @cached_property
    def stepped(self) -> bool:
        """Whether any column has a step."""
        return bool(self.step.any())

    @cached_property
    def rounds(self) -> bool:
        """Whether snapping changes anything."""
        return self.stepped or bool(self._narrow) or bool(self.listed)

    @cached_property
    def is_coarse(self) -> bool:
        """Whether values may be rounded by more than how they are written."""
        coarse = self.step > 0 if self.written is None else (self.step > 0) & ~self.written
        return bool(coarse.any() or self._narrow or self.listed)

    def multiple(self, count: Array) -> Array:
        """So many (..., A) steps, rounded once: 3 steps of 0.1 are 0.3."""
        numerator, denominator = self._ratio
        return np.asarray(count * numerator / denominator + 0.0)  # 0.0, never -0.0

    def multiple_of(self, column: Array, count: Array) -> Array:
        """So many (..., N) steps of columns (N,), as these hold them."""
        numerator, denominator = self._ratio
        found = count * numerator[column] / denominator[column] + 0.0
        for held in self.held:
            if held.is_float:
                found = np.where(held.where[column], held.rounded(found), found)
        return np.asarray(found)

    def snap(self, x: Array) -> Array:
        """The nearest number (..., A) that every column can hold."""
        if self.stepped:
            x = np.where(self.step > 0, self.multiple(np.rint(x / self._size)), x)
        return self._on_lists(self._rounded(x))

    def snap_inside(self, x: Array, lower: Array, upper: Array, original: Array) -> Array:
        """Likewise, inside bounds (..., A); the original where no multiple of the step lies inside."""
        if self.stepped:
            first, last = self.ends(lower, upper)
            near = clip(self.multiple(np.rint(x / self._size)), first, last) + 0.0
            x = np.where(self.step > 0, np.where(first <= last, near, original), x).astype(x.dtype)
        return self._on_lists(self._rounded(x))  # bounds are drawn in to the lists

    def misses(self, x: Array) -> Array:
        """Which cells (..., A) are no multiple of their step."""
        multiple = x / self._size
        off = np.abs(multiple - np.rint(multiple)) > self._tolerance(multiple, x.dtype)
        return np.asarray((self.step > 0) & off)

    def off_lists(self, x: Array) -> Array:
        """Which cells (..., A) are none of the values their column may have; a missing one may stay missing."""
        off = np.zeros(x.shape, dtype=bool)
        for at in self.listed:
            off[..., at] = ~(np.isin(x[..., at], self.values(at, x.dtype)) | np.isnan(x[..., at]))
        return off

    def ends(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The first and the last multiple of the step inside bounds (..., A); first > last where there is none."""
        size = self._size
        first = self.multiple(np.ceil(lower / size - self._tolerance(lower / size, lower.dtype)))
        last = self.multiple(np.floor(upper / size + self._tolerance(upper / size, upper.dtype)))
        some = first <= last  # a multiple may miss the bound it lies on by its rounding
        return np.where(some, np.fmax(first, lower), first), np.where(some, np.fmin(last, upper), last)

    def draw_in(self, x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds (n, A) drawn in to the grid; a row x inside them may keep its value, which need not be on it."""
        for held in self.held:
            low, high = held.inside(lower, upper)
            lower, upper = np.where(held.where, low, lower), np.where(held.where, high, upper)
        if not self.stepped:
            return self._drawn_to_lists(lower, upper, x.dtype)
        first, last = self.ends(lower.astype(x.dtype), upper.astype(x.dtype))
        inside = ~((x < lower) | (x > upper))
        drawn = (self.step > 0) & ~(inside & np.isnan(x) & ~(first <= last))
        lower = np.where(drawn, np.where(inside, np.fmin(first, x), first), lower)
        upper = np.where(drawn, np.where(inside, np.fmax(last, x), last), upper)
        return self._drawn_to_lists(lower, upper, x.dtype)

    def _drawn_to_lists(self, lower: Array, upper: Array, dtype: Any) -> tuple[Array, Array]:
        """Bounds (n, A) drawn in to the first and the last listed value between them; a missing bound stays."""
        for at in self.listed:
            values, low, high = self.values(at, dtype), lower[:, at].copy(), upper[:, at].copy()
            first, last = np.searchsorted(values, low), np.searchsorted(values, high, side="right") - 1
            few = len(values) - 1
            lower[:, at] = np.where((first > few) | np.isnan(low), low, values[np.minimum(first, few)])
            upper[:, at] = np.where((last < 0) | np.isnan(high), high, values[np.maximum(last, 0)])
        return lower, upper

    def _on_lists(self, x: Array) -> Array:
        """The nearest listed values (..., A); a missing value stays."""
        x = x.copy() if self.listed else x
        for at in self.listed:
            values = self.values(at, x.dtype)
            near = values[np.searchsorted((values[1:] + values[:-1]) / 2, x[..., at])]
            x[..., at] = np.where(np.isnan(x[..., at]), x[..., at], near)
        return x

    def values(self, at: int, dtype: Any) -> Array:
        """The listed values of a column, as it holds them."""
        values = self.listed[at].astype(dtype)
        for held in self._narrow:
            values = held.rounded(values) if held.where[at] else values
        return np.asarray(values)

    def _rounded(self, x: Array) -> Array:
        """The nearest floats that narrow columns hold."""
        for held in self._narrow:
            x = np.where(held.where, held.rounded(x), x)
        return x

    def _tolerance(self, multiple: Array, dtype: Any) -> Array:
        """How far a multiple of a step may be from a whole number: the rounding of the numbers it was made from."""
        relative = np.full(len(self.step), max(_TOLERANCE, 4 * float(np.finfo(dtype).eps)))
        for held in self._narrow:
            relative[held.where] = np.maximum(relative, 4 * float(np.finfo(held.dtype).eps))[held.where]
        return np.asarray(relative * np.maximum(1, np.abs(multiple)))

    @cached_property
    def _narrow(self) -> tuple[Held, ...]:
        return tuple(held for held in self.held if held.rounds)

    @cached_property
    def _size(self) -> Array:
        return np.where(self.step > 0, self.step, 1.0)

    @cached_property
    def _ratio(self) -> tuple[Array, Array]:
        """(A,) each: numerators and denominators of the steps."""
        sizes, which = np.unique(self._size, return_inverse=True)
        ratios = np.array([as_ratio(size) for size in sizes]).reshape(-1, 2)
        return ratios[which, 0], ratios[which, 1]
