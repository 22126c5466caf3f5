"""Sliding a counterfactual along the decision boundary of a model with gradients, towards its row.

At a valid point the margin of the new class is linear to first order, with gradient g. The nearest point that keeps
it solves min beta·|delta|_1 + |delta|^2 subject to g·delta >= b: it is delta(s) = soft(s·g, beta) / 2, clipped to the
bounds, for the smallest s that satisfies the constraint. A step goes part of the way, as far as the class allows.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.objective.fista import soft_threshold
from cfproto_plugin.search.refine.points import Points, worthwhile

_FRACTIONS = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.12, 0.05])  # of the way to that point, tried together
_ROUNDS = 40
_LEAST_GAIN = 1e-3
_BISECTIONS = 40
_SPARE = 1e-5  # margin above the noise that the linear problem asks for


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
    rows, beta = judge.task.rows.take(points.row[active]), judge.task.config.beta
    z = judge.space.to_search(points.table[active])
    margin, gradient = _margin(judge, points.row[active], z)
    delta = z - rows.z
    least = _SPARE + judge.model.noise.lead - margin + (gradient * delta).sum(axis=1)
    goal = nearest_step(gradient, least, rows.z_lower - rows.z, rows.z_upper - rows.z, beta)
    tried = rows.z[:, None] + delta[:, None] + _FRACTIONS[:, None] * (goal - delta)[:, None]
    owner = np.repeat(active, len(_FRACTIONS))
    table, _ = judge.decode(tried.reshape(len(owner), -1).astype(z.dtype), points.row[owner])
    cost = judge.cost(table, points.row[owner])
    cost = np.where(worthwhile(judge, points, table, owner, cost, _LEAST_GAIN), cost, np.inf).reshape(len(active), -1)
    best = cost.argmin(axis=1)
    moved = np.flatnonzero(np.isfinite(cost.min(axis=1)))
    points.table[active[moved]] = table.reshape(len(active), len(_FRACTIONS), -1)[moved, best[moved]]
    points.cost[active[moved]] = cost[moved, best[moved]]
    return active[moved]


def _margin(judge: Judge, row: Array, z: Array) -> tuple[Array, Array]:
    """By how much the best allowed class leads the best other one at points z (p, D), and the gradient of that."""
    proba, pullback = judge.model.at(judge.task.rows.take(row))(z)
    margin, slope = judge.slope(proba, row)
    return margin, pullback(slope)


def nearest_step(gradient: Array, least: Array, lower: Array, upper: Array, beta: float) -> Array:
    """argmin of beta·|delta|_1 + |delta|^2 with gradient·delta >= least and delta in the bounds, row by row: (n, D).

    gradient, lower, upper: (n, D). least: (n,). Where no delta satisfies it, the one that comes nearest to it.
    """

    def delta(s: Array) -> Array:
        point = soft_threshold(s[:, None] * gradient, np.zeros_like(gradient), beta) / 2
        return np.asarray(np.minimum(np.maximum(point, lower), upper))

    low, high = np.zeros(len(gradient)), np.ones(len(gradient))
    for _ in range(_BISECTIONS):
        short = (gradient * delta(high)).sum(axis=1) < least
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = (gradient * delta(middle)).sum(axis=1) >= least
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return delta(high)
