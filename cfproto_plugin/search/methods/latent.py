"""The path to prototypes in the space of an encoder, for objectives without L_pred and L_AE.

Its points are the minimisers of beta·|delta|_1 + |delta|^2 + theta·|ENC(x0 + delta) - proto|^2 for growing theta, from
x0 towards an input whose encoding is the prototype. They have no closed form: every theta starts where the one before
ended and takes a few accelerated proximal steps, as long as the curvature at the row allows. The distance to the row
grows with theta, so a path ends with the first theta that gives a wanted class, or where another path of its row has
ended nearer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.objective.fista import soft_threshold
from cfproto_plugin.search.objective.terms import LatentDistance, Term
from cfproto_plugin.search.problem import Problem

_PROTOTYPES = 3  # of every row
_WEIGHTS = np.geomspace(0.5, 20_000, 18)  # theta, where one unit bends the objective as much as L2 does
_STEPS = 10  # for every theta
_BETWEEN = np.arange(1, 9)[:, None, None] / 8  # shares of the step that changed the class
_PROBES = 4  # gradients that tell how much the encoder bends it
_FLAT = 1e-12  # less is no curvature: the encoder does not answer to the row
_CELLS_PER_CHUNK = 100_000  # the layers of a network hold many times more


def search_latent(problem: Problem, encoder: GradientAdapter, prototypes: Array, kinds: Array) -> None:
    """Find the first valid point on the path from every row to its prototypes, encodings (n, m, *e) of class (n, m)."""
    prototypes, kinds = prototypes[:, :_PROTOTYPES], kinds[:, :_PROTOTYPES]
    n, m = kinds.shape
    size = max(1, _CELLS_PER_CHUNK // (m * problem.rows.z.shape[1]))
    for start in range(0, n, size):
        part = slice(start, start + size)
        row, at = np.nonzero(kinds[part] >= 0)
        row += start
        with problem.clock(np.arange(n)[part]):
            followed = _follow(problem, encoder, prototypes[row, at], kinds[row, at], row)
            for number, _ in enumerate(followed, 1):
                problem.report((start + min(size, n - start) * number / len(_WEIGHTS)) / n)
                if problem.out_of_time():
                    return


def _follow(problem: Problem, encoder: GradientAdapter, goal: Array, kind: Array, row: Array) -> Iterator[None]:
    """Follow the paths of rows (p,) to encodings (p, *e) until all have ended; keep what is valid; yield per theta."""
    z = problem.rows.z[row]
    bend = bending(_term(problem, encoder, goal), z)
    for number, weight in enumerate(_WEIGHTS):
        theta = np.maximum(2 * weight / bend, problem.config.theta or 0)
        points = _minimise(problem, _term(problem, encoder, goal), z, row, theta, bend)
        arrived, ended = _ended(problem, points[-1], row)
        if arrived.any():
            steps = np.concatenate([z[None], points])[:, arrived]
            _keep(problem, steps, row[arrived], kind[arrived], theta[arrived], number * _STEPS)
        going = ~ended
        yield
        if not going.any():
            return
        z, bend, goal, kind, row = points[-1][going], bend[going], goal[going], kind[going], row[going]


def _term(problem: Problem, encoder: GradientAdapter, goal: Array) -> Term:
    return LatentDistance(encoder, goal, problem.space.shape, 1.0)


def bending(term: Term, z: Array) -> Array:
    """The largest curvature of a term at points (p, D), by power iteration on differences of gradients."""
    base = term(z).gradient
    step = 1e-2 * (1 + np.linalg.norm(z, axis=1, keepdims=True))
    direction, size = base, np.zeros((len(z), 1), dtype=z.dtype)
    for _ in range(_PROBES):
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), _FLAT)
        direction = (term((z + step * direction).astype(z.dtype)).gradient - base) / step
        size = np.maximum(size, np.linalg.norm(direction, axis=1, keepdims=True))
    return np.asarray(np.maximum(size[:, 0], _FLAT))


def _minimise(problem: Problem, term: Term, z: Array, row: Array, theta: Array, bend: Array) -> Array:
    """Steps (s, p, D) from z towards the minimisers of beta·L1 + L2 + theta·term.

    FISTA with L1 weighed as it is written, and the largest step that is stable: 1 / (2 + theta·curvature).
    """
    rows = problem.rows.take(row)
    theta, rate = theta[:, None].astype(z.dtype), (1 / (2 + theta * bend))[:, None].astype(z.dtype)
    y, weight, points = z, 1.0, []
    for _ in range(_STEPS):
        u = y - rate * (theta * term(y).gradient + 2 * (y - rows.z))
        after = soft_threshold(u, rows.z, problem.config.beta * rate)
        after = np.minimum(np.maximum(after, rows.z_lower), rows.z_upper)
        before, weight = weight, (1 + float(np.sqrt(1 + 4 * weight**2))) / 2
        y = after + (before - 1) / weight * (after - z)
        z = after
        points.append(z)
    return np.stack(points)


def _ended(problem: Problem, z: Array, row: Array) -> tuple[Array, Array]:
    """Which paths (p,) are at a valid point that is nearer than the best of its row, and which need not go on."""
    x, cost = problem.decode(z, row)
    near = (cost < problem.best.cost[row]) & (cost > 0)
    arrived = np.zeros(len(row), dtype=bool)
    arrived[near] = problem.judge(x[near], row[near])
    return arrived, arrived | (cost >= problem.best.cost[row])


def _keep(problem: Problem, points: Array, row: Array, kind: Array, theta: Array, before: int) -> None:
    """Keep the nearest valid point of every path; the last of its points (s + 1, p, D) is valid, the first is not."""
    valid = _valid(problem, points[1:], row)[0]
    step, path = valid.argmax(axis=0), np.arange(len(row))
    start = points[step, path]
    between = start + _BETWEEN.astype(start.dtype) * (points[step + 1, path] - start)
    valid, x, cost = _valid(problem, between, row)
    share, path = np.nonzero(valid)
    for taken in problem.keep(row[path], x[share, path], cost[share, path]):
        at = path[taken]
        i = row[at]
        problem.best.steps[i] = before + step[at] + 1
        problem.best.kind[i] = kind[at]
        problem.best.note[i] = f"reached on the path to a prototype at theta={theta[at]:.3g}"


def _valid(problem: Problem, z: Array, row: Array) -> tuple[Array, Array, Array]:
    """Which search points (s, p, D) of rows (p,) are counterfactuals; the table's values and the cost of all."""
    row = np.tile(row, len(z))
    x, cost = problem.decode(z.reshape(-1, z.shape[2]), row)
    valid = problem.judge(x, row) & (cost > 0)
    return valid.reshape(z.shape[:2]), x.reshape(z.shape), cost.reshape(z.shape[:2])
