"""The paper's search: FISTA on the full objective, with a bisection of c for every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.candidates import Candidates, candidates, cheapest, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.objective.fista import Block, Schedule, trajectory
from cfproto_plugin.search.objective.gradients import Vjp, differences
from cfproto_plugin.search.objective.terms import (
    Distance,
    LatentDistance,
    Prediction,
    Probability,
    Reconstruction,
    Sum,
    Term,
)
from cfproto_plugin.search.plan import Plan

_NO_UPPER = 1e10
_UPPER_KNOWN = 1e9


def next_c(c: Array, low: Array, high: Array, found: Array) -> tuple[Array, Array, Array]:
    """The next c of every row and its bounds, all (n,); found (n,) bool: whether this c gave a counterfactual.

    found: high = min(high, c), else low = max(low, c); next c = (low + high) / 2 if high is known, else 10 c.
    """
    high = np.where(found, np.minimum(high, c), high)
    low = np.where(found, low, np.maximum(low, c))
    return np.where(high < _UPPER_KNOWN, (low + high) / 2, 10 * c), low, high


def search_descent(
    judge: Judge,
    clock: Clock,
    best: Array,
    plan: Plan,
    *,
    prototypes: Array | None = None,
    classes: Array | None = None,
    encoder: GradientAdapter | None = None,
    autoencoder: GradientAdapter | None = None,
) -> Iterator[Candidates]:
    """Run every line through c_steps trajectories and yield its cheapest valid iterates.

    prototypes: (n, *s), codes if there is an encoder. classes: (n,) of the prototypes.
    """
    search = _Descent(judge, best, plan, classes)
    terms = _Terms(judge, plan, prototypes, encoder, autoencoder)
    config, rows, n = judge.task.config, judge.task.rows, len(judge.task)
    schedule = Schedule(judge.task.beta, config.learning_rate, config.max_iterations, config.momentum, config.clip)
    c, low, high = np.full(n, plan.c_init), np.zeros(n), np.full(n, _NO_UPPER)
    for number in range(plan.c_steps):
        found = np.zeros(n, dtype=bool)
        with clock.shared(np.arange(n)):
            for block in trajectory(
                terms.with_c(c),
                rows.z,
                rows.z_lower,
                rows.z_upper,
                schedule,
                judge.task.tuning.cells,
                clock.is_over,
                clock.is_due,
            ):
                yield from search.judged(block, found, number, c)
                if number + 1 < plan.c_steps and block.proba is None:
                    search.settle(block, found)
                clock.report((number + (block.first + len(block.x) - 1) / schedule.steps) / plan.c_steps)
        search.succeeded |= found
        if clock.is_over():
            return
        c, low, high = next_c(c, low, high, found)


class _Descent:
    """What is remembered between trajectories: which lines have succeeded, and after how many steps."""

    def __init__(self, judge: Judge, best: Array, plan: Plan, classes: Array | None) -> None:
        self.judge, self.best, self.plan = judge, best, plan
        self.succeeded = np.zeros(len(judge.task), dtype=bool)
        self._steps = np.zeros(len(judge.task), dtype=int)
        self._classes = np.full(len(judge.task), -1) if classes is None else classes

    def judged(self, block: Block, found: Array, number: int, c: Array) -> Iterator[Candidates]:
        """Judge the iterates of a block that are cheaper than the best so far, in one predict call; yield the best.

        found (n,) is filled in: the lines with a valid iterate.
        """
        t, m, d = block.x.shape
        row = np.tile(block.rows, t)
        table, cost = self.judge.decode(block.x.reshape(-1, d), row)
        margin = np.full(t * m, -np.inf)
        if block.proba is not None:
            margin = np.where(cost > 0, self.judge.margin(table, row, block.proba.reshape(t * m, -1)), -np.inf)
        else:
            worth = (cost > 0) & (cost < self.best[row]) & ~_repeats(block.x).ravel()
            margin[worth] = self.judge.margin(table[worth], row[worth])
        at = np.flatnonzero(margin > 0)
        found[row[at]] = True
        at = at[cheapest(row[at], cost[at], self.best)]
        line, step = row[at], block.first + at // m
        before = number * self.judge.task.config.max_iterations
        self._steps[line] = np.where(self.succeeded[line], self._steps[line], before + step)
        trace = traces(len(at), "fista", prototype=self._classes[line], step=step, c=c[line], steps=self._steps[line])
        yield candidates(line, table[at], cost[at], margin[at], trace)

    def settle(self, block: Block, found: Array) -> None:
        """Find out whether lines whose near iterates all failed have a valid one farther out: the next c needs it."""
        doubtful = ~found[block.rows]
        row = np.tile(block.rows[doubtful], len(block.x))
        z = block.x[:, doubtful]
        table, cost = self.judge.decode(z.reshape(-1, z.shape[-1]), row)
        farther = ~_repeats(z).ravel() & (cost >= self.best[row])
        found[row[farther][self.judge.is_valid(table[farther], row[farther])]] = True


def _repeats(x: Array) -> Array:
    """Which iterates (t, m, D) equal the one before: (t, m)."""
    same = np.zeros(x.shape[:2], dtype=bool)
    same[1:] = (x[1:] == x[:-1]).all(axis=2)
    return same


class _Terms:
    """The objective without L1, for every c and every subset of the lines."""

    def __init__(
        self,
        judge: Judge,
        plan: Plan,
        prototypes: Array | None,
        encoder: GradientAdapter | None,
        autoencoder: GradientAdapter | None,
    ) -> None:
        self.judge, self.plan, self.prototypes = judge, plan, prototypes
        self.encoder, self.autoencoder = encoder, autoencoder

    def with_c(self, c: Array) -> Callable[[Array], Term]:
        """The objective of lines (m,) when c is (n,)."""
        return lambda rows: Sum(list(self._terms(rows, c)))

    def _terms(self, rows: Array, c: Array) -> Iterator[Term]:
        task, plan, shape = self.judge.task, self.plan, self.judge.space.shape
        yield Distance(task.rows.z[rows])
        if plan.c_init > 0:
            scale = c[rows].astype(task.rows.z.dtype)
            if task.intervals is None:
                yield Prediction(self._vjp(rows), scale, task.allowed[rows], task.config.kappa)
            else:
                yield Probability(self._vjp(rows), scale, *task.intervals.take(rows))
        if plan.gamma > 0 and self.autoencoder is not None:
            yield Reconstruction(self.autoencoder, shape, plan.gamma)
        if plan.theta > 0 and self.prototypes is not None:
            points = self.prototypes[rows]
            if self.encoder is None:
                yield Distance(points.reshape(len(rows), -1), plan.theta)
            else:
                yield LatentDistance(self.encoder, points, shape, plan.theta)

    def _vjp(self, rows: Array) -> Vjp:
        """The classifier's gradient at search points of these lines: its own, or by differences."""
        judge, taken = self.judge, self.judge.task.rows.take(rows)
        if judge.model.has_gradient:
            return judge.model.at(taken)

        def predict(points: Array, row: Array) -> Array:
            judge.model.gradients += len(points) // (2 * points.shape[1] + 1)
            return judge.model.quick(judge.space.decode(points, taken.take(row)))

        return differences(predict, np.asarray(judge.task.config.eps), judge.task.tuning.cells)
