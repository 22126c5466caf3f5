"""Choices, leaves and conditions as a mixed-integer program, solved by HiGHS.

    u (binary)      which choice every column takes: for numbers, whether it is number i or a later one, u_i >= u_(i+1)
    y (continuous)  which leaf every tree takes: one per tree, sum y = 1

Per tree and split, the leaves that need its right side add up to no more than the choices on the right, and those that
need its left side to no more than the choices on the left. With whole u, every y is 0 or 1. The cost of a column is
c_0 + sum (c_i - c_(i-1)) u_i for numbers, sum c_i u_i for categories.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import Choices
from cfproto_plugin.search.proofs.leaves import Leaf, Splits, leaves_in_reach
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.search.proofs.target import Condition, rounding

_MOST_LEAVES = 60_000  # in reach, of all trees: HiGHS then holds some hundred megabytes
_SHORTEST = 1e-3  # seconds
_GAP = 1e-7  # relative gap at which HiGHS calls a program solved
_LARGE = 100.0  # what the best known answer costs in the units of HiGHS, whose tolerances are 1e-6 and 1e-7
SAFETY = 1e-6  # of the cost of the best known answer, by which its bound is lowered: a hundred times its tolerances
_OPTIMAL, _INFEASIBLE = 0, 2  # status of milp


class Outcome(NamedTuple):
    """What a program says: no point costs less than the bound. picked: (A,) a choice of every column; None for none."""

    bound: float
    picked: Array | None
    solved: bool
    infeasible: bool


class Form(NamedTuple):
    """A linear form of the variables: a constant and coefficients."""

    constant: float
    terms: dict[int, float]


class Program:
    """The program of one row. Conditions and cuts can be added between solving it again and again."""

    def __init__(self, reading: Reading, choices: list[Choices], splits: Splits, best: float) -> None:
        """best: what the best known answer costs. Raises TooLargeError if too many leaves are in reach."""
        self.ensemble, self.choices = reading.ensemble, choices
        largest = max(float(each.cost.max()) for each in choices)
        self._unit = (best if np.isfinite(best) else largest) or 1.0
        self._count = 0
        self._ordered: list[bool] = []
        self._cost: list[float] = []
        self._constant = 0.0
        self._rows: list[tuple[dict[int, float], float, float]] = []
        self._offset = [self._columns_of(each, splits) for each in choices]
        self._binary = self._count
        self._trees = self._leaves_of(reading, splits)

    def require(self, condition: Condition) -> None:
        """Ask for a condition on the scores, relaxed by what the model's own arithmetic may round."""
        base = float(self.ensemble.base @ condition.weights)
        parts = [(leaf.value @ condition.weights, column) for leaf, column in self._trees]
        least = condition.least - base - self._fixed @ condition.weights
        slack, unit = rounding(self.ensemble, condition), self._exact_unit(condition)
        if unit:  # ties are exact, and what is no tie differs by it at least
            slack = -unit / 2 if condition.strict else unit / 2
        self._rows.append(({column: float(part) for part, column in parts if part}, float(least) - slack, np.inf))

    def limit_changes(self, most: int) -> None:
        """Ask for no more than so many changed columns."""
        kept = Form(0.0, {})
        for place, each in enumerate(self.choices):
            if each.own >= 0:
                kept = _add(kept, self.is_any(place, 1 << each.own))
        self._rows.append((kept.terms, len(self.choices) - most - kept.constant, np.inf))

    def forbid(self, picked: Array) -> None:
        """Leave out one combination of choices (A,)."""
        form = Form(0.0, {})
        for place, choice in enumerate(picked.tolist()):
            form = _add(form, self.is_any(place, 1 << choice))
        self._rows.append((form.terms, -np.inf, len(picked) - 1 - form.constant))

    def solve(self, seconds: float, *, root_only: bool = False) -> Outcome:
        """Solve it, in so many seconds; root_only: bound it without branching."""
        options: dict[str, float] = {"time_limit": max(seconds, _SHORTEST), "mip_rel_gap": _GAP}
        if root_only:
            options["node_limit"] = 1
        cost = np.zeros(self._count)
        cost[: len(self._cost)] = np.array(self._cost) * (_LARGE / self._unit)
        integrality = np.arange(self._count) < self._binary
        if not self._count:
            return self._trivial()
        found = milp(
            cost,
            integrality=integrality.astype(int),
            bounds=Bounds(0, 1),
            constraints=self._constraints(),
            options=options,
        )
        if found.status == _INFEASIBLE:
            return Outcome(np.inf, None, solved=True, infeasible=True)
        bound = self._least()
        if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
            solved = found.mip_dual_bound * (self._unit / _LARGE) + self._constant
            bound = max(bound, solved - SAFETY * max(self._unit, abs(solved)))
        picked = None if found.x is None else self._picked(found.x)
        return Outcome(bound, picked, found.status == _OPTIMAL, infeasible=False)

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

    def table(self, picked: Array) -> Array:
        """The cheapest values (A,) of a combination of choices (A,)."""
        return np.array([each.value[pick] for each, pick in zip(self.choices, picked, strict=True)])

    def scores(self, picked: Array) -> Array:
        """The scores (m,) of a combination of choices (A,), before the link."""
        total = self.ensemble.base + self._fixed
        for leaf, _ in self._trees:
            if all(bits >> int(picked[at]) & 1 for at, bits in leaf.box.items()):
                total = total + leaf.value
        return np.asarray(total / self.ensemble.divisor)

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
            _is_upper(bits, k) for number, bits in splits.right.items() if splits.column[number] == each.at
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

    def _leaves_of(self, reading: Reading, splits: Splits) -> list[tuple[Leaf, int]]:
        """The leaves of all trees that have several in reach, with their variables."""
        found: list[tuple[Leaf, int]] = []
        self._fixed = np.zeros(len(self.ensemble.base))
        self._alone: list[Array] = []
        for tree in reading.trees:
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
            for side in _sides(parts, splits.every[at], ordered=self._ordered[at], k=len(self.choices[at].value)):
                form = self.is_any(at, side)
                needing = {column: 1.0 for bits, column in parts if not bits & ~side}
                self._rows.append(({**needing, **{v: -c for v, c in form.terms.items()}}, -np.inf, form.constant))

    def _exact_unit(self, condition: Condition) -> float:
        """Of the scores that a condition compares, see `_exact_unit`."""
        leaves = [leaf.value for leaf, _ in self._trees]
        scores = np.stack([*leaves, *self._alone, self.ensemble.base])[:, condition.weights != 0]
        return _exact_unit(np.append(scores.ravel(), condition.least))

    def _constraints(self) -> LinearConstraint:
        entries = [len(terms) for terms, _, _ in self._rows]
        columns = np.fromiter((c for terms, _, _ in self._rows for c in terms), dtype=int, count=sum(entries))
        data = np.fromiter((v for terms, _, _ in self._rows for v in terms.values()), dtype=float, count=sum(entries))
        matrix = csr_matrix((data, columns, np.concatenate([[0], np.cumsum(entries)])), (len(entries), self._count))
        return LinearConstraint(matrix, [low for _, low, _ in self._rows], [high for _, _, high in self._rows])

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


