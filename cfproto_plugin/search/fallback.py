"""Where a search found nothing: the way to the nearest training rows that satisfy the rules, or can be made to."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.path import search_path
from cfproto_plugin.search.problem import Problem, elastic_net

_ROUNDS = (16, 64)  # prototypes of a row, nearest first, in growing rounds
_AT_ONCE = 16


def fall_back(problem: Problem, train: Array, labels: Array) -> Array:
    """Search the paths to training rows (N, A) of wanted classes, moved inside the bounds; return the rows helped.

    The prototypes of the search are nearest before the rules are applied, these are nearest after.
    """
    missed = problem.open()
    done = 0
    for most in _ROUNDS:
        rows = problem.open()
        if not len(rows) or problem.out_of_time():
            break
        with problem.clock(rows):
            found = [nearest_inside(problem, row, train, labels, most) for row in rows]
            z, kinds = (np.stack(part) for part in zip(*found, strict=True))
        for start in range(done, most, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            search_path(problem, rows, z[:, part], kinds[:, part])
        done = most
    helped = missed[np.isfinite(problem.best.cost[missed])]
    for i in helped:
        problem.best.note[i] = "reached on the way to a training row of that class, moved inside the rules"
    return helped


def nearest_inside(problem: Problem, row: int, train: Array, labels: Array, most: int) -> tuple[Array, Array]:
    """Search points (most, A) and classes of the training rows that are nearest once they are inside the bounds."""
    wanted = np.flatnonzero(problem.allowed[row][labels])
    one = problem.rows.take(np.array([row]))
    z = problem.space.to_search(train[wanted].astype(one.x.dtype, copy=False))
    z = np.minimum(np.maximum(z, one.z_lower), one.z_upper)
    order = np.argsort(elastic_net(z - one.z, problem.config.beta), kind="stable")
    nearest = order[row % problem.copies :: problem.copies][:most]
    points, kinds = np.repeat(one.z, most, axis=0), np.full(most, -1)
    points[: len(nearest)] = z[nearest]
    kinds[: len(nearest)] = labels[wanted[nearest]]
    return points, kinds
