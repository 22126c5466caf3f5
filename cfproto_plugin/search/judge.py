"""What a point costs, by how much it has another class, and whether it is a counterfactual of its row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.floors import Floors, Measures
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.reached import Reached
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.geometry import count_changed
from cfproto_plugin.tables.space import keep_largest

_LEAST = 1e-12  # margin of a point whose class is settled by a tie or by the model's own decision

_FAILED = -10.0  # margin of a point at which the model fails: less than any other has, and finite for polishing


def elastic_net(delta: Array, beta: float) -> Array:
    """beta · |delta|_1 + |delta|_2^2 along the last axis."""
    return np.asarray(beta * np.abs(delta).sum(axis=-1) + np.square(delta).sum(axis=-1))


def margin_of(
    proba: Array, allowed: Array, kappa: float, sure: Array | None, noise: float = 0.0, error: float = 0.0
) -> Array:
    """By how much the best allowed class leads every other and kappa: (n,), positive where the class is another.

    proba: (n, k). allowed: (n, k) bool. noise: what the lead must exceed, so that the same row in another batch has the
    same class; without it, and without kappa, a tie goes to the first of the largest columns. sure: (k,) what the
    probability of every class must be: the margin is no more than what the class has above that. error: how far proba
    may be from the model's own. Where all classes are allowed, it is the largest probability.
    """
    least = kappa + noise
    inside = np.where(allowed, proba, -np.inf).max(axis=1)
    outside = np.where(allowed, -np.inf, proba).max(axis=1)
    margin = inside - np.where(np.isinf(outside), 0, outside) - least
    if not least:
        tied = (margin == 0).nonzero()[0]
        margin[tied] = np.where(allowed[tied, proba[tied].argmax(axis=1)], _LEAST, 0)
    if sure is None:
        return np.asarray(margin)
    asked = np.nextafter(sure, 0)[np.where(allowed, proba, -np.inf).argmax(axis=1)]
    return np.asarray(np.minimum(margin, inside - error - asked))


def margin_of_two(proba: Array, side: Array, least: float) -> Array:
    """The same of two classes of which one is allowed: side (n,) is 1 where that is the first, -1 for the second."""
    margin = (proba[:, 0] - proba[:, 1]) * side
    if least:
        return np.asarray(margin - least)
    return margin if margin.all() else np.where((margin == 0) & (side > 0), _LEAST, margin)


class Judge:
    """Answers questions about points of a task, each with at most one predict call, and one for a decision of its own.

    `row` (m,) says which line of the task each of the m points belongs to; points are rows (m, A) of the table.
    """

    def __init__(self, task: Task, model: SearchModel, floors: Floors | None = None, theta: float = 0.0) -> None:
        """theta: weight of the prototype in what is minimised."""
        self.task = task
        self.theta = theta
        self.measures = Measures(floors or Floors(), task, model)
        self.model = model
        self.space = task.space
        self._config = task.config
        self.reached: Reached | None = None
        unlimited = task.config.max_changes is None and task.others is None
        self._bounds_suffice = unlimited and task.space.rules.bounds_suffice
        first, last = task.allowed[:, 0], task.allowed[:, -1]
        two = task.allowed.shape[1] == 2 and bool((first != last).all())  # noqa: PLR2004
        self._side = np.where(first, 1, -1).astype(np.int8) if two else None  # see `margin_of_two`

    @property
    def sure(self) -> Array | None:
        """(k,) what the probability of every class should be; None for nothing."""
        return self.task.least if self.task.wished is None else self.task.wished

    def decode(self, z: Array, row: Array, goal: Array | None = None, *, limited: bool = True) -> tuple[Array, Array]:
        """Search points (m, D), or several (m, q, D) per entry of row: their table values, and their cost.

        goal: their prototypes, of the same shape. limited: where the number of changes is, only the largest are kept.
        """
        rows = self.task.rows.take(row)
        rows = rows if z.ndim == rows.z.ndim else rows.spread()
        if limited and self._config.max_changes is not None:
            z = keep_largest(z, rows.z, self._config.max_changes)
        table = self.space.decode(z, rows)
        landed = self.space.to_search(table) if self.space.rounds else z
        return table, self._cost(landed - rows.z, table, rows.table, None if goal is None else landed - goal)

    def cost(self, table: Array, row: Array, goal: Array | None = None) -> Array:
        """What is minimised, J: beta·L1 + L2, theta·|z - goal|^2, and the price of every changed column.

        goal: (m, A) the prototypes of points (m, A), in the table.
        """
        z = self.space.to_search(table)
        off = None if goal is None or not self.theta else z - self.space.to_search(goal)
        return self._cost(z - self.task.rows.z.take(row, axis=0), table, self.task.rows.table.take(row, axis=0), off)

    def distance(self, table: Array, row: Array) -> Array:
        """beta·L1 + L2 alone."""
        return elastic_net(self.space.to_search(table) - self.task.rows.z.take(row, axis=0), self.task.beta)

    def _cost(self, delta: Array, table: Array, original: Array, off: Array | None) -> Array:
        cost = elastic_net(delta, self.task.beta)
        if self.theta and off is not None:
            cost = cost + self.theta * np.square(off).sum(axis=-1)
        price = self._config.few_changes
        return cost + price * count_changed(table, original) if price else cost

    def labels(self, table: Array, row: Array) -> Array:
        """The classes (m,) of valid points (m, A): the only one that is allowed, or what the model says.

        Where probabilities are asked for, the classes that are allowed only lead there.
        """
        allowed = self.task.allowed.take(row, axis=0)
        found = allowed.argmax(axis=1)
        several = ((allowed.sum(axis=1) > 1) | (self.task.intervals is not None)).nonzero()[0]
        if len(several):
            found[several] = self.model.quick_labels(table[several], self.task.group[row[several]])
        return np.asarray(found)

    def shortfall(self, table: Array, row: Array) -> Array:
        """By how much valid points miss typicality and stability; infinite where that breaks a rule."""
        if not self.measures.floors.any or not len(table):
            return np.zeros(len(table))
        return self.measures.shortfall(table, row, self.labels(table, row))

    def margin(self, table: Array, row: Array, proba: Array | None = None) -> Array:
        """The margin of the points; -inf where one breaks a rule that bounds cannot express.

        proba: (m, k) what the model says, if it was asked already.
        """
        if self._bounds_suffice:
            return self.free_margin(table, row, proba)
        margin, permitted = np.full(len(table), -np.inf), self.is_permitted(table, row)
        if self.reached is not None:
            self.reached.note_refused(table[~permitted], row[~permitted])
        at = permitted.nonzero()[0]
        margin[at] = self.free_margin(table[at], row[at], None if proba is None else proba[at])
        return margin

    def free_margin(self, table: Array, row: Array, proba: Array | None = None) -> Array:
        """The margin of points that need not keep those rules."""
        if not len(table):
            return np.zeros(0)
        x = self.task.group.take(row)
        known = self.model.quick(table, x) if proba is None else proba
        margin = self.margin_by(known, self.model.quick_decision(table, x), row)
        if self.reached is not None:
            self.reached.note(table, row, known, margin > 0, self.is_permitted)
        return margin

    def free_margin_of(self, tables: Callable[[slice], Array], row: Array) -> Array:
        """Likewise of points that are made when they are asked about, in parts that memory and the time left allow.

        tables: takes a slice of the points, returns their rows (m, A).
        """
        model, found, start = self.model, np.zeros(len(row)), 0
        while start < len(row):
            part = slice(start, start + model.pace.rows(model.most_rows))
            found[part] = self.free_margin(tables(part), row[part])
            start = part.stop
        return found

    def margin_by(
        self, proba: Array, decision: Array | None, row: Array, *, own: bool = False, wish: bool = True
    ) -> Array:
        """The margin by what a model says: probabilities (m, k), and its own decision (m,) if it has one.

        -10 where the model failed. A decision settles the sign, so that the margin leads the search and the decision
        judges it. own: these are the model's own answers to points that were judged before. wish: a class must be as
        probable as is wished for, not only as it must be.
        """
        noise = self.model.noise
        lead, error = (noise.repeated, 0.0) if own else (noise.lead, noise.quick)
        if self.task.intervals is not None:  # about probabilities, whatever the model decides
            margin, _ = self.task.intervals.take(row).best(proba, self._config.kappa, lead)
            return np.where(np.isnan(margin), _FAILED, margin)
        sure = self.sure if wish else self.task.least
        if self._side is not None and sure is None:
            margin = margin_of_two(proba, self._side.take(row), self._config.kappa + lead)
        else:
            margin = margin_of(proba, self.task.allowed.take(row, axis=0), self._config.kappa, sure, lead, error)
        failed = np.isnan(margin)
        margin = np.where(failed, _FAILED, margin) if np.count_nonzero(failed) else margin
        if decision is None:
            return margin
        margin = np.where(decision < 0, _FAILED, margin)
        at = np.arange(len(row)), decision
        good = self.task.allowed[row, decision]
        good = good if sure is None else good & (proba[at] >= sure[decision])
        return np.where(good, np.maximum(margin, _LEAST), np.minimum(margin, -_LEAST))

    def slope(self, proba: Array, row: Array) -> tuple[Array, Array]:
        """The margin (m,) without noise at probabilities (m, k), and its derivative by them (m, k)."""
        if self.task.intervals is not None:
            margin, slope = self.task.intervals.take(row).cotangent(proba)
            return margin, slope
        at, allowed = np.arange(len(proba)), self.task.allowed.take(row, axis=0)
        inside = np.where(allowed, proba, -np.inf).argmax(axis=1)
        outside = np.where(allowed, -np.inf, proba).argmax(axis=1)
        slope = np.zeros_like(proba)
        slope[at, inside], slope[at, outside] = 1, -1
        return proba[at, inside] - proba[at, outside] - self._config.kappa, slope

    def is_valid(self, table: Array, row: Array, proba: Array | None = None) -> Array:
        """Which points have another class and keep the rules that bounds cannot express."""
        return self.margin(table, row, proba) > 0

    def is_permitted(self, table: Array, row: Array) -> Array:
        """Which points keep the rules that bounds cannot express.

        These are relations, lists, the number of changes, and differing from the answers that the line has already.
        """
        rules, original, others = self.space.rules, self.task.rows.table.take(row, axis=0), self.task.others
        good = np.ones(len(table), dtype=bool) if rules.bounds_suffice else rules.permits(table, original)
        if self._config.max_changes is not None:
            good &= count_changed(table, original) <= self._config.max_changes
        if others is not None:
            for number in range(others.table.shape[1]):
                good &= self.space.differ(table, others.table[row, number], original, by_value=others.by_value)
        return good

    def keeps_rules(self, table: Array, row: Array) -> Array:
        """Which points keep every rule."""
        broken = self.space.broken(table, self.task.rows.take(row))
        return np.asarray(~broken & self.is_permitted(table, row))
