"""The last look at what will be returned: predicted once more, and without changes that its class does not need."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, lead_of
from cfproto_plugin.tables.rules import changes

_CELLS_PER_CHUNK = 8_000_000


def confirm(problem: Problem) -> Array:
    """Predict the best of every row once more and check every rule on it; forget what does not hold.

    In the same call every single change of a polished one is taken back; where one can be, the row is looked at again.
    Returns the probabilities (n, k) of what holds, NaN where nothing does.
    """
    best = problem.best
    proba = np.full(problem.allowed.shape, np.nan)
    found = np.flatnonzero(np.isfinite(best.cost))
    polished = bool(np.isfinite(best.floor).any())
    size = max(1, _CELLS_PER_CHUNK // best.x.shape[1] ** 2 if polished else len(found))
    for start in range(0, len(found), size):
        rows = _look(problem, found[start : start + size], proba)
        calls = problem.model.calls
        while len(rows):
            rows = _look(problem, rows, proba)
        problem.polish_calls += problem.model.calls - calls
    gone = np.isnan(proba[:, 0])
    best.x[gone], best.kind[gone] = np.nan, -1
    return proba


def _look(problem: Problem, rows: Array, proba: Array) -> Array:
    """Fill in the probabilities of these rows; return those that have a better one now."""
    n, best = len(rows), problem.best
    x, row, cost = best.x[rows], rows, best.cost[rows]
    if not problem.out_of_time():
        back, owner, price = _taken_back(problem, rows)
        x, row, cost = np.concatenate([x, back]), np.concatenate([row, owner]), np.concatenate([cost, price])
    again = problem.model.proba(x)
    good = lead_of(again, problem.allowed[row], problem.config.kappa, problem.config.min_proba) > 0
    good &= ~problem.space.broken(x, problem.rows.take(row)) & problem.permitted(x, row)
    proba[rows] = np.where(good[:n, None], again[:n], np.nan)
    at = np.flatnonzero(good[n:]) + n
    return np.asarray(row[at[problem.keep(row[at], x[at], cost[at])]]) if len(at) else at


def _taken_back(problem: Problem, rows: Array) -> tuple[Array, Array, Array]:
    """The best of the polished rows with one change less each: points, their rows, and what they cost."""
    best, own = problem.best, problem.rows.x[rows]
    point, column = np.nonzero(changes(best.x[rows], own) & np.isfinite(best.floor[rows])[:, None])
    row = rows[point]
    x = best.x[row]
    x[np.arange(len(x)), column] = own[point, column]
    cost = problem.cost(x, row)
    worth = cost >= best.floor[row]
    return x[worth], row[worth], cost[worth]
