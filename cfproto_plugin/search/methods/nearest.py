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
from cfproto_plugin.search.lookup import SUREST, ClassPoints
from cfproto_plugin.tables.space import Rows

_UNMOVED = 8  # training rows of every line that keep the rules as they are
_SLACK = 1e-6  # of the range of a column: rows of 32 bits have bounds that rounding moved
_ROUNDING = 1e-4  # squared distance, in 32 bits, of two points that may be the same


def nearest_rows(judge: Judge, guide: Guide, rows: Array, count: int, *, wished: bool = False) -> Candidates:
    """About `count` training rows near every line (n,), inside its rules: candidates whose margin is not known.

    Beside the rows that are nearest once they are moved, those that need not be moved and keep their class for sure,
    and a few that are likely to keep it although they are far away. wished: the former have the probability that is
    wished for.
    """
    task, keeps = judge.task, _keeps(judge, guide, judge.sure if wished else judge.task.least)
    centre, known = guide.lookup.of(judge.space, guide.train, guide.labels, guide.proba)
    found = [_candidates(judge, guide, rows[:0], np.zeros((0, 1), dtype=int))]
    for some, classes in _blocks(judge, rows, known):
        near, moved = _distances(task.rows.take(some), centre, classes)
        which = _joined([each.which for each in classes])
        at = [shortlist(near, count)]
        if moved is not None or keeps is not None or task.config.max_changes is not None:
            if keeps is not None:
                near[:, ~keeps[which]] = np.inf
            if moved is not None:
                near[moved > _ROUNDING] = np.inf
            at.append(shortlist(near, min(count, _UNMOVED)))
            surest = _surest(classes, guide.proba)[:count]
            at.append(np.broadcast_to(surest, (len(some), len(surest))))
        found.append(_candidates(judge, guide, some, which[np.concatenate(at, axis=1)]))
    return join(found)


def _keeps(judge: Judge, guide: Guide, least: Array | None) -> Array | None:
    """Which training rows (N,) have these probabilities (k,) and the relations that answers must have; None for all."""
    rules = judge.space.rules
    if least is None and not rules.relations:
        return None
    keeps = guide.proba >= (0 if least is None else least[guide.labels])
    keeps = keeps & rules.related(guide.train) if rules.relations else keeps
    return None if keeps.all() else np.asarray(keeps)


def _blocks(judge: Judge, rows: Array, known: dict[int, ClassPoints]) -> Iterator[tuple[Array, list[ClassPoints]]]:
    """Lines that allow the same classes, and the training rows of these; their distances fit in memory."""
    patterns, number = np.unique(judge.task.sources[rows], axis=0, return_inverse=True)
    for at, allowed in enumerate(patterns):
        some, classes = rows[number.ravel() == at], [each for label, each in known.items() if allowed[label]]
        size = max(1, judge.task.tuning.cells // max(sum(len(each.which) for each in classes), 1))
        for start in range(0, len(some) if classes else 0, size):
            yield some[start : start + size], classes


def _distances(origin: Rows, centre: Array, classes: list[ClassPoints]) -> tuple[Array, Array | None]:
    """Squared distances (n, N) of lines to the training rows of classes inside their bounds, and how far those move.

    None if none has to move.
    """
    with np.errstate(over="ignore"):  # ranges may end beyond all numbers of 32 bits
        lines, low, high = ((part - centre).astype(np.float32) for part in (origin.z, origin.z_lower, origin.z_upper))
    near: list[Array] = []
    moved: list[Array | None] = []
    for each in classes:
        slack = _SLACK * (each.high - each.low)
        bounded = (origin.z_lower > each.low + slack).any(axis=0)
        bounded = np.asarray(bounded | (origin.z_upper < each.high - slack).any(axis=0))
        if not bounded.any():
            near.append(squared_distances(lines, each.points, each.lengths))
            moved.append(None)
            continue
        both = _bounded_distances(lines, low, high, each.points, bounded)
        near.append(both[0])
        moved.append(both[1])
    if all(part is None for part in moved):
        return _joined(near), None
    return _joined(near), _joined([np.zeros_like(a) if b is None else b for a, b in zip(near, moved, strict=True)])


def _bounded_distances(lines: Array, low: Array, high: Array, points: Array, bounded: Array) -> tuple[Array, Array]:
    """Likewise of points (N, D), of which some lie outside the bounds (n, D) in the `bounded` (D,) columns."""
    near = squared_distances(lines[:, ~bounded], points[:, ~bounded])
    fixed = bounded & (low == lines).all(axis=0) & (high == lines).all(axis=0)
    moved = squared_distances(lines[:, fixed], points[:, fixed])
    for column in np.flatnonzero(bounded & ~fixed).tolist():
        value = points[:, column]
        inside = np.minimum(np.maximum(value, low[:, [column]]), high[:, [column]])
        near += np.square(inside - lines[:, [column]])
        moved += np.square(inside - value)
    return near, moved


def _surest(classes: list[ClassPoints], proba: Array) -> Array:
    """Places, in the joined rows of the classes, of those with the highest probability of their class."""
    starts = np.cumsum([0, *(len(each.which) for each in classes)])[:-1]
    place = np.concatenate([each.surest + start for each, start in zip(classes, starts, strict=True)])
    sure = np.concatenate([proba[each.which[each.surest]] for each in classes])
    return np.asarray(place[np.argsort(-sure, kind="stable")][:SUREST])


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def _candidates(judge: Judge, guide: Guide, rows: Array, at: Array) -> Candidates:
    """Training rows at (n, m), moved inside the rules of their lines."""
    task = judge.task
    row, which = np.repeat(rows, at.shape[1]), at.ravel()
    origin = task.rows.take(row)
    z = judge.space.to_search(guide.train[which].astype(task.rows.table.dtype, copy=False))
    table, cost = judge.decode(np.minimum(np.maximum(z, origin.z_lower), origin.z_upper), row)
    order = np.lexsort((which, cost, row))
    order = order[(cost[order] > 0) & judge.keeps_rules(table[order], row[order])]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(which[order]) != 0) | (np.diff(row[order]) != 0)
    order = order[new]
    row, which = row[order], which[order]
    trace = traces(len(order), "nearest", prototype=guide.labels[which])
    return candidates(row, table[order], cost[order], np.full(len(order), np.nan), trace)
