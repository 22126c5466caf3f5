"""The wishes and rules about an answer that are asked only of points about to be accepted: typicality and stability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.copies import Copies
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.plan import Floor
from cfproto_plugin.search.task import Task
from cfproto_plugin.search.typicality import Typicality
from cfproto_plugin.tables.space import FeatureSpace

_ROUNDING = 1e-9
_SUREST = 0.99  # probability that is wished for at most: beyond, digits say little about how sure a model is


@dataclass(frozen=True)
class Floors:
    """What answers should reach, and how it is measured; learned by `fit`. None: not measured."""

    typicality: Typicality | None = None
    copies: Copies | None = None
    least_typicality: Floor = Floor(0.0, is_rule=False)  # noqa: RUF009 a record that nothing changes
    least_stability: Floor = Floor(0.0, is_rule=False)  # noqa: RUF009
    least_confidence: Floor = Floor(0.0, is_rule=False)  # noqa: RUF009
    sure: Array | None = None  # (k,) the probability of every class at that confidence; None if not asked for

    @property
    def any(self) -> bool:
        """Whether anything is asked for that is measured on points about to be accepted."""
        return bool(self.least_typicality.least or self.least_stability.least)

    def probabilities(self, min_proba: float | None, k: int) -> tuple[Array | None, Array | None]:
        """What the probability of every class (k,) must be, and what is wished for; None where nothing is asked."""
        least = None if min_proba is None else np.full(k, min_proba)
        if self.sure is None:
            return least, None
        both = self.sure if least is None else np.maximum(least, self.sure)
        return (both, None) if self.least_confidence.is_rule else (least, both)


def sure_probabilities(labels: Array, proba: Array, k: int, floor: Floor) -> Array | None:
    """The probability of every class (k,) that reaches the floor of confidence; None for no floor.

    labels, proba: (n,) the classes of the training rows, and their probabilities.
    The confidence of a probability is the share of the training rows of whose class the model is at most as sure. What
    is only wished for is no more than half of the rows of the class reach.
    """
    if not floor.least:
        return None
    found = np.full(k, np.quantile(proba, floor.least, method="inverted_cdf"))
    if not floor.is_rule:
        for label in np.unique(labels).tolist():
            found[label] = min(found[label], _SUREST, np.median(proba[labels == label]))
    return found


class Measures:
    """The floors of one task: every line is compared with its own row."""

    def __init__(self, floors: Floors, task: Task, model: SearchModel) -> None:
        self.floors, self.task, self.model = floors, task, model
        self.reached = np.full((2, len(task)), np.nan)  # the best typicality and stability of valid points of a line
        self.estimated = np.zeros(len(task), dtype=bool)  # that stability is an estimate from the first copies

    @cached_property
    def least(self) -> Array:
        """(n,) the typicality that is asked for: an outlier need not become typical."""
        least = np.full(len(self.task), self.floors.least_typicality.least)
        if self.floors.typicality is None or not self.floors.least_typicality.least:
            return least
        return np.asarray(np.fmin(least, self.typicality(self.task.rows.table, self.task.label)))

    def shortfall(self, table: Array, row: Array, label: Array) -> Array:
        """By how much points (m, A) of lines (m,) and classes (m,) miss the floors; infinite if that breaks a rule."""
        found = self.untypical(table, row, label)
        at = np.isfinite(found).nonzero()[0]
        found[at] += self.unstable(table[at], row[at], label[at])
        return found

    def untypical(self, table: Array, row: Array, label: Array) -> Array:
        """By how much points (m, A) of lines (m,) and classes (m,) miss typicality; infinite if that breaks a rule."""
        floors = self.floors
        if floors.typicality is None or not floors.least_typicality.least:
            return np.zeros(len(table))
        typical = self.typicality(table, label)
        np.fmax.at(self.reached[0], row, typical)
        return _missed(typical, self.least[row], floors.least_typicality)

    def unstable(self, table: Array, row: Array, label: Array) -> Array:
        """By how much they miss stability, likewise."""
        floors = self.floors
        if floors.copies is None or not floors.least_stability.least or not len(table):
            return np.zeros(len(table))
        stable, estimated = self._stability_so_far(table, row, label)
        best = self.reached[1].copy()
        np.fmax.at(self.reached[1], row, stable)
        better = (stable == self.reached[1, row]) & ~(stable <= best[row])
        self.estimated[row[better]] = True
        self.estimated[row[(stable == self.reached[1, row]) & ~estimated]] = False
        return _missed(stable, floors.least_stability.least, floors.least_stability)

    def typicality(self, table: Array, label: Array) -> Array:
        """How typical points (m, A) are of classes (m,); NaN where that is not measured."""
        known = self.floors.typicality
        return np.full(len(table), np.nan) if known is None else known(unweighted(self.task.space, table), label)

    def stability(self, table: Array, row: Array, label: Array) -> Array:
        """The share of the copies of points (m, A) of lines (m,) that have their class (m,)."""
        copies = self.floors.copies
        if copies is None or not len(table):
            return np.full(len(table), np.nan)
        return np.asarray(self._kept(copies, table, row, label).mean(axis=1))

    def _stability_so_far(self, table: Array, row: Array, label: Array) -> tuple[Array, Array]:
        """Likewise; an estimate by the first few copies where these alone are too many that lose the class.

        The copies that go back towards the row are asked first. Second: (m,) bool: it is an estimate.
        """
        copies, least = self.floors.copies, self.floors.least_stability.least
        if copies is None:
            return np.full(len(table), np.nan), np.zeros(len(table), dtype=bool)
        count = len(copies.steps)
        first = max(1, round(count * self.task.tuning.copies_first))
        order = copies.order(table, self.task.rows.table[row])
        lost = (~self._kept(copies, table, row, label, order[:, :first])).sum(axis=1)
        at = (lost <= (1 - least) * count + _ROUNDING).nonzero()[0]
        stopped = np.ones(len(table), dtype=bool)
        stopped[at] = False
        if len(at) and first < count:
            lost[at] += (~self._kept(copies, table[at], row[at], label[at], order[at, first:])).sum(axis=1)
        lost = np.where(stopped, lost + self.task.tuning.lost_later * lost / first * (count - first), lost)
        return np.asarray(1 - lost / count), stopped & (first < count)

    def _kept(self, copies: Copies, table: Array, row: Array, label: Array, which: Array | None = None) -> Array:
        """Which copies (m, K) of points (m, A) have their class; which: (m, K) their numbers, if not all."""
        x = self.task.group[row]
        size = max(1, self.task.tuning.cells // copies.steps.size)
        found = []
        for start in range(0, len(table), size):
            part = slice(start, start + size)
            around = copies.around(table[part], self.task.space, None if which is None else which[part])
            who = x[part].repeat(around.shape[1])
            said = self.model.quick_labels(around.reshape(-1, around.shape[2]), who)
            found.append(said.reshape(around.shape[:2]) == label[part, None])
        return np.concatenate(found)


def unweighted(space: FeatureSpace, table: Array) -> Array:
    """Where rows of the table are in the search, without the user's weights: these say what a change costs."""
    return np.asarray(space.to_search(table) / space.weights)


def _missed(found: Array, least: Array | float, floor: Floor) -> Array:
    """How far below the floor; nothing where the measure has no value."""
    missed = np.nan_to_num(np.maximum(least - found - _ROUNDING, 0))
    return np.where(missed > 0, np.inf, 0.0) if floor.is_rule else missed
