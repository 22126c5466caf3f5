"""Relations that no change of a row can satisfy, proved for one row at a time from the values its cells may have.

Categories are tried one by one. For linear comparisons of numbers a linear program suggests how to add them up to
something false. The sum is checked in exact fractions and must be false by more than the comparisons round, so that
nothing is called impossible that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.expressions import SMALLEST, Number, Place, largest, multiplies, places
from cfproto_plugin.tables.relations import Comparison
from cfproto_plugin.tables.rules import Rules
from cfproto_plugin.tables.space import Rows

_FINE = 10**6  # the largest denominator of a multiplier
_SMALL = 1e-9  # multipliers below are rounding
_ROUNDING = 1e-9  # of the numbers that a comparison calculates with: far more than 64 bits lose
_SHOWN = 4  # columns whose values a message tells


class _Below(NamedTuple):
    """weights · x <= bound, or < if strict."""

    name: str
    weights: Array  # (C,)
    bound: float
    strict: bool
    error: float  # what it may be missed by and hold all the same, because floats are rounded


class _Box(NamedTuple):
    """The lowest and highest values (C,) of the columns that linear relations name; infinite where unknown."""

    columns: list[int]
    lower: Array
    upper: Array


def impossible_relations(rules: Rules, rows: Rows) -> Iterator[tuple[int, str]]:
    """Rows (n, A) that no change can bring to satisfy every relation, by number, and why; not all such rows are found.

    What is said of a row depends on that row alone.
    """
    relations = [each for each in rules.relations if isinstance(each, Comparison)]
    if not relations:
        return
    linear = [each for each in relations if each.linear]
    columns = sorted({at for relation in linear for at in _columns(relation)})
    lower, upper = (end[:, columns] for end in _ends(rules, rows))
    broken = ~np.logical_and.reduce([relation(rows.table) for relation in relations])
    known: dict[bytes, str] = {}  # by box
    for i in np.flatnonzero(broken & ~(rows.lower > rows.upper).any(axis=1)).tolist():
        reason = _of_fixed(rules, rows.table[i], relations) or _of_categories(rules, rows.table[i], relations)
        box = _Box(columns, lower[i], upper[i])
        key = lower[i].tobytes() + upper[i].tobytes()
        if not reason and key not in known:
            known[key] = _of_numbers(rules, box, linear)
        if reason or known[key]:
            yield i, reason or known[key]


def _ends(rules: Rules, rows: Rows) -> tuple[Array, Array]:
    """The lowest and highest values (n, A) that numbers of the rows have in relations, as columns write them."""
    lower, upper = rows.lower.astype(float), rows.upper.astype(float)
    for held in rules.columns.held:
        if held.is_float:
            lower = np.where(held.where, held.decimals(lower), lower)
            upper = np.where(held.where, held.decimals(upper), upper)
    return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)


def _columns(relation: Comparison) -> list[int]:
    return sorted({at for side in relation.sides for at in places(side)})


def _of_fixed(rules: Rules, row: Array, relations: list[Comparison]) -> str:
    """A relation that does not hold on a row (A,) and that no change can mend."""
    fixed = rules.fixed | (np.isnan(row) & (rules.rising | rules.falling))
    for relation in relations:
        columns = _columns(relation)
        if relation(row[None])[0]:
            continue
        if fixed[columns].all():
            return f"the relation {relation.name!r} does not hold on the row, and none of its columns may change"
        gone = [at for at in columns if fixed[at] and np.isnan(row[at])]
        if gone and "!=" not in relation.signs:
            name = rules.columns.describe(gone[0])
            return f"the relation {relation.name!r} needs a value of column {name}, which is missing and may not change"
    return ""


def _of_categories(rules: Rules, row: Array, relations: list[Comparison]) -> str:
    """Relations about one categorical column that none of the categories satisfies which a row (A,) may have in it."""
    for at in rules.columns.categories:
        about = [relation for relation in relations if _columns(relation) == [at]]
        if not about:
            continue
        own = row[[at]].astype(int)
        may_change = np.flatnonzero(rules.choices_of(at, own)[0] & ~rules.fixed[at])
        codes = np.union1d(own[rules.keepable(at)[own]], may_change)
        tried = np.repeat(row[None], len(codes), axis=0)
        tried[:, at] = codes
        holds = np.stack([relation(tried) for relation in about])
        if not holds.all(axis=0).any():
            alone = [about[i].name for i in np.flatnonzero(~holds.any(axis=1))]
            names = alone[:1] or [relation.name for relation in about]
            return _in_words(names, f": column {rules.columns.describe(at)} has no such category that the rules allow")
    return ""


def _of_numbers(rules: Rules, box: _Box, relations: list[Comparison]) -> str:
    """Linear relations that add up to something false everywhere in a box."""
    rows = [row for relation in relations for row in _linear(relation, box, len(rules.fixed))]
    taken = _contradiction(rows, box)
    for name in dict.fromkeys(row.name for row, _ in taken):  # those without which the others are false, too, go
        fewer = _contradiction([row for row, _ in taken if row.name != name], box)
        taken = fewer or taken
    if not taken:
        return ""
    names = list(dict.fromkeys(row.name for row, _ in taken))
    used = [i for i in range(len(box.columns)) if _total(taken, i)]
    return _in_words(names, _values(rules, box, used))


def _contradiction(rows: list[_Below], box: _Box) -> list[tuple[_Below, Fraction]]:
    """Comparisons, and how often to take each, that add up to something false everywhere in a box; empty if none do."""
    for strict_only in (False, True):
        taken = _multipliers(rows, box, strict_only=strict_only) if rows else []
        if taken and _is_false(taken, box):
            return taken
    return []


def _in_words(names: list[str], why: str) -> str:
    if len(names) == 1:
        return f"the relation {names[0]!r} cannot hold{why}; relax it, or the rules of its columns"
    together = f"the relations {' and '.join(map(repr, names))} contradict each other"
    return f"{together}{why}; relax one of them, or the rules of their columns"


def _values(rules: Rules, box: _Box, used: list[int]) -> str:
    """`: 'a' must be 3, 'b' may be from 0 to 2`: the values that a proof used; nothing if these are many."""
    if not 0 < len(used) <= _SHOWN:
        return ""
    parts = []
    for i in used:
        at, shown = box.columns[i], rules.columns.shown
        low, high = (shown(at, end[i]) for end in (box.lower, box.upper))
        parts.append(
            f"{rules.columns.describe(at)} {f'must be {low}' if low == high else f'may be from {low} to {high}'}"
        )
    return ": " + ", ".join(parts)


def _linear(relation: Comparison, box: _Box, count: int) -> Iterator[_Below]:
    """The comparisons of a relation as sums that are at most something; != is no such thing."""
    most = np.zeros(count)
    most[box.columns] = np.maximum(np.abs(box.lower), np.abs(box.upper))
    for i, linear in enumerate(relation.linear or ()):
        sides, weights = relation.sides[i : i + 2], linear.weights[box.columns]
        is_exact = all(isinstance(side, (Place, Number)) for side in sides)
        error = 0.0 if is_exact else _ROUNDING * sum(largest(side, most) for side in sides)
        error += SMALLEST * any(map(multiplies, sides))
        if not np.isfinite([*weights, linear.bound, error]).all():
            continue
        if linear.sense in {"<", "<=", "=="}:
            yield _Below(relation.name, weights, linear.bound, linear.sense == "<", error)
        if linear.sense in {">", ">=", "=="}:
            yield _Below(relation.name, -weights, -linear.bound, linear.sense == ">", error)


def _multipliers(rows: list[_Below], box: _Box, *, strict_only: bool) -> list[tuple[_Below, Fraction]]:
    """How often to take each comparison: the duals of the largest slack of all of them, or of the strict ones."""
    from scipy.optimize import linprog

    slack = [float(row.strict or not strict_only) for row in rows]
    if not any(slack):
        return []
    scale = np.array([2.0 ** np.rint(np.log2(np.abs(row.weights).max() or 1.0)) for row in rows])
    found = linprog(
        np.append(np.zeros(len(box.columns)), -1.0),
        A_ub=np.column_stack([np.stack([row.weights for row in rows]) / scale[:, None], slack]),
        b_ub=[row.bound for row in rows] / scale,
        bounds=[*zip(box.lower, box.upper, strict=True), (None, 1.0)],
        method="highs",
    )
    if found.status != 0:
        return []
    return [
        (row, Fraction(float(y)).limit_denominator(_FINE) / Fraction(float(size)))
        for row, y, size in zip(rows, -np.asarray(found.ineqlin.marginals), scale, strict=True)
        if y > _SMALL
    ]


def _total(taken: list[tuple[_Below, Fraction]], i: int) -> Fraction:
    """The weight of a column in the sum."""
    return sum((y * Fraction(float(row.weights[i])) for row, y in taken), Fraction(0))


def _is_false(taken: list[tuple[_Below, Fraction]], box: _Box) -> bool:
    """Whether the least that the sum of the left sides can be exceeds the sum of the right sides and its rounding."""
    least = Fraction(0)
    for i in range(len(box.columns)):
        weight = _total(taken, i)
        end = float(box.lower[i] if weight > 0 else box.upper[i])
        if weight and np.isinf(end):
            return False
        least += weight * Fraction(end) if weight else 0
    most = sum((y * (Fraction(row.bound) + Fraction(row.error)) for row, y in taken), Fraction(0))
    exact_and_strict = any(row.strict for row, _ in taken) and not any(row.error for row, _ in taken)
    return least > most or (least == most and exact_and_strict)
