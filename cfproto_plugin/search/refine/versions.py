"""Points with some of their changes taken back: each change alone, and growing sets of the cheapest ones.

Arrays only; nothing is predicted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import firsts
from cfproto_plugin.tables.geometry import changed

UNKNOWN = float(np.finfo(np.float64).max)  # price of a change that could not be taken back alone, or was not tried
_GROWTH = 1.4  # of the sets: more means fewer predicted rows in a look, and more looks
_ROUNDING = 1e-12  # relative difference of two costs that are the same
_LEAST_SAVED = 1e-30  # by a change that costs nothing after rounding


@dataclass(frozen=True)
class Versions:
    """N versions of q points: the points themselves, each without one change, and each without sets of changes.

    Version i lacks the changes number first[i] to end[i] - 1 of its point, numbered as in `column`.
    """

    here: Array  # (q, A) the points
    original: Array  # (q, A) their rows
    column: Array  # (q, A) of change number 0, 1, ...: the lowest price first
    number: Array  # (q, A) of the change of every column
    point: Array  # (N,)
    first: Array  # (N,)
    end: Array  # (N,)

    @classmethod
    def of(cls, here: Array, original: Array, polished: Array, price: Array) -> Versions:
        """Of points of which some (q,) are polished; price (q, A) of their changes, UNKNOWN for those not in the sets.

        The last change of a point is not taken back: that would be the row itself.
        """
        price = np.where(changed(here, original) & polished[:, None], price, np.inf)
        column = price.argsort(axis=1, kind="stable")
        changes = np.isfinite(price).sum(axis=1)
        one, first = ((np.arange(here.shape[1]) < changes[:, None]) & (changes > 1)[:, None]).nonzero()
        some, size = growing_sets(np.minimum((price < UNKNOWN).sum(axis=1), changes - 1))
        each = np.arange(len(here))
        return cls(
            here,
            original,
            column,
            column.argsort(axis=1),
            np.concatenate([each, one, some]),
            np.concatenate([0 * each, first, 0 * some]),
            np.concatenate([0 * each, first + 1, size]),
        )

    def tables(self, at: Array) -> Array:
        """Some of the versions: (m, A)."""
        point = self.point[at]
        number = self.number.take(point, axis=0)
        back = (number >= self.first[at, None]) & (number < self.end[at, None])
        return np.where(back, self.original.take(point, axis=0), self.here.take(point, axis=0))

    def best(self, cost: Array) -> Array:
        """The cheapest version (m,) of every point that has one beside itself; of equals the one with fewest changes.

        cost: (N,) of the versions, infinite where one is not valid.
        """
        q, point = len(self.here), self.point
        if not np.isfinite(cost[q:]).any():
            return point[:0]
        least = np.full(q, np.inf)
        np.minimum.at(least, point[q:], cost[q:])
        at = q + (np.isfinite(cost[q:]) & (cost[q:] <= least[point[q:]] * (1 + _ROUNDING))).nonzero()[0]
        at = at[np.lexsort((self.first[at] - self.end[at], point[at]))]
        return np.asarray(at[firsts(point[at])])

    def prices(self, margin: Array, cost: Array) -> Array:
        """What taking each change back costs in margin, by what it saves: (q, A).

        margin, cost: (N,) of the versions; the cost is infinite where one is not valid, and the change UNKNOWN.
        """
        found = np.full(self.here.shape, UNKNOWN)
        at = ((self.end - self.first == 1) & np.isfinite(cost)).nonzero()[0]
        point = self.point[at]
        price = (margin[point] - margin[at]) / np.maximum(cost[point] - cost[at], _LEAST_SAVED)
        found[point, self.column[point, self.first[at]]] = price
        return found


def growing_sets(most: Array) -> tuple[Array, Array]:
    """Sizes 2, 3, 4, 6, 8, ... up to the most (q,) that a point may have, and that itself: points and sizes, (m,)."""
    largest, sizes = int(most.max(initial=0)), [1]
    if largest < 2:  # noqa: PLR2004 the smallest set
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    while sizes[-1] < largest:
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * _GROWTH)))
    capped = np.minimum(sizes, most[:, None])
    point, at = ((capped[:, 1:] > capped[:, :-1]) & (capped[:, 1:] > 1)).nonzero()
    return point, capped[point, at + 1]
