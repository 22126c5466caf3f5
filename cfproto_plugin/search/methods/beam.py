"""Where no path led anywhere: changes are added one at a time, those first that gain most margin.

A beam search. The values it tries in a column are quantiles of the training rows, or their most frequent categories.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.space import FeatureSpace, Rows


def search_beam(judge: Judge, clock: Clock, best: Array, train: Array) -> Iterator[Candidates]:
    """Look for counterfactuals of at most `max_changes` changes of the lines that have none; train is (N, A).

    Without that limit as long as a change gains margin, for about `beam_rows` points. Not in tables so wide that two
    values of every column are more candidates than fit in memory.
    """
    tuning = judge.task.tuning
    count = min(tuning.beam_values, tuning.cells // train.shape[1] ** 2)
    limited = judge.task.config.max_changes is not None
    if not limited:
        count = min(count, max(2, tuning.beam_rows // (4 * train.shape[1])))
    for row in np.flatnonzero(np.isinf(best)).tolist() if count > 1 else ():
        if clock.is_over():
            return
        with clock.shared(np.array([row])):
            yield from _search_line(judge, best, row, train, count)


def _search_line(judge: Judge, best: Array, row: int, train: Array, count: int) -> Iterator[Candidates]:
    origin, tuning = judge.task.rows.take(np.array([row])), judge.task.tuning
    values = _values(judge.space, origin, train, count)
    width = max(1, min(tuning.beam_width, tuning.cells // values.size // len(values)))
    limit, reached, tried = judge.task.config.max_changes, -np.inf, 0
    if limit is None:
        width = max(1, min(width, tuning.beam_rows // (2 * values.size)))
    beam = origin.table
    for _ in range(limit or len(values)):
        table = _one_more(beam, values, origin.table[0])
        rows = np.full(len(table), row)
        margin = judge.free_margin(table, rows)
        at = np.flatnonzero(margin > 0)
        at = at[judge.keeps_rules(table[at], rows[at])]
        if len(at):
            cost = judge.cost(table[at], rows[at])
            first = cheapest(rows[at], cost, best)
            at = at[first]
            trace, polished = traces(len(at), "beam"), bool(judge.task.config.polish)
            yield candidates(rows[at], table[at], cost[first], margin[at], trace, polished=polished)
            return
        tried += len(table)
        if not len(table) or (limit is None and (margin.max() <= reached or tried > tuning.beam_rows)):
            return
        reached = margin.max()
        beam = _best_sets(table, margin, judge.cost(table, rows), origin.table[0], width)


def _values(space: FeatureSpace, origin: Rows, train: Array, count: int) -> Array:
    """Values (A, count) to try, inside the rules; the original where there are fewer."""
    values = np.repeat(origin.table.T, count, axis=1)
    shares = np.linspace(0, 1, count)
    for at in np.flatnonzero(~space.rules.fixed).tolist():
        column = train[:, at][~np.isnan(train[:, at])]
        if at in space.embeddings:
            choices = space.rules.choices(at)
            counts = np.bincount(column.astype(int), minlength=len(choices)) * choices
            frequent = np.argsort(-counts, kind="stable")[: min(count, np.count_nonzero(counts))]
            values[at, : len(frequent)] = frequent
        else:
            values[at] = np.quantile(column, shares)
    z = np.minimum(np.maximum(space.to_search(values.T), origin.z_lower), origin.z_upper)
    return np.asarray(space.decode(z, origin.take(np.zeros(count, dtype=int))).T)


def _one_more(beam: Array, values: Array, original: Array) -> Array:
    """Every point of the beam (b, A) with every value (A, V) in every column that it has not changed yet."""
    free = ~changed(beam, original)
    point, column, number = np.nonzero(free[:, :, None] & changed(values, original[:, None])[None])
    table = beam[point]
    table[np.arange(len(table)), column] = values[column, number]
    return table


def _best_sets(table: Array, margin: Array, cost: Array, original: Array, width: int) -> Array:
    """The points with the largest margin, of equals the farthest, one of every set of changed columns."""
    order = np.lexsort((-cost, -margin))[: 64 * width]
    _, first = np.unique(changed(table[order], original), axis=0, return_index=True)
    return table[order[np.sort(first)[:width]]]
