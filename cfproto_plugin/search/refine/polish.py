"""Moving a counterfactual back towards its row as long as its class allows.

Model-agnostic and batched. A round measures what every single move of every point does to the margin of its class, then
tries the moves that would be best together if their effects added up: two predict calls, shared by all rows.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import FAR, Candidates, candidates, firsts
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.refine.effects import measured
from cfproto_plugin.search.refine.moves import CURRENT, ORIGINAL, moves_of
from cfproto_plugin.search.refine.points import Points, starting_points
from cfproto_plugin.search.refine.slide import slide
from cfproto_plugin.search.shortfall import least_shortfall
from cfproto_plugin.tables.splits import Splits

_ROUNDING = 1e-9


def polish(judge: Judge, clock: Clock, starts: Candidates, splits: Splits | None) -> Candidates:
    """Move starts back towards their rows; return where they end. Rounds go on while they gain.

    splits: where a tree model splits the columns.
    """
    points = starting_points(judge, starts, from_row=judge.task.tuning.sparing)
    with suppress(SearchEndsError):  # the points are where they got to
        if len(points.row) and judge.model.has_gradient:
            slide(judge, clock, points)
            points.path_end = points.table.copy()
            points.margin = judge.free_margin(points.table, points.row)
        with clock.shared(points.row[firsts(points.row)]):
            _rounds(judge, clock, points, splits)
    return candidates(
        points.row,
        points.table,
        points.cost,
        points.margin,
        points.start.trace,
        valid=np.isfinite(points.cost),
        path_end=points.goal,
        shortfall=points.shortfall,
        polished=True,
    )


def _rounds(judge: Judge, clock: Clock, points: Points, splits: Splits | None) -> None:
    tuning, waits = judge.task.tuning, np.isinf(points.cost) & (splits is not None)
    active, late = (~waits).nonzero()[0], waits.nonzero()[0]  # a coarse round has no moves for rows themselves
    for number in range(tuning.rounds):
        active = _best_of_row(points, active, tuning.kept[min(number, len(tuning.kept) - 1)])
        if number == 1:
            active = np.sort(np.concatenate([active, late]))
        if clock.is_over() or not (len(active) or (number == 0 and len(late))):
            return
        before, limit = points.rank, points.cheapest()
        moves = 8 * points.table.shape[1]  # some eight in every column
        size = judge.model.pace.groups(moves, max(1, tuning.cached // (moves * points.table.shape[1])))
        parts = [active[i : i + size] for i in range(0, len(active), size)]
        moved = [_improve(judge, points, part, splits, number, limit[part]) for part in parts if not clock.is_over()]
        if number or not tuning.sparing:  # after a coarse round all go on
            active = np.concatenate([active[:0], *moved])
            active = active[~(points.rank[active] > (1 - tuning.worth) * before[active])]
        clock.report(1 - len(active) / len(points.row))


def _best_of_row(points: Points, active: Array, most: int) -> Array:
    """The cheapest active points of every row, at most `most` of each."""
    if len(active) <= most:
        return active
    order = active[np.lexsort((points.rank[active], points.row[active]))]
    row = points.row[order]
    return order[np.arange(len(row)) - row.searchsorted(row) < most]


def _improve(judge: Judge, points: Points, active: Array, splits: Splits | None, turn: int, limit: Array) -> Array:
    """Try to improve the active points (p,) in round `turn`; return those that moved. limit: see `moves_of`."""
    moves, tuning = moves_of(judge, points, active, splits, turn, limit), judge.task.tuning
    moves, effect, single = measured(judge, points, active, moves, splits)
    most = judge.task.config.max_changes
    together = [best_together(moves.cost, effect, most, tuning.price_ladder)]
    if moves.off is not None and judge.measures.floors.least_typicality.least:
        drawn = (moves.cost + weight * moves.off for weight in tuning.towards)
        together += [best_together(cost, effect, most, tuning.price_ladder) for cost in drawn]
    pairs = single
    if tuning.sparing and (turn or splits is None):
        pairs = best_pairs(moves.cost, effect, points.margin[active], tuning.pair_slack)
    choice = np.concatenate([*together, pairs, single], axis=1)
    at = choice + np.arange(0, moves.cost.size, moves.cost.shape[2]).reshape(len(active), 1, -1)
    cost = moves.cost.take(at).sum(axis=2)
    worth = _worth_trying(points, active, cost, tuning.least_gain).ravel().nonzero()[0]
    if not len(worth):
        return active[:0]
    owner, at = active[worth // cost.shape[1]], at.reshape(cost.size, -1)
    margin, shortfall = np.full(cost.size, -np.inf), np.zeros(cost.size)
    table = moves.values.take(at[worth])
    margin[worth] = judge.margin(table, points.row[owner])
    if judge.measures.floors.any:
        shortfall[worth] = _shortfall(judge, points, owner, table, cost.take(worth), margin[worth])
    best = _best(points, active, cost, margin.reshape(cost.shape), shortfall.reshape(cost.shape))
    moved: Array = active[best // cost.shape[1]]
    points.table[moved] = moves.values.take(at[best])
    points.margin[moved] = points.reach[moved] = margin[best]
    points.cost[moved] = np.where(margin[best] > 0, cost.take(best), np.inf)
    points.shortfall[moved] = shortfall[best]
    return moved


def _shortfall(judge: Judge, points: Points, owner: Array, table: Array, cost: Array, margin: Array) -> Array:
    """By how much candidates (m, A) of points (m,) miss the wishes, asked of the cheapest valid ones of every point."""
    found = np.full(len(owner), np.inf)
    at = (margin > 0).nonzero()[0]
    at = at[np.lexsort((cost[at], owner[at]))]
    missed = points.shortfall[owner[at]]
    below = np.where(missed > 0, missed * (1 + _ROUNDING), np.inf)
    found[at] = least_shortfall(judge, table[at], points.row[owner[at]], owner[at], below)
    return found


def _best(points: Points, active: Array, cost: Array, margin: Array, shortfall: Array) -> Array:
    """Which of the candidates (p, m) points go to: their places in all of them, at most one for a point.

    To the best valid one; an invalid point without a valid candidate moves to the one with the largest margin.
    """
    rank = np.where(margin > 0, cost + FAR * shortfall, np.inf)
    best, begin = rank.argmin(axis=1), np.arange(0, cost.size, cost.shape[1])
    some = rank.take(begin + best) < points.rank[active]
    stuck = np.isinf(points.cost[active]) & ~some
    if stuck.any():
        best = np.where(stuck, margin.argmax(axis=1), best)
        some |= stuck & (margin.max(axis=1) > points.reach[active])
    return np.asarray((begin + best)[some])


def _worth_trying(points: Points, active: Array, cost: Array, least_gain: float) -> Array:
    """Which candidates (p, m) gain enough; of equals the first."""
    worth = cost < (1 - least_gain) * points.limit(active)[:, None]
    worth[:, 1:] &= cost[:, 1:] != cost[:, :-1]
    return worth


def best_pairs(cost: Array, effect: Array, margin: Array, slack: tuple[float, ...]) -> Array:
    """Choices (p, m, A) of two columns that save most and keep a margin, if effects add up, at m values of the slack.

    Points without a margin get the two that cost least and lead to one.

    cost, effect: (p, A, V) of the places of every column. margin: (p,) of the points. slack: the share of the first
    effect that the second may leave open, because effects do not quite add up. What best_together finds is best at
    some price of the margin; a pair such as a large change back and a small one instead need not be.
    """
    p, columns, places = cost.shape
    saved = (cost[:, :, CURRENT, None] - cost).reshape(p, -1)
    gain = effect.reshape(p, -1)
    found = np.zeros((p, len(slack), columns), dtype=np.intp)  # all CURRENT
    move = _efficient(saved, gain)
    if move.shape[1] < 2 or not slack:  # noqa: PLR2004 a pair
        return found
    each, column = np.arange(p)[:, None], move // places
    does, saving = gain[each, move], saved[each, move]
    saving[move < 0] = -np.inf  # no move
    apart = column[:, :, None] != column[:, None]
    total = np.where(apart, saving[:, :, None] + saving[:, None], -np.inf)
    left = margin[:, None, None] + does[:, :, None] + does[:, None]
    least = np.where(margin > 0, 0.0, -np.inf)
    granted = np.reshape(slack, (-1, 1, 1)) * np.abs(does)[:, None, :, None]
    possible = np.where(left[:, None] + granted >= 0, total[:, None], -np.inf).reshape(p, len(slack), -1)
    best = possible.argmax(axis=2)
    some, number = (possible.max(axis=2) > least[:, None]).nonzero()
    for part in divmod(best[some, number], move.shape[1]):
        chosen = move[some, part]
        found[some, number, chosen // places] = chosen % places
    return found


def _efficient(saved: Array, gain: Array) -> Array:
    """The moves (p, S) of saved and gain (p, M) than which none saves more and adds as much margin; -1 for no more."""
    some = np.flatnonzero(((gain > 0) | (saved > 0)).any(axis=0))
    saved, gain = saved.take(some, axis=1), gain.take(some, axis=1)
    useless = (gain <= 0) & (saved <= 0)
    saved[useless] = gain[useless] = -np.inf
    order = np.lexsort((-saved, -gain), axis=1)
    saving = saved[np.arange(len(saved))[:, None], order]
    more = saving > -np.inf
    more[:, 1:] &= saving[:, 1:] > np.maximum.accumulate(saving, axis=1)[:, :-1]
    count = more.sum(axis=1)
    found = np.full((len(saved), int(count.max(initial=0))), -1)
    found[np.arange(found.shape[1]) < count[:, None]] = some[order[more]]
    return found


def best_together(cost: Array, effect: Array, max_changes: int | None, price_ladder: Array) -> Array:
    """Choices (p, m, A) of one place per column that are best at m prices of the margin, if effects add up.

    cost, effect: (p, A, V) of the places of every column. price_ladder: (m,) exponents from 0 to 1.
    At the price s the sum over the columns of cost - s·effect is least where every column takes its own least. Prices
    run from one at which no column gives up margin to one at which every column is as cheap as it can be.
    """
    p, saved, lost = len(cost), cost[:, :, CURRENT, None] - cost, -effect
    trade = saved * lost > 0  # cheaper with less margin, or more costly with more
    rate = (saved / np.where(trade, lost, np.nan)).reshape(p, -1)
    high = np.fmax(np.fmax.reduce(rate, axis=1), 1e-12)
    low = np.fmin(np.fmin.reduce(rate, axis=1), high)
    price = low[:, None] * (high / low)[:, None] ** price_ladder
    price[:, 0] /= 2  # beyond the last rate at both ends
    price[:, -1] *= 2
    score = (-price).astype(np.float32)[:, :, None, None] * effect.astype(np.float32)[:, None]
    score += cost.astype(np.float32)[:, None]
    choice = score.argmin(axis=3)
    if max_changes is not None:
        least = np.take_along_axis(score, choice[..., None], axis=3)[..., 0]
        order = (least - score[..., ORIGINAL]).argsort(axis=2, kind="stable")
        kept = np.zeros(choice.shape, dtype=bool)
        np.put_along_axis(kept, order[..., :max_changes], values=True, axis=2)
        choice = np.where(kept, choice, ORIGINAL)
    return np.asarray(choice)
