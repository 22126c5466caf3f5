"""Which points meet the wishes: copies are asked of as few points as possible."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.judge import Judge


def first_that_meets(
    judge: Judge, table: Array, row: Array, group: Array, granted: Array | None = None, first_asked: int | None = None
) -> Array:
    """The shortfall (m,) of points (m, A), asked group by group until one of the group has none.

    group: (m,) ascending; the points of a group in the order in which they are asked. Infinite where not asked.
    granted: (m,) the shortfall that counts as none. first_asked: points of a group that are asked at first, where the
    answer depends on more than the first that meets; else more are asked together where groups are few.
    """
    found = np.full(len(table), np.inf)
    first = np.searchsorted(group, group)
    turn, done = np.arange(len(group)) - first, np.zeros(len(group), dtype=bool)
    tuning = judge.task.tuning
    start, size = 0, first_asked or max(tuning.asked_first, tuning.asked_together // max(1, len(np.unique(first))))
    while True:
        at = np.flatnonzero((turn >= start) & (turn < start + size) & ~done[first])
        if not len(at):
            return found
        found[at] = judge.shortfall(table[at], row[at])
        if granted is not None:
            found[at] = np.where(found[at] <= granted[at], 0, found[at])
        done[first[at[found[at] == 0]]] = True
        start, size = start + size, 2 * size
