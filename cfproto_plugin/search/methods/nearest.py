"""The nearest training rows of an allowed class, moved inside the rules: what is left when the time is spent.

One search for all lines at once, by matrix products in 32 bits; nothing is predicted here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.helpers.nearest import shortlist, squared_distances
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, join, traces
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.tables.space import Rows

_UNMOVED = 8  # training rows of every line that keep the rules as they are
_SUREST = 8  # training rows with the highest probability of their class, which they may keep wherever they are moved
_ROUNDING = 1e-4  # squared distance, in 32 bits, of two points that may be the same


def nearest_rows(judge: Judge, guide: Guide, rows: Array, count: int) -> Candidates:
    """About `count` training rows near every line (n,), inside its rules: candidates whose margin is not known.

    Beside the rows that are nearest once they are moved, those that need not be moved and keep their class for sure,
    and a few that are likely to keep it although they are far away.
    """
    task, rules = judge.task, judge.space.rules
    z = judge.space.to_search(guide.train.astype(task.rows.table.dtype, copy=False))
    keeps = guide.proba >= (0 if task.least is None else task.least[guide.labels])
    keeps = keeps & rules.related(guide.train) if rules.relations else keeps
    found = [_candidates(judge, guide, rows[:0], z[:0], np.zeros((0, 1), dtype=int))]
    for some, which in _blocks(judge, guide, rows):
        near, moved = _distances(task.rows.take(some), z[which])
        at = [shortlist(near, count)]
        if moved is not None or not keeps.all() or task.config.max_changes is not None:
            near[:, ~keeps[which]] = np.inf
            if moved is not None:
                near[moved > _ROUNDING] = np.inf
            at.append(shortlist(near, min(count, _UNMOVED)))
            surest = np.argsort(-guide.proba[which], kind="stable")[: min(count, _SUREST)]
            at.append(np.broadcast_to(surest, (len(some), len(surest))))
        found.append(_candidates(judge, guide, some, z, which[np.concatenate(at, axis=1)]))
    return join(found)


def _blocks(judge: Judge, guide: Guide, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Lines that allow the same classes, and the training rows of these; their distances fit in memory."""
    patterns, number = np.unique(judge.task.sources[rows], axis=0, return_inverse=True)
    for at, allowed in enumerate(patterns):
        some, which = rows[number.ravel() == at], np.flatnonzero(allowed[guide.labels])
        size = max(1, judge.task.tuning.cells // max(len(which), 1))
        for start in range(0, len(some) if len(which) else 0, size):
            yield some[start : start + size], which


def _distances(origin: Rows, z: Array) -> tuple[Array, Array | None]:
    """Squared distances (n, N) of the lines to training rows z (N, D) inside their bounds, and how far those moved.

    None if none had to move.
    """
    bounded = (origin.z_lower > z.min(axis=0)).any(axis=0) | (origin.z_upper < z.max(axis=0)).any(axis=0)
    centre = z.mean(axis=0)
    points, lines, low, high = (
        (part - centre).astype(np.float32) for part in (z, origin.z, origin.z_lower, origin.z_upper)
    )
    near = squared_distances(lines[:, ~bounded], points[:, ~bounded])
    if not bounded.any():
        return near, None
    fixed = bounded & (low == lines).all(axis=0) & (high == lines).all(axis=0)
    moved = squared_distances(lines[:, fixed], points[:, fixed])
    for column in np.flatnonzero(bounded & ~fixed).tolist():
        value = points[:, column]
        inside = np.minimum(np.maximum(value, low[:, [column]]), high[:, [column]])
        near += np.square(inside - lines[:, [column]])
        moved += np.square(inside - value)
    return near, moved


def _candidates(judge: Judge, guide: Guide, rows: Array, z: Array, at: Array) -> Candidates:
    """Training rows at (n, m) of z (N, D), moved inside the rules of their lines."""
    task = judge.task
    row, which = np.repeat(rows, at.shape[1]), at.ravel()
    origin = task.rows.take(row)
    table, cost = judge.decode(np.minimum(np.maximum(z[which], origin.z_lower), origin.z_upper), row)
    order = np.lexsort((which, cost, row))
    order = order[(cost[order] > 0) & judge.keeps_rules(table[order], row[order])]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(which[order]) != 0) | (np.diff(row[order]) != 0)
    order = order[new]
    row, which = row[order], which[order]
    trace = traces(len(order), "nearest", prototype=guide.labels[which])
    return candidates(row, table[order], cost[order], np.full(len(order), np.nan), trace)
