"""Points while they are being polished. Shared by polishing and sliding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, floor_of
from cfproto_plugin.search.judge import Judge


@dataclass
class Points:
    """p points and where they are now."""

    row: Array  # (p,) line of the task
    table: Array  # (p, A) current values
    path_end: Array  # (p, A) how far out every column may go again
    cost: Array  # (p,) infinite while the point is not valid
    margin: Array  # (p,)
    floor: Array  # (p,) cost it may not go below
    reach: Array  # (p,) largest margin so far of a point that keeps the rules but has not changed class
    start: Candidates  # where they began


def starting_points(judge: Judge, starts: Candidates) -> Points:
    """The cheapest starts of every line, each predicted."""
    tuning, config = judge.task.tuning, judge.task.config
    order = np.lexsort((starts.cost, starts.row))
    row, cost = starts.row[order], starts.cost[order]
    first = np.searchsorted(row, row)
    near = np.arange(len(row)) - first < tuning.starts
    if config.max_changes is None:
        near &= cost <= tuning.start_range * cost[first]
    chosen = starts.take(order[near])
    margin = chosen.margin.copy()
    unknown = np.isnan(margin)
    if unknown.any():
        margin[unknown] = judge.free_margin(chosen.table[unknown], chosen.row[unknown])
    valid = (margin > 0) & judge.is_permitted(chosen.table, chosen.row)
    return Points(
        chosen.row,
        chosen.table.copy(),
        chosen.path_end,
        np.where(valid, chosen.cost, np.inf),
        margin,
        floor_of(config.polish or 0.0, chosen.cost),
        np.full(len(chosen.row), -np.inf),
        chosen,
    )


def worthwhile(judge: Judge, points: Points, table: Array, owner: Array, cost: Array, least: float) -> Array:
    """Which candidates (m, A) gain more than `least` over their owners (m,), stay above its floor, and are valid."""
    worth = (cost < (1 - least) * points.cost[owner]) & (cost >= points.floor[owner])
    at = np.flatnonzero(worth)
    at = at[~judge.space.broken(table[at], judge.task.rows.take(points.row[owner[at]]))]
    worth[:] = False
    worth[at] = judge.is_valid(table[at], points.row[owner[at]])
    return worth
