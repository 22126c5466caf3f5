"""The values that polishing tries in every column of a point, and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.points import Points
from cfproto_plugin.search.problem import Problem

HERE, OWN = 0, 1  # places of the present value and of the row's own
_PLACES = 4  # tried between the two, and as many farther out
_INNER, _OUTER = np.arange(1, _PLACES + 1) / (_PLACES + 1), np.arange(1, _PLACES + 1) / _PLACES


class Moves(NamedTuple):
    """Per point, column and place, all (p, A, V)."""

    values: Array
    cost: Array
    fresh: Array  # differs from the present value, so that its effect has to be measured


def moves_of(problem: Problem, points: Points, active: Array, splits: Splits | None) -> Moves:
    """The moves of the active points."""
    row = points.row[active]
    own, here, far = problem.rows.x[row], points.x[active], points.far[active]
    values = _places(problem, row, own, here, far, splits)
    changed = (values != own[:, :, None]) & ~(np.isnan(values) & np.isnan(own)[:, :, None])
    flat = values.transpose(0, 2, 1).reshape(-1, own.shape[1])
    z = problem.space.to_search(flat).reshape(len(own), values.shape[2], -1).transpose(0, 2, 1)
    size = np.abs(z - problem.rows.z[row][:, :, None])
    cost = problem.config.beta * size + size * size + problem.config.few_changes * changed
    fresh = values != here[:, :, None]
    fresh[:, :, OWN + 1 :] &= changed[:, :, OWN + 1 :]
    fresh[:, :, OWN] &= ~(np.isnan(own) & np.isnan(here))
    return Moves(values, cost, fresh)


def _places(problem: Problem, row: Array, own: Array, here: Array, far: Array, splits: Splits | None) -> Array:
    """Values (p, A, V): here, the row's own, some between the two, some farther out."""
    beyond = np.where(np.abs(far - own) > np.abs(here - own), far, here)
    inner = own[:, :, None] + _INNER * (here - own)[:, :, None]
    outer = here[:, :, None] + _OUTER * (beyond - here)[:, :, None]
    rules = problem.space.rules
    if splits is not None:
        free = np.nonzero((rules.step == 0) & ~np.isnan(own))
        o, h, b = own[free], here[free], beyond[free]
        column = np.concatenate([free[1], free[1]])
        both = splits.across(column, np.concatenate([o, h]), np.concatenate([h, b]), _PLACES)
        inner[free], outer[free] = both[: len(o)], both[len(o) :]
    values = np.concatenate([here[:, :, None], own[:, :, None], inner, outer], axis=2)
    lower, upper = problem.rows.lower[row][:, :, None], problem.rows.upper[row][:, :, None]
    if problem.space.rounds:
        grid = rules.step[:, None] > 0
        size = np.where(grid, rules.step[:, None], 1.0)
        values[:, :, 2:] = np.where(grid, np.rint(values / size) * size, values)[:, :, 2:]
        single = problem.space.columns.single[:, None]
        values[:, :, 2:] = np.where(single, values.astype(np.float32), values)[:, :, 2:]
    for at in problem.space.embeddings:
        values[:, at, 2:] = here[:, at, None]
        values[:, at, -1] = far[:, at]
    outside = (values < lower) | (values > upper) | np.isnan(values)
    outside[:, :, OWN] &= ~np.isnan(own)
    for at, choices in rules.allowed.items():
        outside[:, at] |= ~choices[np.nan_to_num(values[:, at]).astype(int)]
    return np.where(outside, here[:, :, None], values)


class Splits:
    """Where a tree model splits each column, in one sorted array: complex numbers are ordered by column, then value."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self.values = np.concatenate([np.asarray(values, dtype=float) for values in columns])
        self._keys = np.repeat(np.arange(len(columns)), [len(values) for values in columns]) + 1j * self.values

    def across(self, column: Array, own: Array, here: Array, most: int) -> Array:
        """Values (m, most) just across the splits between own and here, on the far side; here itself where fewer."""
        if not len(self.values):
            return np.repeat(here[:, None], most, axis=1)
        ends = np.empty((2, len(own)), dtype=complex)
        ends.real = column
        np.minimum(own, here, out=ends.imag[0])
        np.maximum(own, here, out=ends.imag[1])
        low, high = np.searchsorted(self._keys, ends)
        count = high - low
        at = low[:, None] + np.arange(most) * np.maximum(count, 1)[:, None] // most
        fresh = np.ones(at.shape, dtype=bool)
        fresh[:, 1:] = at[:, 1:] > at[:, :-1]
        chosen = self.values[np.minimum(at, len(self.values) - 1)]
        towards = np.where(here > own, np.float32(np.inf), np.float32(-np.inf))[:, None]
        far = np.nextafter(chosen.astype(np.float32), towards).astype(here.dtype)
        inside = (far - own[:, None]) * (far - here[:, None]) <= 0
        return np.where(fresh & inside & (count > 0)[:, None], far, here[:, None])
