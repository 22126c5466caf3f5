"""Sliding a counterfactual along the decision boundary of a model with gradients, towards what is minimised.

At a valid point the margin of the new class is linear to first order. The best point that keeps it has a closed form
for every number of changed columns at once: these are the columns with the largest gradients. A round tries all of
them, and points on the way there.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.refine.linear import nearest_step
from cfproto_plugin.search.refine.points import Points
from cfproto_plugin.search.shortfall import least_shortfall

_FRACTIONS = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.12, 0.05])  # of the way to that point, tried together
_BEYOND = np.array([1.0, 1.1, 1.3, 1.7])  # times the way from the row to a point with few changes: it bends away
_ROUNDS = 40
_LEAST_GAIN = 1e-3
_SPARE = 1e-5  # margin above the noise that the linear problem asks for
_EVERY = 8  # numbers of changed columns up to which all are tried; beyond, each a third larger
_MOST_STABLE = 0.99  # share of copies that a normal distribution is asked for


def slide(judge: Judge, clock: Clock, points: Points) -> None:
    """Move the points along the boundary until none gains: one pullback and one predict call a round."""
    active = np.arange(len(points.row))
    for _ in range(_ROUNDS):
        if not len(active) or clock.is_over():
            return
        with clock.shared(np.unique(points.row[active])):
            active = _round(judge, points, active)


def _round(judge: Judge, points: Points, active: Array) -> Array:
    """Return the points (p,) that moved."""
    row = points.row[active]
    rows = judge.task.rows.take(row)
    z = judge.space.to_search(points.table[active])
    tried = rows.z[:, None] + _tried(judge, points, active, z - rows.z)
    owner = np.repeat(active, tried.shape[1])
    z_lower, z_upper = (bound[:, None] for bound in (rows.z_lower, rows.z_upper))
    tried = np.minimum(np.maximum(tried, z_lower), z_upper).reshape(len(owner), -1)
    table, _ = judge.decode(tried.astype(z.dtype), points.row[owner])
    return _taken(judge, points, owner, table)


def _tried(judge: Judge, points: Points, active: Array, delta: Array) -> Array:
    """Steps (p, m, D) from the rows that are tried; delta (p, D) is where the points are."""
    row = points.row[active]
    rows = judge.task.rows.take(row)
    missing, gradient = _missing(judge, row, rows.z + delta)
    least = missing + (gradient * delta).sum(axis=1)
    masks = _masks(judge, gradient, delta)
    count, each = masks.shape[1], np.repeat(np.arange(len(row)), masks.shape[1])
    mask = masks.reshape(len(each), -1)
    low, high = (np.where(mask, (bound - rows.z)[each], 0) for bound in (rows.z_lower, rows.z_upper))
    goal = (judge.space.to_search(points.goal[active]) - rows.z)[each] if judge.theta else None
    free = np.where(mask, gradient[each], 0)
    best = nearest_step(free, least[each], low, high, judge.task.beta, judge.theta, goal).reshape(len(row), count, -1)
    way = delta[:, None, None] + _FRACTIONS[:, None] * (best[:, :2] - delta[:, None])[:, :, None]
    beyond = best[:, 2:, None] * _BEYOND[:, None]
    return np.concatenate([part.reshape(len(row), -1, delta.shape[1]) for part in (way, beyond)], axis=1)


def _masks(judge: Judge, gradient: Array, delta: Array) -> Array:
    """Columns (p, m, D) that may change: all, those that have, and those with the largest gradients, ever more."""
    config, columns = judge.task.config, gradient.shape[1]
    most = min(config.max_changes or columns, columns)
    masks = [np.ones_like(gradient, dtype=bool), delta != 0]
    if config.few_changes or config.max_changes is not None:
        place = np.argsort(np.argsort(-np.abs(gradient), axis=1, kind="stable"), axis=1)
        masks += [place < count for count in _numbers(most)]
    return np.stack(masks, axis=1)


@cache
def _numbers(most: int) -> tuple[int, ...]:
    """Numbers of changed columns that are tried."""
    found = list(range(1, min(most, _EVERY) + 1))
    while found[-1] < most:
        found.append(min(most, -(-found[-1] * 4 // 3)))
    return tuple(found)


def _spread(judge: Judge, gradient: Array) -> Array:
    """The margin (p,) that copies with noise need, to first order, for the share that is asked for."""
    floors, space = judge.measures.floors, judge.space
    share = min(floors.least_stability.least, _MOST_STABLE)
    if floors.copies is None or share <= 0.5:  # noqa: PLR2004 half of the copies of a point on the boundary
        return np.zeros(len(gradient))
    deviation = floors.copies.noise * space.deviation / space.factor
    return np.asarray(NormalDist().inv_cdf(share) * np.linalg.norm(gradient * deviation, axis=1))


def _taken(judge: Judge, points: Points, owner: Array, table: Array) -> Array:
    """Move points to the best of the candidates (m, A) that are theirs (m,), where one is better; return these."""
    row = points.row[owner]
    cost = judge.cost(table, row, points.goal[owner])
    at = np.flatnonzero(cost < (1 - _LEAST_GAIN) * points.limit(owner))
    at = at[~judge.space.broken(table[at], judge.task.rows.take(row[at]))]
    at = at[judge.is_valid(table[at], row[at])]
    at = at[np.lexsort((cost[at], owner[at]))]
    shortfall = least_shortfall(judge, table[at], row[at], owner[at])
    order = np.lexsort((cost[at], shortfall, owner[at]))
    first = order[np.unique(owner[at][order], return_index=True)[1]]
    return _moved(points, owner, table, cost, at[first], shortfall[first])


def _moved(points: Points, owner: Array, table: Array, cost: Array, at: Array, shortfall: Array) -> Array:
    """Move points to these candidates (q,) where they come nearer to the wishes or cost less."""
    there = owner[at]
    good = (shortfall < points.shortfall[there]) | (
        (shortfall == points.shortfall[there]) & (cost[at] < points.cost[there])
    )
    at, there = at[good], there[good]
    points.table[there], points.cost[there], points.shortfall[there] = table[at], cost[at], shortfall[good]
    return np.asarray(there)


def _missing(judge: Judge, row: Array, z: Array) -> tuple[Array, Array]:
    """What the best allowed class lacks at points z (p, D), to first order, and the gradient of that which it lacks.

    That is its lead over the best other class, or its own probability: what is farther away.
    """
    proba, pullback = judge.model.at(judge.task.rows.take(row))(z)
    margin, slope = judge.slope(proba, row)
    gradient, spare = pullback(slope), _SPARE + judge.model.noise.lead
    missing = spare + _spread(judge, gradient) - margin
    sure = judge.sure
    if sure is None or judge.task.intervals is not None:
        return missing, gradient
    at = np.arange(len(row)), np.where(judge.task.allowed[row], proba, -np.inf).argmax(axis=1)
    alone = np.zeros_like(proba)
    alone[at] = 1
    second, lacks = pullback(alone), spare + sure[at[1]] - proba[at]
    farther = lacks * np.linalg.norm(gradient, axis=1) > missing * np.linalg.norm(second, axis=1)
    return np.where(farther, lacks, missing), np.where(farther[:, None], second, gradient)
