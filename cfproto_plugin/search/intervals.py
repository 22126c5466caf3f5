"""Targets that are probabilities: the interval that the probability of a class has to lie in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import as_items, is_number, shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.targets import class_columns, in_order_of, names_of

_LEAST = 1e-12  # margin of a probability at the end of its interval, which belongs to it
_MOST = 0.25  # of the width of an interval: the most that kappa can ask for


class Intervals(NamedTuple):
    """Lowest and highest probability of every class (n, k), NaN for those that are not asked about; any one counts."""

    low: Array
    high: Array

    def take(self, lines: Array) -> Intervals:
        """Those of some lines."""
        return Intervals(self.low[lines], self.high[lines])

    def best(self, proba: Array, kappa: float = 0.0, noise: float = 0.0) -> tuple[Array, Array]:
        """The margin (n,) of probabilities (n, k), positive inside an interval, and the class (n,) it is largest for.

        max over the classes of min(p - low, high - p) - noise - kappa, kappa being no more than a quarter of the width.
        Without noise and kappa the ends belong to the interval. NaN where the model failed.
        """
        inside = np.minimum(proba - self.low, self.high - proba)
        inside = inside - noise - np.minimum(kappa, _MOST * (self.high - self.low))
        column = np.where(np.isnan(inside), -np.inf, inside).argmax(axis=1)
        margin = inside[np.arange(len(inside)), column]
        return (margin if noise or kappa else np.where(margin == 0, _LEAST, margin)), column

    def sides(self, proba: Array) -> Array:
        """Below (-1), inside (0) or above (1) for probabilities (..., n, k); 0 for classes without an interval."""
        return np.asarray((proba > self.high).astype(int) - (proba < self.low))

    def leading(self, proba: Array) -> Array:
        """The classes (n, k) whose rows lead there from rows of probabilities (n, k).

        The class itself where its probability has to rise, the others where it has to fall; all where it need not.
        """
        side = self.sides(proba)
        asked = ~np.isnan(self.low)
        up = side < 0
        down = (side > 0) | ((side == 0) & asked)
        others = down.sum(axis=1, keepdims=True) - down > 0
        return np.asarray(up | others | ((side == 0) & asked))

    def cotangent(self, proba: Array) -> tuple[Array, Array]:
        """The margin (n,) of probabilities (n, k), and its derivative by them (n, k)."""
        margin, column = self.best(proba)
        at = np.arange(len(proba)), column
        slope = np.zeros_like(proba)
        slope[at] = np.where(proba[at] - self.low[at] < self.high[at] - proba[at], 1, -1)
        return margin, slope

    @property
    def ends(self) -> Array:
        """Every end of an interval."""
        return np.unique(np.concatenate([side[~np.isnan(side)] for side in self]))

    def in_words(self, line: int, names: Sequence[Any]) -> list[str]:
        """The classes, by these names, and intervals of a line."""
        return [
            f"{names[at]} with a probability from {self.low[line, at]:g} to {self.high[line, at]:g}"
            for at in np.flatnonzero(~np.isnan(self.low[line])).tolist()
        ]


def read_intervals(target: Any, classes: Array, n: int, index: Any = None) -> Intervals | None:
    """The intervals of n rows; None if the target is about classes.

    One dict of label to (low, high) for all rows; or a list, an array or a Series of such, one per row, a pandas Series
    by the `index` of the rows.
    """
    if isinstance(target, Mapping):
        given = [target]
    else:
        listing = isinstance(target, (list, tuple)) or (np.ndim(target) == 1 and hasattr(target, "__len__"))
        if not listing or not any(isinstance(item, Mapping) for item in target):
            return None
        given = list(in_order_of(target, index))
        if len(given) != n:
            raise InputError(f"target has {len(given)} dicts for {n} rows; expected one for each, or one for all")
    found = Intervals(*np.full((2, len(given), len(classes)), np.nan))
    for row, item in enumerate(given):
        where = None if isinstance(target, Mapping) else row
        if not isinstance(item, Mapping) or not item:
            raise InputError(
                f"target{_of(where)} is {shown(item)}; expected a dict of label to (low, high), such as "
                f"{{{names_of(classes)[0]!r}: (0.7, 0.9)}}",
                row=where,
            )
        columns = class_columns(list(item), classes, where)
        for column, (label, pair) in zip(columns, item.items(), strict=True):
            found.low[row, column], found.high[row, column] = _pair(pair, f"target[{label!r}]{_of(where)}", where)
    each = np.zeros(n, dtype=int) if isinstance(target, Mapping) else np.arange(n)
    return found.take(each)


def _of(row: int | None) -> str:
    return "" if row is None else f" of row {row}"


def _pair(value: Any, what: str, row: int | None) -> tuple[float, float]:
    pair = as_items(value) if not isinstance(value, (set, frozenset)) else None
    if pair is None or len(pair) != 2:  # noqa: PLR2004 a pair
        example = f", such as ({value:g}, 1)" if is_number(value) and 0 <= value < 1 else ""
        raise InputError(f"{what} is {shown(value)}; expected (low, high){example}", row=row)
    if not all(map(is_number, pair)) or not 0 <= min(pair) <= max(pair) <= 1:
        raise InputError(f"{what} is {shown(value)}; expected (low, high), probabilities from 0 to 1", row=row)
    if pair[0] >= pair[1]:
        raise InputError(f"{what} is {shown(value)}; expected (low, high), the lower one first", row=row)
    return float(pair[0]), float(pair[1])
