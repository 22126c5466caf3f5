"""At most k actions, each of a few common changes, that flip as many rows of a cohort as possible.

Greedy maximum coverage: the action that flips the most rows, then the one that flips the most of the rest, and so on.
An action grows step by step from the changes of the answers; what counts is what the user's model says of every row
after it.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.checks import is_count, is_number, shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.helpers.kinds import load_pandas, take
from cfproto_plugin.report.cohorts.steps import in_words, steps_of
from cfproto_plugin.report.cohorts.wording import actions_html, actions_text
from cfproto_plugin.report.words import both

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Source, Step

_ROWS = 100  # that candidates are tried on; the chosen ones are confirmed on all
_BEAM = 4  # actions that are extended
_STEPS = 60  # that they are extended by, the best alone first
_ASKED = 8  # actions that are asked together under a time budget
_CHECKED = (
    4  # of the actions of a level that flip most: whether what they flip is typical and stable, if that is a rule
)
_WORTH = 0.03  # of the rows: what one more change has to flip
_CHANCE, _FAR = 0.1, 0.01  # what the probability and the distance count beside the share of rows, to break ties


@dataclass(frozen=True)
class Action:
    """Changes made together to every row. steps: `Step` records; text: the same in words.

    covered: how many rows of the cohort it flips, each confirmed by the model; share: of the cohort. new: those that
    the actions before it do not flip. cumulative: the share that it and those before it flip. forbidden: rows for which
    it breaks a rule, none of which count as flipped. sound: how many of the flipped rows are then as typical of their
    new class and as stable as answers are asked to be; if that is a rule, only these count as flipped. distance: the
    median change of the flipped rows, in standard deviations summed over the columns. rows: the numbers of the rows
    that it flips.
    """

    text: str
    covered: int
    share: float
    new: int
    cumulative: float
    forbidden: int
    sound: int
    distance: float
    steps: tuple[Step, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Actions:
    """The actions, best first. rows: the size of the cohort; target: the classes that count as flipped.

    names: what these are called in texts. in_time: False if the time budget ended the search for more. asked: how many
    actions were asked for. broken: how many rows break a rule before any action; they are counted where rows are
    forbidden, or where there is no action.
    """

    actions: tuple[Action, ...]
    rows: int
    target: tuple[Any, ...]
    names: tuple[str, ...] = ()
    in_time: bool = True
    asked: int = 0
    broken: int = 0

    def to_frame(self) -> Any:
        """One line per action, in words and numbers."""
        names = [name for name in Action.__dataclass_fields__ if name not in {"steps", "rows"}]
        return load_pandas().DataFrame(
            [{name: value for name, value in asdict(action).items() if name in names} for action in self.actions],
            columns=names,
        )

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __getitem__(self, number: int) -> Action:
        return self.actions[number]

    def __repr__(self) -> str:
        return actions_text(self)

    def _repr_html_(self) -> str:
        return actions_html(self)


def found_actions(
    explanation: Explanation,
    source: Source,
    k: int,
    max_changes: int,
    target: Any = None,
    time_budget: float | None = None,
) -> Actions:
    """The actions of an explanation of a table. time_budget: seconds; what was found in that time is returned."""
    deadline = _deadline(time_budget)
    for name, value in (("k", k), ("max_changes", max_changes)):
        if not is_count(value):
            raise InputError(f"{name} is {shown(value)}; expected a whole number of at least 1")
    if explanation.column_names is None:
        raise InputError("actions are for tables, and these rows are images")
    if not len(explanation):
        raise InputError("the explanation has no lines, and so there are no rows to find actions for")
    cohort = _Cohort(explanation, source, target, deadline)
    steps = steps_of(explanation[explanation.found], source) if cohort.wanted.any() else []
    found: list[Action] = []
    uncovered = np.ones(cohort.size, dtype=bool)
    while steps and uncovered.any() and len(found) < k and not (found and cohort.spent()):
        best = _search(cohort, steps, np.flatnonzero(uncovered), max_changes)
        if best is None:
            break
        flipped, kept, moved, sound = cohort.tried(best, np.arange(cohort.size))
        new = int((flipped & uncovered).sum())
        if not new:
            break
        uncovered &= ~flipped
        found.append(
            Action(
                both([in_words(step, explanation.column_names) for step in best]),
                int(flipped.sum()),
                float(flipped.mean()),
                new,
                float(1 - uncovered.mean()),
                int((~kept).sum()),
                int(sound.sum()),
                float(np.median(moved[flipped])),
                best,
                tuple(cohort.numbers[flipped].tolist()),
            )
        )
    labels = explanation.classes[cohort.wanted]
    names = tuple(explanation.class_name(label) for label in labels)
    forbids = not found or any(action.forbidden for action in found)
    return Actions(
        tuple(found),
        cohort.size,
        tuple(labels.tolist()),
        names,
        in_time=not cohort.is_over,
        asked=k,
        broken=cohort.broken() if forbids and cohort.size else 0,
    )


def _deadline(time_budget: Any) -> float:
    if time_budget is None:
        return math.inf
    if not is_number(time_budget) or not time_budget > 0:
        raise InputError(f"time_budget is {shown(time_budget)}; expected a positive number of seconds, or None")
    return time.perf_counter() + float(time_budget)


class _Cohort:
    """The rows that are to be flipped, one line each: those that were explained and are not in the target."""

    def __init__(self, explanation: Explanation, source: Source, target: Any, deadline: float) -> None:
        self.source, self.deadline, classes = source, deadline, explanation.classes.tolist()
        self.is_over = False  # the deadline has cut the search short
        _, first = np.unique(explanation.row, return_index=True)
        first = first[explanation.status[first] != "error"]
        own = np.array([classes.index(label) for label in explanation.original_class[first].tolist()], dtype=int)
        self.wanted = _wanted(explanation, target)
        there = self.wanted[own] if target is not None else np.zeros(len(first), dtype=bool)
        settled = explanation.found[first] & (explanation.n_changes[first] == 0)
        chosen = ~(there | settled)
        self.own, self.numbers = own[chosen], explanation.row[first[chosen]]
        self.original = take(explanation.original, first[chosen])
        none = np.zeros(0, dtype=int)
        self.strict = source.floors(take(self.original, none), (), none).is_rule  # what falls short does not count

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.own)

    def tried(self, action: tuple[Step, ...], rows: Array) -> tuple[Array, Array, Array, Array]:
        """(m,) each: which of the rows (m,) are flipped, keep the rules, how far they move, and which are sound.

        Sound is what is flipped and as typical and stable as was asked for; if that is a rule, no other counts.
        """
        original = take(self.original, rows)
        outcome = self.source.outcome(original, [action])
        flipped, sound = self._flipped(outcome.labels, rows)[0], np.zeros(len(rows), dtype=bool)
        at = np.flatnonzero(flipped)
        floors = self.source.floors(take(original, at), action, outcome.labels[0, at])
        sound[at] = floors.met
        return sound if floors.is_rule else flipped, outcome.kept[0], outcome.moved[0], sound

    def broken(self) -> int:
        """How many rows break a rule as they are."""
        return int((~self.source.outcome(self.original, [()]).kept).sum())

    def spent(self) -> bool:
        """Whether the time is over; noted."""
        self.is_over = self.is_over or time.perf_counter() > self.deadline
        return self.is_over

    def scored(self, actions: Sequence[tuple[Step, ...]], rows: Array) -> tuple[Array, Array]:
        """(actions,) each: the share of the rows (m,) that each flips, and a score that breaks ties.

        Part by part: those that the time does not suffice for flip none.
        """
        share, score = np.zeros(len(actions)), np.full(len(actions), -np.inf)
        size = len(actions) if math.isinf(self.deadline) else _ASKED
        for start in range(0, len(actions), size):
            if start and self.spent():
                break
            part = slice(start, start + size)
            share[part], score[part] = self._scored(actions[part], rows)
        return share, score

    def _scored(self, actions: Sequence[tuple[Step, ...]], rows: Array) -> tuple[Array, Array]:
        outcome = self.source.outcome(take(self.original, rows), actions)
        share = self._flipped(outcome.labels, rows).mean(axis=1)
        others = self.wanted & (np.arange(len(self.wanted)) != self.own[rows, None])
        chance = np.where(outcome.kept, np.nansum(outcome.proba * others, axis=2), 0).mean(axis=1)
        return share, share + _CHANCE * chance - _FAR * outcome.moved.mean(axis=1)

    def _flipped(self, labels: Array, rows: Array) -> Array:
        return np.asarray((labels >= 0) & self.wanted[labels] & (labels != self.own[rows]))


def _wanted(explanation: Explanation, target: Any) -> Array:
    """(k,) bool: the classes that count; by default those of the answers."""
    classes = explanation.classes.tolist()
    if target is None:
        named = explanation.counterfactual_class[explanation.found].tolist()
    else:
        named = list(target) if isinstance(target, (list, tuple, set, frozenset, np.ndarray)) else [target]
        if not named:
            raise InputError(f"target is {shown(target)}, which names no class. There are: {classes}")
    for label in named:
        if label not in classes:
            raise InputError(
                f"target is {shown(label)}, which is no class.{did_you_mean(label, classes)} There are: {classes}"
            )
    return np.array([label in named for label in classes])


def _search(cohort: _Cohort, steps: Sequence[Step], rows: Array, most: int) -> tuple[Step, ...] | None:
    """The action of at most `most` steps that flips the most of the rows (m,); None if none flips any.

    One more step has to flip three more rows in a hundred.
    """
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int))]
    level: list[tuple[Step, ...]] = [(step,) for step in steps]
    best, reached, tried = None, 0.0, list(steps)
    for size in range(1, most + 1):
        if not level:
            break
        share, score = cohort.scored(level, rows)
        order = np.argsort(-score, kind="stable")
        if size == 1:
            tried = [steps[at] for at in order[:_STEPS]]
        for top in np.lexsort((-score, -share))[:_CHECKED].tolist():
            least = reached + (_WORTH if best is not None else 0)
            if share[top] <= least or (best is not None and cohort.spent()):
                break
            counted = float(cohort.tried(level[top], rows)[0].mean() if cohort.strict else share[top])
            if counted > least:
                best, reached = level[top], counted
                break
        if cohort.spent():
            break
        level = _extended([level[at] for at in order[:_BEAM]], tried)
    return best


def _extended(actions: Sequence[tuple[Step, ...]], steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Each of the actions with one more step, of a column that it leaves alone."""
    found: dict[frozenset[Step], tuple[Step, ...]] = {}
    for action in actions:
        for step in steps:
            if step.column not in {each.column for each in action}:
                found.setdefault(frozenset((*action, step)), (*action, step))
    return list(found.values())
