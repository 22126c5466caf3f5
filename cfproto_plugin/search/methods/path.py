"""The closed-form path from a row to its prototypes, for objectives without L_pred and L_AE.

beta·|delta|_1 + |delta|^2 + theta·|x0 + delta - proto|^2 is separable. With t = theta / (1 + theta) and d = proto - x0
its minimiser is delta_k = soft(t d_k, (1 - t) beta / 2), clipped to the bounds: from x0 at t = 0 to the prototype at
t = 1. beta·L1 + L2 grows with t, so the first t whose point has a wanted class is the best of its path. A theta that
was asked for is where the path begins: the minimiser of that very objective, and beyond where its class is another.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, Start

_COARSE, _FINE = 16, 16  # points of every path, first from end to end, then where the class changed
_ROUGH = 8  # points where polishing goes on from there
_FEWEST = 4  # points of a path that begins near its end
_PROTOTYPES = 16  # of every row
_CELLS_PER_CHUNK = 500_000  # more do not fit the cache


def path_points(z0: Array, prototypes: Array, t: Array, lower: Array, upper: Array, beta: float) -> Array:
    """Points (n, m, s, D) at t (n, m, s) of the paths from z0 (n, D) to prototypes (n, m, D)."""
    d = (prototypes - z0[:, None])[:, :, None]
    t = t[..., None].astype(z0.dtype)
    z = np.abs(d) * t
    z -= (1 - t) * (beta / 2)
    np.copysign(np.maximum(z, 0, out=z), d, out=z)
    z += z0[:, None, None]
    np.maximum(z, lower[:, None, None], out=z)
    return np.asarray(np.minimum(z, upper[:, None, None], out=z))


def search_path(problem: Problem, everything: Array, prototypes: Array, kinds: Array) -> None:
    """Find the first valid point on the path from every row (n,) to its prototypes (n, m, D) of class (n, m)."""
    prototypes, kinds = prototypes[:, :_PROTOTYPES], kinds[:, :_PROTOTYPES]
    n, m, d = prototypes.shape
    size = max(1, _CELLS_PER_CHUNK // (m * max(_COARSE, _FINE) * d))
    for start in range(0, n, size):
        if problem.out_of_time():
            return
        part = slice(start, start + size)
        with problem.clock(everything[part]):
            _search_chunk(problem, everything[part], prototypes[part], kinds[part])
        problem.report(min(1.0, (start + size) / n))


def _search_chunk(problem: Problem, rows: Array, prototypes: Array, kinds: Array) -> None:
    theta = problem.config.theta or 0.0
    least = theta / (1 + theta)
    points = _ROUGH if problem.config.polish else _COARSE
    ladder = _ladder(least, points)
    coarse = np.empty((*prototypes.shape[:2], len(ladder)))
    coarse[:] = ladder
    first = _try(problem, rows, prototypes, kinds, coarse)
    if problem.config.polish:
        if problem.config.max_changes is not None:  # polishing can find few changes where the largest will not do
            _try(problem, rows, prototypes, kinds, coarse, limited=False)
        return
    step = (ladder[1] - ladder[0]) / _FINE
    fine = np.maximum(ladder[first][..., None] - step * np.arange(_FINE - 1, 0, -1), least)
    open_below = (first >= 0) & (ladder[first] > least)
    at = np.flatnonzero(open_below.any(axis=1))
    if len(at):
        _try(problem, rows[at], prototypes[at], np.where(open_below, kinds, -1)[at], fine[at])


@cache
def _ladder(least: float, points: int) -> Array:
    """So many t up to 1 on the whole path, and their share of one that begins at the least."""
    return np.linspace(max(least, 1 / points), 1, max(_FEWEST, round(points * (1 - least))))


def _try(problem: Problem, rows: Array, prototypes: Array, kinds: Array, t: Array, *, limited: bool = True) -> Array:
    """Predict the points at t (n, m, s) and keep the best of every row; return where each path first is valid, or -1.

    What is not nearer than the best so far is not predicted. The first points are where polishing may start.
    """
    origin = problem.rows.take(rows)
    z = path_points(origin.z, prototypes, t, origin.z_lower, origin.z_upper, problem.config.beta)
    row = np.repeat(rows, z.shape[1] * z.shape[2])
    x, cost = problem.decode(z.reshape(len(rows), -1, z.shape[-1]), rows, limited=limited)
    x, cost = x.reshape(len(row), -1), cost.ravel()
    worth = np.repeat(kinds.ravel() >= 0, t.shape[2]) & (cost > 0)
    worth &= (cost < problem.best.cost[row]) | (not limited)
    lead = np.full(len(row), -np.inf)
    lead[worth] = problem.free_lead(x[worth], row[worth])
    at = np.flatnonzero((lead > 0) & problem.permitted(x, row))
    taken = at[problem.keep(row[at], x[at], cost[at])]
    for position in taken:
        i, j, s = np.unravel_index(position, t.shape)
        share = float(t[i, j, s])
        theta = f"theta={share / (1 - share):.3g}" if share < 1 else "the prototype itself"
        problem.best.kind[rows[i]] = kinds[i, j]
        problem.best.note[rows[i]] = f"reached on the path to a prototype at {theta}"
    points, leads = x.reshape(*t.shape, -1), lead.reshape(t.shape)
    first = np.where((leads > 0).any(axis=2), (leads > 0).argmax(axis=2), -1)
    if problem.config.polish:
        i, j = np.nonzero(first >= 0)
        s = first[i, j]
        costs = cost.reshape(t.shape)[i, j, s]
        problem.starts.append(Start(rows[i], points[i, j, s], points[i, j, -1], kinds[i, j], costs, leads[i, j, s]))
    return first
