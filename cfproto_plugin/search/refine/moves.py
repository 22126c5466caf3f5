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


class Moves(NamedTuple):
    """Per point, column and place, all (p, A, V)."""

    values: Array
    cost: Array
    fresh: Array  # differs from the current value and does not cost too much: its effect has to be measured


def moves_of(judge: Judge, points: Points, active: Array, splits: Splits | None) -> Moves:
    """The moves of the active points (p,)."""
    row, rows, config = points.row[active], judge.task.rows, judge.task.config
    original, current, end = rows.table[row], points.table[active], points.path_end[active]
    values = _places(judge, original, current, end, splits)
    if judge.space.rounds or not judge.space.rules.plain or np.isnan(original).any():
        values = _inside(judge, row, values, end)
    fresh = changed(values, current[:, :, None])
    flat = values.transpose(0, 2, 1).reshape(-1, original.shape[1])
    z = judge.space.to_search(flat).reshape(len(original), values.shape[2], -1).transpose(0, 2, 1)
    size = np.abs(z - rows.z[row][:, :, None])
    cost = config.beta * size + size * size
    if config.few_changes:
        cost += config.few_changes * changed(values, original[:, :, None])
    fresh &= cost - cost[:, :, :1] < judge.task.tuning.largest_rise * points.cost[active, None, None]
    return Moves(values, cost, fresh)


def _places(judge: Judge, original: Array, current: Array, end: Array, splits: Splits | None) -> Array:
    """Values (p, A, V): the current one, the original, some between the two, some farther out; arguments are (p, A)."""
    tuning = judge.task.tuning
    beyond = np.where(np.abs(end - original) > np.abs(current - original), end, current)
    if splits is None:
        between = _fractions(original, current, beyond)
    else:
        inward, outward = splits.across(np.array([original, current]), np.array([current, beyond]), tuning.inward)
        between = np.concatenate([inward, outward[..., :: tuning.outward_every]], axis=2)
    return np.concatenate([current[:, :, None], original[:, :, None], between], axis=2)


def _inside(judge: Judge, row: Array, values: Array, end: Array) -> Array:
    """Values (p, A, V) on the grid; the current one in place of those that are missing, double or against a rule."""
    rules, rows = judge.space.rules, judge.task.rows
    current, original = values[:, :, CURRENT, None].copy(), values[:, :, ORIGINAL]
    lower, upper = rows.lower[row][:, :, None], rows.upper[row][:, :, None]
    if rules.grid.rounds:
        values[:, :, 2:] = rules.grid.snap(values[:, :, 2:].swapaxes(1, 2)).swapaxes(1, 2)
    for at in judge.space.embeddings:
        values[:, at, 2:] = current[:, at]
        values[:, at, -1] = end[:, at]
    outside = ~((values >= lower) & (values <= upper))
    outside[:, :, ORIGINAL] &= ~np.isnan(original)
    outside[:, :, 2:] |= values[:, :, 2:] == original[:, :, None]  # that has a place of its own
    if rules.grid.listed:
        outside |= rules.grid.off_lists(values.swapaxes(1, 2)).swapaxes(1, 2)
    for at, choices in rules.allowed.items():
        outside[:, at] |= ~choices[np.nan_to_num(values[:, at]).astype(int)]
    return np.where(outside, current, values)


def _fractions(original: Array, current: Array, beyond: Array) -> Array:
    """Values (p, A, 10) on the way from the original to the current value and on to `beyond`, all (p, A)."""
    inward = original[:, :, None] + _INWARD * (current - original)[:, :, None]
    outward = current[:, :, None] + _OUTWARD * (beyond - current)[:, :, None]
    outward[..., -1] = beyond  # without rounding, which might pass a bound
    return np.concatenate([inward, outward], axis=2)