def _sides(parts: list[tuple[int, int]], every: int, *, ordered: bool, k: int) -> list[int]:
    """The sets of choices whose leaves are counted together.

    Numbers: from each first choice of a leaf on, and up to each last one. Categories: each leaf's own set.
    """
    sets = {bits for bits, _ in parts}
    if not ordered:
        return sorted(sets)
    lows = {(bits & -bits).bit_length() - 1 for bits in sets} - {0}
    highs = {bits.bit_length() for bits in sets} - {k}
    return [every >> low << low for low in sorted(lows)] + [(1 << high) - 1 for high in sorted(highs)]


def _is_upper(bits: int, k: int) -> bool:
    """Whether the set is empty, or holds the last choices of k and no others."""
    return not bits or bits + (bits & -bits) == 1 << k


def _exact_unit(values: Array) -> float:
    """A power of two of which all values (n,) are multiples, if their sums round to nothing in float32; else 0."""
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return 0.0
    unit = float(2.0 ** np.floor(np.log2(sizes.min())))
    whole = bool((sizes % unit == 0).all()) and float(sizes.sum()) < unit / np.finfo(np.float32).eps
    return unit if whole else 0.0


def _add(one: Form, other: Form) -> Form:
    terms = dict(one.terms)
    for variable, value in other.terms.items():
        terms[variable] = terms.get(variable, 0.0) + value
    return Form(one.constant + other.constant, {v: c for v, c in terms.items() if c})
