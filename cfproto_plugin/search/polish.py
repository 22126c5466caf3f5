"""Moving a counterfactual back towards its row as long as its class allows.

Model-agnostic and batched. A round measures what every single move of every point does to the lead of its class, then
tries the moves that would be best together if their effects added up: two predict calls, shared by all rows.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.boundary import slide
from cfproto_plugin.search.moves import HERE, OWN, Moves, Splits, moves_of
from cfproto_plugin.search.points import Points, starting_points
from cfproto_plugin.search.problem import Problem, firsts
from cfproto_plugin.space import counts_changes

_LEAST_GAIN = 1e-2  # of the cost, below which a move is not worth a round
_TRADES = np.linspace(0, 1, 32)  # prices of the lead that are tried in a round, from the lowest to the highest
_BEYOND = np.array([0.5, *[1.0] * (len(_TRADES) - 2), 2.0])  # at the ends every column is past its own
_KEPT = (4, 2, 1)  # points of a row that go on after so many rounds
_ROUNDS = 20
_WORTH = 0.2  # of the cost: a round that gained less was the last
_CELLS_PER_CHUNK = 500_000  # more do not fit the cache


def polish(problem: Problem, amount: float, splits: Splits | None) -> None:
    """Polish the starts of every row and keep the best. splits: where a tree model splits the columns of the table.

    Rounds go on while they gain. amount p stops at (1 - p) of the cost it started with: the less, the closer the point
    stays to the class it was led to.
    """
    calls = problem.model.calls
    points = starting_points(problem, amount)
    problem.starts.clear()
    problem.polished[points.row] = True
    if len(points.row) and problem.model.has_gradient and not problem.space.rounds:
        slide(problem, points)
        points.far = points.x.copy()
        points.lead = problem.free_lead(points.x, points.row)
    active = np.arange(len(points.row))
    for number in range(_ROUNDS):
        active = _best_of_row(points, active, _KEPT[min(number, len(_KEPT) - 1)])
        if not len(active) or problem.out_of_time():
            break
        before = points.cost.copy()
        with problem.clock(np.unique(points.row[active])):
            active = _round(problem, points, active, splits)
        active = active[~(points.cost[active] > (1 - _WORTH) * before[active])]
        problem.report(1 - len(active) / len(points.row))
    problem.polish_calls += problem.model.calls - calls
    _keep(problem, points)


def _keep(problem: Problem, points: Points) -> None:
    before = problem.best.cost.copy()
    taken = problem.keep(points.row, points.x, points.cost)
    for point in taken:
        i = points.row[point]
        problem.best.kind[i] = points.kind[point]
        led = problem.best.note[i].partition(" at ")[0]
        problem.best.note[i] = f"{led}, polished from {before[i]:.3g} to {problem.best.cost[i]:.3g}"
        if np.isinf(before[i]):
            count = counts_changes(points.x[[point]], problem.rows.x[[i]])[0]
            problem.best.note[i] = f"reached on the way to a prototype with {count} change{'s' if count > 1 else ''}"


def _best_of_row(points: Points, active: Array, most: int) -> Array:
    """The cheapest active points of every row, so many of each."""
    order = active[np.lexsort((points.cost[active], points.row[active]))]
    row = points.row[order]
    return order[np.arange(len(row)) - np.searchsorted(row, row) < most]


def _round(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Array:
    """Try to improve the active points; return those that improved."""
    return np.concatenate([_improve(problem, points, part, splits) for part in _parts(points, active)])


def _parts(points: Points, active: Array) -> list[Array]:
    """The active points in chunks whose moves, some eight in every column, fit the cache."""
    size = max(1, _CELLS_PER_CHUNK // (8 * points.x.shape[1] ** 2))
    return [active[i : i + size] for i in range(0, len(active), size)]


def _improve(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Array:
    moves = moves_of(problem, points, active, splits)
    effect, single = _effects(problem, points, active, moves)
    choice = np.concatenate([together(moves.cost, effect, problem.config.max_changes), single], axis=1)
    each, column = np.arange(len(active)), np.arange(choice.shape[2])
    cost = moves.cost[each[:, None, None], column, choice].sum(axis=2)
    point, number = np.nonzero(_worth_trying(points, active, cost))
    if not len(point):
        return active[:0]
    x = moves.values[point[:, None], column, choice[point, number]]
    return _move(problem, points, active[point], x, cost[point, number])


def _move(problem: Problem, points: Points, owner: Array, x: Array, cost: Array) -> Array:
    """Predict candidates for points and move every one to its best; return the points that moved."""
    row = points.row[owner]
    return _take(points, owner, x, cost, problem.lead(x, row))


def _take(points: Points, owner: Array, x: Array, cost: Array, lead: Array) -> Array:
    """Move every point to its cheapest valid candidate, or where it has none yet to that of most lead; return which."""
    valid = lead > 0
    closer = np.isinf(points.cost[owner]) & (lead > points.reach[owner])
    at = np.flatnonzero(valid | closer)
    at = at[np.lexsort((np.where(valid, cost, -lead)[at], ~valid[at], owner[at]))]
    best = at[firsts(owner[at])]
    moved = owner[best]
    points.x[moved], points.lead[moved], points.reach[moved] = x[best], lead[best], lead[best]
    points.cost[moved] = np.where(valid[best], cost[best], np.inf)
    return moved


def _worth_trying(points: Points, active: Array, cost: Array) -> Array:
    """Which candidates (p, m) gain enough; of equals the first."""
    worth = cost < (1 - _LEAST_GAIN) * points.cost[active, None]
    worth &= (cost >= points.floor[active, None]) & (cost > 0)
    worth[:, 1:] &= cost[:, 1:] != cost[:, :-1]
    return worth


def _effects(problem: Problem, points: Points, active: Array, moves: Moves) -> tuple[Array, Array]:
    """What every move (p, A, V) adds to the lead of its point, and the choice (p, 1, A) of the best valid one alone."""
    point, column, place = np.nonzero(moves.fresh)
    x = points.x[active[point]]
    x[np.arange(len(x)), column] = moves.values[point, column, place]
    row = points.row[active[point]]
    lead = problem.free_lead(x, row)
    effect = np.zeros(moves.cost.shape)
    effect[point, column, place] = lead - points.lead[active[point]]
    saved = np.where(moves.fresh & (effect + points.lead[active, None, None] > 0), moves.cost[..., :1] - moves.cost, 0)
    best = saved.reshape(len(saved), -1).argmax(axis=1)
    single = np.full((len(saved), 1, saved.shape[1]), HERE)
    single[np.arange(len(saved)), 0, best // saved.shape[2]] = best % saved.shape[2]
    return effect, single


def together(cost: Array, effect: Array, max_changes: int | None) -> Array:
    """Choices (p, m, A) of one place per column that are best at some price of the lead, if effects add up.

    At the price s the sum over the columns of cost - s·effect is least where every column takes its own least. From a
    price at which no column gives up lead to one at which every column is as cheap as it can be.
    """
    saved, lost = cost[:, :, HERE, None] - cost, -effect
    trade = saved * lost > 0  # cheaper and less lead, or dearer and more
    rate = np.divide(saved, lost, out=np.zeros_like(saved), where=trade)
    high = np.maximum(rate.max(axis=(1, 2)), 1e-12)
    low = np.minimum(np.where(trade, rate, np.inf).min(axis=(1, 2)), high)
    price = low[:, None] * (high / low)[:, None] ** _TRADES * _BEYOND
    score = (-price).astype(np.float32)[:, :, None, None] * effect.astype(np.float32)[:, None]
    score += cost.astype(np.float32)[:, None]
    choice = score.argmin(axis=3)
    if max_changes is not None:
        least = np.take_along_axis(score, choice[..., None], axis=3)[..., 0]
        order = np.argsort(least - score[..., OWN], axis=2, kind="stable")
        kept = np.zeros(choice.shape, dtype=bool)
        np.put_along_axis(kept, order[..., :max_changes], values=True, axis=2)
        choice = np.where(kept, choice, OWN)
    return np.asarray(choice)
