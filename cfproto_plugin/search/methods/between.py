"""Paths to prototypes for targets that are intervals of probabilities: a path may jump over a narrow one.

Where the probability is below the interval at one point of a path and above it at the next, the place between the two
is looked for by dividing: eight parts a round, one predict call for all lines.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.intervals import Intervals
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.path import path_ends, path_points

_PARTS, _ROUNDS = 8, 5  # of the way between two points, and how often: to 1/32,768 of it


def search_between(
    judge: Judge,
    clock: Clock,
    best: Array,
    rows: Array,
    prototypes: Array,
    classes: Array,
    theta: float,
    method: str = "path",
) -> Iterator[Candidates]:
    """Yield the valid points, and the best one, of the paths from lines (n,) to prototypes (n, m, D) of classes (n, m).

    theta: where the paths begin.
    """
    tuning = judge.task.tuning
    m, d = min(tuning.prototypes, prototypes.shape[1]), prototypes.shape[2]
    size = max(1, tuning.cached // (m * tuning.coarse * d))
    for start in range(0, len(rows), size):
        if clock.is_over():
            return
        part = slice(start, start + size)
        line, path = np.nonzero(classes[part, :m] >= 0)
        with clock.shared(rows[part]):
            search = _Between(judge, rows[part][line], prototypes[part][line, path], classes[part][line, path], method)
            yield from search.points(best, theta / (1 + theta))
        clock.report(min(1.0, (start + size) / len(rows)))


class _Between:
    """Paths of lines (p,) to prototypes (p, D) of classes (p,)."""

    def __init__(self, judge: Judge, row: Array, prototypes: Array, classes: Array, method: str) -> None:
        self.judge, self.row, self.prototypes, self.classes, self.method = judge, row, prototypes, classes, method
        self.intervals: Intervals | None = judge.task.intervals

    def points(self, best: Array, least: float) -> Iterator[Candidates]:
        if self.intervals is None or not len(self.row):
            return
        paths = np.arange(len(self.row))
        ladder = np.append(0.0, np.linspace(least, 1, self.judge.task.tuning.coarse))  # the interval may lie before it
        t = np.repeat(ladder[None], len(paths), axis=0)
        for _ in range(1 + _ROUNDS):
            found, sides, valid = self.tried(paths, t, best)
            yield found
            crossing = (sides[:, :-1] * sides[:, 1:] == -1).any(axis=2)
            going = np.flatnonzero(crossing.any(axis=1) & ~valid.any(axis=1))
            if not len(going):
                return
            first = crossing[going].argmax(axis=1)
            low, high = t[going, first], t[going, first + 1]
            paths = paths[going]
            t = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _PARTS + 1)

    def tried(self, paths: Array, t: Array, best: Array) -> tuple[Candidates, Array, Array]:
        """The points at t (p, s) of paths (p,): candidates, the sides (p, s, k) they lie on, and which are valid."""
        judge, row = self.judge, np.repeat(self.row[paths], t.shape[1])
        origin = judge.task.rows.take(self.row[paths])
        config = judge.task.config
        z = path_points(
            origin.z, self.prototypes[paths, None], t[:, None], origin.z_lower, origin.z_upper, judge.task.beta
        )
        end = path_ends(judge, self.row[paths], self.prototypes[paths, None])
        goal = np.repeat(judge.space.to_search(end), t.shape[1], axis=1) if judge.theta else None
        table, cost = judge.decode(z[:, 0], self.row[paths], goal)
        table, cost = table.reshape(len(row), -1), cost.ravel()
        proba = judge.model.quick(table, judge.task.group[row])
        margin = judge.free_margin(table, row, proba)
        valid = (margin > 0) & (cost > 0) & judge.is_permitted(table, row)
        worth = np.where(valid, -cost, np.where(cost > 0, margin - cost.max() - 1, -np.inf))  # the valid ones first
        near = worth.reshape(t.shape).argmax(axis=1)
        start = np.zeros(t.shape, dtype=bool)
        start[np.arange(len(paths)), near] = bool(config.polish)
        at = np.flatnonzero((valid & (cost < best[row])) | (start.ravel() & (cost > 0)))
        share = t.ravel()[at]
        with np.errstate(divide="ignore"):
            theta = share / (1 - share)
        found = candidates(
            row[at],
            table[at],
            cost[at],
            margin[at],
            traces(len(at), self.method, prototype=np.repeat(self.classes[paths], t.shape[1])[at], theta=theta),
            valid=valid[at],
            start=start.ravel()[at],
            path_end=end[at // t.shape[1], 0],
        )
        intervals = Intervals(*(side[row] for side in self.intervals or ()))
        return found, intervals.sides(proba).reshape(*t.shape, -1), valid.reshape(t.shape)
