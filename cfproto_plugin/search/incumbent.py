"""The best counterfactual of every line so far. Only the driver writes here."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces


class Incumbents:
    """n lines; the rank is infinite where there is none yet."""

    def __init__(self, n: int, like: Array) -> None:
        self._points = candidates(
            np.arange(n),
            np.full((n, like.shape[1]), np.nan, dtype=like.dtype),
            np.full(n, np.inf),
            np.full(n, np.nan),
            traces(n, ""),
        )
        self._points = self._points._replace(path_end=self._points.table.copy())
        self._rank = np.full(n, np.inf)

    @property
    def best(self) -> Array:
        """(n,) a view of the ranks that follows every offer and cannot be written to."""
        view = self._rank.view()
        view.flags.writeable = False
        return view

    @property
    def cost(self) -> Array:
        """(n,) what each costs."""
        return self._points.cost

    @property
    def table(self) -> Array:
        """(n, A) where each is."""
        return self._points.table

    @property
    def trace(self) -> Array:
        """(n,) how each was found."""
        return self._points.trace

    def found(self) -> Array:
        """(n,) bool: which lines have one."""
        return np.asarray(np.isfinite(self._rank))

    def falls_short(self) -> Array:
        """(n,) bool: which lines have one that misses a wish."""
        return np.asarray(self.found() & (self._points.shortfall > 0))

    def offer(self, points: Candidates) -> None:
        """Take over valid points that rank before what their line has."""
        at, rank = points.valid.nonzero()[0], points.rank
        at = at[cheapest(points.row[at], rank[at], self._rank)]
        row = points.row[at]
        for mine, part in zip(self._points, points, strict=True):
            mine[row] = part.take(at, axis=0)
        self._rank[row] = rank[at]

    def polished(self, row: Array) -> None:
        """Remember what lines (m,) cost before polishing, where they had something."""
        self._points.trace["before"][row], self._points.polished[row] = self._points.cost[row], True

    def as_candidates(self, row: Array) -> Candidates:
        """What the lines (m,) have, to be refined."""
        return self._points.take(row)
