"""Which of the points that a method found meet the wishes: asked outwards on every path, the nearest first."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.shortfall import least_shortfall


def assess(judge: Judge, points: Candidates) -> Candidates:
    """Measure by how much valid points fall short; keep one of every path: the first that does not, or falls least.

    Of the paths of a line those whose first valid point is cheapest are asked. Points that are not valid are kept, to
    be polished. Without wishes all points are kept as they are.
    """
    if not judge.measures.floors.any or not points.valid.any():
        return points
    others, valid = points.take(~points.valid), points.take(points.valid)
    at = _in_order(valid, judge.task.tuning.assessed)
    valid = valid.take(at)
    shortfall = least_shortfall(judge, valid.table, valid.row, _paths(valid))
    kept = _least(_paths(valid), shortfall)
    kept = kept[np.isfinite(shortfall[kept])]
    found = valid._replace(shortfall=shortfall).take(kept)
    found = found._replace(start=np.full(len(kept), bool(judge.task.config.polish)))
    return Candidates._make([np.concatenate(part) for part in zip(found, others, strict=True)])


def _in_order(points: Candidates, most: int) -> Array:
    """Positions of the points of the `most` cheapest paths of every line: by line, path and cost."""
    order = np.lexsort((points.cost, points.path, points.row))
    path = _paths(points.take(order))
    first = np.searchsorted(path, path)
    line, cost = points.row[order], points.cost[order][first]
    rank = np.lexsort((path, cost, line))  # by line, then by the cost of the path's first point
    new = np.ones(len(rank), dtype=bool)
    new[1:] = path[rank][1:] != path[rank][:-1]
    number = np.cumsum(new)
    number -= number[np.searchsorted(line[rank], line[rank])]
    kept = np.zeros(len(order), dtype=bool)
    kept[rank[number < most]] = True
    return order[kept]


def _paths(points: Candidates) -> Array:
    """(m,) a number for every path of every line, ascending where the points are in order."""
    return points.row * (int(points.path.max(initial=0)) + 2) + points.path + 1


def _least(group: Array, value: Array) -> Array:
    """Positions of the smallest value of every group, of equals the first."""
    order = np.lexsort((np.arange(len(group)), value, group))
    new = np.ones(len(order), dtype=bool)
    new[1:] = group[order][1:] != group[order][:-1]
    return np.asarray(order[new])
