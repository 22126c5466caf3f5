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


class Moves(NamedTuple):
    """Per point, column and place, all (p, A, V)."""

    values: Array
    cost: Array
    fresh: Array  # differs from the current value and does not cost too much: its effect has to be measured
    off: Array  # squared distance to the prototype


def moves_of(judge: Judge, points: Points, active: Array, splits: Splits | None, *, coarse: bool = False) -> Moves:
    """The moves of the active points (p,)."""
    row, rows, config = points.row[active], judge.task.rows, judge.task.config
    original, current, end = rows.table[row], points.table[active], points.path_end[active]
    values = _places(judge, original, current, end, splits, coarse)
    lower, upper = rows.lower[row][:, :, None], rows.upper[row][:, :, None]
    if judge.space.rounds or not judge.space.rules.plain or np.isnan(original).any():
        values = _inside(judge, row, values, end)
    else:
        values = np.where((values >= lower) & (values <= upper), values, current[:, :, None])
    fresh = changed(values, current[:, :, None])
    flat = values.transpose(0, 2, 1).reshape(-1, original.shape[1])
    z = judge.space.to_search(flat).reshape(len(original), values.shape[2], -1).transpose(0, 2, 1)
    size = np.abs(z - rows.z[row][:, :, None])
    off = np.square(z - judge.space.to_search(points.goal[active])[:, :, None])
    cost = judge.task.beta * size + size * size
    if judge.theta:
        cost += judge.theta * off
    if config.few_changes:
        cost += config.few_changes * changed(values, original[:, :, None])
    fresh &= cost - cost[:, :, :1] < judge.task.tuning.largest_rise * points.cost[active, None, None]
    if judge.task.tuning.row_limit:
        least = np.full(len(rows.z), np.inf)
        np.minimum.at(least, points.row, points.cost)
        fresh &= cost < least[row][:, None, None]
    return Moves(values, cost, fresh, off)


def _places(judge: Judge, original: Array, current: Array, end: Array, splits: Splits | None, coarse: bool) -> Array:
    """Values (p, A, V): the current one, the original, some between and some beyond the two, some around the original.

    All arguments are (p, A).
    """
    tuning = judge.task.tuning
    beyond = np.where(np.abs(end - original) > np.abs(current - original), end, current)
    if splits is None:
        between = _fractions(judge, original, current, beyond)
    else:
        inward, outward = splits.across(np.array([original, current]), np.array([current, beyond]), tuning.inward)
        parts = [inward, outward[..., :: tuning.outward_every], splits.near(original, tuning.around)]
        between = np.concatenate(parts, axis=2)
    if coarse and splits is None:
        between = between[..., list(tuning.coarse_places)]
    return np.concatenate([current[:, :, None], original[:, :, None], between], axis=2)


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
