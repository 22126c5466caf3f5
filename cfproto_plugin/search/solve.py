"""The driver: from rows to verified counterfactuals.

    search -> polish -> fall back where nothing was found -> polish -> confirm -> order the lines of every row

Methods yield candidates and refining returns them; only the driver writes the incumbents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts, floor_of, join
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.incumbent import Incumbents
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.descent import search_descent
from cfproto_plugin.search.methods.fallback import fall_back
from cfproto_plugin.search.methods.latent import search_latent
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.refine.confirm import Confirmed, confirm
from cfproto_plugin.search.refine.polish import polish
from cfproto_plugin.search.task import Task


class Solved(NamedTuple):
    """What became of the n lines of a task. Lines that are not `good` hold missing values."""

    good: Array  # (n,) bool: has a counterfactual that the model confirmed
    refused: Array  # (n,) bool: the model did not confirm what was found
    table: Array  # (n, A)
    proba: Array  # (n, k)
    label: Array  # (n,) column of its class, -1 for none
    cost: Array  # (n,) what was minimised
    distance: Array  # (n,) beta·L1 + L2
    trace: Array  # (n,) of dtype TRACE
    by_search: Array  # (n,) bool: found before the fallback
    seconds: Array  # (n,)
    in_time: bool  # the time budget was not spent
    polish_calls: int


def solve(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """Answer every line of the judge's task."""
    driver = _Driver(judge, clock, guide)
    clock.begin(0.0, 0.5 if guide.plan.polish > 0 else 1.0)
    if len(judge.task):
        driver.offer(_search(judge, clock, driver.best, guide))
    driver.polish(0.5)
    by_search = driver.incumbents.found()
    if judge.task.config.fallback and not clock.is_over() and not by_search.all():
        clock.begin(1.0, 1.0)
        theta = guide.plan.path_theta
        driver.offer(fall_back(judge, clock, driver.best, guide.train, guide.labels, theta))
        if (driver.incumbents.found() & ~by_search).any():
            driver.polish(1.0)
    clock.begin(1.0, 1.0)
    clock.report(1.0)
    return driver.confirmed(by_search)


class _Driver:
    """The incumbents, and what polishing has done so far."""

    def __init__(self, judge: Judge, clock: Clock, guide: Guide) -> None:
        self.judge, self.clock, self.guide = judge, clock, guide
        self.incumbents = Incumbents(len(judge.task), judge.task.rows.table)
        self.best = self.incumbents.best
        self.polish_calls = 0
        self._starts: list[Candidates] = []
        self._polished = np.zeros(len(judge.task), dtype=bool)

    def offer(self, found: Iterable[Candidates]) -> None:
        """Keep what a method yields, while it runs."""
        for points in found:
            self.incumbents.offer(points)
            if points.start.any():
                self._starts.append(points.take(points.start))

    def polish(self, begin: float) -> None:
        """Polish the starts, and what was found without one; begin: the fraction of all work done by now."""
        starts = self._take_starts()
        if not self.guide.plan.polish or self.clock.is_over() or not len(starts.row):
            return
        self.clock.begin(begin, 1.0)
        calls, before = self.judge.model.calls, self.incumbents.cost.copy()
        found = polish(self.judge, self.clock, starts, self.guide.splits)
        self.polish_calls += self.judge.model.calls - calls
        rows = found.row[firsts(found.row)]
        self._polished[rows] = True
        had = rows[np.isfinite(before[rows])]
        self.incumbents.polished(had, floor_of(self.guide.plan.polish, before[had]))
        found.trace["before"] = before[found.row]
        self.incumbents.offer(found)

    def _take_starts(self) -> Candidates:
        """All starts, and the incumbents of lines that have none and were not polished before."""
        alone = self.incumbents.found() & ~self._polished
        for start in self._starts:
            alone[start.row] = False
        starts, self._starts = self._starts, []
        row = np.flatnonzero(alone)
        if len(row) or not starts:
            starts = [*starts, self.incumbents.as_candidates(row)]
        return join(starts)

    def confirmed(self, by_search: Array) -> Solved:
        """What the model confirms of the incumbents, the lines of every row in order of their cost."""
        rows = np.flatnonzero(self.incumbents.found())
        found = confirm(self.judge, self.clock, self.incumbents.as_candidates(rows))
        self.polish_calls += found.calls
        return _ordered(self.judge.task, self._solved(rows, found, by_search))

    def _cost(self, rows: Array, found: Confirmed) -> Array:
        cost = np.full(len(self.judge.task), np.inf)
        cost[rows] = found.points.cost
        return cost

    def _solved(self, rows: Array, found: Confirmed, by_search: Array) -> Solved:
        n, k = self.judge.task.allowed.shape
        holds = np.flatnonzero(found.points.valid)
        at, table = rows[holds], found.points.table[holds]
        refused = np.zeros(n, dtype=bool)
        refused[rows[~found.points.valid]] = True
        solved = Solved(
            np.zeros(n, dtype=bool),
            refused,
            np.full_like(self.incumbents.table, np.nan),
            np.full((n, k), np.nan),
            np.full(n, -1),
            self._cost(rows, found),
            np.full(n, np.nan),
            self.incumbents.trace,
            by_search,
            self.clock.seconds,
            not self.clock.is_over(),
            self.polish_calls,
        )
        solved.good[at], solved.table[at] = True, table
        solved.proba[at], solved.label[at] = found.answer.proba[holds], found.answer.label[holds]
        solved.distance[at] = self.judge.distance(table, at)
        solved.trace["prototype"][~solved.good] = -1
        unmoved = solved.trace["before"] == solved.cost
        solved.trace["before"][unmoved] = np.nan
        return solved


