"""Valid counterfactuals on their way back to their rows. Shared by polishing and sliding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, elastic_net

_STARTS = 8  # points of every row that are improved


@dataclass
class Points:
    """Points being polished: the row each belongs to, its values, its cost, and the cost it may not go below."""

    row: Array
    kind: Array  # class of the prototype it was led to
    x: Array
    cost: Array
    floor: Array


def starting_points(problem: Problem, amount: float) -> Points:
    """The nearest starts of every row, the best found so far first."""
    best = problem.best
    found = np.flatnonzero(np.isfinite(best.cost))
    parts = [(found, best.x[found], best.cost[found], best.kind[found]), *problem.starts]
    row, x, cost, kind = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((cost, row))
    rank = np.arange(len(row)) - np.searchsorted(row[order], row[order])
    kept = order[rank < _STARTS]
    return Points(row[kept], kind[kept], x[kept], cost[kept], (1 - amount) * cost[kept])


def worthwhile(problem: Problem, points: Points, x: Array, owner: Array, cost: Array, least: Array | float) -> Array:
    """Which points gain more than the least over their owner, do not fall below its floor, and have a wanted class."""
    worth = (cost < (1 - least) * points.cost[owner]) & (cost >= points.floor[owner]) & (cost > 0)
    at = np.flatnonzero(worth)
    at = at[~problem.space.broken(x[at], problem.rows.take(points.row[owner[at]]))]
    worth[:] = False
    worth[at] = problem.judge(x[at], points.row[owner[at]])
    return worth


def cost_of(problem: Problem, x: Array, row: Array) -> Array:
    """beta·L1 + L2 of table rows."""
    return elastic_net(problem.space.to_search(x) - problem.rows.z[row], problem.config.beta)
