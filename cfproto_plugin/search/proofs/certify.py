"""The lines of a task: a bound for every answer, and cheaper answers where the programs find any.

What a program finds becomes an answer only if the model itself confirms it, every rule holds on it, and it misses no
wish by more than the answer before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.proofs.choices import Price, choices_of
from cfproto_plugin.search.proofs.known import Known, without_needless, witness
from cfproto_plugin.search.proofs.prove import PROVED, Confirmed, Found, Limits, Question, Verdict, is_proved, prove
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.related import (
    broken_columns,
    horizon,
    linear_relations,
    moved_columns,
    named_columns,
    relaxed,
)
from cfproto_plugin.search.proofs.target import Wanted, wanted_classes, wanted_intervals
from cfproto_plugin.search.solved import Solved

_ROUNDING = 1e-9
Level = Literal["bound", "optimal"]


class Proofs(NamedTuple):
    """What is proved of n lines."""

    bound: Array  # (n,) no admissible counterfactual costs less; infinite if there is none
    proved: Array  # (n,) bool: there is one that costs as much, which is the line's answer if it has one
    complete: Array  # (n,) bool: nothing was left undone
    too_large: Array  # (n,) bool: the trees have too many leaves in reach
    wrong: Array  # (n,) bool: a program and the model contradict each other, so that nothing is proved
    left_out: list[tuple[str, ...]]  # (n) rules and settings that the bounds know nothing of

    @property
    def infeasible(self) -> Array:
        """(n,) bool: there is no admissible counterfactual."""
        return np.isposinf(self.bound)


def certify(
    judge: Judge, clock: Clock, solved: Solved, model: Adapted, guide: Guide, level: Level
) -> tuple[Solved, Proofs]:
    """Bound the answers of all lines, one after the other; with "optimal", replace those that are not the cheapest."""
    proofs = _nothing(judge, model)
    for line, reading, deadline in _in_turn(judge, clock, model):
        known, goal = _answer_of(judge, solved, line)
        work = _Line(judge, line, reading, known, goal, witness(judge, guide, line) if known is None else None)
        found, final = work.prove(Limits(deadline, root_only=level == "bound")), known
        if work.better is not None:
            final, needed = without_needless(judge, clock, line, work.better, goal)
            _replace(judge, solved, line, final, goal, needed)
        _note(proofs, line, found, final)
    return solved, proofs


def bounds(judge: Judge, clock: Clock, model: Adapted, guide: Guide) -> Proofs:
    """Bound what counterfactuals of the lines cost, without answers to begin with; prototypes do not count.

    A training row of the target that keeps the rules tells whether a program is wrong.
    """
    proofs = _nothing(judge, model)
    for line, reading, deadline in _in_turn(judge, clock, model):
        work = _Line(judge, line, reading, None, None, witness(judge, guide, line))
        found = work.prove(Limits(deadline))
        _note(proofs, line, found, work.better)
    return proofs


class _Line:
    """One line: its answer so far, and the best point that was offered in its place."""

    def __init__(
        self,
        judge: Judge,
        line: int,
        reading: Reading,
        known: Known | None,
        goal: Array | None,
        seen: Confirmed | None,
    ) -> None:
        """goal: (1, A) the prototype that counts, in the table. seen: a point that every program has to know."""
        self.judge, self.line, self.reading, self.known, self.goal = judge, line, reading, known, goal
        self.seen = seen
        self.row = np.array([line])
        self.better: Known | None = None

    def prove(self, limits: Limits) -> Found:
        """Bound the line's answer and look for a cheaper one."""
        judge, task = self.judge, self.judge.task
        goal = None if self.goal is None else judge.space.to_search(self.goal)[0]
        price = Price(task.beta, task.config.few_changes or 0.0, judge.theta, goal)
        most, rows = task.config.max_changes, task.rows.take(self.row)
        relations = relaxed(linear_relations(task.space, rows.table[0])[0], task.space, rows)
        named = named_columns(relations)
        choices = choices_of(task.space, rows, self.reading, price, apart=most is not None, related=named)
        moved = moved_columns(task.space, rows, choices, price, named)
        best = np.inf if self.known is None else self.known.cost
        broken = partial(broken_columns, task.space)
        question = Question(
            self.reading,
            choices,
            self._wanted(),
            self._verdict,
            self._confirmed,
            most,
            relations,
            moved,
            broken,
            horizon(task.space, rows, named),
            relaxed=judge.measures.floors.any or task.wished is not None,
        )
        return prove(question, best, limits)

    def _confirmed(self) -> Confirmed | None:
        """The cheapest point that is known."""
        points = [Confirmed(point.table[0], point.cost) for point in (self.known, self.better) if point is not None]
        points += [] if self.seen is None else [self.seen]
        return min(points, key=lambda point: point.cost, default=None)

    def _wanted(self) -> list[Wanted]:
        """The classes that the line may have, that of its answer first: a cheap one makes the other programs small."""
        task, ensemble = self.judge.task, self.reading.ensemble
        if task.intervals is not None:
            return wanted_intervals(ensemble, task.intervals.low[self.line], task.intervals.high[self.line])
        least = None if task.least is None else float(task.least[task.allowed[self.line]].min())
        found = wanted_classes(ensemble, task.allowed[self.line], task.config.kappa, least)
        first = -1 if self.known is None else int(self.known.answer.label[0])
        return sorted(found, key=lambda wanted: wanted.label != first)

    def _verdict(self, table: Array) -> Verdict:
        """Ask the model itself about a point (A,), and check every rule and wish."""
        judge, row, table = self.judge, self.row, table[None].astype(self.judge.task.rows.table.dtype)
        try:
            proba, decision = judge.model.own(table, judge.task.group[row])
            has_class = bool(judge.margin_by(proba, decision, row, wish=False)[0] > 0)
            if not has_class or not judge.keeps_rules(table, row)[0]:
                return Verdict(has_class, accepted=False, cost=np.inf)
            answer = Answer.of(proba, decision)
            shortfall = _shortfall(judge, table, row, answer)
        except SearchEndsError:
            return Verdict(has_class=True, accepted=False, cost=np.inf)
        point = Known(table, float(judge.cost(table, row, self.goal)[0]), shortfall, answer)
        best = self.better or self.known
        accepted = np.isfinite(shortfall) and (best is None or point.rank < best.rank)
        self.better = point if accepted else self.better
        return Verdict(has_class, accepted, point.cost)


