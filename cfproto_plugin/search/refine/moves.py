"""The values that polishing tries in every column of a point, and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem
from cfproto_plugin.search.refine.points import Points
from cfproto_plugin.tables.rules import changes

HERE, OWN = 0, 1  # places of the present value and of the row's own
_INNER = np.array([0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.985])  # of the way from the one to the other
_OUTER = np.array([0.5, 1.0])  # of the way farther out
_PLACES, _EVERY = len(_INNER), len(_INNER) // len(_OUTER)  # splits in their place: so many, and every fourth of those
_DEAREST = 0.2  # of the cost of a point: what a move may add to it


class Moves(NamedTuple):
    """Per point, column and place, all (p, A, V)."""

    values: Array
    cost: Array
    fresh: Array  # differs from the present value and is not too dear, so that its effect has to be measured


def moves_of(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Moves:
    """The moves of the active points."""
    row = points.row[active]
    own, here, far = problem.rows.x[row], points.x[active], points.far[active]
    values = _places(problem, own, here, far, splits)
    if problem.space.rounds or not problem.space.rules.plain or np.isnan(own).any():
        values = _inside(problem, row, values, far)
        fresh = changes(values, here[:, :, None])
    else:
        fresh = values != here[:, :, None]
    flat = values.transpose(0, 2, 1).reshape(-1, own.shape[1])
    z = problem.space.to_search(flat).reshape(len(own), values.shape[2], -1).transpose(0, 2, 1)
    size = np.abs(z - problem.rows.z[row][:, :, None])
    cost = problem.config.beta * size + size * size
    if problem.config.few_changes:
        cost += problem.config.few_changes * changes(values, own[:, :, None])
    fresh &= cost - cost[:, :, :1] < _DEAREST * points.cost[active, None, None]
    return Moves(values, cost, fresh)


def _places(problem: Problem, own: Array, here: Array, far: Array, splits: Splits | None) -> Array:
    """Values (p, A, V): here, the row's own, some between the two, some farther out."""
    beyond = np.where(np.abs(far - own) > np.abs(here - own), far, here)
    rules = problem.space.rules
    if splits is None:
        between = _shares(own, here, beyond)
    else:
        inner, outer = splits.across(np.array([own, here]), np.array([here, beyond]), _PLACES)
        between = np.concatenate([inner, outer[..., ::_EVERY]], axis=2)
        if rules.stepped:
            between = np.where(rules.step[:, None] > 0, _shares(own, here, beyond), between)
    return np.concatenate([here[:, :, None], own[:, :, None], between], axis=2)


def _inside(problem: Problem, row: Array, values: Array, far: Array) -> Array:
    """Values (p, A, V) moved onto the grids; the present one in place of what is missing, double or against a rule."""
    rules, here, own = problem.space.rules, values[:, :, HERE, None].copy(), values[:, :, OWN]
    lower, upper = problem.rows.lower[row][:, :, None], problem.rows.upper[row][:, :, None]
    if problem.space.rounds:
        grid = rules.step[:, None] > 0
        size = np.where(grid, rules.step[:, None], 1.0)
        values[:, :, 2:] = np.where(grid, np.rint(values / size) * size, values)[:, :, 2:]
        single = problem.space.columns.single[:, None]
        values[:, :, 2:] = np.where(single, values.astype(np.float32), values)[:, :, 2:]
    for at in problem.space.embeddings:
        values[:, at, 2:] = here[:, at]
        values[:, at, -1] = far[:, at]
    outside = ~((values >= lower) & (values <= upper))
    outside[:, :, OWN] &= ~np.isnan(own)
    outside[:, :, 2:] |= values[:, :, 2:] == own[:, :, None]  # that has a place of its own
    for at, choices in rules.allowed.items():
        outside[:, at] |= ~choices[np.nan_to_num(values[:, at]).astype(int)]
    return np.where(outside, here, values)


def _shares(own: Array, here: Array, beyond: Array) -> Array:
    inner = own[:, :, None] + _INNER * (here - own)[:, :, None]
    outer = here[:, :, None] + _OUTER * (beyond - here)[:, :, None]
    outer[..., -1] = beyond  # without rounding, which might pass a bound
    return np.concatenate([inner, outer], axis=2)


class Splits:
    """Where a tree model splits each column, in one sorted array: complex numbers are ordered by column, then value."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self.values = np.concatenate([np.asarray(values, dtype=float) for values in columns])
        self._keys = np.repeat(np.arange(len(columns)), [len(values) for values in columns]) + 1j * self.values
        single = self.values.astype(np.float32)
        self._sides = np.array([np.nextafter(single, np.float32(end)) for end in (-np.inf, np.inf)], dtype=float)

    def across(self, own: Array, here: Array, most: int) -> Array:
        """Values (..., A, most) just across the splits between own (..., A) and here, on the far side.

        Here itself where there are fewer, or one of the two is missing.
        """
        if not len(self.values):
            return np.repeat(here[..., None], most, axis=-1)
        ends = np.empty((2, *own.shape), dtype=complex)
        ends.real = np.arange(own.shape[-1])
        np.minimum(own, here, out=ends.imag[0])
        np.maximum(own, here, out=ends.imag[1])
        low, high = np.searchsorted(self._keys, ends)
        count = high - low
        at = low[..., None] + np.arange(most) * count[..., None] // most
        far = self._sides[(here > own).view(np.int8)[..., None], np.minimum(at, len(self.values) - 1)]
        far = far.astype(own.dtype, copy=False)
        own, here = own[..., None], here[..., None]
        inside = (far - own) * (far - here) <= 0
        return np.where(_fresh(most)[np.minimum(count, most)] & inside, far, here)


@cache
def _fresh(most: int) -> Array:
    """Which of so many, taken evenly among 0, 1, ... most splits, differ from the one before: (most + 1, most)."""
    count = np.arange(most + 1)[:, None]
    return (np.diff(np.arange(most) * count // most, axis=1, prepend=-1) > 0) & (count > 0)
