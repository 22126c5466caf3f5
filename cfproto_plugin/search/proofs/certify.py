"""The lines of a task: a bound for every answer, and cheaper answers where the programs find any.

What a program finds becomes an answer only if the model itself confirms it, every rule holds on it, and it misses no
wish by more than the answer before.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Literal, NamedTuple

import numpy as np

from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import FAR, traces
from cfproto_plugin.search.clock import Clock, OutOfTimeError
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.proofs.choices import Price, choices_of
from cfproto_plugin.search.proofs.prove import Found, Limits, Verdict, is_proved, prove
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.target import Wanted, wanted_classes, wanted_intervals
from cfproto_plugin.search.solve import Solved

Level = Literal["bound", "optimal"]


class Proofs(NamedTuple):
    """What is proved of n lines."""

    bound: Array  # (n,) no admissible counterfactual costs less; infinite if there is none
    proved: Array  # (n,) bool: the answer is the cheapest there is
    complete: Array  # (n,) bool: nothing was left undone
    too_large: Array  # (n,) bool: the trees have too many leaves in reach
    left_out: tuple[str, ...]  # rules and settings that the bounds know nothing of

    @property
    def infeasible(self) -> Array:
        """(n,) bool: there is no admissible counterfactual."""
        return np.isposinf(self.bound)


def certify(judge: Judge, clock: Clock, solved: Solved, model: Adapted, level: Level) -> tuple[Solved, Proofs]:
    """Bound the answers of all lines, one after the other; with "optimal", replace those that are not the cheapest.

    The time that is left is shared by the lines that are left.
    """
    n, task = len(judge.task), judge.task
    proofs = Proofs(np.zeros(n), *np.zeros((3, n), dtype=bool), _left_out(judge, model))
    if not n or model.trees is None or clock.is_over():
        return solved, proofs
    reading = Reading(model.trees, task.space, model.feature_names)
    for line in range(n):
        left = clock.left() / (n - line)
        limits = Limits(time.perf_counter() + min(left, task.tuning.proof_seconds), root_only=level == "bound")
        with clock.shared(np.array([line])):
            work = _Line(judge, solved, line, reading)
            found = work.prove(limits)
            if found.table is not None:
                work.replace(found.table)
        proofs.bound[line], proofs.complete[line], proofs.too_large[line] = found.bound, found.complete, found.too_large
        proofs.proved[line] = work.is_best(found)
    return solved, proofs


class _Line:
    """One line: its answer so far, and the points that are offered in its place."""

    def __init__(self, judge: Judge, solved: Solved, line: int, reading: Reading) -> None:
        self.judge, self.solved, self.line, self.reading = judge, solved, line, reading
        self.row = np.array([line])
        self.goal = solved.goal[self.row] if judge.theta and solved.good[line] else None
        self.answers: dict[bytes, tuple[Answer, float]] = {}
        self.shortfall = 0.0
        if solved.good[line] and judge.measures.floors.any:
            with suppress(OutOfTimeError):
                self.shortfall = float(judge.shortfall(solved.table[self.row], self.row)[0])

    def prove(self, limits: Limits) -> Found:
        """Bound the line's answer and look for a cheaper one."""
        judge, task, solved = self.judge, self.judge.task, self.solved
        best = float(solved.cost[self.line]) if solved.good[self.line] else np.inf
        goal = None if self.goal is None else judge.space.to_search(self.goal)[0]
        price = Price(task.config.beta, task.config.few_changes or 0.0, judge.theta, goal)
        most = task.config.max_changes
        choices = choices_of(task.space, task.rows.take(self.row), self.reading, price, apart=most is not None)
        return prove(self.reading, choices, self._wanted(), self._verdict, best, limits, most)

    def is_best(self, found: Found) -> bool:
        """Whether the line's answer, with all that was wished for, costs no more than the bound."""
        known = bool(self.solved.good[self.line]) and not self.shortfall
        return known and is_proved(found.bound, float(self.solved.cost[self.line]))

    def replace(self, table: Array) -> None:
        """Make a point (A,) that was accepted the line's answer."""
        solved, line = self.solved, self.line
        table = table[None].astype(solved.table.dtype)
        (answer, shortfall), cost = self.answers[table.tobytes()], solved.cost[line]
        trace = traces(1, "proof")
        trace["before"] = cost if solved.good[line] else np.inf
        if solved.good[line]:
            trace["prototype"] = solved.trace["prototype"][line]
        solved.good[line] = solved.by_search[line] = True
        solved.table[line], solved.trace[line], self.shortfall = table[0], trace[0], shortfall
        solved.cost[line] = self.judge.cost(table, self.row, self.goal)[0]
        solved.distance[line] = self.judge.distance(table, self.row)[0]
        solved.proba[line], solved.label[line] = answer.proba[0], answer.label[0]
        solved.typicality[line] = solved.stability[line] = np.nan
        with suppress(OutOfTimeError):
            solved.typicality[line] = self.judge.measures.typicality(table, answer.label)[0]
            solved.stability[line] = self.judge.measures.stability(table, self.row, answer.label)[0]

    def _wanted(self) -> list[Wanted]:
        """The classes that the line may have, that of its answer first: the cheaper it is, the smaller the others."""
        task, ensemble = self.judge.task, self.reading.ensemble
        if task.intervals is not None:
            return wanted_intervals(ensemble, task.intervals.low[self.line], task.intervals.high[self.line])
        found = wanted_classes(ensemble, task.allowed[self.line], task.config.kappa, task.config.min_proba)
        return sorted(found, key=lambda wanted: wanted.label != self.solved.label[self.line])

    def _verdict(self, table: Array) -> Verdict:
        """Ask the model itself about a point (A,), and check every rule and wish."""
        judge, row, table = self.judge, self.row, table[None].astype(self.solved.table.dtype)
        try:
            proba, decision = judge.model.own(table, judge.task.group[row])
            has_class = bool(judge.margin_by(proba, decision, row)[0] > 0)
            if not has_class or not judge.keeps_rules(table, row)[0]:
                return Verdict(has_class, accepted=False, cost=np.inf)
            shortfall = float(judge.shortfall(table, row)[0])
        except OutOfTimeError:
            return Verdict(has_class=True, accepted=False, cost=np.inf)
        cost = float(judge.cost(table, row, self.goal)[0])
        self.answers[table.tobytes()] = Answer.of(proba, decision), shortfall
        before = float(self.solved.cost[self.line]) + FAR * self.shortfall if self.solved.good[self.line] else np.inf
        return Verdict(has_class, accepted=cost + FAR * shortfall < before, cost=cost)


def _left_out(judge: Judge, model: Adapted) -> tuple[str, ...]:
    """The rules and settings that the bounds know nothing of."""
    task, floors, ensemble = judge.task, judge.measures.floors, model.trees
    several = ensemble is not None and ensemble.link == "softmax" and task.allowed.shape[1] > 2  # noqa: PLR2004 classes
    found = {
        "relations": bool(task.space.rules.relations),
        "min_typicality": floors.typicality is not None and floors.least_typicality.least > 0,
        "min_stability": floors.copies is not None and floors.least_stability.least > 0,
        "kappa": several and task.config.kappa > 0,
        "the upper ends of the target": several and task.intervals is not None and bool((task.intervals.high < 1).any()),
    }
    return tuple(name for name, given in found.items() if given)
