"""One change of an answer less, made up for by larger others: for models that answer every small change a little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.shortfall import first_that_meets

_FARTHER = np.array([1.0, 1.08, 1.2, 1.4, 1.8])  # times the way from the row, of the changes that are left
_MOST_COST = 1.05  # times that of the answer: polishing makes what costs more than it cheaper
_MOST_CHANGES = 16  # of an answer that are taken back, each alone: the smallest
_FIRST_ASKED = 8  # points of a line that are asked at first, whatever the batch


def search_fewer(judge: Judge, clock: Clock, answers: Candidates) -> Iterator[Candidates]:
    """Take one change of every answer back; yield the cheapest valid point that meets the wishes as a start.

    answers: of ascending lines. They meet the wishes, and change more than one column.
    """
    size = max(1, judge.task.tuning.cached // (_MOST_CHANGES * len(_FARTHER) * answers.table.shape[1]))
    for start in range(0, len(answers.row), size):
        if clock.is_over():
            return
        part = answers.take(np.arange(start, min(start + size, len(answers.row))))
        with clock.shared(part.row):
            yield _cheapest(judge, part)


def _cheapest(judge: Judge, answers: Candidates) -> Candidates:
    owner, table = _one_less(judge, answers)
    row = answers.row[owner]
    cost = judge.cost(table, row, answers.path_end[owner])
    at = np.flatnonzero(cost < _MOST_COST * answers.cost[owner])
    at = at[~judge.space.broken(table[at], judge.task.rows.take(row[at]))]
    margin = judge.margin(table[at], row[at])
    at, margin = at[margin > 0], margin[margin > 0]
    order = np.lexsort((cost[at], row[at]))
    at, margin = at[order], margin[order]
    meets = np.flatnonzero(first_that_meets(judge, table[at], row[at], row[at], first_asked=_FIRST_ASKED) == 0)
    meets = meets[firsts(row[at[meets]])]
    at = at[meets]
    found = answers.take(owner[at])
    return found._replace(
        table=table[at],
        cost=cost[at],
        margin=margin[meets],
        start=np.ones(len(at), dtype=bool),
        polished=np.zeros(len(at), dtype=bool),
    )


def _one_less(judge: Judge, answers: Candidates) -> tuple[Array, Array]:
    """Points (m, A), and the position (m,) of their answer."""
    rows = judge.task.rows.take(answers.row)
    step = judge.space.to_search(answers.table) - rows.z
    size = np.where(step == 0, np.inf, np.abs(step))
    column = np.argsort(size, axis=1, kind="stable")[:, :_MOST_CHANGES]
    owner, number = np.nonzero(np.isfinite(np.take_along_axis(size, column, axis=1)))
    left = step[owner]
    left[np.arange(len(owner)), column[owner, number]] = 0
    owner = np.tile(owner, len(_FARTHER))
    z = rows.z[owner] + (_FARTHER[:, None, None] * left).reshape(len(owner), -1)
    z = np.minimum(np.maximum(z, rows.z_lower[owner]), rows.z_upper[owner])
    return owner, judge.decode(z.astype(step.dtype, copy=False), answers.row[owner])[0]
