"""The path to prototypes in the space of an encoder, for objectives without L_pred and L_AE.

Its points are the minimisers of beta·|delta|_1 + |delta|^2 + theta·|ENC(x0 + delta) - proto|^2 for growing theta, from
x0 towards an input whose encoding is the prototype. They have no closed form: every theta starts where the one before
ended and takes a few accelerated proximal steps, as long as the curvature at the row allows. What is minimised, with
the theta that was asked for, grows along the path: so a path ends with the first theta that gives an allowed class, as
sure as is wished for, or where another path of its row has ended at less. Lines whose paths all end before that are
searched again for the surest point of their paths.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.candidates import Candidates, candidates, firsts, join, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.objective.curvature import curvature_of
from cfproto_plugin.search.objective.fista import soft_threshold
from cfproto_plugin.search.objective.terms import LatentDistance, Term

_PROTOTYPES = 3  # of every row
_WEIGHTS = np.geomspace(0.5, 20_000, 18)  # theta, in units in which L_proto curves as much as L2 does
_STEPS = 10  # for every theta
_BETWEEN = np.arange(1, 9)[:, None, None] / 8  # fractions of the step that changed the class


def search_latent(
    judge: Judge,
    clock: Clock,
    best: Array,
    encoder: GradientAdapter,
    prototypes: Array,
    classes: Array,
    theta: float,
) -> Iterator[Candidates]:
    """Yield valid points on the paths of all lines to prototypes (n, m, *e) of classes (n, m), codes of the encoder.

    theta: the least that a point may have.
    """
    prototypes, classes = prototypes[:, :_PROTOTYPES], classes[:, :_PROTOTYPES]
    n, m = classes.shape
    size = max(1, judge.task.tuning.network // (m * judge.task.rows.z.shape[1]))
    search = _Latent(judge, clock, best, encoder, theta)
    follow = search.surest if judge.task.surest else search.follow
    for start in range(0, n, size):
        part = slice(start, start + size)
        row, at = np.nonzero(classes[part] >= 0)
        row += start
        if not len(row):
            continue
        with clock.shared(np.arange(n)[part]):
            for number, found in enumerate(follow(prototypes[row, at], classes[row, at], row), 1):
                if found is not None:
                    yield found
                clock.report((start + min(size, n - start) * min(1.0, number / len(_WEIGHTS))) / n)
                if clock.is_over():
                    return


class _Latent:
    """One search of latent paths."""

    def __init__(self, judge: Judge, clock: Clock, best: Array, encoder: GradientAdapter, theta: float) -> None:
        self.judge, self.clock, self.best, self.encoder, self.theta = judge, clock, best, encoder, theta

    def follow(self, goal: Array, classes: Array, row: Array) -> Iterator[Candidates | None]:
        """Follow the paths of lines (p,) to codes (p, *e) until all have ended; yield what every theta finds."""
        z = self.judge.task.rows.z[row]
        curvature = curvature_of(self._term(goal), z)
        for number, weight in enumerate(_WEIGHTS):
            theta = np.maximum(2 * weight / curvature, self.theta)
            points = self._minimise(self._term(goal), z, row, theta, curvature)
            arrived, ended = self._ended(points[-1], row, goal)
            if arrived.any():
                steps = np.concatenate([z[None], points])[:, arrived]
                trace = traces(int(arrived.sum()), "latent", prototype=classes[arrived], theta=theta[arrived])
                trace["steps"] = number * _STEPS
                yield self._nearest(steps, row[arrived], goal[arrived], trace)
            else:
                yield None
            going = ~ended
            if not going.any():
                return
            z, curvature, goal, classes, row = (part[going] for part in (points[-1], curvature, goal, classes, row))

    def surest(self, goal: Array, classes: Array, row: Array) -> Iterator[Candidates | None]:
        """Follow the paths likewise to their ends; then yield the point of every line of which the model is surest."""
        z, found = self.judge.task.rows.z[row], []
        curvature = curvature_of(self._term(goal), z)
        for number, weight in enumerate(_WEIGHTS, 1):
            theta = np.maximum(2 * weight / curvature, self.theta)
            z = self._minimise(self._term(goal), z, row, theta, curvature)[-1]
            (valid,), (table,), (cost,), (margin,) = self._valid(z[None], row, goal)
            trace = traces(len(row), "latent", prototype=classes, theta=theta, steps=number * _STEPS)
            found.append(candidates(row, table, cost, margin, trace, valid=valid).take(valid))
            if self.clock.is_over():
                break
            yield None
        points = join(found)
        order = np.lexsort((points.cost, -points.margin, points.row))
        yield points.take(order[firsts(points.row[order])])

    def _term(self, goal: Array) -> Term:
        return LatentDistance(self.encoder, goal, self.judge.space.shape, 1.0)

    def _minimise(self, term: Term, z: Array, row: Array, theta: Array, curvature: Array) -> Array:
        """Steps (s, p, D) from z (p, D) towards the minimisers of beta·L1 + L2 + theta·term.

        FISTA with L1 weighed as it is written, and the largest step that is stable: 1 / (2 + theta·curvature).
        """
        rows, beta = self.judge.task.rows.take(row), self.judge.task.beta
        rate = (1 / (2 + theta * curvature))[:, None].astype(z.dtype)
        theta = theta[:, None].astype(z.dtype)
        y, weight, points = z, 1.0, []
        for _ in range(_STEPS):
            u = y - rate * (theta * term(y).gradient + 2 * (y - rows.z))
            after = soft_threshold(u, rows.z, beta * rate)
            after = np.minimum(np.maximum(after, rows.z_lower), rows.z_upper)
            before, weight = weight, (1 + float(np.sqrt(1 + 4 * weight**2))) / 2
            y = after + (before - 1) / weight * (after - z)
            z = after
            points.append(z)
            if self.clock.is_over():
                break
        return np.stack(points)

    def _ended(self, z: Array, row: Array, goal: Array) -> tuple[Array, Array]:
        """Which paths (p,) are at a valid point that is cheaper than the best of its line, and which need not go on."""
        table, cost = self._decode(z, row, goal)
        near = (cost < self.best[row]) & (cost > 0)
        arrived = np.zeros(len(row), dtype=bool)
        arrived[near] = self.judge.is_valid(table[near], row[near])
        return arrived, arrived | (cost >= self.best[row])

    def _nearest(self, points: Array, row: Array, goal: Array, trace: Array) -> Candidates:
        """Valid points where paths cross into another class; the last of (s + 1, p, D) is valid, the first is not.

        trace: (p,) of the paths, with the steps that were taken before these.
        """
        valid = self._valid(points[1:], row, goal)[0]
        step, path = valid.argmax(axis=0), np.arange(len(row))
        start = points[step, path]
        between = start + _BETWEEN.astype(start.dtype) * (points[step + 1, path] - start)
        valid, table, cost, margin = self._valid(between, row, goal)
        trace["steps"] += step + 1
        share, path = np.nonzero(valid)
        return candidates(row[path], table[share, path], cost[share, path], margin[share, path], trace[path])

    def _valid(self, z: Array, row: Array, goal: Array) -> tuple[Array, Array, Array, Array]:
        """Which search points (s, p, D) of lines (p,) are valid; table, cost and margin of all."""
        row, goal = (np.concatenate([part] * len(z)) for part in (row, goal))
        table, cost = self._decode(z.reshape(-1, z.shape[2]), row, goal)
        margin = self.judge.margin(table, row)
        shape = z.shape[:2]
        valid = ((margin > 0) & (cost > 0)).reshape(shape)
        return valid, table.reshape(z.shape), cost.reshape(shape), margin.reshape(shape)

    def _decode(self, z: Array, row: Array, goal: Array) -> tuple[Array, Array]:
        """The table values of search points (m, D) on the way to codes (m, *e), and what they cost.

        A point at which the encoder fails costs what it does without a prototype.
        """
        table, cost = self.judge.decode(z, row)
        if self.theta:
            cost = cost + self.theta * np.nan_to_num(self._term(goal)(z).value())
        return table, cost
