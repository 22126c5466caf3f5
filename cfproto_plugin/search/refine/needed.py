"""What each change of an answer is needed for: its class, or something else that was asked for.

The last look at an answer tells what would be lost if one change alone were taken back. Where the class stays, it need
not stay without several of these changes: one more question takes them back together, first those that the margin
needs least, and those without which the class is lost are needed for it after all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.refine.versions import Versions, growing_sets
from cfproto_plugin.tables.geometry import changed

UNKNOWN = ""  # no change, or it was not tried to take it back
CLASS = "class"  # without it the model says another class
PROBABILITY = "probability"  # without it the class is not as probable, or does not lead as far, as was asked for
RULE = "rule"  # without it a rule about the columns is broken
DIFFERENCE = "difference"  # without it the answer is too much like another one of its row
PROTOTYPE = "prototype"  # without it the answer is farther from the class, which theta asks for
TYPICALITY = "typicality"  # without it the answer is less typical of the class than was asked for
STABILITY = "stability"  # without it fewer noisy copies keep the class than was asked for
REASON = np.dtype("U11")


def nothing_known(shape: tuple[int, ...]) -> Array:
    """Reasons of this shape, all unknown."""
    return np.zeros(shape, dtype=REASON)  # empty texts


class Needed(NamedTuple):
    """What the changes of m points (m, A) are needed for, and what the last look knows of the points."""

    reason: Array  # (m, A)
    margin: Array  # (m, A) that is left without each of them
    label: Array  # (m,) class of the points, -1 if not known

    @classmethod
    def of(cls, points: Candidates) -> Needed:
        """Nothing is known yet."""
        shape = points.table.shape
        return cls(nothing_known(shape), np.full(shape, np.nan), np.full(len(points.row), -1))

    def note(
        self, judge: Judge, points: Candidates, versions: Versions, at: Array, stays: Array, label: Array, margin: Array
    ) -> None:
        """Take note of what the last look found about points that stay as they are.

        at: (q,) the points of the versions. stays: (q,) bool. label, margin: (N,) of the versions, by what the model
        says of them.
        """
        final = stays.nonzero()[0]
        single = ((versions.end - versions.first == 1) & stays[versions.point]).nonzero()[0]
        point = versions.point[single]
        places = at[point], versions.column[point, versions.first[single]]
        self.label[at[final]] = label[final]
        self.margin[places] = margin[single]
        keeps = self._has_class(at[point], label[single])
        self.reason[places] = _reasons(judge, points, versions.tables(single), at[point], keeps, margin[single])
        alone = np.ones(len(at), dtype=bool)
        alone[versions.point[len(at) :]] = False  # of several changes each is a version of its own
        self._note_single(judge, points, at[final[alone[final]]])

    def settle(self, judge: Judge, points: Candidates) -> None:
        """Ask which changes can be taken back together without losing the class; the others are needed for it.

        At first growing sets of those that the margin needs least, then one more at a time.
        """
        spare = (self.reason != UNKNOWN) & (self.reason != CLASS)
        if not spare.any():
            return
        taken = self._taken_together(judge, points, spare)
        left = spare & ~taken
        while left.any():
            point, column = left.nonzero()
            back = taken[point]
            back[np.arange(len(point)), column] = True
            keeps = self._keeps_class(judge, points, point, back)
            left[point[~keeps], column[~keeps]] = False
            best = np.where(left, self.margin, -np.inf).argmax(axis=1)
            some = left.any(axis=1).nonzero()[0]
            taken[some, best[some]], left[some, best[some]] = True, False
        self.reason[spare & ~taken] = CLASS

    def _taken_together(self, judge: Judge, points: Candidates, spare: Array) -> Array:
        """Changes (m, A) without which all together the class stays: the largest of growing sets of spare ones."""
        count, line = spare.sum(axis=1), points.row
        has_class = self._has_class(np.arange(len(line)), judge.task.label[line])
        most = np.where(has_class, count, np.minimum(count, changed_columns(judge, points) - 1))
        point, size = growing_sets(most)
        rank = np.where(spare, -self.margin, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
        keeps = self._keeps_class(judge, points, point, rank[point] < size[:, None])
        together = np.minimum(count, 1)
        np.maximum.at(together, point[keeps], size[keeps])
        return np.asarray(spare & (rank < together[:, None]))

    def _keeps_class(self, judge: Judge, points: Candidates, point: Array, back: Array) -> Array:
        """Whether points (n,) keep their class if some of their changes (n, A) are taken back."""
        found, most = np.zeros(len(point), dtype=bool), judge.model.most_rows
        for start in range(0, len(point), most):
            part = slice(start, start + most)
            row = points.row[point[part]]
            table = np.where(back[part], judge.task.rows.table[row], points.table[point[part]])
            label = judge.model.quick_labels(table, judge.task.group[row])
            found[part] = self._has_class(point[part], label)
        return found

    def _has_class(self, point: Array, label: Array) -> Array:
        """Whether labels (n,) are the classes of points (n,): another class that was asked for is another answer."""
        return np.asarray((label >= 0) & (label == self.label[point]))

    def _note_single(self, judge: Judge, points: Candidates, at: Array) -> None:
        """The reason of a change that is the only one of its point, among those at (f,): what the row itself lacks."""
        if not len(at):
            return
        task, line = judge.task, points.row[at]
        differs = changed(points.table[at], task.rows.table[line])
        has_class = self._has_class(at, task.label[line])
        for i in (differs.sum(axis=1) == 1).nonzero()[0]:
            reason = PROBABILITY if has_class[i] else CLASS
            one = line[[i]]
            if (
                has_class[i]
                and task.intervals is None
                and judge.space.broken(task.rows.table[one], task.rows.take(one))[0]
            ):
                reason = RULE
            self.reason[at[i], differs[i]] = reason


def changed_columns(judge: Judge, points: Candidates) -> Array:
    """(m,) how many columns the points change."""
    return np.asarray(changed(points.table, judge.task.rows.table[points.row]).sum(axis=1))


def _reasons(judge: Judge, points: Candidates, table: Array, point: Array, has_class: Array, margin: Array) -> Array:
    """Why versions (m, A) of points (m,), each without one change, are no answers: (m,)."""
    row, found = points.row[point], np.full(len(point), CLASS, dtype=REASON)
    found[has_class & (margin <= 0)] = PROBABILITY
    rest = (has_class & (margin > 0)).nonzero()[0]
    if not len(rest):
        return found
    table, row, point = table[rest], row[rest], point[rest]
    broken = judge.space.broken(table, judge.task.rows.take(row))
    alike = ~broken & ~judge.is_permitted(table, row)
    cost = judge.cost(table, row, points.path_end[point] if judge.theta else None)
    away = ~broken & ~alike & (cost > points.cost[point])
    isolated = _is_less_typical(judge, table, points.table[point], row)
    chosen = [broken, alike, away, isolated]
    found[rest] = np.select(chosen, [RULE, DIFFERENCE, PROTOTYPE, TYPICALITY], STABILITY)
    return found


def _is_less_typical(judge: Judge, table: Array, whole: Array, row: Array) -> Array:
    """Whether versions (m, A) miss the floor of typicality by more than the points (m, A) that they are versions of."""
    measures = judge.measures
    if measures.floors.typicality is None or not measures.floors.least_typicality.least:
        return np.zeros(len(table), dtype=bool)
    least = measures.least[row]
    without, with_it = (
        np.fmax(least - measures.typicality(each, judge.labels(each, row)), 0) for each in (table, whole)
    )
    return np.asarray(without > with_it)
