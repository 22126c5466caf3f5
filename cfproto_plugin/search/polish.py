"""Moving a counterfactual back towards its row, coordinate by coordinate, as long as its class allows.

Model-agnostic and batched: in every round all coordinates of all points are tried at several places between the row's
value and the present one, then the best of them together. Two predict calls a round, shared by all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.boundary import slide
from cfproto_plugin.search.points import Points, cost_of, starting_points, worthwhile
from cfproto_plugin.search.problem import Problem

_PLACES = 8  # tried for every coordinate, the row's own value among them
_LEAST_GAIN = 1e-3  # of the cost, below which a move is not worth a round
_ROUNDS = 40
_CELLS_PER_CHUNK = 4_000_000


def polish(problem: Problem, amount: float, splits: Splits | None) -> None:
    """Polish the starts of every row and keep the best. splits: where a tree model splits the columns of the table.

    amount 1 goes on until nothing improves, amount p stops at (1 - p) of the cost it started with: the less, the closer
    the point stays to the class it was led to.
    """
    calls = problem.model.calls
    points = starting_points(problem, amount)
    if problem.model.has_gradient and not problem.space.rounds:
        slide(problem, points)
    active = np.arange(len(points.row))
    for _ in range(_ROUNDS):
        if not len(active) or problem.out_of_time():
            break
        with problem.clock(np.unique(points.row[active])):
            active = _round(problem, points, active, splits)
        problem.report(1 - len(active) / len(points.row))
    problem.polish_calls = problem.model.calls - calls
    before = problem.best.cost.copy()
    taken = problem.keep(points.row, points.x, points.cost)
    for point in taken:
        i = points.row[point]
        problem.best.kind[i] = points.kind[point]
        led = problem.best.note[i].partition(" at ")[0]
        problem.best.note[i] = f"{led}, polished from {before[i]:.3g} to {problem.best.cost[i]:.3g}"


def _round(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Array:
    """Try to improve the active points; return those that improved."""
    size = max(1, _CELLS_PER_CHUNK // (points.x.shape[1] ** 2 * _PLACES))
    improved = [_improve(problem, points, active[i : i + size], splits) for i in range(0, len(active), size)]
    return np.concatenate(improved)


def _improve(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Array:
    own = problem.rows.x[points.row[active]]
    here = points.x[active]
    differs = (here != own) & ~(np.isnan(here) & np.isnan(own))
    point, column = np.nonzero(differs)
    if not len(point):
        return active[:0]
    values = _places(problem, here[point, column], own[point, column], points.row[active[point]], column, splits)
    single = np.repeat(here[point], _PLACES, axis=0)
    single[np.arange(len(single)), np.repeat(column, _PLACES)] = values.ravel()
    owner = active[np.repeat(point, _PLACES)]
    least = np.tile(np.where(np.arange(_PLACES) == 0, 0.0, _LEAST_GAIN), len(point))  # a full return always pays
    cost = cost_of(problem, single, points.row[owner])
    cost = np.where(worthwhile(problem, points, single, owner, cost, least), cost, np.inf).reshape(-1, _PLACES)
    best = cost.argmin(axis=1)
    gain = points.cost[active[point]] - cost.min(axis=1)
    good = np.flatnonzero(np.isfinite(gain))
    if not len(good):
        return active[:0]
    moves = point[good], column[good], values[good, best[good]], gain[good]
    return _together(problem, points, active, moves)


def _together(problem: Problem, points: Points, active: Array, moves: tuple[Array, Array, Array, Array]) -> Array:
    """Make the best moves of every point at once: the best one, the best two, ...; keep the best that is valid."""
    point, column, value, gain = moves
    order = np.lexsort((-gain, point))
    point, column, value = point[order], column[order], value[order]
    rank = np.arange(len(point)) - np.searchsorted(point, point)
    combined = points.x[active[point]].copy()
    for i in range(len(point)):  # the moves of a point up to the i-th
        first = i - rank[i]
        combined[i, column[first : i + 1]] = value[first : i + 1]
    owner = active[point]
    cost = cost_of(problem, combined, points.row[owner])
    valid = rank == 0
    later = np.flatnonzero(~valid)
    valid[later] = worthwhile(problem, points, combined[later], owner[later], cost[later], 0.0)
    cost = np.where(valid, cost, np.inf)
    order = np.lexsort((cost, point))
    winner = order[np.unique(point[order], return_index=True)[1]]
    points.x[owner[winner]] = combined[winner]
    points.cost[owner[winner]] = cost[winner]
    return owner[winner]


def _places(problem: Problem, here: Array, own: Array, row: Array, column: Array, splits: Splits | None) -> Array:
    """Values (m, places) from the row's own towards the present one. Those of a category are its own and no other."""
    share = np.arange(_PLACES) / _PLACES
    values = own[:, None] + share * (here - own)[:, None]
    values[:, 0] = own
    lower, upper = problem.rows.lower[row, column], problem.rows.upper[row, column]
    step = problem.space.rules.step[column]
    if splits is not None:
        free = (step == 0) & ~np.isnan(own)
        values[free, 1:] = splits.across(column[free], own[free], here[free], _PLACES - 1)
    size = np.where(step > 0, step, 1.0)[:, None]
    values = np.where(step[:, None] > 0, np.rint(values / size) * size, values)
    values = np.where((values >= lower[:, None]) & (values <= upper[:, None]), values, here[:, None])
    category = np.isin(column, list(problem.space.embeddings))
    values[category] = own[category, None]
    for at, choices in problem.space.rules.allowed.items():
        banned = (column == at) & ~choices[np.where(column == at, own, 0).astype(int)]
        values[banned] = here[banned, None]
    values[:, 0] = np.where((own >= lower) & (own <= upper) & ~category | np.isnan(own), own, values[:, 0])
    narrow = problem.space.columns.single[column][:, None]
    values = np.where(narrow, values.astype(np.float32), values)
    return np.where(np.isnan(values) & ~np.isnan(own)[:, None], here[:, None], values)


class Splits:
    """Where a tree model splits each column, in one sorted array: complex numbers are ordered by column, then value."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self.values = np.concatenate([np.asarray(values, dtype=float) for values in columns])
        self._keys = np.repeat(np.arange(len(columns)), [len(values) for values in columns]) + 1j * self.values

    def across(self, column: Array, own: Array, here: Array, most: int) -> Array:
        """Values (m, most) just across the splits between own and here, on the far side; here itself where fewer."""
        if not len(self.values):
            return np.repeat(here[:, None], most, axis=1)
        low = np.searchsorted(self._keys, column + 1j * np.minimum(own, here))
        count = np.searchsorted(self._keys, column + 1j * np.maximum(own, here)) - low
        at = low[:, None] + np.arange(most) * np.maximum(count, 1)[:, None] // most
        fresh = np.diff(at, axis=1, prepend=-1) > 0
        chosen = self.values[np.minimum(at, len(self.values) - 1)]
        towards = np.where(here > own, np.float32(np.inf), np.float32(-np.inf))[:, None]
        far = np.nextafter(chosen.astype(np.float32), towards).astype(here.dtype)
        inside = (far - own[:, None]) * (far - here[:, None]) <= 0
        return np.where(fresh & inside & (count > 0)[:, None], far, here[:, None])
