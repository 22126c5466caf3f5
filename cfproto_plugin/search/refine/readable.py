"""Shorter numbers: changed values with as few digits as class, rules and cost allow.

Only for columns that follow no grid: those of computed numbers, which have more than six decimals. A value is rounded
to 10^(e - level), where 10^e is the size of the column's standard deviation: to the nearest such number, or to the next
one away from the original, which seldom loses the class.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.shortfall import first_that_meets
from cfproto_plugin.tables.geometry import changed, clip

_LEVELS = 9  # 0 is one digit for a change of a standard deviation
_DEARER = 0.01  # of the cost that fewer digits may add
_MANY = 64  # changes: with more, single columns are not looked at, which would take too long
_LARGEST = 1e15  # beyond, powers of ten and their multiples are not exact
_FAR = 20  # more decimal places than exact numbers have
_POWERS = 10.0 ** np.arange(_FAR + 1)


def shortened(judge: Judge, points: Candidates) -> Candidates:
    """The points with shorter numbers: first the fewest digits for all columns alike, then fewer column by column.

    Three predict calls for as many points as fit in memory. Where many columns changed, they have as many digits each.
    """
    rows, grid = judge.task.rows.take(points.row), judge.space.rules.grid
    cells = changed(points.table, rows.table) & grid.shortened
    if not cells.any():
        return points
    table, cost = points.table.copy(), points.cost.copy()
    size = max(1, judge.task.tuning.cells // (2 * _LEVELS * cells.shape[1]))  # points whose candidates fit in memory
    for start in range(0, len(cells), size):
        part = np.arange(start, min(start + size, len(cells)))
        work = _Shortening(judge, points.take(part), cells[part])
        work.together()
        work.by_column()
        table[part], cost[part] = work.table, work.cost
    return points._replace(table=table, cost=cost)


class _Shortening:
    """Points (m,) and the level of each of their cells (m, A); _LEVELS is all digits."""

    def __init__(self, judge: Judge, points: Candidates, cells: Array) -> None:
        self.judge, self.row, self.cells = judge, points.row, cells
        self.full, self.goal, self.shortfall = points.table, points.path_end, points.shortfall
        self.most = points.cost * (1 + _DEARER)
        self.table, self.cost = points.table.copy(), points.cost.copy()
        self.level = np.full(cells.shape, _LEVELS)
        self.outward = np.zeros(cells.shape, dtype=bool)

    def together(self) -> None:
        """Every changed cell at the same level: the first that holds, nearest before outward."""
        point, choice = (part.ravel() for part in np.indices((len(self.row), 2 * _LEVELS)))
        some = np.any(self.cells, axis=1)[point]
        point, choice = point[some], choice[some]
        level = np.where(self.cells[point], (choice // 2)[:, None], _LEVELS)
        outward = np.broadcast_to((choice % 2 == 1)[:, None], level.shape)
        self._take(point, level, outward)

    def by_column(self) -> None:
        """Fewer digits for single cells, then for as many of these at once as hold."""
        best = self._shortest()
        shorter = np.argwhere(best < 2 * _LEVELS)  # by point, then column
        if not len(shorter):
            return
        saved = (self.level - best // 2)[tuple(shorter.T)]
        shorter = shorter[np.lexsort((-saved, shorter[:, 0]))]
        place = np.arange(len(shorter)) - np.searchsorted(shorter[:, 0], shorter[:, 0])
        point = shorter[:, 0]
        level, outward = self.level[point], self.outward[point]
        for back in range(int(place.max()) + 1):  # the cell itself, and those of its point that come before it
            at = np.flatnonzero(place >= back)
            who, column = shorter[at - back].T
            level[at, column], outward[at, column] = best[who, column] // 2, best[who, column] % 2 == 1
        order = np.lexsort((-place, point))
        self._take(point[order], level[order], outward[order])

    def _shortest(self) -> Array:
        """(m, A) the first choice that holds for a changed cell by itself; 2 · _LEVELS for none, or if many changed."""
        few = self.cells & (self.cells.sum(axis=1, keepdims=True) <= _MANY)
        point, column, choice = np.nonzero(few[..., None] & (np.arange(2 * _LEVELS) // 2 < self.level[..., None]))
        best = np.full(self.cells.shape, 2 * _LEVELS)
        size = max(1, self.judge.task.tuning.cells // self.cells.shape[1])
        for start in range(0, len(point), size):
            who, where, what = (part[start : start + size] for part in (point, column, choice))
            level, outward, each = self.level[who], self.outward[who], np.arange(len(who))
            level[each, where], outward[each, where] = what // 2, what % 2 == 1
            holds, _, _ = self._tried(who, level, outward)
            np.minimum.at(best, (who[holds], where[holds]), what[holds])
        return best

    def _take(self, point: Array, level: Array, outward: Array) -> None:
        """Move every point to the first of its candidates (q,), by point, that holds and falls no shorter of a wish."""
        holds, table, cost = self._tried(point, level, outward)
        at = np.flatnonzero(holds)
        mine = point[at]
        at = at[first_that_meets(self.judge, table[at], self.row[mine], mine, self.shortfall[mine]) == 0]
        who, first = np.unique(point[at], return_index=True)
        at = at[first]
        self.table[who], self.cost[who] = table[at], cost[at]
        self.level[who], self.outward[who] = level[at], outward[at]

    def _tried(self, point: Array, level: Array, outward: Array) -> tuple[Array, Array, Array]:
        """Which candidates hold (q,): class, rules and cost; their tables and costs."""
        judge, row = self.judge, self.row[point]
        table = self._rounded(point, level, outward)
        cost = judge.cost(table, row, self.goal[point])
        holds = (cost <= self.most[point]) & changed(table, judge.task.rows.table[row]).any(axis=1)
        at = np.flatnonzero(holds)
        at = at[judge.keeps_rules(table[at], row[at])]
        holds[:] = False
        holds[at] = judge.is_valid(table[at], row[at])
        return holds, table, cost

    def _rounded(self, point: Array, level: Array, outward: Array) -> Array:
        """The points with every cell rounded to its level (q, A), where that is less than all digits."""
        space, rows = self.judge.space, self.judge.task.rows.take(self.row[point])
        full = self.full[point].astype(np.float64)
        exponent = np.clip(np.floor(np.log10(np.abs(space.factor))) - level, -_FAR, _FAR)
        up, down = (_POWERS[np.maximum(part, 0).astype(int)] for part in (-exponent, exponent))
        count = full * up / down
        away = np.where(full > rows.table, np.ceil(count), np.floor(count))
        count = np.where(outward, away, np.rint(count))
        exact = (np.maximum(up, down) <= _LARGEST) & (np.abs(count) <= _LARGEST) & (level < _LEVELS)
        value = space.rules.grid.snap(clip(count * down / up + 0.0, rows.lower, rows.upper))
        return np.where(exact & self.cells[point], value, full).astype(self.full.dtype)
