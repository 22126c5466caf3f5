"""The reference's search for a batch of rows: its iteration for several values of c, and what it keeps.

    for every c: x_(i+1) = project(shrink(x_i - lr_i · (clip(graph) + clip(numeric)))), the paper's iteration without
    momentum, as the reference runs; every iterate of another class that is nearer than the best so far is kept.

The terms, the iteration and the bisection of c are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cfproto_plugin.integrations.alibi.models import Networks
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.methods.descent import next_c
from cfproto_plugin.search.objective.fista import Block, Schedule, trajectory
from cfproto_plugin.search.objective.terms import Distance, Evaluation, Sum, Term

_NO_UPPER = 1e10
_CELLS = 1_000_000  # numbers of iterates that are predicted in one call

Trusted = Callable[[Array, Array, Array], Array]  # points (m, D), their classes (m,) and rows (m,) -> trust scores (m,)
Watch = Callable[[int, Array, Evaluation], None]  # number of the step, c (m,), the objective


class Rows(NamedTuple):
    """What is asked: n rows in search space, and what they are guided by."""

    z: Array  # (n, D)
    label: Array  # (n,) class of each row
    allowed: Array  # (n, k) bool: the classes asked for, never that of the row
    prototype: Array | None  # (n, *s) in search space, or codes if there is an encoder

    def take(self, at: Array) -> Rows:
        """Some of them (m,)."""
        prototype = None if self.prototype is None else self.prototype[at]
        return Rows(self.z[at], self.label[at], self.allowed[at], prototype)


class Kept(NamedTuple):
    """A counterfactual on the way: nearer than all before it."""

    step: int  # which c, counted from 0
    c: float
    z: Array  # (D,)
    cost: float


@dataclass(frozen=True)
class Descent:
    """The search. bounds: lower and upper (D,). threshold: the least trust score; trust: what measures it."""

    networks: Networks
    bounds: tuple[Array, Array]
    threshold: float = 0.0
    trust: Trusted | None = None
    watch: Watch | None = None

    def run(self, rows: Rows) -> list[list[Kept]]:
        """The counterfactuals of every row, in the order they were found: each nearer than the one before.

        A row that asks for no class but its own has none.
        """
        kept: list[list[Kept]] = [[] for _ in rows.z]
        at = np.flatnonzero(rows.allowed.any(axis=1))
        if len(at):
            for row, found in zip(at, self._run(rows.take(at)), strict=True):
                kept[row] = found
        return kept

    def _run(self, rows: Rows) -> list[list[Kept]]:
        settings, n = self.networks.settings, len(rows.z)
        kept: list[list[Kept]] = [[] for _ in range(n)]
        best = np.full(n, np.inf)
        lower, upper = (np.broadcast_to(bound, rows.z.shape) for bound in self.bounds)
        schedule = Schedule(settings.beta, settings.learning_rate, settings.max_iterations, momentum=False, clip=np.inf)
        c, low, high = np.full(n, settings.c_init), np.zeros(n), np.full(n, _NO_UPPER)
        for number in range(settings.c_steps if settings.c_init > 0 else 1):  # without L_pred all c are alike
            found = np.zeros(n, dtype=bool)
            for block in trajectory(self._objective(rows, c), rows.z, lower, upper, schedule, _CELLS):
                valid, cost = self._judged(block, rows)
                found[block.rows] |= valid.any(axis=0)
                for step, line in np.argwhere(valid):
                    row = int(block.rows[line])
                    if cost[step, line] < best[row]:
                        best[row] = cost[step, line]
                        kept[row].append(Kept(number, float(c[row]), block.x[step, line], float(best[row])))
            c, low, high = next_c(c, low, high, found)
        return kept

    def gradients(self, rows: Rows, z: Array, c: Array) -> tuple[Array, Array]:
        """The gradient of the objective without L1 at z (n, D): by the models themselves, and by differences."""
        graph, numeric = self._parts(rows, np.arange(len(z)), c)
        value = graph(z).gradient
        return value, np.zeros(value.shape) if numeric is None else numeric(z).gradient

    def is_valid(self, proba: Array, rows: Rows) -> Array:
        """Whether probabilities (n, k), with kappa added to that of the row's own class, are of a class asked for."""
        lines = np.arange(len(proba))
        raised = proba.copy()
        raised[lines, rows.label] += self.networks.settings.kappa
        return np.asarray(rows.allowed[lines, raised.argmax(axis=1)] & ~np.isnan(proba).any(axis=1))

    def _objective(self, rows: Rows, c: Array) -> Callable[[Array], Term]:
        def objective_of(lines: Array) -> Term:
            graph, numeric = self._parts(rows, lines, c)
            return _Clipped(graph, numeric, self.networks.settings.clip, self._watching(c[lines]))

        return objective_of

    def _watching(self, c: Array) -> Callable[[Evaluation], None] | None:
        if self.watch is None:
            return None
        watch, steps = self.watch, iter(range(self.networks.settings.max_iterations + 1))
        return lambda evaluation: watch(next(steps), c, evaluation)

    def _parts(self, rows: Rows, lines: Array, c: Array) -> tuple[Term, Term | None]:
        """The terms whose gradients the models give, and L_pred if it has to be found by differences."""
        networks, theta = self.networks, self.networks.settings.theta
        terms: list[Term] = [Distance(rows.z[lines])]
        reconstruction = networks.reconstruction()
        if reconstruction is not None:
            terms.append(reconstruction)
        if theta > 0 and rows.prototype is not None:
            points = rows.prototype[lines]
            with_codes = networks.encoder is not None
            terms.append(networks.prototype_distance(points) if with_codes else Distance(points, theta))
        if networks.settings.c_init == 0:
            return Sum(terms), None
        prediction = networks.prediction(rows.allowed[lines], c[lines])
        if networks.has_gradient:
            return Sum([*terms, prediction]), None
        return Sum(terms), prediction

    def _judged(self, block: Block, rows: Rows) -> tuple[Array, Array]:
        """Which iterates (t, m) of a block are counterfactuals, and their beta·L1 + L2."""
        t, m, d = block.x.shape
        row = np.tile(block.rows, t)
        flat = block.x.reshape(-1, d)
        proba = self.networks.predict(flat) if block.proba is None else block.proba.reshape(t * m, -1)
        valid = self.is_valid(proba, rows.take(row))
        if self.threshold > 0 and self.trust is not None:
            at = np.flatnonzero(valid)
            valid[at] = self.trust(flat[at], proba[at].argmax(axis=1), row[at]) >= self.threshold
        return valid.reshape(t, m), self.networks.settings.cost(block.x, rows.z[block.rows])


@dataclass(frozen=True)
class _Clipped:
    """The sum of two terms, the gradient of each clipped."""

    graph: Term
    numeric: Term | None
    clip: tuple[float, float]
    watch: Callable[[Evaluation], None] | None

    def __call__(self, z: Array) -> Evaluation:
        parts = list(self._evaluated(z))
        gradient = sum(np.clip(part.gradient, *self.clip) for part in parts)
        proba = next((part.proba for part in parts if part.proba is not None), None)
        found = Evaluation(
            lambda: np.sum([part.value() for part in parts], axis=0), np.asarray(gradient, dtype=z.dtype), proba
        )
        if self.watch is not None:
            self.watch(found)
        return found

    def _evaluated(self, z: Array) -> Iterator[Evaluation]:
        yield self.graph(z)
        if self.numeric is not None:
            yield self.numeric(z)
