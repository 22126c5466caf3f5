"""Choices, leaves and conditions as a mixed-integer program.

    u (binary)      which choice every column takes: for numbers, whether it is number i or a later one, u_i >= u_(i+1)
    y (continuous)  which leaf every tree takes: one per tree, sum y = 1

Per tree and split, the leaves that need its right side add up to no more than the choices on the right, and those that
need its left side to no more than the choices on the left. With whole u, every y is 0 or 1. The cost of a column is
c_0 + sum (c_i - c_(i-1)) u_i for numbers, sum c_i u_i for categories.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import Choices, places_of
from cfproto_plugin.search.proofs.forms import Form, Row, add, exact_unit, holds, is_upper, sides
from cfproto_plugin.search.proofs.leaves import Leaf, Splits, TooLateError, leaves_in_reach
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.related import Moved, repaired
from cfproto_plugin.search.proofs.solver import solve
from cfproto_plugin.search.proofs.target import Condition, rounding
from cfproto_plugin.tables.relations import Linear

_MOST_LEAVES = 60_000  # in reach, of all trees: HiGHS then holds some hundred megabytes
_LARGE = 100.0  # the radius in the units of HiGHS, whose tolerances are 1e-6 and 1e-7
_ROOM = 1e-5  # of the largest coefficient of a condition: ten times what HiGHS tolerates
SAFETY = 1e-6  # of the radius, by which its bound is lowered: a hundred times its tolerances


class Outcome(NamedTuple):
    """What a program says: no point costs less than the bound. picked: (A,) a choice of every column; None for none."""

    bound: float
    picked: Array | None
    solved: bool
    infeasible: bool
    d: Mapping[int, float] = MappingProxyType({})  # by column of relations: how far it moves
    q: Mapping[int, float] = MappingProxyType({})  # and what the program thinks that this costs


class Program:
    """The program of one row. Conditions and cuts can be added between solving it again and again."""

    def __init__(self, reading: Reading, choices: list[Choices], splits: Splits, radius: float, end: float) -> None:
        """radius: what the choices cost at most.

        Raises TooLargeError if too many leaves are in reach, TooLateError if that takes until `end`.
        """
        self.ensemble, self.choices, self.radius = reading.ensemble, choices, radius
        largest = max(float(each.cost.max()) for each in choices)
        self._unit = (radius if np.isfinite(radius) else largest) or 1.0
        self._reach = np.sqrt(radius) * (1 + SAFETY)  # what moves farther costs more
        self._count = 0
        self._ordered: list[bool] = []
        self._cost: list[float] = []
        self._constant = 0.0
        self._rows: list[Row] = []
        self._offset = [self._columns_of(each, splits) for each in choices]
        self._binary = self._count
        self._trees = self._leaves_of(reading, splits, end)
        self._moved: dict[int, tuple[Moved, int]] = {}  # by column: the variable d; q comes after it
        self._relations: tuple[Linear, ...] = ()

    def require(self, condition: Condition) -> None:
        """Ask for a condition on the scores, relaxed by what the model's own arithmetic may round.

        And by ten tolerances of HiGHS: it has left out points that met a condition by three.
        """
        base = float(self.ensemble.base @ condition.weights)
        parts = [(leaf.value @ condition.weights, column) for leaf, column in self._trees]
        least = condition.least - base - self._fixed @ condition.weights
        size = max([1.0, *(abs(float(part)) for part, _ in parts)])  # leaves of 1e15 are beyond HiGHS
        tolerance = _ROOM * size
        slack, unit = rounding(self.ensemble, condition) + tolerance, self._exact_unit(condition)
        if unit / 2 > tolerance:  # ties are exact, and what is no tie differs by it at least
            slack = -unit / 2 if condition.strict else unit / 2
        terms = {column: float(part) / size for part, column in parts if part}
        self._rows.append((terms, (float(least) - slack) / size, np.inf))

    def relate(self, relations: tuple[Linear, ...], moved: Mapping[int, Moved]) -> None:
        """Ask for linear relations; moved: the columns that have variables for how far they move."""
        self._relations = relations
        for at, column in moved.items():
            self._move(column, self.choices[at])
        for linear in relations:
            form = Form(-linear.bound, {})
            for at in np.flatnonzero(linear.weights).tolist():
                form = add(form, self._value(at), float(linear.weights[at]))
            size = max((abs(c) for c in form.terms.values()), default=1.0)
            terms = {variable: c / size for variable, c in form.terms.items()}
            level = -form.constant / size
            low = -np.inf if linear.sense in {"<", "<="} else level
            self._rows.append((terms, low, np.inf if linear.sense in {">", ">="} else level))

    def refine(self, d: Mapping[int, float], q: Mapping[int, float]) -> bool:
        """Draw tangents where columns have moved by d and cost more than q; False if none does."""
        drawn = False
        for at, (column, variable) in self._moved.items():
            if column.cost(np.array(d[at])) - q[at] > SAFETY * self._unit:
                self._tangent(column, variable, d[at])
                drawn = True
        return drawn

    def limit_changes(self, most: int) -> None:
        """Ask for no more than so many changed columns."""
        kept = Form(0.0, {})
        for place, each in enumerate(self.choices):
            if each.own >= 0:
                kept = add(kept, self.is_any(place, 1 << each.own))
        self._rows.append((kept.terms, len(self.choices) - most - kept.constant, np.inf))

    def forbid(self, picked: Array, places: Iterable[int] | None = None) -> None:
        """Leave out a combination of choices (A,), of some columns or of all."""
        places = range(len(picked)) if places is None else list(places)
        form = Form(0.0, {})
        for place in places:
            form = add(form, self.is_any(place, 1 << int(picked[place])))
        self._rows.append((form.terms, -np.inf, len(places) - 1 - form.constant))

    def is_single(self, picked: Array, places: Iterable[int]) -> bool:
        """Whether the choices (A,) of some columns stand for one value each."""
        return all(self.choices[at].low[picked[at]] == self.choices[at].high[picked[at]] for at in places)

    def solve(self, seconds: float, *, root_only: bool = False) -> Outcome:
        """Solve it, in so many seconds; root_only: bound it without branching."""
        cost, low, high = np.zeros(self._count), np.zeros(self._count), np.ones(self._count)
        cost[: len(self._cost)] = np.array(self._cost) * self._scale
        for _, variable in self._moved.values():
            low[variable], high[variable], high[variable + 1] = -np.inf, np.inf, np.inf
            cost[variable + 1] = 1.0
        if not self._count:
            return self._trivial()
        found = solve(cost, low, high, self._binary, self._rows, seconds, root_only=root_only)
        if found.infeasible:
            return Outcome(np.inf, None, solved=True, infeasible=True)
        bound = self._least()
        if found.bound is not None:
            solved = found.bound / self._scale + self._constant
            bound = max(bound, solved - SAFETY * max(self._unit, abs(solved)))
        if found.x is None:
            return Outcome(bound, None, solved=False, infeasible=False)
        d = {at: float(found.x[variable]) for at, (_, variable) in self._moved.items()}
        q = {at: float(found.x[variable + 1]) / self._scale for at, (_, variable) in self._moved.items()}
        return Outcome(bound, self._picked(found.x), found.solved, infeasible=False, d=d, q=q)

    def cost_of(self, table: Array) -> float:
        """What a point (A,) costs by the program; infinite if the program does not have it."""
        picked = places_of(self.choices, table)
        if picked is None:
            return np.inf
        x = np.zeros(self._count)
        for place, (start, each) in enumerate(zip(self._offset, self.choices, strict=True)):
            if self._ordered[place]:
                x[start : start + picked[place]] = 1.0
            elif len(each.value) > 1:
                x[start + picked[place]] = 1.0
        for leaf, column in self._trees:
            x[column] = all(bits >> int(picked[at]) & 1 for at, bits in leaf.box.items())
        cost = self._constant + float(np.array(self._cost) @ x[: len(self._cost)])
        for at, (moved, d) in self._moved.items():
            x[d] = moved.step(table[at])
            x[d + 1] = moved.cost(x[d]) * self._scale
            cost += float(moved.cost(x[d]))
        return cost if all(holds(x, row) for row in self._rows) else np.inf

    def is_any(self, place: int, bits: int) -> Form:
        """The form that is 1 if a column takes one of these choices, else 0; of numbers, choices without a gap."""
        start, k = self._offset[place], len(self.choices[place].value)
        if k == 1:
            return Form(float(bits & 1), {})
        if not self._ordered[place]:
            return Form(0.0, {start + choice: 1.0 for choice in range(k) if bits >> choice & 1})
        low, high = (bits & -bits).bit_length() - 1, bits.bit_length() - 1
        terms = {start + low - 1: 1.0} if low else {}
        if high < k - 1:
            terms[start + high] = -1.0
        return Form(0.0 if low else 1.0, terms)

    def table(self, outcome: Outcome) -> Array:
        """The values (A,) that were picked: of every choice the cheapest, if no relation asks for another."""
        pairs = list(zip(self.choices, [] if outcome.picked is None else outcome.picked, strict=True))
        found = np.array([each.value[pick] for each, pick in pairs])
        room = {}
        for at, (column, _) in self._moved.items():
            each, pick = pairs[at]
            room[at] = float(each.low[pick]), float(each.high[pick])
            if pick != each.own:
                found[at] = np.clip(column.original + column.factor * outcome.d[at], *room[at])
        return repaired(found, self._relations, room)

    def scores(self, picked: Array) -> Array:
        """The scores (m,) of a combination of choices (A,), before the link."""
        total = self.ensemble.base + self._fixed
        for leaf, _ in self._trees:
            if all(bits >> int(picked[at]) & 1 for at, bits in leaf.box.items()):
                total = total + leaf.value
        return np.asarray(total / self.ensemble.divisor)

    @property
    def _scale(self) -> float:
        return _LARGE / self._unit

    def _move(self, column: Moved, each: Choices) -> None:
        """Variables d and q of a column: d in the interval of its choice, q at least what its choice and d cost."""
        d, q = self._count, self._count + 1
        self._count += 2
        self._moved[column.at] = column, d
        start, k = self._offset[column.at], len(each.value)
        fee = column.price.few_changes * (np.arange(k) != each.own)
        for values, low, high in (
            (column.step(each.low).clip(-self._reach, self._reach), 0.0, np.inf),
            (column.step(each.high).clip(-self._reach, self._reach), -np.inf, 0.0),
        ):
            form = add(Form(0.0, {d: 1.0}), self._weighted(column.at, values), -1.0)
            self._rows.append((form.terms, low - form.constant, high - form.constant))
        form = add(Form(0.0, {q: 1.0}), self._weighted(column.at, (each.cost - fee) * self._scale), -1.0)
        self._rows.append((form.terms, -form.constant, np.inf))
        if k == 1 or self._ordered[column.at]:
            self._constant += float(fee[0] - each.cost[0])
            self._cost[start : start + k - 1] = np.diff(fee).tolist()
        else:
            self._cost[start : start + k] = fee.tolist()
        for at in column.first_tangents(each):
            self._tangent(column, d, float(at))

    def _tangent(self, column: Moved, variable: int, at: float) -> None:
        """Q >= cost(at) + slope(at) · (d - at)."""
        cost, slope = (float(part(np.array(at))) * self._scale for part in (column.cost, column.slope))
        self._rows.append(({variable + 1: 1.0, variable: -slope}, cost - slope * at, np.inf))

    def _value(self, at: int) -> Form:
        """The value of a column of numbers."""
        if at in self._moved:
            column, variable = self._moved[at]
            return Form(column.original, {variable: column.factor})
        return self._weighted(at, self.choices[at].value)

    def _weighted(self, place: int, values: Array) -> Form:
        """The form that has for every choice (K,) of a column its value."""
        if not self._ordered[place] and len(values) > 1:
            return Form(0.0, {self._offset[place] + i: float(value) for i, value in enumerate(values)})
        steps = np.diff(values).tolist()
        return Form(float(values[0]), {self._offset[place] + i: step for i, step in enumerate(steps) if step})

    def _trivial(self) -> Outcome:
        """Nothing is left to choose."""
        if any(low > 0 or high < 0 for _, low, high in self._rows):
            return Outcome(np.inf, None, solved=True, infeasible=True)
        return Outcome(self._least(), np.zeros(len(self.choices), dtype=int), solved=True, infeasible=False)

    def _least(self) -> float:
        """What every point costs."""
        return float(sum(each.cost.min() for each in self.choices)) * (1 - SAFETY)

    def _columns_of(self, each: Choices, splits: Splits) -> int:
        """The variables of a column; returns the first."""
        start, k = self._count, len(each.value)
        ordered = each.ordered and all(
            is_upper(bits, k) for number, bits in splits.right.items() if splits.column[number] == each.at
        )
        self._ordered.append(ordered)
        if k == 1:
            self._constant += float(each.cost[0])
        elif ordered:
            self._constant += float(each.cost[0])
            self._cost += np.diff(each.cost).tolist()
            self._count += k - 1
            self._rows += [({start + i: 1.0, start + i + 1: -1.0}, 0.0, np.inf) for i in range(k - 2)]
        else:
            self._cost += each.cost.tolist()
            self._count += k
            self._rows.append((dict.fromkeys(range(start, start + k), 1.0), 1.0, 1.0))
        return start

    def _leaves_of(self, reading: Reading, splits: Splits, end: float) -> list[tuple[Leaf, int]]:
        """The leaves of all trees that have several in reach, with their variables."""
        found: list[tuple[Leaf, int]] = []
        self._fixed = np.zeros(len(self.ensemble.base))
        self._alone: list[Array] = []
        for tree in reading.trees:
            if time.perf_counter() > end:
                raise TooLateError
            leaves = leaves_in_reach(tree, splits, _MOST_LEAVES - len(found))
            if len(leaves) == 1:
                self._fixed = self._fixed + leaves[0].value
                self._alone.append(leaves[0].value)
                continue
            columns = range(self._count, self._count + len(leaves))
            self._count += len(leaves)
            self._rows.append((dict.fromkeys(columns, 1.0), 1.0, 1.0))
            pairs = list(zip(leaves, columns, strict=True))
            self._link(pairs, splits)
            found += pairs
        return found

    def _link(self, leaves: list[tuple[Leaf, int]], splits: Splits) -> None:
        """Tie the leaves of one tree to the choices: by column, and by every set that a leaf's own begins or ends."""
        boxes: dict[int, list[tuple[int, int]]] = {}
        for leaf, column in leaves:
            for at, bits in leaf.box.items():
                boxes.setdefault(at, []).append((bits, column))
        for at, parts in boxes.items():
            for side in sides(parts, splits.every[at], ordered=self._ordered[at], k=len(self.choices[at].value)):
                form = self.is_any(at, side)
                needing = {column: 1.0 for bits, column in parts if not bits & ~side}
                self._rows.append(({**needing, **{v: -c for v, c in form.terms.items()}}, -np.inf, form.constant))

    def _exact_unit(self, condition: Condition) -> float:
        """Of the scores that a condition compares, see `exact_unit`."""
        leaves = [leaf.value for leaf, _ in self._trees]
        scores = np.stack([*leaves, *self._alone, self.ensemble.base])[:, condition.weights != 0]
        return exact_unit(np.append(scores.ravel(), condition.least))

    def _picked(self, x: Array) -> Array:
        """(A,) the choice of every column."""
        found = []
        for place, (start, each) in enumerate(zip(self._offset, self.choices, strict=True)):
            k = len(each.value)
            if k == 1:
                found.append(0)
            elif self._ordered[place]:
                found.append(int(np.rint(x[start : start + k - 1]).sum()))
            else:
                found.append(int(x[start : start + k].argmax()))
        return np.array(found)
