"""Copies of a point with a little noise: what tells a counterfactual from an adversarial example.

An answer whose copies keep its class holds for somebody who cannot hit its numbers exactly, and mostly for a model that
is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.geometry import clip
from cfproto_plugin.tables.space import FeatureSpace


@dataclass(frozen=True)
class Copies:
    """A fixed set of steps (K, A), in units of the table: the same for every point. Categories stay."""

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

    def split(self, first: int) -> tuple[Copies, Copies]:
        """The first so many, and the others."""
        return replace(self, steps=self.steps[:first]), replace(self, steps=self.steps[first:])

    def around(self, table: Array, space: FeatureSpace) -> Array:
        """The copies (m, K, A) of points (m, A), inside the range of the columns and as these can hold them."""
        rules = space.rules
        moved = table[:, None] + self.steps.astype(table.dtype)
        lower, upper = rules.grid.draw_in(table, np.fmin(rules.low, table), np.fmax(rules.high, table))
        moved = clip(moved, lower[:, None], upper[:, None])
        moved = rules.grid.snap(moved) if rules.grid.rounds else moved
        still = self.steps == 0  # categories, and columns that never vary
        return np.where(still, table[:, None], moved).astype(table.dtype, copy=False)
