"""The driver's steps: the only place where incumbents are written.

Methods yield candidates and refining returns them. When the time is spent the model refuses further questions
(`OutOfTimeError`), and the driver goes on to the last one: what was found, and training rows for the lines that have
nothing, in one call. A model that is gone (`ModelGoneError`) confirms nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts, join
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.incumbent import Incumbents
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.beam import search_shorter
from cfproto_plugin.search.methods.counted import Counted
from cfproto_plugin.search.methods.fallback import fall_back
from cfproto_plugin.search.methods.fewer import search_fewer
from cfproto_plugin.search.methods.nearest import nearest_rows
from cfproto_plugin.search.methods.wished import search_wished
from cfproto_plugin.search.reached import Reached
from cfproto_plugin.search.refine.agree import bring_nearer
from cfproto_plugin.search.refine.assess import assess
from cfproto_plugin.search.refine.confirm import Confirmed, confirm, confirm_at_once, unconfirmed
from cfproto_plugin.search.refine.needed import nothing_known
from cfproto_plugin.search.refine.polish import polish
from cfproto_plugin.search.refine.readable import shortened
from cfproto_plugin.search.solved import Solved
from cfproto_plugin.tables.geometry import count_changed

_LAST_CALL = 0.25  # seconds that training rows may add to the last call
_MOST_NEAREST, _LEAST_NEAREST = 64, 2  # training rows of a line in it


class Driver:
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
