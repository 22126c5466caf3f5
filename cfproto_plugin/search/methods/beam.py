"""Few changes where no path ends within the limit: changes are added one at a time, those first that lead most.

A beam search on the lead of the wanted classes. The values it tries in a column are quantiles of the training rows, or
their most frequent categories.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.problem import Problem
from cfproto_plugin.search.refine.points import floor_of
from cfproto_plugin.tables.space import Rows

_VALUES = 17  # tried in every column, fewer in wide tables
_WIDTH = 16  # sets of changes that go on
_CELLS = 16_000_000  # of all candidates of a row together


def search_sparse(problem: Problem, train: Array) -> None:
    """Look for counterfactuals of at most `max_changes` changes of the rows that have none yet.

    Not in tables so wide that two values of every column are more candidates than fit in memory.
    """
    count = min(_VALUES, _CELLS // train.shape[1] ** 2)
    for row in problem.open() if count > 1 else ():
        if problem.out_of_time():
            return
        with problem.clock(np.array([row])):
            _search_row(problem, row, train, count)


def _search_row(problem: Problem, row: int, train: Array, count: int) -> None:
    own = problem.rows.take(np.array([row]))
    values = _values(problem, own, train, count)
    width = max(1, min(_WIDTH, _CELLS // values.size // len(values)))
    beam = own.x
    for _ in range(problem.config.max_changes or 0):
        x = _one_more(beam, values, own.x[0])
        rows = np.full(len(x), row)
        lead = problem.free_lead(x, rows)
        at = np.flatnonzero(lead > 0)
        at = at[problem.permitted(x[at], rows[at]) & ~problem.space.broken(x[at], problem.rows.take(rows[at]))]
        if len(at):
            problem.keep(rows[at], x[at], problem.cost(x[at], rows[at]))
            problem.best.note[row] = "reached by changes added one by one"
            if problem.config.polish:
                problem.best.floor[row] = floor_of(problem.config.polish, problem.best.cost[row])
            return
        beam = _best_sets(x, lead, problem.cost(x, rows), own.x[0], width)
        if not len(beam):
            return


def _values(problem: Problem, own: Rows, train: Array, count: int) -> Array:
    """So many values (A, V) to try, inside the rules; the row's own where there are fewer."""
    values = np.repeat(own.x.T, count, axis=1)
    shares = np.linspace(0, 1, count)
    for at in np.flatnonzero(~problem.space.rules.fixed).tolist():
        column = train[:, at][~np.isnan(train[:, at])]
        if at in problem.space.embeddings:
            choices = problem.space.rules.choices(at)
            counts = np.bincount(column.astype(int), minlength=len(choices)) * choices
            frequent = np.argsort(-counts, kind="stable")[: min(count, np.count_nonzero(counts))]
            values[at, : len(frequent)] = frequent
        else:
            values[at] = np.quantile(column, shares)
    z = np.minimum(np.maximum(problem.space.to_search(values.T), own.z_lower), own.z_upper)
    return np.asarray(problem.space.decode(z, own.take(np.zeros(count, dtype=int))).T)


def _one_more(beam: Array, values: Array, own: Array) -> Array:
    """Every point of the beam (b, A) with every value in every column that it has not changed yet."""
    point, column, number = np.nonzero((beam == own)[:, :, None] & (values != own[:, None])[None])
    x = beam[point]
    x[np.arange(len(x)), column] = values[column, number]
    return x


def _best_sets(x: Array, lead: Array, cost: Array, own: Array, width: int) -> Array:
    """The points of most lead, of equals the farthest, one of every set of changed columns."""
    order = np.lexsort((-cost, -lead))[: 64 * width]
    _, first = np.unique(x[order] != own, axis=0, return_index=True)
    return x[order[np.sort(first)[:width]]]
