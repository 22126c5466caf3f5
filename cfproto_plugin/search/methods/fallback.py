"""Where a search found nothing: the way to the nearest training rows that satisfy the rules, or can be made to."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.methods.beam import search_sparse
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.problem import Problem, elastic_net

_PROTOTYPES = 16
_FIRST_TRY, _GROWTH = 256, 4  # training rows of one row that are predicted together, nearest first


def fall_back(problem: Problem, train: Array, labels: Array) -> Array:
    """Search the paths to training rows (N, A) of wanted classes, moved inside the rules; return the rows helped.

    The prototypes of the search are nearest before the rules are applied, these are nearest after. First the nearest
    few of all rows at once; then, row by row, as many as it takes to find one that keeps its class inside the rules;
    then, where the number of changes is limited, changes one by one.
    """
    missed = problem.open()
    if not len(missed):
        return missed
    for choose in (_nearest, _nearest_valid):
        rows = problem.open()
        if not len(rows) or problem.out_of_time():
            break
        with problem.clock(rows):
            found = [choose(problem, row, *_inside(problem, row, train, labels)) for row in rows]
            z, kinds = (np.stack(part) for part in zip(*found, strict=True))
        search_path(problem, rows, z, kinds)
    for i in missed[np.isfinite(problem.best.cost[missed])]:
        problem.best.note[i] = "reached on the way to a training row of that class, moved inside the rules"
    if problem.config.max_changes is not None:
        search_sparse(problem, train)
    return np.asarray(missed[np.isfinite(problem.best.cost[missed])])


def _inside(problem: Problem, row: int, train: Array, labels: Array) -> tuple[Array, Array]:
    """Training rows of the wanted classes as search points inside the bounds of the row, nearest first; their classes.

    Copies of a row take turns.
    """
    wanted = np.flatnonzero(problem.allowed[row][labels])
    one = problem.rows.take(np.array([row]))
    z = problem.space.to_search(train[wanted].astype(one.x.dtype, copy=False))
    z = np.minimum(np.maximum(z, one.z_lower), one.z_upper)
    order = np.argsort(elastic_net(z - one.z, problem.config.beta), kind="stable")
    order = order[row % problem.copies :: problem.copies]
    return z[order], labels[wanted[order]]


def _nearest(problem: Problem, row: int, z: Array, kinds: Array) -> tuple[Array, Array]:
    """The nearest points (16, A) and their classes; class -1 where there are fewer."""
    points, found = np.repeat(problem.rows.z[[row]], _PROTOTYPES, axis=0), np.full(_PROTOTYPES, -1)
    count = min(_PROTOTYPES, len(z))
    points[:count], found[:count] = z[:count], kinds[:count]
    return points, found


def _nearest_valid(problem: Problem, row: int, z: Array, kinds: Array) -> tuple[Array, Array]:
    """The nearest points that are counterfactuals themselves, sought in growing batches."""
    start, size = 0, _FIRST_TRY
    while start < len(z) and not problem.out_of_time():
        part = slice(start, start + size)
        rows = np.full(len(z[part]), row)
        x, cost = problem.decode(z[part], rows)
        valid = np.flatnonzero((cost > 0) & problem.judge(x, rows))
        if len(valid):
            return _nearest(problem, row, z[part][valid], kinds[part][valid])
        start, size = start + size, size * _GROWTH
    return _nearest(problem, row, z[:0], kinds[:0])
