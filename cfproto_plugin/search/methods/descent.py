"""The paper's search: FISTA on the full objective, with a bisection of c for every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.objective.fista import Block, Schedule, trajectory
from cfproto_plugin.search.objective.gradients import Vjp, differences
from cfproto_plugin.search.objective.terms import Distance, LatentDistance, Prediction, Reconstruction, Sum, Term
from cfproto_plugin.search.problem import Problem

_NO_UPPER = 1e10
_UPPER_KNOWN = 1e9


@dataclass(frozen=True)
class Weights:
    """What the objective is made of, every value settled."""

    c_init: float
    c_steps: int
    gamma: float
    theta: float


@dataclass(frozen=True)
class Guides:
    """The models and points beside the classifier. prototypes (n, *s): encodings if there is an encoder."""

    prototypes: Array | None = None
    kinds: Array | None = None
    encoder: GradientAdapter | None = None
    autoencoder: GradientAdapter | None = None


def next_c(c: Array, low: Array, high: Array, found: Array) -> tuple[Array, Array, Array]:
    """found: high = min(high, c), else low = max(low, c); next c = (low + high) / 2 if high is known, else 10 c."""
    high = np.where(found, np.minimum(high, c), high)
    low = np.where(found, low, np.maximum(low, c))
    return np.where(high < _UPPER_KNOWN, (low + high) / 2, 10 * c), low, high


def search_descent(problem: Problem, weights: Weights, guides: Guides) -> None:
    """Run every row through c_steps trajectories and keep its best valid iterate."""
    config = problem.config
    n = len(problem.rows.x)
    schedule = Schedule(config.beta, config.learning_rate, config.max_iterations, config.momentum, config.clip)
    c, low, high = np.full(n, weights.c_init), np.zeros(n), np.full(n, _NO_UPPER)
    lower, upper = problem.rows.z_lower, problem.rows.z_upper
    everything = np.arange(n)
    ever = np.zeros(n, dtype=bool)
    for number in range(weights.c_steps):
        objective_for = _objective(problem, weights, guides, c)
        found = np.zeros(n, dtype=bool)
        with problem.clock(everything):
            for block in trajectory(
                objective_for, problem.rows.z, lower, upper, schedule, out_of_time=problem.out_of_time
            ):
                _take_block(problem, block, found, ever, number, guides.kinds)
                if number + 1 < weights.c_steps and block.proba is None:
                    _settle(problem, block, found)
                problem.report((number + (block.first + len(block.x) - 1) / schedule.steps) / weights.c_steps)
        ever |= found
        if problem.out_of_time():
            return
        c, low, high = next_c(c, low, high, found)


def _take_block(problem: Problem, block: Block, found: Array, ever: Array, number: int, kinds: Array | None) -> None:
    """Judge the iterates of a block that are nearer than the best so far, in one predict call; keep the best."""
    t, m, d = block.x.shape
    row = np.tile(block.rows, t)
    x, cost = problem.decode(block.x.reshape(-1, d), row)
    if block.proba is not None:
        valid = problem.judge(x, row, block.proba.reshape(t * m, -1)) & (cost > 0)
    else:
        worth = (cost > 0) & (cost < problem.best.cost[row]) & ~_repeats(block.x).ravel()
        valid = np.zeros(t * m, dtype=bool)
        valid[worth] = problem.judge(x[worth], row[worth])
    at = np.flatnonzero(valid)
    found[row[at]] = True
    taken = at[problem.keep(row[at], x[at], cost[at])]
    best, config = problem.best, problem.config
    for position in taken:
        i, at_step = row[position], block.first + int(position) // m
        if not ever[i]:
            best.steps[i] = number * config.max_iterations + at_step
        best.kind[i] = -1 if kinds is None else kinds[i]
        best.note[i] = f"reached at step {at_step} of {config.max_iterations}, value {number + 1} of c"


def _settle(problem: Problem, block: Block, found: Array) -> None:
    """Find out whether rows whose near iterates all failed have a valid one farther out: the next c depends on it."""
    doubtful = ~found[block.rows]
    row = np.tile(block.rows[doubtful], len(block.x))
    z = block.x[:, doubtful]
    x, cost = problem.decode(z.reshape(-1, z.shape[-1]), row)
    farther = ~_repeats(z).ravel() & (cost >= problem.best.cost[row])
    found[row[farther][problem.judge(x[farther], row[farther])]] = True


def _repeats(x: Array) -> Array:
    """Which iterates (t, m, D) equal the one before: (t, m)."""
    same = np.zeros(x.shape[:2], dtype=bool)
    same[1:] = (x[1:] == x[:-1]).all(axis=2)
    return same


def _objective(problem: Problem, weights: Weights, guides: Guides, c: Array) -> Callable[[Array], Term]:
    shape = problem.space.shape

    def objective_for(rows: Array) -> Term:
        terms: list[Term] = [Distance(problem.rows.z[rows])]
        if weights.c_init > 0:
            scale = c[rows].astype(problem.rows.z.dtype)
            terms.append(Prediction(_vjp(problem, rows), scale, problem.allowed[rows], problem.config.kappa))
        if weights.gamma > 0 and guides.autoencoder is not None:
            terms.append(Reconstruction(guides.autoencoder, shape, weights.gamma))
        if weights.theta > 0 and guides.prototypes is not None:
            points = guides.prototypes[rows]
            if guides.encoder is None:
                terms.append(Distance(points.reshape(len(rows), -1), weights.theta))
            else:
                terms.append(LatentDistance(guides.encoder, points, shape, weights.theta))
        return Sum(terms)

    return objective_for


def _vjp(problem: Problem, rows: Array) -> Vjp:
    """The classifier's gradient at search points of these rows: its own, or by differences."""
    taken = problem.rows.take(rows)
    if problem.model.has_gradient:
        return problem.model.at(taken)

    def predict(points: Array, row: Array) -> Array:
        return problem.model.proba(problem.space.decode(points, taken.take(row)))

    return differences(predict, np.asarray(problem.config.eps))