def _search(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """The method of the plan."""
    plan, rows = guide.plan, np.arange(len(judge.task))
    points, classes = (None, None) if plan.theta == 0 else _prototypes(judge, clock, guide)
    if plan.method == "fista":
        yield from search_descent(
            judge,
            clock,
            best,
            plan,
            prototypes=None if points is None else points[:, 0],
            classes=None if classes is None else classes[:, 0],
            encoder=guide.encoder,
            autoencoder=guide.autoencoder,
        )
    elif points is None or classes is None:
        raise ConfigError(f"method={plan.method!r} needs prototypes: set theta above 0")
    elif guide.encoder is not None:
        yield from search_latent(judge, clock, best, guide.encoder, points, classes, plan.path_theta)
    else:
        flat = points.reshape(*points.shape[:2], -1)
        yield from search_path(judge, clock, best, rows, flat, classes, plan.path_theta)


def _prototypes(judge: Judge, clock: Clock, guide: Guide) -> tuple[Array, Array]:
    """Prototypes (n, m, *s) of every line and their classes (n, m), -1 for none."""
    task = judge.task
    with clock.shared(np.arange(len(task))):
        z = task.rows.z.reshape(len(task), *judge.space.shape)
        return _shared_out(task, *guide.provider.nearest(z.copy(), task.allowed.copy()))


def _shared_out(task: Task, points: Array, classes: Array) -> tuple[Array, Array]:
    """Give the lines of a row prototypes of their own: the first the nearest, the second the next, and so on.

    points: (n, m, *s). classes: (n, m), -1 for none.
    """
    if (task.turns == 1).all():
        return points, classes
    most = points.shape[1]
    at = task.turn[:, None] + task.turns[:, None] * np.arange(-(-most // task.turns.min()))
    short = at >= most
    at = np.minimum(at, most - 1)
    line = np.arange(len(points))[:, None]
    return points[line, at], np.where(short, -1, classes[line, at])


def _ordered(task: Task, solved: Solved) -> Solved:
    """The lines of every row in order of their cost; those that repeat another are emptied."""
    if (task.turns == 1).all():
        return solved
    order = np.lexsort((solved.cost, task.group))
    seen: set[tuple[int, bytes]] = set()
    for line in order:
        key = int(task.group[line]), (solved.table[line] + 0.0).tobytes()  # -0.0 is 0.0
        if solved.good[line] and key in seen:
            solved.good[line], solved.label[line], solved.trace["prototype"][line] = False, -1, -1
            for part in (solved.table, solved.proba, solved.distance):
                part[line] = np.nan
        seen.add(key)
    order = np.lexsort((solved.cost, ~solved.good, task.group))
    return solved._replace(
        good=solved.good[order],
        refused=solved.refused[order],
        table=solved.table[order],
        proba=solved.proba[order],
        label=solved.label[order],
        cost=solved.cost[order],
        distance=solved.distance[order],
        trace=solved.trace[order],
        by_search=solved.by_search[order],
        seconds=solved.seconds[order],
    )
