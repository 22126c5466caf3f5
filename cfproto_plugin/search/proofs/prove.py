"""One row: programs until its answer is proved, nothing cheaper can be found, or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import Choices, affordable
from cfproto_plugin.search.proofs.leaves import TooLargeError, splits_of
from cfproto_plugin.search.proofs.program import SAFETY, Program
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.target import Wanted, tangent

_ROUNDS = 50  # programs of one class: each leaves out what the model did not confirm
PROVED = 10 * SAFETY  # relative difference of an answer and its bound that is rounding


class Verdict(NamedTuple):
    """What the judge says of a point: the model gives it the class, it keeps the rules, and it is an answer."""

    has_class: bool
    accepted: bool
    cost: float


class Found(NamedTuple):
    """What is known of a row.

    bound: no admissible counterfactual costs less; infinite if there is none. table: (A,) the cheapest accepted point
    that was found, cheaper than what was known; None for none. complete: nothing was left undone, by lack of time or
    because only the root was asked for. too_large: the trees have too many leaves in reach.
    """

    bound: float
    table: Array | None
    cost: float
    complete: bool = True
    too_large: bool = False


@dataclass(frozen=True)
class Limits:
    """Until when; and whether a program is branched and solved again, or only bounded at its root."""

    deadline: float
    root_only: bool = False

    def share(self, parts: int) -> float:
        """Seconds for one of so many parts of what is left."""
        return (self.deadline - time.perf_counter()) / max(parts, 1)


def prove(
    reading: Reading,
    choices: list[Choices],
    classes: list[Wanted],
    judge: Callable[[Array], Verdict],
    best: float,
    limits: Limits,
    max_changes: int | None,
) -> Found:
    """Bound what a counterfactual of one of the classes costs, and look for one that costs less than `best`."""
    found = Found(np.inf, None, best)
    if limits.share(1) <= 0:
        return Found(0.0, None, best, complete=False)
    if any(not len(each.value) for each in choices):
        return found
    for number, wanted in enumerate(classes):
        seconds = limits.share(len(classes) - number)
        part = _of_class(reading, choices, wanted, judge, found.cost, seconds, max_changes, root_only=limits.root_only)
        found = Found(
            min(found.bound, part.bound),
            found.table if part.table is None else part.table,
            part.cost,
            found.complete and part.complete,
            found.too_large or part.too_large,
        )
    return found


def is_proved(bound: float, cost: float) -> bool:
    """Whether a bound is the cost itself, up to rounding."""
    return bool(cost - bound <= PROVED * cost)


def _of_class(
    reading: Reading,
    choices: list[Choices],
    wanted: Wanted,
    judge: Callable[[Array], Verdict],
    best: float,
    seconds: float,
    max_changes: int | None,
    *,
    root_only: bool,
) -> Found:
    """Likewise for one class."""
    end = time.perf_counter() + seconds
    choices = affordable(choices, best * (1 + SAFETY))
    if any(not len(each.value) for each in choices):
        return Found(best, None, best)
    found = Found(sum(float(each.cost.min()) for each in choices) * (1 - SAFETY), None, best)
    try:
        program = Program(reading, choices, splits_of(reading, choices), best)
    except TooLargeError:
        return found._replace(complete=False, too_large=True)
    for condition in wanted.conditions:
        program.require(condition)
    if max_changes is not None:
        program.limit_changes(max_changes)
    for _ in range(_ROUNDS):
        left = end - time.perf_counter()
        if left <= 0:
            return found._replace(complete=False)
        outcome = program.solve(left, root_only=root_only)
        found = found._replace(bound=min(max(found.bound, outcome.bound), best))
        if outcome.infeasible or is_proved(found.bound, found.cost):
            return found
        if outcome.picked is None or root_only:
            return found._replace(complete=False)
        table = np.array([each.value[pick] for each, pick in zip(choices, outcome.picked, strict=True)])
        verdict = judge(table)
        if verdict.accepted and verdict.cost < found.cost:
            found = found._replace(table=table, cost=verdict.cost)
        if verdict.has_class or not outcome.solved:
            return found._replace(complete=outcome.solved)
        if wanted.least_proba is not None:
            scores = program.scores(outcome.picked)
            program.require(tangent(reading.ensemble, wanted.label, wanted.least_proba, scores))
        program.forbid(outcome.picked)
    return found._replace(complete=False)
