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
    return np.full(shape, UNKNOWN, dtype=REASON)


class Needed(NamedTuple):
    """What the changes of m points (m, A) are needed for, and the margin that is left without each of them."""

    reason: Array
    margin: Array

    @classmethod
    def of(cls, points: Candidates) -> Needed:
        """Nothing is known yet."""
        return cls(nothing_known(points.table.shape), np.full(points.table.shape, np.nan))

    def note(
        self, judge: Judge, points: Candidates, versions: Versions, at: Array, final: Array, label: Array, margin: Array
    ) -> None:
        """Take note of what the last look found about points that stay as they are.

        at: (q,) the points of the versions. final: (f,) the numbers of those that stay among them. label, margin: (N,)
        of the versions, by what the model says of them.
        """
        stays = np.isin(np.arange(len(at)), final)
        single = np.flatnonzero((versions.end - versions.first == 1) & stays[versions.point])
        point = versions.point[single]
        places = at[point], versions.column[point, versions.first[single]]
        self.margin[places] = margin[single]
        self.reason[places] = _reasons(
            judge, points.take(at), versions.tables(single), point, label[single], margin[single]
        )
        _note_single(judge, points.row[at[final]], versions.here[final], at[final], self.reason)

    def settle(self, judge: Judge, points: Candidates) -> None:
        """Ask which changes can be taken back together without losing the class; the others are needed for it."""
        spare = (self.reason != UNKNOWN) & (self.reason != CLASS)
        count = spare.sum(axis=1)
        point, size = growing_sets(np.minimum(count, changed_columns(judge, points) - 1))
        if not len(point):
            return
        order = np.argsort(np.where(spare, -self.margin, np.inf), axis=1, kind="stable")
        rank = np.argsort(order, axis=1)
        kept = np.zeros(len(point), dtype=bool)
        most = judge.model.most_rows
        for start in range(0, len(point), most):
            part = slice(start, start + most)
            here, row = point[part], points.row[point[part]]
            back = rank[here] < size[part, None]
            table = np.where(back, judge.task.rows.table[row], points.table[here])
            label = judge.model.quick_labels(table, judge.task.group[row])
            kept[part] = (label >= 0) & ((judge.task.intervals is not None) | judge.task.allowed[row, label])
        together = np.minimum(count, 1)
        np.maximum.at(together, point[kept], size[kept])
        self.reason[spare & (rank >= together[:, None])] = CLASS


def changed_columns(judge: Judge, points: Candidates) -> Array:
    """(m,) how many columns the points change."""
    return np.asarray(changed(points.table, judge.task.rows.table[points.row]).sum(axis=1))


def _reasons(judge: Judge, points: Candidates, table: Array, point: Array, label: Array, margin: Array) -> Array:
    """Why versions (m, A) of points (m,), each without one change, are no answers: (m,)."""
    row, found = points.row[point], np.full(len(point), CLASS, dtype=REASON)
    has_class = (label >= 0) & ((judge.task.intervals is not None) | judge.task.allowed[row, label])
    found[has_class & (margin <= 0)] = PROBABILITY
    rest = np.flatnonzero(has_class & (margin > 0))
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


def _note_single(judge: Judge, row: Array, here: Array, at: Array, found: Array) -> None:
    """The reason of a change that is the only one of its point: what the row itself lacks.

    here: (f, A) points of lines (f,). found: (m, A), written into at the places (f,).
    """
    task = judge.task
    differs = changed(here, task.rows.table[row])
    for i in np.flatnonzero(differs.sum(axis=1) == 1):
        line = row[[i]]
        if task.intervals is not None:
            reason = PROBABILITY
        elif not task.allowed[line[0], task.label[line[0]]]:
            reason = CLASS
        else:
            reason = RULE if judge.space.broken(task.rows.table[line], task.rows.take(line))[0] else PROBABILITY
        found[at[i], differs[i]] = reason
