"""Where few columns are free: all combinations of values of these, so that little of what can be reached is missed.

First a coarse product for all lines at once, then a fine one line by line, then finer ones around its best points. A
tree model gets one value for every interval between its splits, as far as they fit; for other models values are spread
evenly over the range and over the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.tables.space import Rows

_EVEN, _QUANTILES = 256, 128  # values of a column that are considered
_ZOOMS, _CENTRES = 3, 4  # rounds around the best points, and how many of these


def search_product(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """Try combinations of values for the lines that have nothing and at most `product_columns` free columns."""
    search, tuning = _Product(judge, best, guide), judge.task.tuning
    free = free_columns(judge)
    few = (free.sum(axis=1) <= tuning.product_columns) & free.any(axis=1)
    coarse = min(tuning.product_coarse, tuning.product_rows)
    size = max(1, tuning.cells // (coarse * free.shape[1]))
    rows = np.flatnonzero(np.isinf(best) & few)
    for start in range(0, len(rows), size):
        if clock.is_over():
            return
        with clock.shared(rows[start : start + size]):
            yield search.tried([search.product(row, free[row], coarse) for row in rows[start : start + size].tolist()])
    for row in rows[np.isinf(best[rows])].tolist():
        if clock.is_over():
            return
        with clock.shared(np.array([row])):
            yield from search.closely(row, free[row])


def free_columns(judge: Judge) -> Array:
    """(n, A) bool: the columns that a line may change."""
    rows = judge.task.rows
    return np.asarray((rows.z_lower < rows.z_upper) & ~judge.space.rules.fixed)


class _Product:
    """One search of products; `best` follows what was found."""

    def __init__(self, judge: Judge, best: Array, guide: Guide) -> None:
        self.judge, self.best, self.guide = judge, best, guide
        self.margin = np.zeros(0)  # of the points that were tried last

    def product(self, row: int, free: Array, most: int) -> tuple[int, Array]:
        """All combinations (m, A) of values of the free columns (A,) of a line, about `most`."""
        origin = self.judge.task.rows.take(np.array([row]))
        known = {column: self._candidates(origin, column) for column in np.flatnonzero(free).tolist()}
        chosen: dict[int, Array] = {}
        for column in sorted(known, key=lambda column: len(known[column][0])):
            share = (most / np.prod([len(values) for values in chosen.values()])) ** (1 / (len(known) - len(chosen)))
            chosen[column] = _thinned(*known[column], max(2, int(share)))
        return row, self._combined(origin, chosen)

    def closely(self, row: int, free: Array) -> Iterator[Candidates]:
        """The fine product of one line, then products around the points with the largest margin."""
        tuning = self.judge.task.tuning
        _, table = self.product(row, free, tuning.product_rows)
        yield self.tried([(row, table)])
        columns = np.flatnonzero(free & ~np.isin(np.arange(len(free)), list(self.judge.space.embeddings)))
        if self.guide.splits is not None or not len(columns):
            return
        origin = self.judge.task.rows.take(np.array([row]))
        each = max(3, int((tuning.product_coarse * 2) ** (1 / len(columns))))
        width = np.zeros(len(free))
        for at in columns.tolist():
            low, high = self._ends(origin, at)
            width[at] = (high - low) / tuning.product_rows ** (1 / len(columns))
        for _ in range(_ZOOMS):
            if np.isfinite(self.best[row]) or not np.isfinite(self.margin).any():
                return
            centres = table[np.argsort(-self.margin, kind="stable")[:_CENTRES]]
            parts = []
            for centre in centres:
                around = {at: centre[at] + width[at] * np.linspace(-1, 1, each) for at in columns.tolist()}
                parts.append(self._combined(origin, around, centre))
            table, width = np.concatenate(parts), 2 * width / each
            yield self.tried([(row, table)])

    def tried(self, products: list[tuple[int, Array]]) -> Candidates:
        """Predict the points of some lines that keep the rules; the cheapest valid one of every line."""
        judge, config = self.judge, self.judge.task.config
        row = np.repeat([row for row, _ in products], [len(table) for _, table in products])
        table = np.concatenate([table for _, table in products])
        self.margin = np.full(len(table), -np.inf)
        at = np.flatnonzero(judge.keeps_rules(table, row))
        self.margin[at] = judge.free_margin(table[at], row[at])
        cost = judge.cost(table, row)
        at = np.flatnonzero((self.margin > 0) & (cost > 0))
        at = at[cheapest(row[at], cost[at], self.best)]
        trace, polished = traces(len(at), "product"), bool(config.polish)
        return candidates(row[at], table[at], cost[at], self.margin[at], trace, polished=polished)

    def _candidates(self, origin: Rows, column: int) -> tuple[Array, Array]:
        """Values of a column, and how much each stands for."""
        space, guide = self.judge.space, self.guide
        if column in space.embeddings:
            codes = guide.train[:, column]
            counts = np.bincount(codes[~np.isnan(codes)].astype(int), minlength=len(space.embeddings[column]))
            values = np.flatnonzero(space.rules.choices(column))
            return values.astype(origin.table.dtype), counts[values]
        low, high = self._ends(origin, column)
        if guide.splits is not None:
            splits = guide.splits.of(column)
            inside = (splits > low) & (splits < high)
            ends = np.concatenate([[low], splits[inside], [high]])
            widths, values = np.concatenate([[np.inf, np.inf], np.diff(ends)]), (ends[1:] + ends[:-1]) / 2
            if space.rules.grid.step[column] > 0:  # the middle may round to another interval
                values[1:] = guide.splits.above(column)[inside]
            return np.concatenate([[low, high], values]), widths
        train = guide.train[:, column]
        spread = np.quantile(train[~np.isnan(train)], np.linspace(0, 1, _QUANTILES))
        values = np.unique(np.concatenate([np.linspace(low, high, _EVEN), np.clip(spread, low, high)]))
        return values, np.zeros(0)

    def _ends(self, origin: Rows, column: int) -> tuple[float, float]:
        """The lowest and highest value to try: the bounds; without a bound, beyond all training values and splits."""
        known = [self.guide.train[:, column], origin.table[:, column]]
        if self.guide.splits is not None:
            known.append(self.guide.splits.of(column))
        values = np.concatenate(known)
        low, high = origin.lower[0, column], origin.upper[0, column]
        return (
            float(low if np.isfinite(low) else np.nanmin(values) - 1),
            float(high if np.isfinite(high) else np.nanmax(values) + 1),
        )

    def _combined(self, origin: Rows, values: dict[int, Array], centre: Array | None = None) -> Array:
        """All combinations (m, A) of the values of some columns and the original ones, as the columns can hold them."""
        space, lists = self.judge.space, []
        for column, some in values.items():
            table = np.repeat(origin.table, len(some), axis=0)
            table[:, column] = some
            z = np.minimum(np.maximum(space.to_search(table), origin.z_lower), origin.z_upper)
            held = space.decode(z, origin.take(np.zeros(len(some), dtype=int)))[:, column]
            lists.append(np.unique(np.append(held, origin.table[0, column])))
        grid = np.meshgrid(*lists, indexing="ij")
        found = np.repeat(origin.table if centre is None else centre[None], grid[0].size, axis=0)
        found[:, list(values)] = np.stack([part.ravel() for part in grid], axis=1)
        return found


def _thinned(values: Array, weight: Array, most: int) -> Array:
    """At most `most` of the values: those of the largest weight, or without weights evenly spaced ones."""
    if len(values) <= most:
        return values
    if not len(weight):
        return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])
    return np.asarray(values[np.argsort(-weight, kind="stable")[:most]])
