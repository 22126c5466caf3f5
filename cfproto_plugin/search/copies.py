"""Copies of a point with a little noise: what tells a counterfactual from an adversarial example.

An answer whose copies keep its class holds for somebody who cannot hit its numbers exactly, and mostly for a model that
is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.geometry import clip
from cfproto_plugin.tables.space import FeatureSpace


@dataclass(frozen=True)
class Copies:
    """A fixed set of steps (K, A), in units of the table: the same for every point. Categories stay, as do gaps."""

    steps: Array
    noise: float  # standard deviations

    @classmethod
    def of(cls, space: FeatureSpace, noise: float, count: int, seed: int) -> Copies:
        """Normal steps of `noise` standard deviations of every number, each with its opposite."""
        rng = np.random.default_rng(seed)
        half = rng.standard_normal((-(-count // 2), len(space.factor)))
        steps = np.stack([half, -half], axis=1).reshape(-1, half.shape[1])[:count]
        numbers = np.array([attribute.levels is None for attribute in space.columns.attributes])
        return cls(noise * steps * space.deviation * numbers, noise)

    def order(self, table: Array, original: Array) -> Array:
        """Numbers (m, K) of the copies of points (m, A), those first that go back farthest towards their row (m, A)."""
        most = np.abs(self.steps).max(axis=0, initial=0)
        most = np.where(most > 0, most, 1.0)
        size = most * np.sqrt(np.square(self.steps / most).mean(axis=0))
        unit = np.where(size > 0, size, np.inf)
        towards = np.nan_to_num(original - table) / unit
        return np.argsort(-towards @ (self.steps / unit).T, axis=1, kind="stable")

    def around(self, table: Array, space: FeatureSpace, which: Array | None = None) -> Array:
        """The copies (m, K, A) of points (m, A), inside the range of the columns and as these can hold them.

        which: (m, K) their numbers, if not all.
        """
        rules, steps = space.rules, self.steps if which is None else self.steps[which]
        moved = table[:, None] + steps.astype(table.dtype, copy=False)
        lower, upper = rules.grid.draw_in(table, np.fmin(rules.low, table), np.fmax(rules.high, table))
        moved = clip(moved, lower[:, None], upper[:, None])
        moved = rules.grid.snap(moved) if rules.grid.rounds else moved
        still = self._still if which is None else self._still[which]
        missing = np.isnan(table)
        if missing.any():
            still = still | missing[:, None]
        return np.where(still, table[:, None], moved).astype(table.dtype, copy=False)

    @cached_property
    def _still(self) -> Array:
        """(K, A) bool: categories, and columns that never vary."""
        return np.asarray(self.steps == 0)
