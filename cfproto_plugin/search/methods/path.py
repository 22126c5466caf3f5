"""The closed-form path from a row to its prototypes, for objectives without L_pred and L_AE.

beta·|delta|_1 + |delta|^2 + theta·|x0 + delta - proto|^2 is separable. With t = theta / (1 + theta) and d = proto - x0
its minimiser is delta_k = soft(t d_k, (1 - t) beta / 2), clipped to the bounds: from x0 at t = 0 to the prototype at
t = 1. beta·L1 + L2 grows with t, so the first point of an allowed class is the best of its path. A theta that the user
gave is where the path begins: at the minimiser of that objective.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, candidates, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge

_FEWEST = 4  # points of a path that begins near its end


def path_points(z0: Array, prototypes: Array, t: Array, lower: Array, upper: Array, beta: float) -> Array:
    """Points (n, m, s, D) at t (n, m, s) of the paths from z0 (n, D) to prototypes (n, m, D); bounds are (n, D)."""
    d = (prototypes - z0[:, None])[:, :, None]
    t = t[..., None].astype(z0.dtype)
    z = np.abs(d) * t
    z -= (1 - t) * (beta / 2)
    np.copysign(np.maximum(z, 0, out=z), d, out=z)
    z += z0[:, None, None]
    np.maximum(z, lower[:, None, None], out=z)
    return np.asarray(np.minimum(z, upper[:, None, None], out=z))


def path_ends(judge: Judge, rows: Array, prototypes: Array, *, limited: bool = True) -> Array:
    """Table values (n, m, A) of the prototypes (n, m, D) of lines (n,), moved inside the rules: L_proto is 0 there."""
    origin = judge.task.rows.take(rows).spread()
    z = np.minimum(np.maximum(prototypes, origin.z_lower), origin.z_upper)
    return judge.decode(z, rows, limited=limited)[0]


def search_path(
    judge: Judge,
    clock: Clock,
    best: Array,
    rows: Array,
    prototypes: Array,
    classes: Array,
    theta: float,
    method: str = "path",
) -> Iterator[Candidates]:
    """Yield the valid points on the paths from lines (n,) to prototypes (n, m, D) of classes (n, m), -1 for none.

    theta: where the paths begin. Where polishing follows, the first point of another class on every path is a start.
    """
    tuning = judge.task.tuning
    prototypes, classes = prototypes[:, : tuning.prototypes], classes[:, : tuning.prototypes]
    n, m, d = prototypes.shape
    size = max(1, tuning.cached // (m * max(tuning.coarse, tuning.fine) * d))
    search = _Path(judge, best, theta / (1 + theta), method)
    start = 0
    while start < n:
        if clock.is_over():
            return
        size = judge.model.pace.groups(m * tuning.coarse, size)
        part = slice(start, start + size)
        with clock.shared(rows[part]):
            yield from search.chunk(rows[part], prototypes[part], classes[part])
        start += size
        clock.report(min(1.0, start / n))


class _Path:
    """One search of paths that begin at t = least."""

    def __init__(self, judge: Judge, best: Array, least: float, method: str) -> None:
        self.judge, self.best, self.least, self.method = judge, best, least, method
        self.polish = bool(judge.task.config.polish)
        self.asked = judge.measures.floors.any  # farther points of a path may be needed

    def chunk(self, rows: Array, prototypes: Array, classes: Array) -> Iterator[Candidates]:
        tuning = self.judge.task.tuning
        ladder = _ladder(self.least, tuning.rough if self.polish else tuning.coarse)
        coarse = np.empty((*prototypes.shape[:2], len(ladder)))
        coarse[:] = ladder
        first = yield from self.points(rows, prototypes, classes, coarse)
        limited = self.judge.task.config.max_changes is not None
        if self.polish and limited:  # polishing may find other changes than the largest
            yield from self.points(rows, prototypes, classes, coarse, limited=False)
        if self.polish or self.asked:
            return
        step = (ladder[1] - ladder[0]) / tuning.fine
        fine = np.maximum(ladder[first][..., None] - step * np.arange(tuning.fine - 1, 0, -1), self.least)
        open_below = (first >= 0) & (ladder[first] > self.least)
        at = np.flatnonzero(open_below.any(axis=1))
        if len(at):
            yield from self.points(rows[at], prototypes[at], np.where(open_below, classes, -1)[at], fine[at])

    def points(
        self, rows: Array, prototypes: Array, classes: Array, t: Array, *, limited: bool = True
    ) -> Generator[Candidates, None, Array]:
        """Predict the points at t (n, m, s), yield valid ones and starts; return where each path first is valid, or -1.

        Points that are not cheaper than the best of their line are not predicted.
        """
        judge = self.judge
        origin = judge.task.rows.take(rows)
        z = path_points(origin.z, prototypes, t, origin.z_lower, origin.z_upper, judge.task.beta)
        row = rows.repeat(z.shape[1] * z.shape[2])
        end = path_ends(judge, rows, prototypes, limited=limited)
        goal = judge.space.to_search(end).repeat(t.shape[2], axis=1) if judge.theta else None
        table, cost = judge.decode(z.reshape(len(rows), -1, z.shape[-1]), rows, goal, limited=limited)
        table, cost, end = table.reshape(len(row), -1), cost.ravel(), end.reshape(-1, end.shape[-1])
        worth = (classes.ravel() >= 0).repeat(t.shape[2]) & (cost > 0)
        worth &= (cost < self.best[row]) | (not limited)
        margin = self.margins(table, row, cost, worth, t.shape)
        other = (margin > 0).reshape(t.shape)
        first = np.where(other.any(axis=2), other.argmax(axis=2), -1)
        valid = (margin > 0) & judge.is_permitted(table, row)
        start = np.zeros(t.shape, dtype=bool)
        if self.polish:
            i, j = (first >= 0).nonzero()
            start[i, j, first[i, j]] = True
        at = (valid | start.ravel()).nonzero()[0]
        path, share = at // t.shape[2], t.ravel()[at]
        with np.errstate(divide="ignore"):
            theta = share / (1 - share)
        yield candidates(
            row[at],
            table[at],
            cost[at],
            margin[at],
            traces(len(at), self.method, prototype=classes.ravel()[path], theta=theta),
            valid=valid[at],
            start=start.ravel()[at],
            path_end=end[path],
            path=path % t.shape[1],
        )
        return first

    def margins(self, table: Array, row: Array, cost: Array, worth: Array, shape: tuple[int, ...]) -> Array:
        """The margins (N,) of the points of lines (N,) that are worth predicting, -inf for the others.

        shape: (n, m, s) of the points. Where rows are to be saved and only the first point of another class matters,
        every second point of a path is predicted, then the point before the first of another class, unless it costs too
        much for a start. All are predicted for a line of which no point has another class.
        """
        judge, tuning, margin = self.judge, self.judge.task.tuning, np.full(len(row), -np.inf)
        halved = tuning.halved and self.polish and not self.asked and judge.task.config.max_changes is None
        place = np.arange(shape[2])
        now = worth & np.tile(place % 2 == 1, len(row) // shape[2]) if halved else worth
        margin[now] = judge.free_margin(table[now], row[now])
        if not halved:
            return margin
        other = (margin > 0).reshape(shape)
        first = np.where(other.any(axis=2), other.argmax(axis=2), 0)
        least = np.where(other, cost.reshape(shape), np.inf).min(axis=(1, 2))[:, None, None]
        before = (place == first[..., None] - 1) & (cost.reshape(shape) <= tuning.start_range * least)
        then = worth & ~now & (before | np.isinf(least)).ravel()
        margin[then] = judge.free_margin(table[then], row[then])
        return margin


@cache
def _ladder(least: float, points: int) -> Array:
    """`points` values of t in (0, 1], proportionally fewer if the path starts at `least`."""
    return np.linspace(max(least, 1 / points), 1, max(_FEWEST, round(points * (1 - least))))
