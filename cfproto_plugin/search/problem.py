"""What every search shares: the rows, what counts as a counterfactual of them, and the best found so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.space import FeatureSpace, Rows, counts_changes, keep_largest


def elastic_net(delta: Array, beta: float) -> Array:
    """beta · |delta|_1 + |delta|_2^2 along the last axis."""
    return np.asarray(beta * np.abs(delta).sum(axis=-1) + np.square(delta).sum(axis=-1))


def reaches(proba: Array, allowed: Array, kappa: float, min_proba: float | None) -> Array:
    """Whether an allowed class leads every other by more than kappa, and reaches min_proba.

    The lead must exceed the rounding of the model's numbers, so that the same row in another batch has the same class.
    """
    inside = np.where(allowed, proba, -np.inf).max(axis=1)
    outside = np.where(allowed, -np.inf, proba).max(axis=1)
    good = inside - outside > kappa + 4 * np.finfo(proba.dtype).eps
    return np.asarray(good if min_proba is None else good & (inside >= min_proba))


@dataclass
class Best:
    """The nearest counterfactual of every row so far; cost is infinite where there is none."""

    x: Array
    cost: Array
    kind: Array  # class of the prototype that led there, -1 where none did
    steps: Array
    note: list[str]
    seconds: Array

    @classmethod
    def none(cls, rows: Rows) -> Best:
        """Nothing found yet."""
        n = len(rows.x)
        empty = np.full_like(rows.x, np.nan)
        return cls(empty, np.full(n, np.inf), np.full(n, -1), np.zeros(n, dtype=int), [""] * n, np.zeros(n))


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
    starts: list[tuple[Array, ...]] = field(default_factory=list)  # valid points: row, x, cost, class of the prototype

    def __post_init__(self) -> None:
        self.best = Best.none(self.rows)

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

    def decode(self, z: Array, row: Array) -> tuple[Array, Array]:
        """Search points (m, D) of the rows (m,): the user's numbers, and beta·L1 + L2."""
        rows = self.rows.take(row)
        if self.config.max_changes is not None:
            z = keep_largest(z, rows.z, self.config.max_changes)
        x = self.space.decode(z, rows)
        landed = self.space.to_search(x) if self.space.rounds else z
        return x, elastic_net(landed - rows.z, self.config.beta)

    def judge(self, x: Array, row: Array, proba: Array | None = None) -> Array:
        """Which points (m, D), in the user's numbers, are counterfactuals of their rows (m,). One predict call."""
        good = self.permitted(x, row)
        at = np.flatnonzero(good)
        if len(at):
            known = self.model.proba(x[at]) if proba is None else proba[at]
            good[at] = reaches(known, self.allowed[row[at]], self.config.kappa, self.config.min_proba)
        return good

    def permitted(self, x: Array, row: Array) -> Array:
        """Which points satisfy the rules that bounds cannot express: relations and the number of changes."""
        good = self.space.rules.related(x) if self.space.rules.relations else np.ones(len(x), dtype=bool)
        if self.config.max_changes is not None:
            good &= counts_changes(x, self.rows.x[row]) <= self.config.max_changes
        return good

    def keep(self, row: Array, x: Array, cost: Array) -> Array:
        """Take over valid points that are better than what their row has; return the positions taken."""
        order = np.lexsort((cost, row))
        first = order[np.unique(row[order], return_index=True)[1]]
        better = first[cost[first] < self.best.cost[row[first]]]
        self.best.x[row[better]] = x[better]
        self.best.cost[row[better]] = cost[better]
        return better
