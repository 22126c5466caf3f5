"""The driver: from rows to verified counterfactuals.

    search -> polish -> nearer, as far as second opinions agree -> fewer changes
    -> fall back where nothing was found -> polish -> confirm

Methods yield candidates and refining returns them; only the driver writes the incumbents. When the time is spent the
model refuses further questions (`OutOfTimeError`), and the driver goes on to the last one: what was found, and training
rows for the lines that have nothing, in one call. A model that is gone (`ModelGoneError`) confirms nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts, join
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.incumbent import Incumbents
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.beam import search_shorter
from cfproto_plugin.search.methods.between import search_between
from cfproto_plugin.search.methods.counted import Counted
from cfproto_plugin.search.methods.descent import search_descent
from cfproto_plugin.search.methods.fallback import fall_back
from cfproto_plugin.search.methods.fewer import search_fewer
from cfproto_plugin.search.methods.latent import search_latent
from cfproto_plugin.search.methods.nearest import nearest_rows
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.methods.prototypes import prototypes_in_pieces, prototypes_of
from cfproto_plugin.search.methods.wished import search_wished
from cfproto_plugin.search.reached import Reached
from cfproto_plugin.search.refine.agree import bring_nearer
from cfproto_plugin.search.refine.assess import assess
from cfproto_plugin.search.refine.confirm import Confirmed, confirm, confirm_at_once, unconfirmed
from cfproto_plugin.search.refine.needed import UNKNOWN, nothing_known
from cfproto_plugin.search.refine.polish import polish
from cfproto_plugin.search.refine.readable import shortened
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.geometry import count_changed

_MORE = 0.01  # by which a class must lead in a second search
_ANSWER = (
    *("good", "refused", "table", "proba", "label", "cost", "distance", "trace", "by_search", "reached", "blocked"),
    *("typicality", "stability", "estimated", "least_typicality", "goal", "needed"),
)
_LAST_CALL = 0.25  # seconds that training rows may add to the last call
_MOST_NEAREST, _LEAST_NEAREST = 64, 2  # training rows of a line in it


class Solved(NamedTuple):
    """What became of the n lines of a task. Lines that are not `good` hold missing values."""

    good: Array  # (n,) bool: has a counterfactual that the model confirmed
    refused: Array  # (n,) bool: the model did not confirm what was found
    table: Array  # (n, A)
    goal: Array  # (n, A) the prototype of the answer, inside the rules
    proba: Array  # (n, k)
    label: Array  # (n,) column of its class, -1 for none
    cost: Array  # (n,) what was minimised
    distance: Array  # (n,) beta·L1 + L2
    trace: Array  # (n,) of dtype TRACE
    by_search: Array  # (n,) bool: found before the fallback
    reached: Array  # (n,) the highest probability of an allowed class of points that kept the rules; NaN for none
    blocked: Array  # (n,) objects: the relations that no point satisfied, as `Blocked`; None for none
    typicality: Array  # (n,) of the answer, or the best of a line without one; NaN where it is not measured
    stability: Array  # (n,) likewise
    estimated: Array  # (n,) bool: the stability of a line without an answer is an estimate
    needed: Array  # (n, A) what each change is needed for, in the words of `refine.needed`
    least_typicality: Array  # (n,) what was asked for
    seconds: Array  # (n,)
    in_time: bool  # the time budget was not spent
    polish_calls: int

    def with_better(self, lines: Array, other: Solved) -> Solved:
        """The answers of another search of these lines (m,) in place of these, where it has any."""
        return self.with_those(lines, other, other.good.nonzero()[0])

    def with_those(self, lines: Array, other: Solved, at: Array) -> Solved:
        """Likewise some of them (q,), whether they have an answer or not."""
        for name in _ANSWER:
            getattr(self, name)[lines[at]] = getattr(other, name)[at]
        return self._replace(in_time=other.in_time, polish_calls=self.polish_calls + other.polish_calls)

    def without_answers(self) -> Solved:
        """The same lines before they are searched for another answer; those without one stay as they are."""
        new = self._replace(**{name: getattr(self, name).copy() for name in _ANSWER}, polish_calls=0)
        at = self.good.nonzero()[0]
        new.good[at], new.label[at], new.trace["prototype"][at], new.cost[at] = False, -1, -1, np.inf
        new.needed[at] = UNKNOWN
        for part in (new.table, new.proba, new.distance, new.typicality, new.stability):
            part[at] = np.nan
        return new._replace(seconds=np.zeros(len(self.good)))


def solve(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """Answer every line of the judge's task.

    Lines for which nothing is found of which the model is as sure as wished for are searched without that wish, in
    codes for the surest point. Where no path in codes leads, the way to a training row goes as far as the wish.
    """
    task = judge.task
    solved = _confirmed(judge, clock, guide)
    again = (~solved.good).nonzero()[0]
    if task.wished is None or not len(again) or clock.is_over():
        return solved
    plain = replace(task.take(again, task.config), wished=None, surest=True)
    second = _searched_again(judge, clock, guide, again, plain)
    solved = solved.with_those(again, second, np.arange(len(again)))
    lines = again[second.good & ~second.by_search]
    if guide.encoder is None or not len(lines) or clock.is_over():
        return solved
    sure = replace(task.take(lines, task.config), least=task.wished, wished=None)
    return solved.with_better(lines, _searched_again(judge, clock, guide, lines, sure))


def _searched_again(judge: Judge, clock: Clock, guide: Guide, lines: Array, task: Task) -> Solved:
    """What another task finds for these lines (m,)."""
    found = _confirmed(Judge(task, judge.model, guide.floors, judge.theta), clock.for_some(len(lines)), guide)
    clock.seconds[lines] += found.seconds
    return found


def _confirmed(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """One search of all lines, and a second of those whose answer the model itself refused.

    That asks the model itself, for points that lead by more.
    """
    task, model = judge.task, judge.model
    solved = _solve(judge, clock, guide)
    again = solved.refused.nonzero()[0]
    if len(again) and not clock.is_over():
        config = replace(task.config, kappa=task.config.kappa + _MORE)
        with model.asking_itself():
            judge = Judge(task.take(again, config), model, guide.floors, guide.plan.path_theta)
            second = _solve(judge, clock.for_some(len(again)), guide)
        clock.seconds[again] += second.seconds
        solved = solved.with_better(again, second)
    return solved


def _solve(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """One search of all lines."""
    driver = _Driver(judge, clock, guide)
    clock.begin(0.0, 0.5 if guide.plan.polish else 1.0)
    with suppress(SearchEndsError):
        if len(judge.task):
            driver.offer(_search(judge, clock, driver.best, guide))
        driver.polish(0.5)
        driver.agree()
        driver.shorten()
        driver.fulfil()
        driver.take_back()
    by_search = driver.incumbents.found()
    with suppress(SearchEndsError):
        driver.fall_back(by_search)
    clock.begin(1.0, 1.0)
    clock.report(1.0)
    return driver.confirmed(by_search)


class _Driver:
    """The incumbents, and what polishing has done so far."""

    def __init__(self, judge: Judge, clock: Clock, guide: Guide) -> None:
        self.judge, self.clock, self.guide = judge, clock, guide.on(judge.space.rules.grid)
        self.incumbents = Incumbents(len(judge.task), judge.task.rows.table)
        self.best = self.incumbents.best
        self.polish_calls = 0
        self.reached = Reached(judge.task)
        self._starts: list[Candidates] = []
        self._polished = np.zeros(len(judge.task), dtype=bool)

    def offer(self, found: Iterable[Candidates]) -> None:
        """Keep what a method yields, while it runs."""
        for tried in found:
            calls = self.judge.model.calls
            points = assess(self.judge, tried)
            self.polish_calls += self.judge.model.calls - calls
            self.incumbents.offer(points)
            self.clock.found = int(self.incumbents.found().sum())
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
        self.incumbents.polished(rows[np.isfinite(before[rows])])
        found.trace["before"] = before[found.row]
        self.incumbents.offer(found)
        self.clock.found = int(self.incumbents.found().sum())

    def agree(self) -> None:
        """Bring answers in codes nearer to their rows, as far as second opinions see their class."""
        guide, rows = self.guide, self.incumbents.found().nonzero()[0]
        if guide.encoder is None or not guide.opinions or not len(rows) or self.judge.task.intervals is not None:
            return
        points = self.incumbents.as_candidates(rows)
        code = guide.encoder.predict(guide.train[:1].reshape(1, *self.judge.space.shape)).shape[1:]
        encoder = Counted(guide.encoder, self.judge.model, code)
        self.offer(bring_nearer(self.judge, self.clock, points, encoder, guide.opinions))

    def shorten(self) -> None:
        """Try fewer changes than the answers have, where each costs much, and polish what that finds."""
        task, price = self.judge.task, self.judge.task.config.few_changes or 0.0
        how = next((each for each in task.tuning.shorter if price >= each.price), None)
        if how is None or not self.guide.plan.polish or self.judge.theta:
            return
        changes = count_changed(self.incumbents.table, task.rows.table)
        rows = (self.incumbents.found() & (changes > 1) & (changes <= how.longest)).nonzero()[0]
        limit = np.minimum(changes[rows] - 1, how.changes)
        self.offer(search_shorter(self.judge, self.clock, self.best, rows, limit, how.width, self.guide))
        self.polish(0.9)

    def fulfil(self) -> None:
        """Try training rows that meet the wishes where the answer does not, and polish what that finds.

        Lines without an answer of which the model is as sure as wished for have none yet; in codes they get the surest
        point of their paths instead.
        """
        unsure = self.judge.task.wished is not None and self.guide.encoder is None
        short = (self.incumbents.falls_short() | (~self.incumbents.found() & unsure)).nonzero()[0]
        if len(short) and self.judge.task.config.fallback and not self.clock.is_over():
            self.offer(search_wished(self.judge, self.clock, self.best, short, self.guide))
            self.polish(0.9)

    def take_back(self) -> None:
        """Take back one change of every answer after the other, where the others make up for it, as long as it pays."""
        task, incumbents, floors = self.judge.task, self.incumbents, self.judge.measures.floors
        if not (self.guide.plan.polish and task.config.few_changes and self.judge.model.has_gradient and floors.any):
            return
        rows = np.arange(len(task))
        for _ in range(task.tuning.taken_back):
            several = count_changed(incumbents.table[rows], task.rows.table[rows]) > 1
            rows = rows[(incumbents.found() & ~incumbents.falls_short())[rows] & several]
            before = incumbents.cost.copy()
            self.offer(search_fewer(self.judge, self.clock, incumbents.as_candidates(rows)))
            self.polish(0.9)
            rows = rows[incumbents.cost[rows] < (1 - task.tuning.least_gain) * before[rows]]
            if not len(rows):
                return

    def fall_back(self, by_search: Array) -> None:
        """Try training rows where the search found nothing, and polish what that finds."""
        if not self.judge.task.config.fallback or by_search.all() or self.judge.task.wished is not None:
            return
        self.clock.begin(1.0, 1.0)
        self.judge.reached = self.reached = Reached(self.judge.task)
        self.offer(fall_back(self.judge, self.clock, self.best, self.guide))
        if (self.incumbents.found() & ~by_search).any():
            self.polish(1.0)

    def _take_starts(self) -> Candidates:
        """All starts, and the incumbents of lines that have none and were not polished before."""
        alone = self.incumbents.found() & ~self._polished
        for start in self._starts:
            alone[start.row] = False
        starts, self._starts = self._starts, []
        row = alone.nonzero()[0]
        if len(row) or not starts:
            starts = [*starts, self.incumbents.as_candidates(row)]
        return join(starts)

    def confirmed(self, by_search: Array) -> Solved:
        """What the model confirms of the incumbents."""
        rows = self.incumbents.found().nonzero()[0]
        points, spent = self.incumbents.as_candidates(rows), self.clock.is_over()
        try:
            points = points if spent else shortened(self.judge, points)
            found = None if spent else confirm(self.judge, self.clock, points)
        except SearchEndsError:
            found = None
        if found is None:
            found = self._confirmed_at_once(points)
        self.polish_calls += found.calls
        return self._solved(found, by_search)

    def _confirmed_at_once(self, points: Candidates) -> Confirmed:
        """After the deadline: one more call, with training rows for the lines that have nothing."""
        pace, task = self.judge.model.pace, self.judge.task
        rows, found = (~self.incumbents.found()).nonzero()[0], points
        if task.config.fallback and len(rows):
            with self.clock.shared(rows):
                most = min(_MOST_NEAREST * len(rows), self.judge.model.most_rows - len(points.row))
                count = max(pace.rows_in(_LAST_CALL, most) // len(rows), _LEAST_NEAREST)
                points = join([points, nearest_rows(self.judge, self.guide, rows, count)])
        pace.deadline = np.inf
        try:
            return confirm_at_once(self.judge, points)
        except SearchEndsError:
            return unconfirmed(self.judge, found)

    def _solved(self, found: Confirmed, by_search: Array) -> Solved:
        n, k = self.judge.task.allowed.shape
        rows, holds = found.points.row, found.points.valid.nonzero()[0]
        at, table = rows[holds], found.points.table[holds]
        refused, cost, trace = np.zeros(n, dtype=bool), np.full(n, np.inf), self.incumbents.trace
        refused[rows[~found.points.valid]] = self.incumbents.found()[rows[~found.points.valid]]
        cost[rows], trace[rows] = found.points.cost, found.points.trace
        solved = Solved(
            np.zeros(n, dtype=bool),
            refused,
            np.full_like(self.incumbents.table, np.nan),
            np.full_like(self.incumbents.table, np.nan),
            np.full((n, k), np.nan),
            np.full(n, -1),
            cost,
            np.full(n, np.nan),
            trace,
            by_search,
            self.reached.proba,
            self.reached.blocked(),
            self.judge.measures.reached[0],
            self.judge.measures.reached[1],
            self.judge.measures.estimated,
            nothing_known(self.incumbents.table.shape),
            self.judge.measures.least,
            self.clock.seconds,
            not self.clock.is_over(),
            self.polish_calls,
        )
        solved.good[at], solved.table[at], solved.goal[at] = True, table, found.points.path_end[holds]
        solved.proba[at], solved.label[at] = found.answer.proba[holds], found.answer.label[holds]
        solved.distance[at], solved.needed[at] = self.judge.distance(table, at), found.needed[holds]
        calls = self.judge.model.calls
        self._measure(solved, at)
        solved = solved._replace(polish_calls=solved.polish_calls + self.judge.model.calls - calls)
        solved.trace["prototype"][~solved.good] = -1
        unmoved = solved.trace["before"] == solved.cost
        solved.trace["before"][unmoved] = np.nan
        return solved

    def _measure(self, solved: Solved, at: Array) -> None:
        """How typical and how stable the answers of lines (m,) are, if there is time."""
        measures, table, label = self.judge.measures, solved.table[at], solved.label[at]
        solved.typicality[at], solved.stability[at] = np.nan, np.nan
        with suppress(SearchEndsError):
            if not self.clock.is_over():
                solved.typicality[at] = measures.typicality(table, label)
                solved.stability[at] = measures.stability(table, at, label)


def _search(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """The method of the plan."""
    plan = guide.plan
    if plan.method == "path" and guide.encoder is None:
        for rows, points, classes in prototypes_in_pieces(judge, clock, guide):
            flat = points.reshape(*points.shape[:2], -1)
            search = search_path if judge.task.intervals is None else search_between
            yield from search(judge, clock, best, rows, flat, classes, plan.path_theta)
        return
    found = None if plan.theta == 0 else prototypes_of(judge, clock, guide)
    if plan.method == "path" and found is not None and guide.encoder is not None:
        encoder = Counted(guide.encoder, judge.model, found.points.shape[2:])
        yield from search_latent(judge, clock, best, encoder, found.points, found.classes, plan.path_theta)
        return
    code = () if found is None else found.points.shape[2:]
    yield from search_descent(
        judge,
        clock,
        best,
        plan,
        prototypes=None if found is None else found.points[:, 0],
        classes=None if found is None else found.classes[:, 0],
        encoder=None if guide.encoder is None else Counted(guide.encoder, judge.model, code),
        autoencoder=None if guide.autoencoder is None else Counted(guide.autoencoder, judge.model, judge.space.shape),
    )
