"""What every search shares: the rows, what counts as a counterfactual of them, and the best found so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.tables.space import FeatureSpace, Rows, counts_changes, keep_largest


def elastic_net(delta: Array, beta: float) -> Array:
    """beta · |delta|_1 + |delta|_2^2 along the last axis."""
    return np.asarray(beta * np.abs(delta).sum(axis=-1) + np.square(delta).sum(axis=-1))


def lead_of(proba: Array, allowed: Array, kappa: float, min_proba: float | None) -> Array:
    """By how much the best allowed class leads every other and kappa; positive where the row counts as changed.

    The lead must exceed the rounding of the model's numbers, so that the same row in another batch has the same class.
    With min_proba it is no more than what the class has above that.
    """
    least = kappa + _rounding(proba.dtype)
    if proba.shape[1] == 2 and min_proba is None:  # noqa: PLR2004 then one is allowed, and the other is the row's own
        lead = proba[:, 0] - proba[:, 1]
        return np.where(allowed[:, 0], lead, -lead) - least
    inside = np.where(allowed, proba, -np.inf).max(axis=1)
    lead = inside - np.where(allowed, -np.inf, proba).max(axis=1) - least
    return np.asarray(lead if min_proba is None else np.minimum(lead, inside - np.nextafter(min_proba, 0)))


@cache
def _rounding(dtype: np.dtype[Any]) -> float:
    return 4 * float(np.finfo(dtype).eps)


def firsts(values: Array) -> Array:
    """Where each value of a sorted array first stands."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return np.flatnonzero(new)


class Start(NamedTuple):
    """Points that polishing may start from."""

    row: Array
    x: Array
    far: Array  # the end of the path the point lies on
    kind: Array  # class of the prototype
    cost: Array
    lead: Array  # NaN where it was not predicted


@dataclass
class Best:
    """The nearest counterfactual of every row so far; cost is infinite where there is none."""

    x: Array
    cost: Array
    kind: Array  # class of the prototype that led there, -1 where none did
    steps: Array
    note: list[str]
    seconds: Array
    before: Array  # the cost before polishing, NaN where there was none
    floor: Array  # the cost that polishing may not go below, infinite where there was none

    @classmethod
    def none(cls, rows: Rows) -> Best:
        """Nothing found yet."""
        n = len(rows.x)
        none, far = np.full(n, np.nan), np.full(n, np.inf)
        empty, steps = np.full_like(rows.x, np.nan), np.zeros(n, dtype=int)
        return cls(empty, far, np.full(n, -1), steps, [""] * n, np.zeros(n), none, far.copy())


@dataclass
class Problem:
    """Rows to explain. `allowed` (n, k) are the classes a counterfactual may have.

    Where several different counterfactuals are wanted, a row stands there `copies` times in a row; each copy is led to
    other prototypes.
    """

    rows: Rows
    allowed: Array
    model: SearchModel
    config: SearchConfig
    deadline: float = np.inf
    tick: Callable[[float], None] = lambda _fraction: None
    copies: int = 1
    span: tuple[float, float] = (0.0, 1.0)  # the part of the whole work that is being done
    polish_calls: int = 0
    best: Best = field(init=False)
    starts: list[Start] = field(default_factory=list)  # of what is still to be polished
    polished: Array = field(init=False)

    def __post_init__(self) -> None:
        self.best = Best.none(self.rows)
        self.polished = np.zeros(len(self.rows.x), dtype=bool)

    @property
    def space(self) -> FeatureSpace:
        """The feature space of the model."""
        return self.model.space

    def out_of_time(self) -> bool:
        """Whether the time budget is spent."""
        return time.perf_counter() > self.deadline

    def report(self, fraction: float) -> None:
        """Say how much of the present part is done."""
        low, high = self.span
        self.tick(low + (high - low) * fraction)

    def open(self) -> Array:
        """Rows that have no counterfactual yet."""
        return np.flatnonzero(np.isinf(self.best.cost))

    @contextmanager
    def clock(self, rows: Array) -> Iterator[None]:
        """Share the time of a piece of work among the rows it was for."""
        start = time.perf_counter()
        yield
        self.best.seconds[rows] += (time.perf_counter() - start) / max(len(rows), 1)

    def decode(self, z: Array, row: Array, *, limited: bool = True) -> tuple[Array, Array]:
        """Search points (m, D), or several (m, q, D), of the rows (m,): the user's numbers, and their cost.

        limited: where the number of changes is, only the largest are kept.
        """
        rows = self.rows.take(row)
        rows = rows if z.ndim == rows.z.ndim else rows.spread()
        if limited and self.config.max_changes is not None:
            z = keep_largest(z, rows.z, self.config.max_changes)
        x = self.space.decode(z, rows)
        landed = self.space.to_search(x) if self.space.rounds else z
        return x, self._cost(landed - rows.z, x, rows.x)

    def cost(self, x: Array, row: Array) -> Array:
        """beta·L1 + L2 of points in the user's numbers, and the price of every changed column."""
        return self._cost(self.space.to_search(x) - self.rows.z[row], x, self.rows.x[row])

    def _cost(self, delta: Array, x: Array, own: Array) -> Array:
        distance = elastic_net(delta, self.config.beta)
        price = self.config.few_changes
        return distance + price * counts_changes(x, own) if price else distance

    def lead(self, x: Array, row: Array, proba: Array | None = None) -> Array:
        """By how much points (m, D), in the user's numbers, are counterfactuals of their rows (m,). One predict call.

        -inf where a point is against a rule that bounds cannot express: a relation, or the number of changes.
        """
        if self.config.max_changes is None and not self.space.rules.relations:
            return self.free_lead(x, row, proba)
        lead = np.full(len(x), -np.inf)
        at = np.flatnonzero(self.permitted(x, row))
        lead[at] = self.free_lead(x[at], row[at], None if proba is None else proba[at])
        return lead

    def free_lead(self, x: Array, row: Array, proba: Array | None = None) -> Array:
        """The same for points that need not keep those rules."""
        if not len(x):
            return np.zeros(0)
        known = self.model.proba(x) if proba is None else proba
        return lead_of(known, self.allowed[row], self.config.kappa, self.config.min_proba)

    def judge(self, x: Array, row: Array, proba: Array | None = None) -> Array:
        """Which points are counterfactuals of their rows and keep those rules."""
        return self.lead(x, row, proba) > 0

    def permitted(self, x: Array, row: Array) -> Array:
        """Which points satisfy the rules that bounds cannot express: relations and the number of changes."""
        good = self.space.rules.related(x) if self.space.rules.relations else np.ones(len(x), dtype=bool)
        if self.config.max_changes is not None:
            good &= counts_changes(x, self.rows.x[row]) <= self.config.max_changes
        return good

    def keep(self, row: Array, x: Array, cost: Array) -> Array:
        """Take over valid points that are better than what their row has; return the positions taken."""
        order = np.lexsort((cost, row))
        first = order[firsts(row[order])]
        better = first[cost[first] < self.best.cost[row[first]]]
        self.best.x[row[better]] = x[better]
        self.best.cost[row[better]] = cost[better]
        return better
