"""Valid counterfactuals on their way back to their rows. Shared by polishing and sliding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, Start

_STARTS = 4  # points of every row that are improved
_ABOVE_ZERO = float(np.finfo(np.float32).tiny)
_WIDE = 2.0  # times the cost of the nearest: what is farther is not a start


@dataclass
class Points:
    """Points being polished."""

    row: Array  # the row each belongs to
    kind: Array  # class of the prototype it was led to
    x: Array
    far: Array  # how far out every column may go again
    cost: Array  # infinite where the point is no counterfactual yet
    lead: Array
    floor: Array  # the cost it may not go below
    reach: Array  # the best lead so far of a point that keeps the rules but has not changed class


def starting_points(problem: Problem, amount: float) -> Points:
    """The nearest starts of every row; the best found so far of rows that have none."""
    row, x, far, kind, cost, lead = _starts(problem)
    order = np.lexsort((cost, row))
    row, cost = row[order], cost[order]
    first = np.searchsorted(row, row)
    near = np.arange(len(row)) - first < _STARTS
    if problem.config.max_changes is None:
        near &= cost <= _WIDE * cost[first]
    kept, row, cost = order[near], row[near], cost[near]
    x, lead = x[kept], lead[kept]
    unknown = np.isnan(lead)
    if unknown.any():
        lead[unknown] = problem.free_lead(x[unknown], row[unknown])
    valid = (lead > 0) & problem.permitted(x, row)
    reach = np.full(len(row), -np.inf)
    reached = np.where(valid, cost, np.inf)
    return Points(row, kind[kept], x, far[kept], reached, lead, floor_of(amount, cost), reach)


def floor_of(amount: float, cost: Array) -> Array:
    """The cost that polishing by this amount may not go below, above zero: the row itself is no counterfactual."""
    return np.maximum((1 - amount) * cost, _ABOVE_ZERO)


def _starts(problem: Problem) -> Start:
    """All starts, and the best of rows that have none and were not polished before."""
    best = problem.best
    found = np.isfinite(best.cost) & ~problem.polished
    for start in problem.starts:
        found[start.row] = False
    row, starts = np.flatnonzero(found), problem.starts
    if len(row) or not starts:
        starts = [
            *starts,
            Start(row, best.x[row], best.x[row], best.kind[row], best.cost[row], np.full(len(row), np.nan)),
        ]
    return starts[0] if len(starts) == 1 else Start(*(np.concatenate(part) for part in zip(*starts, strict=True)))


def worthwhile(problem: Problem, points: Points, x: Array, owner: Array, cost: Array, least: float) -> Array:
    """Which points gain more than the least over their owner, do not fall below its floor, and have a wanted class."""
    worth = (cost < (1 - least) * points.cost[owner]) & (cost >= points.floor[owner])
    at = np.flatnonzero(worth)
    at = at[~problem.space.broken(x[at], problem.rows.take(points.row[owner[at]]))]
    worth[:] = False
    worth[at] = problem.judge(x[at], points.row[owner[at]])
    return worth