def _in_turn(judge: Judge, clock: Clock, model: Adapted) -> Iterator[tuple[int, Reading, float]]:
    """The lines, the trees, and the moment until which each may take; the time that is left is shared by the rest."""
    n, tuning = len(judge.task), judge.task.tuning
    if not n or model.trees is None or clock.is_over():
        return
    reading = Reading(model.trees, judge.task.space, model.feature_names)
    for line in range(n):
        seconds = min(clock.left() / (n - line), tuning.proof_seconds)
        with clock.shared(np.array([line])):
            yield line, reading, time.perf_counter() + seconds


def _nothing(judge: Judge, model: Adapted) -> Proofs:
    """Nothing proved yet: no J is below 0."""
    n = len(judge.task)
    proved, complete, too_large, wrong = np.zeros((4, n), dtype=bool)
    return Proofs(np.zeros(n), proved, complete, too_large, wrong, [_left_out(judge, model, line) for line in range(n)])


def _note(proofs: Proofs, line: int, found: Found, final: Known | None) -> None:
    """Take note of what was found of a line; final: its answer, which a bound above it contradicts."""
    proved = final is not None and not final.shortfall and is_proved(found.bound, final.cost)
    if final is not None and found.bound * (1 - PROVED) > final.cost:
        found = found._replace(bound=0.0, wrong=True)
    proofs.bound[line] = found.bound if final is None else min(found.bound, final.cost)
    proofs.proved[line] = proved and not found.wrong
    proofs.complete[line], proofs.too_large[line], proofs.wrong[line] = found.complete, found.too_large, found.wrong


def _answer_of(judge: Judge, solved: Solved, line: int) -> tuple[Known | None, Array | None]:
    """The answer of a line, and the prototype that counts for it."""
    if not solved.good[line]:
        return None, None
    row, shortfall = np.array([line]), 0.0
    answer = Answer(solved.proba[row], solved.label[row])
    with suppress(SearchEndsError):
        shortfall = _shortfall(judge, solved.table[row], row, answer)
    known = Known(solved.table[row], float(solved.cost[line]), shortfall, answer)
    return known, solved.goal[row] if judge.theta else None


def _shortfall(judge: Judge, table: Array, row: Array, answer: Answer) -> float:
    """By how much a point (1, A) misses the wishes; infinite if it breaks a rule."""
    found, label = float(judge.shortfall(table, row)[0]), answer.label[0]
    if judge.task.wished is None:
        return found
    return found + max(0.0, float(judge.task.wished[label] - answer.proba[0, label]) - _ROUNDING)


def _replace(judge: Judge, solved: Solved, line: int, point: Known, goal: Array | None, needed: Array) -> None:
    """Make a point the answer of a line; needed: (A,) what its changes are needed for."""
    row, trace = np.array([line]), traces(1, "proof")[0]
    if solved.good[line]:
        trace["before"], trace["prototype"] = solved.cost[line], solved.trace["prototype"][line]
    solved.good[line] = solved.by_search[line] = True
    solved.table[line], solved.goal[line] = point.table[0], point.table[0] if goal is None else goal[0]
    solved.cost[line], solved.trace[line] = point.cost, trace
    solved.distance[line], solved.needed[line] = judge.distance(point.table, row)[0], needed
    solved.proba[line], solved.label[line] = point.answer.proba[0], point.answer.label[0]
    solved.typicality[line] = solved.stability[line] = np.nan
    with suppress(SearchEndsError):
        solved.typicality[line] = judge.measures.typicality(point.table, point.answer.label)[0]
        solved.stability[line] = judge.measures.stability(point.table, row, point.answer.label)[0]


def _left_out(judge: Judge, model: Adapted, line: int) -> tuple[str, ...]:
    """The rules and settings that the bounds of a line know nothing of."""
    task, floors, ensemble = judge.task, judge.measures.floors, model.trees
    several = ensemble is not None and ensemble.link == "softmax" and task.allowed.shape[1] > 2  # noqa: PLR2004 classes
    capped = task.intervals is not None and bool((task.intervals.high < 1).any())
    found = {
        "relations": not linear_relations(task.space, task.rows.table[line])[1],
        "min_typicality": floors.typicality is not None and floors.least_typicality.least > 0,
        "min_stability": floors.copies is not None and floors.least_stability.least > 0,
        "min_confidence": task.wished is not None,
        "kappa": several and task.config.kappa > 0,
        "the upper ends of the target": several and capped,
    }
    return tuple(name for name, given in found.items() if given)
