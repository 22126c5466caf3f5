"""The best counterfactual of every line so far. Only the driver writes here."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces


class Incumbents:
    """n lines; cost is infinite where there is none yet."""

    def __init__(self, n: int, like: Array) -> None:
        self.table = np.full((n, like.shape[1]), np.nan, dtype=like.dtype)
        self.cost = np.full(n, np.inf)
        self.floor = np.full(n, np.inf)
        self.trace = traces(n, "")

    @property
    def best(self) -> Array:
        """(n,) a view of the costs that follows every offer and cannot be written to."""
        view = self.cost.view()
        view.flags.writeable = False
        return view

    def found(self) -> Array:
        """(n,) bool: which lines have one."""
        return np.asarray(np.isfinite(self.cost))

    def offer(self, points: Candidates) -> None:
        """Take over valid points that are cheaper than what their line has."""
        points = points.take(points.valid)
        at = cheapest(points.row, points.cost, self.cost)
        row = points.row[at]
        self.table[row], self.cost[row] = points.table[at], points.cost[at]
        self.floor[row], self.trace[row] = points.floor[at], points.trace[at]

    def polished(self, row: Array, floor: Array) -> None:
        """Remember what lines (m,) cost before polishing, and how far it may go, where they had something."""
        self.trace["before"][row], self.floor[row] = self.cost[row], floor

    def as_candidates(self, row: Array) -> Candidates:
        """What the lines (m,) have, to be refined; their margin is not known."""
        unknown = np.full(len(row), np.nan)
        return candidates(row, self.table[row], self.cost[row], unknown, self.trace[row], floor=self.floor[row])
