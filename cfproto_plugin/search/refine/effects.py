"""What single moves do to the margin of their point: measured where it may pay, in at most two predict calls."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.refine.moves import Moves, looked_at_first, looked_at_next
from cfproto_plugin.search.refine.points import Points
from cfproto_plugin.tables.splits import Splits


def measured(
    judge: Judge, points: Points, active: Array, moves: Moves, splits: Splits | None
) -> tuple[Moves, Array, Array]:
    """The moves that were measured, what each (p, A, V) adds to the margin, and the choice (p, 1, A) of the best one.

    Moves that were not measured stay where they are, unless it is known from the splits that they do nothing.
    """
    effect, first = np.zeros(moves.cost.shape), looked_at_first(judge, moves, splits)
    _measure(judge, points, active, moves, first, effect)
    known = ~moves.fresh | first if splits is None else None
    if known is not None and not known.all():
        more = looked_at_next(moves, effect, known, points.cost[active])
        _measure(judge, points, active, moves, more, effect)
        known |= more
        values, cost = (np.where(known, part, part[..., :1]) for part in (moves.values, moves.cost))
        off = None if moves.off is None else np.where(known, moves.off, moves.off[..., :1])
        moves = Moves(values, cost, off, moves.fresh & known, moves.apart)
    return moves, effect, _best_single(moves, effect, points.margin[active])


def _measure(judge: Judge, points: Points, active: Array, moves: Moves, some: Array, effect: Array) -> None:
    """Write into the effect (p, A, V) what some moves (p, A, V) add to the margin of their points."""
    at = some.ravel().nonzero()[0]
    cell, value = at // some.shape[2], moves.values.take(at)
    point, column = active[cell // some.shape[1]], cell % some.shape[1]

    def moved(part: slice) -> Array:
        table = points.table.take(point[part], axis=0)
        table[np.arange(len(table)), column[part]] = value[part]
        return np.asarray(table)

    margin = judge.free_margin_of(moved, points.row[point])
    effect.reshape(-1)[at] = margin - points.margin[point]


def _best_single(moves: Moves, effect: Array, margin: Array) -> Array:
    """The choice (p, 1, A) of the move that saves most and keeps a margin; margin: (p,) of the points."""
    valid = moves.fresh & (effect + margin[:, None, None] > 0)
    saved = np.where(valid, moves.cost[..., :1] - moves.cost, 0)
    best = saved.reshape(len(saved), -1).argmax(axis=1)
    single = np.zeros((len(saved), 1, saved.shape[1]), dtype=np.intp)  # all CURRENT
    single[np.arange(len(saved)), 0, best // saved.shape[2]] = best % saved.shape[2]
    return single
