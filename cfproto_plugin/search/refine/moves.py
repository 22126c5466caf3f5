"""The values that polishing tries in every column of a point, and what each costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.refine.points import Points
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.splits import Splits

CURRENT, ORIGINAL = 0, 1  # places of the current value and of the original
# Fractions of the way from the original to the current value. Tried where there are no splits; denser towards the
# current value, where the class changes.
_INWARD = np.array([0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.985])
_OUTWARD = np.array([0.5, 1.0])  # fractions of the way from the current value to the end of the path
_STEPS = np.array([-1.0, -0.3, -0.1, 0.1, 0.3, 1.0])  # standard deviations, tried around the original likewise
_COARSE, _COARSE_SPLIT = 2, 3  # place that the first round of a sparing search tries beside the original
# Places of `Moves` that such a search looks at first in later rounds: the original, 0.4, 0.75 and 0.92 of the way, the
# end of the path, and the larger steps around the original
_FIRST = [ORIGINAL, 3, 5, 7, 11, 12, 13, 16, 17]
_SAME = 0.05  # share of a point's largest effect: effects that differ by less are the same
_PAYS = 0.01  # share of a point's cost: between two places whose costs differ by less nothing is gained


class Moves(NamedTuple):
    """Per point, column and place, all (p, A, V)."""

    values: Array
    cost: Array
    off: Array | None  # squared distance to the prototype; None if nothing asks for it
    fresh: Array  # differs from the current value and does not cost too much: its effect has to be measured
    apart: (
        Array | None
    )  # (p, A) whether a split lies between the original and the current value, where there are splits


def moves_of(judge: Judge, points: Points, active: Array, splits: Splits | None, turn: int, limit: Array) -> Moves:
    """The moves of the active points (p,) in round `turn`: 0 is the first, which is a coarse one in a sparing search.

    limit: (p,) a change that alone costs as much is not worth more than the current value.
    """
    row, rows, config = points.row[active], judge.task.rows, judge.task.config
    original, own = rows.table.take(row, axis=0), rows.z.take(row, axis=0)
    current, end = points.table.take(active, axis=0), points.path_end.take(active, axis=0)
    coarse = judge.task.tuning.sparing and turn == 0
    values, apart = _places(judge, original, current, end, splits, coarse=coarse)
    if judge.space.rounds or not judge.space.rules.plain or np.isnan(original).any():
        values = _inside(judge, row, values, end)
    else:
        lower, upper = (bound.take(row, axis=0)[:, :, None] for bound in (rows.lower, rows.upper))
        values = np.where((values >= lower) & (values <= upper), values, current[:, :, None])
    fresh = changed(values, current[:, :, None])
    z = judge.space.to_search(values.transpose(0, 2, 1)).transpose(0, 2, 1)
    size = np.abs(z - own[:, :, None])
    cost = size * (judge.task.beta + size)
    off = None
    if judge.theta or judge.measures.floors.least_typicality.least:
        off = np.square(z - judge.space.to_search(points.goal[active])[:, :, None])
    if judge.theta and off is not None:
        cost += judge.theta * off
    if config.few_changes:
        cost += config.few_changes * changed(values, original[:, :, None])
    largest_rise = judge.task.tuning.largest_rise * points.cost[active]
    fresh &= cost - cost[:, :, :1] < largest_rise[:, None, None]
    fresh &= cost < np.maximum(limit[:, None, None], np.nextafter(cost[:, :, :1], np.inf))
    return Moves(values, cost, off, fresh, apart)


def looked_at_first(judge: Judge, moves: Moves, splits: Splits | None) -> Array:
    """Which moves (p, A, V) are measured first: all, or in a sparing search some, and all categories.

    Not those back to the original value that cross no split: it is known that they do nothing.
    """
    if splits is not None and splits.are_exact and moves.apart is not None:
        first, categories = moves.fresh.copy(), list(judge.space.embeddings)
        first[..., ORIGINAL] &= moves.apart
        if categories:
            first[:, categories, ORIGINAL] = moves.fresh[:, categories, ORIGINAL]
        return first
    if not judge.task.tuning.sparing or splits is not None or moves.cost.shape[2] <= max(_FIRST):
        return moves.fresh
    first = np.zeros(moves.cost.shape[1:], dtype=bool)
    first[:, _FIRST] = True
    first[list(judge.space.embeddings)] = True
    return np.asarray(moves.fresh & first)


def looked_at_next(moves: Moves, effect: Array, known: Array, cost: Array) -> Array:
    """Which other moves (p, A, V) may pay: those between two known ones of different effect, or beyond all of them.

    A value between two that do the same would be dominated by the cheaper one. effect, known: (p, A, V). cost: (p,) of
    the points.
    """
    order = np.argsort(moves.values, axis=2, kind="stable")
    here, does, costs = (np.take_along_axis(part, order, axis=2) for part in (known, effect, moves.cost))
    count, place = here.shape[2], np.arange(here.shape[2])
    below = np.maximum.accumulate(np.where(here, place, -1), axis=2)
    above = np.flip(np.minimum.accumulate(np.flip(np.where(here, place, count), axis=2), axis=2), axis=2)
    beyond = (below < 0) | (above >= count)
    ends = np.maximum(below, 0), np.minimum(above, count - 1)
    apart, saved = (
        np.abs(np.subtract(*(np.take_along_axis(part, end, axis=2) for end in ends))) for part in (does, costs)
    )
    same = _SAME * np.abs(effect).max(axis=(1, 2))
    least = _PAYS * np.where(np.isinf(cost), 0, cost)
    pays = np.zeros_like(known)
    np.put_along_axis(pays, order, beyond | ((apart > same[:, None, None]) & (saved > least[:, None, None])), axis=2)
    return np.asarray(pays & ~known)


def _places(
    judge: Judge, original: Array, current: Array, end: Array, splits: Splits | None, *, coarse: bool
) -> tuple[Array, Array | None]:
    """Values (p, A, V): the current one, the original, some between and some beyond the two, some around the original.

    original, current, end: (p, A). coarse: one between the two alone. Second: see `Moves.apart`.
    """
    tuning, apart = judge.task.tuning, None
    if coarse and splits is not None:
        between, apart = splits.place(original, current, tuning.inward, _COARSE_SPLIT)
    else:
        beyond = np.where(np.abs(end - original) > np.abs(current - original), end, current)
        if splits is not None:
            between, apart = splits.places(
                original, current, beyond, tuning.inward, tuning.outward_every, tuning.around
            )
        else:
            between = _fractions(judge, original, current, beyond)
            between = between[..., _COARSE : _COARSE + 1] if coarse else between
    return np.concatenate([current[:, :, None], original[:, :, None], between], axis=2), apart


def _inside(judge: Judge, row: Array, values: Array, end: Array) -> Array:
    """Values (p, A, V) on the grid; the current one in place of those that are missing, double or against a rule."""
    rules, rows = judge.space.rules, judge.task.rows
    current, original = values[:, :, CURRENT, None].copy(), values[:, :, ORIGINAL]
    lower, upper = rows.lower[row][:, :, None], rows.upper[row][:, :, None]
    if rules.grid.rounds:
        values[:, :, 2:] = rules.grid.snap(values[:, :, 2:].swapaxes(1, 2)).swapaxes(1, 2)
    for at in judge.space.embeddings:
        values[:, at, 2:] = _categories(judge, at, original[:, at], current[:, at], values.shape[2] - 2)
        values[:, at, -1] = end[:, at]
    outside = ~((values >= lower) & (values <= upper))
    outside[:, :, ORIGINAL] &= ~np.isnan(original)
    outside[:, :, 2:] |= values[:, :, 2:] == original[:, :, None]  # that has a place of its own
    if rules.grid.listed:
        outside |= rules.grid.off_lists(values.swapaxes(1, 2)).swapaxes(1, 2)
    for at, choices in rules.allowed.items():
        outside[:, at] |= ~choices[np.nan_to_num(values[:, at]).astype(int)]
    return np.where(outside, current, values)


def _fractions(judge: Judge, original: Array, current: Array, beyond: Array) -> Array:
    """Values (p, A, 16) from the original to the current value, on to `beyond`, and around the original, all (p, A)."""
    inward = original[:, :, None] + _INWARD * (current - original)[:, :, None]
    outward = current[:, :, None] + _OUTWARD * (beyond - current)[:, :, None]
    outward[..., -1] = beyond  # without rounding, which might pass a bound
    around = original[:, :, None] + _STEPS * judge.space.deviation[:, None]
    return np.concatenate([inward, outward, around], axis=2).astype(original.dtype, copy=False)


def _categories(judge: Judge, at: int, original: Array, current: Array, most: int) -> Array:
    """Categories (p, most) that lie next to the original (p,); the current one (p, 1) where there are fewer."""
    embedding, own = judge.space.embeddings[at], np.nan_to_num(original).astype(int)
    off = np.abs(embedding - embedding[own][:, None])
    off[~judge.space.rules.choices_of(at, own)] = np.inf
    near = np.argsort(off, axis=1, kind="stable")[:, : min(judge.task.tuning.around + 1, most)]
    values = np.repeat(current, most, axis=1)
    values[:, : near.shape[1]] = np.where(np.isinf(np.take_along_axis(off, near, axis=1)), current, near)
    return values
