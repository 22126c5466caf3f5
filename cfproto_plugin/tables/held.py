"""Which numbers the dtype of a column can hold: bounds and rounding follow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.attributes import Attribute
from cfproto_plugin.tables.cells import is_frame, number_dtype

_EXACT_POWER = 22  # 10^22 is the largest power of ten that a float64 holds exactly


class Held(NamedTuple):
    """Numbers of one dtype."""

    dtype: np.dtype[Any]  # native
    where: Array  # (A,) bool: the numbers of the table that it holds
    rounds: bool  # the table holds finer floats than it

    @property
    def is_float(self) -> bool:
        """Whether it holds fractions."""
        return bool(self.dtype.kind == "f")

    def inside(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The smallest and the largest number that it holds inside the bounds, elementwise."""
        if not self.is_float:
            low, high = (0, 1) if self.dtype.kind == "b" else (np.iinfo(self.dtype).min, np.iinfo(self.dtype).max)
            last = float(high) if int(float(high)) <= high else np.nextafter(float(high), 0)
            return np.maximum(lower, float(low)), np.minimum(upper, last)
        return self._towards(lower, np.inf), self._towards(upper, -np.inf)

    def rounded(self, x: Array) -> Array:
        """The nearest numbers that it holds, in the dtype of x."""
        with np.errstate(over="ignore"):
            return np.asarray(x.astype(self.dtype).astype(x.dtype))

    def decimals(self, x: Array) -> Array:
        """The nearest floats that it holds, as the shortest decimals that tell them apart: 0.3, not 0.30000001.

        In 64 bits; larger floats have larger decimals.
        """
        with np.errstate(over="ignore"):
            own = np.asarray(x).astype(self.dtype)
        found, left = own.astype(np.float64), np.isfinite(own) & (own != 0)
        if self.dtype == np.float32:
            found, left = _of_single(own, found, left)
        if left.any():
            found[left] = own[left].astype("U32").astype(np.float64)
        return found

    def _towards(self, bound: Array, end: float) -> Array:
        """The nearest number that it holds from the bound on in the direction of the end; infinite and missing stay."""
        most = np.finfo(self.dtype).max
        with np.errstate(over="ignore"):
            near = np.clip(bound.astype(self.dtype), -most, most)
            short = near < bound if end > 0 else near > bound
            found = np.where(short, np.nextafter(near, self.dtype.type(end)), near)
        return np.where(np.isinf(bound), bound, found).astype(np.float64)


def _of_single(own: Array, found: Array, left: Array) -> tuple[Array, Array]:
    """Shortest decimals of float32 `own` (...) in `found`, and which of those that are `left` are left still.

    A number that is written with up to six digits is the nearest such one of its float32; more than nine are not
    needed. A whole number divided or multiplied by a power of ten that 64 bits hold exactly rounds once.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(left, np.floor(np.log10(np.abs(found))), 0.0)
    known = left & (np.abs(5 - size) <= _EXACT_POWER) & (np.abs(8 - size) <= _EXACT_POWER)
    for digits in range(6, 10):
        power, fits = digits - 1 - size, left & known
        scale = 10.0 ** np.abs(np.where(fits, power, 0.0))
        value = np.where(fits, found, 0.0)
        near = np.where(power >= 0, np.rint(value * scale) / scale, np.rint(value / scale) * scale)
        good = fits & (near.astype(np.float32) == own)
        found, left = np.where(good, near, found), left & ~good
        if not left.any():
            break
    return found, left


def held_in(raw: Any, attributes: Sequence[Attribute], dtypes: Sequence[Any] | None = None) -> tuple[Held, ...] | None:
    """The integers and the floats narrower than 64 bits in rows; None for an array of objects or text.

    dtypes: of the columns of a frame, where they are others than its own.
    """
    numbers = np.array([attribute.levels is None for attribute in attributes])
    if not is_frame(raw):
        found = number_dtype(raw.dtype)
        if found is None:
            return None
        places = {found.newbyteorder("="): numbers}
    else:
        kinds = [number_dtype(dtype) for dtype in dtypes or raw.dtypes]
        places = {}
        for at in np.flatnonzero(numbers).tolist():
            dtype = kinds[attributes[at].sources[0]]
            if dtype is not None:
                places.setdefault(dtype.newbyteorder("="), np.zeros(len(attributes), dtype=bool))[at] = True
    single = set(places) == {np.dtype(np.float32)} and not (is_frame(raw) and not numbers.all())
    width = 4 if single else 8
    return tuple(
        Held(dtype, where, rounds=dtype.kind == "f" and dtype.itemsize < width)
        for dtype, where in places.items()
        if dtype.kind != "f" or dtype.itemsize < 8  # noqa: PLR2004 bytes, those of a table
    )


def same_held(one: Sequence[Held], other: Sequence[Held]) -> bool:
    """Whether both hold the same numbers."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.rounds == b.rounds and np.array_equal(a.where, b.where)
        for a, b in zip(one, other, strict=True)
    )
