"""Valid counterfactuals on their way back to their rows. Shared by polishing and sliding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, Start

_STARTS = 4  # points of every row that are improved
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
    row, x, far, kind, lead = (np.concatenate(part) for part in zip(_best(problem), *problem.starts, strict=True))
    cost = problem.cost(x, row)
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
    return Points(row, kind[kept], x, far[kept], np.where(valid, cost, np.inf), lead, (1 - amount) * cost, reach)


def _best(problem: Problem) -> Start:
    """The best of rows that have no start and were not polished before."""
    found = np.isfinite(problem.best.cost) & ~problem.polished
    for start in problem.starts:
        found[start.row] = False
    row = np.flatnonzero(found)
    x = problem.best.x[row]
    return Start(row, x, x, problem.best.kind[row], np.full(len(row), np.nan))


def worthwhile(problem: Problem, points: Points, x: Array, owner: Array, cost: Array, least: float) -> Array:
    """Which points gain more than the least over their owner, do not fall below its floor, and have a wanted class."""
    worth = (cost < (1 - least) * points.cost[owner]) & (cost >= points.floor[owner]) & (cost > 0)
    at = np.flatnonzero(worth)
    at = at[~problem.space.broken(x[at], problem.rows.take(points.row[owner[at]]))]
    worth[:] = False
    worth[at] = problem.judge(x[at], points.row[owner[at]])
    return worth
