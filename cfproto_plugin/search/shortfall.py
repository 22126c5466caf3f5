"""Which points meet the wishes: copies are asked of as few points as possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.judge import Judge


def first_that_meets(
    judge: Judge, table: Array, row: Array, group: Array, granted: Array | None = None, first_asked: int | None = None
) -> Array:
    """The shortfall (m,) of points (m, A), asked group by group until one of the group has none.

    group: (m,) ascending; the points of a group in the order in which they are asked. Infinite where not asked, or not
    to the end because a part of it is too much.
    granted: (m,) the shortfall that counts as none. first_asked: points of a group that are asked at first, where the
    answer depends on more than the first that meets; else more are asked together where groups are few.
    """
    return _first(judge, table, row, group, np.zeros(len(table)) if granted is None else granted, first_asked).found


def least_shortfall(judge: Judge, table: Array, row: Array, group: Array, below: Array | None = None) -> Array:
    """Likewise; in groups of which no point meets the wishes, also of the points that may miss them least.

    below: (m,) points that miss them by as much are of no interest.
    """
    known = _first(judge, table, row, group, np.zeros(len(table)))
    found, least = known.found, known.least
    first = np.searchsorted(group, group)
    best = np.full(len(table), np.inf) if below is None else below.astype(float)
    np.minimum.at(best, first, found)
    at = np.flatnonzero(np.isinf(found) & (least < best[first]))
    at = at[np.lexsort((least[at], first[at]))]
    place, start, size = np.arange(len(at)) - np.searchsorted(first[at], first[at]), 0, judge.task.tuning.asked_first
    while True:
        now = at[(place >= start) & (place < start + size) & (least[at] < best[first[at]])]
        if not len(now):
            return found
        found[now] = least[now] + judge.measures.unstable(table[now], row[now], known.label[now])
        np.minimum.at(best, first[now], found[now])
        start, size = start + size, 2 * size


class _Known(NamedTuple):
    """What is known of m points."""

    found: Array  # (m,) the shortfall; infinite where it was not asked, or not to the end
    least: Array  # (m,) what is missed of typicality, which needs no prediction; infinite where it was not asked
    label: Array  # (m,) their classes


def _first(
    judge: Judge, table: Array, row: Array, group: Array, granted: Array, first_asked: int | None = None
) -> _Known:
    """Ask as `first_that_meets` does. Copies with noise are asked only of points that are typical enough."""
    known = _Known(np.full(len(table), np.inf), np.full(len(table), np.inf), np.full(len(table), -1))
    if not judge.measures.floors.any:
        known.found[:] = 0
        return known
    first = np.searchsorted(group, group)
    turn, done = np.arange(len(group)) - first, np.zeros(len(group), dtype=bool)
    tuning = judge.task.tuning
    start, size = 0, first_asked or max(tuning.asked_first, tuning.asked_together // max(1, len(np.unique(first))))
    while True:
        at = np.flatnonzero((turn >= start) & (turn < start + size) & ~done[first])
        if not len(at):
            return known
        known.label[at] = judge.labels(table[at], row[at])
        known.least[at] = judge.measures.untypical(table[at], row[at], known.label[at])
        some = at[np.isfinite(known.least[at]) & (known.least[at] <= granted[at])]
        missed = known.least[some] + judge.measures.unstable(table[some], row[some], known.label[some])
        known.found[some] = np.where(missed <= granted[some], 0, missed)
        done[first[some[known.found[some] == 0]]] = True
        start, size = start + size, 2 * size
