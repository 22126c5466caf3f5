"""How far the points that were tried came, for the message of a line without an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.intervals import Intervals
from cfproto_plugin.search.task import Task


class Blocked(NamedTuple):
    """Relations, by number, that no point satisfied; several: none satisfied all of these together."""

    relations: tuple[int, ...]
    of_class: bool  # only points of an allowed class are meant: others did satisfy them


class Reached:
    """What the points of n lines had: the best probability, and which relations."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.proba = np.full(len(task), np.nan)  # the highest probability of an allowed class that kept the rules
        self._margin = np.full(len(task), -np.inf)
        self._all, self._of_class = (_Satisfied(len(task), len(task.space.rules.relations)) for _ in range(2))

    def note(self, table: Array, row: Array, proba: Array, good: Array, is_permitted: Callable[..., Array]) -> None:
        """Take note of points (m, A) of lines (m,) and what the model says of them (m, k).

        good: (m,) bool: their class is allowed. is_permitted: which points of lines keep the rules beside the bounds.
        """
        inside = self._inside(table, row)
        table, row, proba, good = table[inside], row[inside], proba[inside], good[inside]
        satisfied = self._satisfied(table)
        self._all.note(row, satisfied)
        self._of_class.note(row[good], satisfied[good])
        permitted = is_permitted(table, row)
        row, proba = row[permitted], proba[permitted]
        if self.task.intervals is not None:
            self._note_nearest(self.task.intervals.take(row), row, proba)
            return
        best = np.where(self.task.allowed[row], proba, -np.inf).max(axis=1, initial=-np.inf)
        np.fmax.at(self.proba, row, best)

    def note_refused(self, table: Array, row: Array) -> None:
        """Take note of points (m, A) of lines (m,) that break a rule, so that the model is not asked about them."""
        inside = self._inside(table, row)
        self._all.note(row[inside], self._satisfied(table[inside]))

    def blocked(self) -> Array:
        """(n,) what stands in the way of every line, an object each; None for nothing that is known."""
        found = np.full(len(self.task), None, dtype=object)
        for line in range(len(found)):
            if numbers := self._all.never(line):
                found[line] = Blocked(numbers, of_class=False)
            elif numbers := self._of_class.never(line):
                found[line] = Blocked(numbers, of_class=True)
        return found

    def _inside(self, table: Array, row: Array) -> Array:
        rows = self.task.rows.take(row)
        return np.asarray(~((table < rows.lower) | (table > rows.upper)).any(axis=1))

    def _satisfied(self, table: Array) -> Array:
        """Which relations points (m, A) satisfy: (m, R) bool."""
        relations = self.task.space.rules.relations
        return np.array([relation(table) for relation in relations], dtype=bool).reshape(len(relations), len(table)).T

    def _note_nearest(self, intervals: Intervals, row: Array, proba: Array) -> None:
        """Keep the probability that came nearest to an interval, or farthest into it."""
        margin, column = intervals.best(proba)
        before = self._margin.copy()
        np.fmax.at(self._margin, row, margin)
        nearest = (margin == self._margin[row]) & (margin > before[row])
        self.proba[row[nearest]] = proba[nearest, column[nearest]]


class _Satisfied:
    """Which of R relations were satisfied, alone and in pairs and all together, by a point of each of n lines."""

    def __init__(self, n: int, count: int) -> None:
        self._tried, self._together = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self._pairs = np.zeros((n, count, count), dtype=bool)

    def note(self, row: Array, satisfied: Array) -> None:
        """Take note of points of lines (m,) and what they satisfy (m, R)."""
        if not satisfied.size:
            return
        found = np.unique(np.column_stack([row, satisfied]), axis=0)
        row, satisfied = found[:, 0], found[:, 1:].astype(bool)
        self._tried[row] = True
        self._together[row[satisfied.all(axis=1)]] = True
        point, first, second = np.nonzero(satisfied[:, :, None] & satisfied[:, None, :])
        self._pairs[row[point], first, second] = True

    def never(self, line: int) -> tuple[int, ...]:
        """The first relation that no point of a line satisfied, else the first such pair, else all; () for none."""
        if not self._tried[line] or self._together[line]:
            return ()
        pairs = self._pairs[line]
        alone = np.flatnonzero(~pairs.diagonal())
        if len(alone):
            return (int(alone[0]),)
        missed = np.argwhere(~pairs)
        return tuple(missed[0].tolist()) if len(missed) else tuple(range(len(pairs)))
