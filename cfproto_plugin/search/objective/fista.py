"""Proximal gradient with the paper's schedule (FISTA), on a batch of rows.

Pure iteration over arrays (n, D): no model, no framework, no idea of what a counterfactual is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.objective.terms import Evaluation, Term

_REST_CHECK = 8  # steps between two looks at who rests
_LEAVE_TOGETHER = 0.75  # rows leave once a quarter of the batch rests: every leaving ends a block


class Schedule(NamedTuple):
    """The constants of the iteration."""

    beta: float
    learning_rate: float
    steps: int
    momentum: bool
    clip: float


class Block(NamedTuple):
    """A stretch of the trajectory: iterates (t, m, D) of the rows (m,), the first at step `first`, counted from 1.

    proba (t, m, k): what the classifier said at these iterates, where the objective asked it at the same points.
    """

    rows: Array
    x: Array
    proba: Array | None
    first: int


class FistaState(NamedTuple):
    """Where the rows are."""

    x: Array  # iterate
    y: Array  # extrapolated point, where the gradient is taken
    step: int


def soft_threshold(z: Array, x0: Array, beta: float | Array) -> Array:
    """Shrink z towards x0: argmin_u 1/2 |u - z|^2 + beta |u - x0|_1, elementwise."""
    gap = z - x0
    return np.where(gap > beta, z - beta, np.where(gap < -beta, z + beta, x0))


def step(state: FistaState, gradient: Array, x0: Array, lower: Array, upper: Array, schedule: Schedule) -> FistaState:
    """u = y - lr_i clip(g);  x' = project(shrink(u));  y' = project(x' + m_i (x' - x))."""
    i = state.step
    rate = schedule.learning_rate * math.sqrt(1 - i / schedule.steps)
    gradient = np.minimum(np.maximum(gradient, -schedule.clip), schedule.clip)
    x = soft_threshold(state.y - rate * gradient, x0, schedule.beta)
    x = np.minimum(np.maximum(x, lower), upper)
    if not schedule.momentum:
        return FistaState(x, x, i + 1)
    y = x + ((i + 1) / (i + 4)) * (x - state.x)
    return FistaState(x, np.minimum(np.maximum(y, lower), upper), i + 1)


def trajectory(
    objective_for: Callable[[Array], Term],
    x0: Array,
    lower: Array,
    upper: Array,
    schedule: Schedule,
    cells: int = 16_000_000,
    is_over: Callable[[], bool] = lambda: False,
    is_due: Callable[[], bool] = lambda: False,
) -> Iterator[Block]:
    """Run the iteration from x0 (n, D) inside bounds (n, D); yield the iterates in blocks of at most `cells` numbers.

    is_over ends it; is_due ends a block before it is full.

    objective_for(rows) is everything but L1, for a subset of the rows. A row that rests at x0 leaves: the step length
    only falls, so what shrinkage cancels once it cancels ever after.
    """
    rows = np.arange(len(x0))
    start = np.minimum(np.maximum(x0, lower), upper)
    state = FistaState(start, start, 0)
    objective = objective_for(rows)
    buffer = _Buffer(cells, keep_proba=not schedule.momentum)
    evaluation = objective(state.y)
    while state.step < schedule.steps and not is_over():
        before = state
        state = step(state, evaluation.gradient, x0, lower, upper, schedule)
        last = state.step == schedule.steps
        if not last:
            evaluation = objective(state.y)
        if last or buffer.is_full(rows) or is_due():
            yield from buffer.flush(rows)
        buffer.add(state, None if last else evaluation)
        if last or state.step % _REST_CHECK != 1:
            continue
        moving = ((state.y != x0) | (before.y != x0)).any(axis=1)
        if moving.mean() > _LEAVE_TOGETHER:
            continue
        yield from buffer.flush(rows)
        if not moving.any():
            return
        rows, x0, lower, upper = rows[moving], x0[moving], lower[moving], upper[moving]
        state = FistaState(state.x[moving], state.y[moving], state.step)
        objective = objective_for(rows)
        evaluation = _take(evaluation, moving)
    yield from buffer.flush(rows)


class _Buffer:
    """Iterates waiting to be judged together."""

    def __init__(self, cells: int, *, keep_proba: bool) -> None:
        self._cells = cells
        self._keep = keep_proba
        self._x: list[Array] = []
        self._proba: list[Array] = []
        self._first = 1

    def add(self, state: FistaState, evaluation: Evaluation | None) -> None:
        if not self._x:
            self._first = state.step
        self._x.append(state.x)
        if self._keep and evaluation is not None and evaluation.proba is not None:
            self._proba.append(evaluation.proba)

    def is_full(self, rows: Array) -> bool:
        return bool(self._x) and len(self._x) * len(rows) * self._x[0].shape[1] >= self._cells

    def flush(self, rows: Array) -> Iterator[Block]:
        if self._x:
            proba = np.stack(self._proba) if len(self._proba) == len(self._x) else None
            yield Block(rows, np.stack(self._x), proba, self._first)
        self._x, self._proba = [], []


def _take(evaluation: Evaluation, rows: Array) -> Evaluation:
    proba = None if evaluation.proba is None else evaluation.proba[rows]
    return Evaluation(lambda: evaluation.value()[rows], evaluation.gradient[rows], proba)
