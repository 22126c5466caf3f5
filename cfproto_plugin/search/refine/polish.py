"""Moving a counterfactual back towards its row as long as its class allows.

Model-agnostic and batched. A round measures what every single move of every point does to the lead of its class, then
tries the moves that would be best together if their effects added up: two predict calls, shared by all rows.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem, firsts
from cfproto_plugin.search.refine.moves import HERE, OWN, Moves, Splits, moves_of
from cfproto_plugin.search.refine.points import Points, floor_of, starting_points
from cfproto_plugin.search.refine.slide import slide

_LEAST_GAIN = 1e-2  # of the cost, below which a move is not worth a round
_TRADES = np.linspace(0, 1, 24)  # prices of the lead that are tried in a round, from the lowest to the highest
_KEPT = (4, 1)  # points of a row that go on after so many rounds
_ROUNDS = 20
_WORTH = 0.35  # of the cost: a round that gained less was the last
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
    rows = points.row[firsts(points.row)]
    with problem.clock(rows):
        _rounds(problem, points, splits)
    problem.polish_calls += problem.model.calls - calls
    _keep(problem, points, amount, rows)


def _rounds(problem: Problem, points: Points, splits: Splits | None) -> None:
    active = np.arange(len(points.row))
    for number in range(_ROUNDS):
        active = _best_of_row(points, active, _KEPT[min(number, len(_KEPT) - 1)])
        if not len(active) or problem.out_of_time():
            return
        before = points.cost.copy()
        active = np.concatenate([_improve(problem, points, part, splits) for part in _parts(points, active)])
        active = active[~(points.cost[active] > (1 - _WORTH) * before[active])]
        problem.report(1 - len(active) / len(points.row))


def _keep(problem: Problem, points: Points, amount: float, rows: Array) -> None:
    best, before = problem.best, problem.best.cost.copy()
    row = rows[np.isfinite(before[rows])]
    best.before[row], best.floor[row] = before[row], floor_of(amount, before[row])
    taken = problem.keep(points.row, points.x, points.cost)
    row = points.row[taken]
    best.before[row], best.floor[row], best.kind[row] = before[row], points.floor[taken], points.kind[taken]


def _best_of_row(points: Points, active: Array, most: int) -> Array:
    """The cheapest active points of every row, so many of each."""
    if len(active) <= most:
        return active
    order = active[np.lexsort((points.cost[active], points.row[active]))]
    row = points.row[order]
    return order[np.arange(len(row)) - np.searchsorted(row, row) < most]


def _parts(points: Points, active: Array) -> list[Array]:
    """The active points in chunks whose moves, some eight in every column, fit the cache."""
    size = max(1, _CELLS_PER_CHUNK // (8 * points.x.shape[1] ** 2))
    return [active[i : i + size] for i in range(0, len(active), size)]


def _improve(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Array:
    """Try to improve the active points; return those that moved."""
    moves = moves_of(problem, points, active, splits)
    effect, single = _effects(problem, points, active, moves)
    choice = np.concatenate([together(moves.cost, effect, problem.config.max_changes), single], axis=1)
    each, column = np.arange(len(active)), np.arange(choice.shape[2])
    cost = moves.cost[each[:, None, None], column, choice].sum(axis=2)
    point, number = np.nonzero(_worth_trying(points, active, cost))
    if not len(point):
        return active[:0]
    lead = np.full(cost.shape, -np.inf)
    x = moves.values[point[:, None], column, choice[point, number]]
    lead[point, number] = problem.lead(x, points.row[active[point]])
    point, number = _best(points, active, cost, lead)
    moved = active[point]
    points.x[moved] = moves.values[point[:, None], column, choice[point, number]]
    points.lead[moved] = points.reach[moved] = lead[point, number]
    points.cost[moved] = np.where(lead[point, number] > 0, cost[point, number], np.inf)
    return moved


def _best(points: Points, active: Array, cost: Array, lead: Array) -> tuple[Array, Array]:
    """Which points go to which of their candidates (p, m).

    To the cheapest valid one; a point that is no counterfactual yet and has none goes to that of most lead.
    """
    valid = lead > 0
    best, some = np.where(valid, cost, np.inf).argmin(axis=1), valid.any(axis=1)
    stuck = np.isinf(points.cost[active]) & ~some
    if stuck.any():
        best = np.where(stuck, lead.argmax(axis=1), best)
        some |= stuck & (lead.max(axis=1) > points.reach[active])
    point = np.flatnonzero(some)
    return point, best[point]


def _worth_trying(points: Points, active: Array, cost: Array) -> Array:
    """Which candidates (p, m) gain enough; of equals the first."""
    worth = (cost < (1 - _LEAST_GAIN) * points.cost[active, None]) & (cost >= points.floor[active, None])
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
    price = low[:, None] * (high / low)[:, None] ** _TRADES
    price[:, 0] /= 2  # at both ends every column is past its own
    price[:, -1] *= 2
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
