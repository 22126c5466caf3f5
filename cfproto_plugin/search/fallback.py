"""Where a search found nothing: the nearest training rows of the wanted classes, moved inside the bounds."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, elastic_net

_CANDIDATES = 32


def fall_back(problem: Problem, train: Array, labels: Array) -> Array:
    """Try the nearest training rows (N, D), in the user's numbers, for rows still open; return the rows helped."""
    rows = problem.open()
    if not len(rows):
        return rows
    with problem.clock(rows):
        found = [_nearest(problem, row, train, labels) for row in rows]
        row, x = (np.concatenate(part) for part in zip(*found, strict=True))
        z = problem.space.to_search(x)
        cost = elastic_net(z - problem.rows.z[row], problem.config.beta)
        worth = cost > 0
        row, x, cost = row[worth], x[worth], cost[worth]
        valid = problem.judge(x, row)
        problem.keep(row[valid], x[valid], cost[valid])
    helped = rows[np.isfinite(problem.best.cost[rows])]
    for i in helped:
        problem.best.note[i] = "taken from the nearest training row of another class, kept inside the bounds"
    return helped


def _nearest(problem: Problem, row: Array, train: Array, labels: Array) -> tuple[Array, Array]:
    """The training rows of wanted classes that are nearest once they are inside the bounds of the row."""
    wanted = train[problem.allowed[row][labels]].astype(problem.rows.x.dtype, copy=False)
    one = problem.rows.take(np.array([row]))
    inside = np.fmin(np.fmax(np.where(np.isnan(wanted), one.x, wanted), one.lower), one.upper)
    inside = problem.space.decode(problem.space.to_search(inside), one) if problem.space.has_integers else inside
    cost = elastic_net(problem.space.to_search(inside) - one.z, problem.config.beta)
    nearest = np.argsort(cost, kind="stable")[:_CANDIDATES]
    return np.full(len(nearest), row), inside[nearest]
