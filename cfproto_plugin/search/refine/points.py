"""Points while they are being polished. Shared by polishing and sliding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import FAR, Candidates, firsts
from cfproto_plugin.search.judge import Judge


@dataclass
class Points:
    """p points and where they are now."""

    row: Array  # (p,) line of the task, ascending
    table: Array  # (p, A) current values
    path_end: Array  # (p, A) how far out every column may go again
    goal: Array  # (p, A) the prototype, where L_proto is 0
    cost: Array  # (p,) infinite while the point is not valid
    margin: Array  # (p,)
    shortfall: Array  # (p,) by how much it misses the wishes
    reach: Array  # (p,) largest margin so far of a point that keeps the rules but has not changed class
    start: Candidates  # where they began

    @property
    def rank(self) -> Array:
        """(p,) what they are compared by."""
        return self.cost + FAR * self.shortfall

    def limit(self, at: Array) -> Array:
        """(q,) what a candidate of points at (q,) must cost less than: anything while they fall short of a wish."""
        return np.where(self.shortfall[at] > 0, np.inf, self.cost[at])

    def cheapest(self) -> Array:
        """(p,) the least cost of a point of the same row that meets all wishes; infinite for none."""
        begin, line = self._lines
        return np.minimum.reduceat(np.where(self.shortfall == 0, self.cost, np.inf), begin)[line]

    @cached_property
    def _lines(self) -> tuple[Array, Array]:
        """Where the points of every line begin, and (p,) the numbers of their lines among these."""
        begin = firsts(self.row)
        return begin, begin.searchsorted(np.arange(len(self.row)), side="right") - 1


def starting_points(judge: Judge, starts: Candidates, *, from_row: bool = False) -> Points:
    """The best starts of every line, each predicted; from_row: and the row itself, which is not valid yet."""
    tuning, config = judge.task.tuning, judge.task.config
    order = np.lexsort((starts.rank, starts.row))
    row, cost = starts.row[order], starts.rank[order]
    first = row.searchsorted(row)
    near = np.arange(len(row)) - first < tuning.starts
    if config.max_changes is None:
        near &= cost <= tuning.start_range * cost[first]
    at = order[near]
    own = _rows_themselves(judge, starts.row[at]) if from_row and len(row) else at[:0]
    at, is_own = np.concatenate([at, at[own]]), np.arange(len(at) + len(own)) >= len(at)
    together = starts.row[at].argsort(kind="stable")
    chosen, own = starts.take(at[together]), is_own[together].nonzero()[0]
    line = chosen.row[own]
    chosen.table[own], chosen.margin[own] = judge.task.rows.table[line], _known(judge, line)
    chosen.cost[own], chosen.shortfall[own] = np.inf, 0
    margin = chosen.margin.copy()
    unknown = np.isnan(margin)
    if unknown.any():
        margin[unknown] = judge.free_margin(chosen.table[unknown], chosen.row[unknown])
    valid = (margin > 0) & np.isfinite(chosen.cost) & judge.is_permitted(chosen.table, chosen.row)
    return Points(
        chosen.row,
        chosen.table.copy(),
        chosen.path_end,
        chosen.path_end,
        np.where(valid, chosen.cost, np.inf),
        margin,
        chosen.shortfall.copy(),
        np.full(len(chosen.row), -np.inf),
        chosen,
    )


def _rows_themselves(judge: Judge, line: Array) -> Array:
    """Positions of the best start of every line that does not break a rule itself: line (m,) ascending."""
    best = firsts(line)
    rows = judge.task.rows.take(line[best])
    return best[~judge.space.broken(rows.table, rows)]


def _known(judge: Judge, row: Array) -> Array:
    """The margins (m,) of the rows of lines (m,) by what the model said of them at first; NaN where that may differ."""
    proba, model = judge.task.proba, judge.model
    if proba is None or model.is_quick:
        return np.full(len(row), np.nan)
    return judge.margin_by(proba[row], judge.task.label[row] if model.decides else None, row)
