"""One row: programs until its answer is proved, nothing cheaper can be found, or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import Choices, affordable, places_of
from cfproto_plugin.search.proofs.leaves import TooLargeError, TooLateError, splits_of
from cfproto_plugin.search.proofs.program import SAFETY, Outcome, Program
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.related import Moved
from cfproto_plugin.search.proofs.target import Wanted, tangent
from cfproto_plugin.tables.relations import Linear

_ROUNDS = 50  # programs of one class: each leaves out what the model did not confirm
_GROWTH, _STEPS = 4.0, 3  # of radii, and how many come before the last
_RADIUS = 16.0  # the largest radius before programs of all choices, where no answer is known
_TINY = 1e-12  # of a cost
PROVED = 10 * SAFETY  # relative difference of an answer and its bound that is rounding


class Verdict(NamedTuple):
    """What the judge says of a point: the model gives it the class, it keeps the rules, and it is an answer."""

    has_class: bool
    accepted: bool
    cost: float


class Confirmed(NamedTuple):
    """A point (A,) that the model confirmed and that keeps every rule: a program that does not have it is wrong."""

    table: Array
    cost: float


class Found(NamedTuple):
    """What is known of a row.

    bound: no admissible counterfactual costs less; infinite if there is none. cost: of the cheapest that is known.
    complete: nothing was left undone, by lack of time or because only the root was asked for. too_large: the trees have
    too many leaves in reach. wrong: a program and the model contradict each other, so that nothing is proved.
    """

    bound: float
    cost: float
    complete: bool = True
    too_large: bool = False
    wrong: bool = False


@dataclass(frozen=True)
class Limits:
    """Until when; and whether a program is branched and solved again, or only bounded at its root."""

    deadline: float
    root_only: bool = False

    def share(self, parts: int) -> float:
        """Seconds for one of so many parts of what is left."""
        return (self.deadline - time.perf_counter()) / max(parts, 1)


@dataclass(frozen=True)
class Question:
    """What is asked about one row."""

    reading: Reading
    choices: list[Choices]
    classes: list[Wanted]
    judge: Callable[[Array], Verdict]
    confirmed: Callable[[], Confirmed | None]  # the cheapest so far
    max_changes: int | None
    relations: tuple[Linear, ...] = ()
    moved: Mapping[int, Moved] = field(default_factory=dict)  # columns of relations that have no grid
    broken: Callable[[Array], list[list[int]]] = lambda _table: []  # the columns of relations that a point breaks
    horizon: float = np.inf  # what points cost at least that no program has
    relaxed: bool = False  # answers have to keep more than a program knows of, so that its optimum may be far below


def prove(question: Question, best: float, limits: Limits) -> Found:
    """Bound what a counterfactual of one of the classes costs, and look for one that costs less than `best`.

    A program of the choices that cost no more than a radius bounds all others too: what is outside costs more. If it
    has a point inside, larger programs can say no more. So where the optimum may be far below the best answer, radii
    grow, and where the program of the last radius is too large they shrink again.
    """
    found = _by_radii(question, best, limits)
    return found._replace(bound=0.0 if found.wrong else min(found.bound, found.cost, question.horizon))


def _by_radii(question: Question, best: float, limits: Limits) -> Found:
    found = Found(0.0, best, complete=False)
    radii = _radii(best) if question.relaxed or np.isinf(best) else [best]
    for radius in radii:
        found = _joined(found, _of_all(question, found.cost, radius, limits))
        if found.bound < radius or limits.share(1) <= 0:
            break
    for radius in _radii(best)[-2::-1] if found.too_large and len(radii) == 1 else []:
        found = _joined(found, _of_all(question, found.cost, radius, limits))
        if not found.too_large:
            return found._replace(too_large=found.bound >= radius, complete=found.complete and found.bound < radius)
    if np.isinf(best) and found.complete and np.isfinite(found.cost) and not is_proved(found.bound, found.cost):
        found = _joined(found, _of_all(question, found.cost, found.cost, limits))  # in smaller units
    return found


def _radii(best: float) -> list[float]:
    """Radii of growing programs; the last is that of the best answer, or has none."""
    first = best if np.isfinite(best) else _RADIUS
    return [*(first / _GROWTH**power for power in range(_STEPS, 0, -1)), best]


def _joined(found: Found, more: Found) -> Found:
    """What is known after another program: the larger bound."""
    return more._replace(bound=max(found.bound, more.bound), wrong=found.wrong or more.wrong)


def _of_all(question: Question, best: float, radius: float, limits: Limits) -> Found:
    """What choices that cost no more than the radius tell, the classes one after the other."""
    found = Found(np.inf, best)
    if limits.share(1) <= 0:
        return Found(0.0, best, complete=False)
    known = question.confirmed()
    if any(not len(each.value) for each in question.choices):
        return found._replace(wrong=known is not None)
    missed = known is not None
    for number, wanted in enumerate(question.classes):
        end = time.perf_counter() + limits.share(len(question.classes) - number)
        part, program = _of_class(question, wanted, found.cost, min(radius, found.cost), Limits(end, limits.root_only))
        missed = missed and known is not None and not _has(question, wanted, program, known)
        found = Found(
            min(found.bound, part.bound),
            part.cost,
            found.complete and part.complete,
            found.too_large or part.too_large,
            found.wrong or part.wrong,
        )
    return found._replace(wrong=found.wrong or missed)


def is_proved(bound: float, cost: float) -> bool:
    """Whether a bound is the cost itself, up to rounding."""
    return bool(np.isfinite(cost) and cost - bound <= PROVED * cost)


def _of_class(
    question: Question, wanted: Wanted, best: float, radius: float, limits: Limits
) -> tuple[Found, Program | None]:
    """Likewise for one class; and its program, if there is one."""
    choices = affordable(question.choices, radius * (1 + SAFETY))
    if any(not len(each.value) for each in choices):
        return Found(radius, best), None
    found = Found(sum(float(each.cost.min()) for each in choices) * (1 - SAFETY), best)
    try:
        program = _program(question, choices, wanted, radius, limits.deadline)
    except (TooLargeError, TooLateError) as error:
        return found._replace(complete=False, too_large=isinstance(error, TooLargeError)), None
    found, claim = _solved(question, wanted, program, found, radius, limits)
    known = question.confirmed()
    wrong = known is not None and claim * (1 - PROVED) > known.cost and _agrees(program, known)
    return found._replace(wrong=wrong), program


def _solved(
    question: Question, wanted: Wanted, program: Program, found: Found, radius: float, limits: Limits
) -> tuple[Found, float]:
    """What a program tells, solved again and again; and the bound that it claims, be it above the radius."""
    claim, rounds = found.bound, 0
    while rounds < _ROUNDS and limits.share(1) > 0:
        rounds += 1
        outcome = program.solve(limits.share(1), root_only=limits.root_only)
        claim = max(claim, outcome.bound)
        found = found._replace(bound=min(claim, radius))
        if outcome.infeasible or is_proved(found.bound, found.cost):
            return found, claim
        if outcome.picked is None or limits.root_only:
            break
        table = program.table(outcome)
        verdict = question.judge(table)
        if verdict.accepted and verdict.cost < found.cost:
            found = found._replace(cost=verdict.cost)
        if not outcome.solved:
            break
        if not _tightened(program, question, wanted, table, outcome, has_class=verdict.has_class):
            return found, claim
    return found._replace(complete=False), claim


def _has(question: Question, wanted: Wanted, program: Program | None, known: Confirmed) -> bool:
    """Whether a point is one of a class by its program, and costs as much.

    Where it costs more than the radius of the program, or there is none, a program of its own choices says so.
    """
    if program is not None and known.cost <= program.radius * (1 + SAFETY):
        return _agrees(program, known)
    places = places_of(question.choices, known.table)
    if places is None:
        return known.cost > question.horizon
    own = [each.take(np.arange(len(each.value)) == place) for each, place in zip(question.choices, places, strict=True)]
    return _agrees(_program(question, own, wanted, np.inf, np.inf), known)


def _agrees(program: Program, known: Confirmed) -> bool:
    return program.cost_of(known.table) <= known.cost * (1 + PROVED) + _TINY


def _program(question: Question, choices: list[Choices], wanted: Wanted, radius: float, end: float) -> Program:
    """The program of one class."""
    program = Program(question.reading, choices, splits_of(question.reading, choices), radius, end)
    for condition in wanted.conditions:
        program.require(condition)
    if question.max_changes is not None:
        program.limit_changes(question.max_changes)
    program.relate(question.relations, question.moved)
    return program


def _tightened(
    program: Program, question: Question, wanted: Wanted, table: Array, outcome: Outcome, *, has_class: bool
) -> bool:
    """Add to a program what it did not know of the point (A,) that it found; False if it knew all that it can.

    Choices to which the model does not give the class are left out: the values that they stand for are alike to it. So
    are values that break relations, such as equal ones where one has to be smaller, unless they stand for others too.
    """
    picked = outcome.picked
    if picked is None:
        return False
    if not has_class:
        if wanted.least_proba is not None:
            program.require(tangent(program.ensemble, wanted.label, wanted.least_proba, program.scores(picked)))
        program.forbid(picked)
        return True
    broken = [places for places in question.broken(table) if program.is_single(picked, places)]
    for places in broken:
        program.forbid(picked, places)
    return bool(broken) or program.refine(outcome.d, outcome.q)
