"""Further answers of rows that have one, each different from those before.

One answer after the other, by searches of all rows that still need it. The first searches leave out the classes of the
answers so far and the column that each of them changes most. Rows in which that finds nothing are searched with that
column moved in the other direction, and last for anything that differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.portions import solve_in_portions
from cfproto_plugin.search.solved import Solved
from cfproto_plugin.search.task import Others, Task
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.space import FeatureSpace, Rows


class _Search(NamedTuple):
    """What one search of a further answer leaves out."""

    columns: int | None = None  # the column that every answer changes most (0) or next to most (1) keeps its value
    turn_back: bool = False  # or may move, in the other direction
    other_class: bool = False  # the classes of the answers are not allowed
    elsewhere: bool = False  # prototypes are sought in another part of the class
    by_value: bool = False  # another set of columns is not different enough
    fallback: bool = False  # training rows are tried, if the settings allow it
    thorough: bool = False  # and so are combinations of values

    @property
    def frozen(self) -> bool:
        """Whether all that it can find changes other columns than the answers do."""
        return self.columns is not None and not self.turn_back


_OF_TABLES = (
    _Search(columns=0, other_class=True),
    _Search(columns=0, fallback=True),
    _Search(columns=1),
    _Search(columns=0, turn_back=True, fallback=True),
    _Search(by_value=True),
    _Search(fallback=True, thorough=True),
)
_OF_IMAGES = (  # and of encoders: a pixel that keeps its value means nothing
    _Search(other_class=True, by_value=True),
    _Search(elsewhere=True, by_value=True),
    _Search(by_value=True, fallback=True),
    _Search(fallback=True, thorough=True),
)


def further_answers(
    judge: Judge, clock: Clock, guide: Guide, first: Solved, n: int, report: Callable[[float], None]
) -> list[Solved]:
    """The first answers of all lines, and n - 1 further ones; report is called with the fraction of them done.

    No search begins after the time is spent.
    """
    answers, several = [first], _Several(judge, clock, guide, first)
    while len(answers) < n:
        answers.append(several.next())
        report(len(answers) / n)
    return answers


class _Several:
    """The answers so far, and what was tried for every line."""

    def __init__(self, judge: Judge, clock: Clock, guide: Guide, first: Solved) -> None:
        self.judge, self.clock, self.guide, self.first = judge, clock, guide, first
        self.searches = _OF_TABLES if len(judge.space.shape) == 1 and guide.encoder is None else _OF_IMAGES
        self.tables, self.labels = [first.table], [first.label]
        self.in_time = first.in_time
        self.unsolved = first.good.copy()  # (n,) lines that may have another answer
        self.begin = np.zeros(len(first.good), dtype=int)  # (n,) the first search that is not known to find nothing

    def next(self) -> Solved:
        """One more answer of every line, where there is one."""
        solved, missing = self.first.without_answers(), self.unsolved.copy()
        for number, search in enumerate(self.searches):
            lines = np.flatnonzero(missing & (self.begin <= number))
            lines, task = self._task(search, lines)
            if not len(lines):
                continue
            if self.clock.is_over():
                solved = solved._replace(in_time=False)
                break
            judge = Judge(task, self.judge.model, self.guide.floors, self.judge.theta)
            found = solve_in_portions(judge, self.clock.for_some(len(lines)), self.guide)
            solved.seconds[lines] += found.seconds
            solved = solved.with_better(lines, found)
            missing[lines[found.good]] = False
            self.begin[lines[~found.good]] = number + 1
        self.in_time &= solved.in_time
        self.unsolved = solved.good
        self.tables.append(solved.table)
        self.labels.append(solved.label)
        return solved._replace(in_time=self.in_time)

    def _task(self, search: _Search, lines: Array) -> tuple[Array, Task]:
        """Those of the lines (m,) for which the search makes sense, and its task."""
        task, answers = self.judge.task, np.stack([table[lines] for table in self.tables], axis=1)
        allowed = self._allowed(search, lines)
        rows, good = task.rows.take(lines), allowed.any(axis=1)
        if search.columns is not None:
            main, some = main_columns(task.space, rows, answers, task.beta, search.columns)
            rows, good = narrowed(task.space, rows, answers, main, turn_back=search.turn_back), good & some
            if search.turn_back:
                good &= (main.any(axis=1) & (rows.z_lower < rows.z_upper)).any(axis=1)
        at, tuning = np.flatnonzero(good), task.tuning
        if not search.thorough and task.config.max_changes is None:
            tuning = replace(tuning, product_columns=0, beam_values=0)
        task = replace(
            task.take(lines[at], replace(task.config, fallback=task.config.fallback and search.fallback)),
            rows=rows.take(at),
            allowed=allowed[at],
            others=None if search.frozen else Others(answers[at], by_value=search.by_value),
            tuning=tuning,
        )
        return lines[at], replace(task, lead=elsewhere(task, answers[at], self.guide)) if search.elsewhere else task

    def _allowed(self, search: _Search, lines: Array) -> Array:
        """The classes (m, k) that an answer of the lines (m,) may have; none if the search is not for them."""
        allowed = self.judge.task.allowed[lines].copy()
        if not search.other_class:
            return allowed
        if self.judge.task.intervals is not None:  # the target is a probability, not a class
            return np.zeros_like(allowed)
        for label in self.labels:
            allowed[np.arange(len(lines)), label[lines]] = False
        return allowed


def elsewhere(task: Task, answers: Array, guide: Guide) -> Array:
    """For every line the training row (n, D) farthest from its answers (n, m, A), of the nearer half of its classes."""
    train, answers = (task.space.to_search(part) for part in (guide.train.astype(answers.dtype), answers))
    found = task.rows.z.copy()
    for line, allowed in enumerate(task.allowed):
        z = train[allowed[guide.labels]]
        near = np.square(z - found[line]).sum(axis=1)
        z = z[np.argsort(near, kind="stable")[: -(-len(z) // 2)]]
        if len(z):
            off = np.min([np.square(z - answer).sum(axis=1) for answer in answers[line]], axis=0)
            found[line] = z[off.argmax()]
    return found


def main_columns(space: FeatureSpace, rows: Rows, answers: Array, beta: float, rank: int) -> tuple[Array, Array]:
    """The column (n, m, A) bool that each answer (n, m, A) changes most, 1: next to most; and which lines have them.

    Columns whose original breaks a rule are left out: they must change. Of an answer with a single change it is that,
    whatever the rank.
    """
    original = rows.table[:, None]
    step = np.abs(space.to_search(answers) - rows.z[:, None])
    free = changed(answers, original) & space.may_stay(rows)[:, None]
    size = np.where(free, beta * step + step * step, -1)
    count = free.sum(axis=2)
    order = np.argsort(-size, axis=2, kind="stable")
    place = np.minimum(rank, np.maximum(count - 1, 0))[..., None]
    main = np.zeros_like(free)
    np.put_along_axis(main, np.take_along_axis(order, place, axis=2), values=True, axis=2)
    return main, (count > 0).all(axis=1) & (count > rank).any(axis=1)


def narrowed(space: FeatureSpace, rows: Rows, answers: Array, main: Array, *, turn_back: bool) -> Rows:
    """The rows, with the main columns (n, m, A) of answers (n, m, A) kept at the original value.

    turn_back: numbers may move in the direction in which no answer has moved them.
    """
    number = ~np.isin(np.arange(main.shape[2]), list(space.embeddings)) & turn_back
    original = rows.table[:, None]
    upper = (main & ~(number & (answers < original))).any(axis=1)
    lower = (main & ~(number & (answers > original))).any(axis=1)
    return rows._replace(
        lower=np.where(lower, rows.table, rows.lower),
        upper=np.where(upper, rows.table, rows.upper),
        z_lower=np.where(lower, rows.z, rows.z_lower),
        z_upper=np.where(upper, rows.z, rows.z_upper),
    )
