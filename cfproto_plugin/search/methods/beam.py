"""Changes are added one at a time, those first that gain most margin: where no path led anywhere, and for few changes.

A beam search. The values it tries in a column are quantiles of the training rows, or their most frequent categories.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.space import FeatureSpace, Rows

_SEEN = 2000  # training rows whose values are tried for a shorter list of changes


def search_beam(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """Look for counterfactuals of at most `max_changes` changes of the lines that have none.

    Without that limit as long as a change gains margin, for about `beam_rows` points. Not in tables so wide that two
    values of every column are more candidates than fit in memory.
    """
    tuning, limit = judge.task.tuning, judge.task.config.max_changes
    columns = guide.train.shape[1]
    count = min(tuning.beam_values, tuning.cells // columns**2)
    if limit is None:
        count = min(count, max(2, tuning.beam_rows // (4 * columns)))
    lines = np.flatnonzero(np.isinf(best))
    if count < 2 or not len(lines):  # noqa: PLR2004 the value of the row, and another
        return
    known = _known_values(judge.space, guide, 1, count)
    width = min(tuning.beam_width, tuning.cells // known.size // columns)
    if limit is None:
        width = min(width, tuning.beam_rows // (2 * known.size))
    most = np.array([limit or columns])
    for row in lines[:, None]:
        if clock.is_over():
            return
        with clock.shared(row):
            yield from _search_lines(judge, best, row, known, most, max(1, width), while_gaining=limit is None)


def search_shorter(
    judge: Judge, clock: Clock, best: Array, rows: Array, limit: Array, width: int, guide: Guide
) -> Iterator[Candidates]:
    """Look for counterfactuals of lines (m,) with at most limit (m,) changes, as starts; width: sets that go on.

    Polishing may make one cheaper than the best that is not yet.
    """
    tuning, columns = judge.task.tuning, guide.train.shape[1]
    count = min(tuning.beam_values, tuning.beam_rows // columns)
    if count < 2 or not len(rows):  # noqa: PLR2004
        return
    known = _known_values(judge.space, guide, -(-len(guide.train) // _SEEN), count)
    size = max(1, tuning.cells // (width * count * columns**2))
    for start in range(0, len(rows), size):
        if clock.is_over():
            return
        part = slice(start, start + size)
        with clock.shared(rows[part]):
            found = _search_lines(judge, np.full_like(best, np.inf), rows[part], known, limit[part], width)
            yield from (each._replace(start=np.ones(len(each.row), dtype=bool)) for each in found)


def _search_lines(
    judge: Judge, best: Array, rows: Array, known: Array, limit: Array, width: int, *, while_gaining: bool = False
) -> Iterator[Candidates]:
    """All lines (m,) side by side, the model is asked once for each number of changes; known: (A, V) values to try.

    limit: (m,) of the changes. while_gaining: of one line, end where no change gains margin, or after `beam_rows`.
    """
    reached, tried = -np.inf, 0
    origins = {row: judge.task.rows.take(np.array([row])) for row in rows.tolist()}
    beams = {row: origin.table for row, origin in origins.items()}
    values = {row: _values(judge.space, origin, known) for row, origin in origins.items()}
    most = dict(zip(rows.tolist(), limit.tolist(), strict=True))
    for number in range(int(limit.max())):
        tables = {
            row: _one_more(beam, values[row], origins[row].table[0])
            for row, beam in beams.items()
            if number < most[row]
        }
        tables = {row: table for row, table in tables.items() if len(table)}
        if not tables:
            return
        sizes = [len(table) for table in tables.values()]
        table, row = np.concatenate(list(tables.values())), np.repeat(list(tables), sizes)
        margin = judge.free_margin(table, row)
        at = np.flatnonzero(margin > 0)
        at = at[judge.keeps_rules(table[at], row[at])]
        cost = judge.cost(table[at], row[at])
        ended, first = set(row[at].tolist()), cheapest(row[at], cost, best)
        at, cost = at[first], cost[first]
        if len(at):
            trace, polished = traces(len(at), "beam"), bool(judge.task.config.polish)
            yield candidates(row[at], table[at], cost, margin[at], trace, polished=polished)
        tried += len(table)
        if while_gaining and (margin.max() <= reached or tried > judge.task.tuning.beam_rows):
            return
        reached, beams = margin.max(), {}
        for each, part in zip(tables, np.split(np.arange(len(table)), np.cumsum(sizes)[:-1]), strict=True):
            if each not in ended:
                cost = judge.cost(table[part], row[part])
                beams[each] = _best_sets(table[part], margin[part], cost, origins[each].table[0], width)


def _known_values(space: FeatureSpace, guide: Guide, step: int, count: int) -> Array:
    """Values (A, count) of each `step`-th training row to try; NaN where there are fewer, and in fixed columns."""
    values = guide.lookup.quantiles(guide.train, step, count).copy()
    values[[*np.flatnonzero(space.rules.fixed), *space.embeddings]] = np.nan
    for at in space.embeddings:
        if not space.rules.fixed[at]:
            column, choices = guide.train[::step, at], space.rules.choices(at)
            counts = np.bincount(column[~np.isnan(column)].astype(int), minlength=len(choices)) * choices
            frequent = np.argsort(-counts, kind="stable")[: min(count, np.count_nonzero(counts))]
            values[at, : len(frequent)] = frequent
    return values


def _values(space: FeatureSpace, origin: Rows, known: Array) -> Array:
    """Of the values (A, V) those inside the rules of a row; the original where there is none."""
    values = np.where(np.isnan(known), origin.table.T, known)
    z = np.minimum(np.maximum(space.to_search(values.T), origin.z_lower), origin.z_upper)
    return np.asarray(space.decode(z, origin.take(np.zeros(values.shape[1], dtype=int))).T)


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
    sets = np.packbits(changed(table[order], original), axis=1)
    _, first = np.unique(sets.view(np.dtype((np.void, sets.shape[1]))).ravel(), return_index=True)
    return table[order[np.sort(first)[:width]]]
