"""Linear relations between columns, in a program.

A column of a grid has a choice for every value, so that a relation is linear in its choices. A column without one also
has a variable d, how far it moves, which lies in the interval of its choice, and a variable q for what that costs: at
least the tangents of beta·|d| + d^2 + theta·(d - pull)^2, drawn where the program has been solved before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import FARTHEST, Choices, Price
from cfproto_plugin.tables.geometry import clip
from cfproto_plugin.tables.relations import Linear
from cfproto_plugin.tables.space import FeatureSpace, Rows

_TANGENTS = 9  # of every column to begin with
_REPAIRS = (1e-15, 1e-13, 1e-11, 1e-9)  # of the size of the numbers: what a relation is missed by after rounding


class Moved(NamedTuple):
    """A column that a relation names and that has no grid."""

    at: int
    original: float
    factor: float  # units of the table for one unit of the search
    pull: float  # where the prototype would have it moved to, in the search
    price: Price

    def cost(self, d: Array) -> Array:
        """What moving by d (...) costs, few_changes aside."""
        theta = self.price.theta if self.price.goal is not None else 0.0
        return np.asarray(self.price.beta * np.abs(d) + d**2 + theta * (d - self.pull) ** 2)

    def slope(self, d: Array) -> Array:
        """Its derivative by d (...); at 0 one that keeps the tangent below."""
        theta = self.price.theta if self.price.goal is not None else 0.0
        return np.asarray(self.price.beta * np.sign(d) + 2 * d + 2 * theta * (d - self.pull))

    def step(self, value: Array) -> Array:
        """How far values (...) of the table are, in units of the search."""
        return np.asarray((value - self.original) / self.factor)

    def first_tangents(self, choices: Choices) -> Array:
        """(T,) where tangents are drawn to begin with."""
        low, high = self.step(np.array([choices.low.min(), choices.high.max()]))
        return np.linspace(float(low), float(high), _TANGENTS)


def linear_relations(space: FeatureSpace, row: Array) -> tuple[tuple[Linear, ...], bool]:
    """The linear comparisons that all have to hold of a row (A,), and whether these are all relations there are.

    Those of a column that is missing in the row are not among them: no distance from it is linear.
    """
    found, complete = [], True
    for relation in space.rules.relations:
        for linear in relation.linear or ():
            if linear.sense == "!=" or np.isnan(row[linear.weights != 0]).any():
                complete = False
            else:
                found.append(linear)
        complete &= relation.linear is not None
    return tuple(found), complete


def relaxed(relations: tuple[Linear, ...], space: FeatureSpace, rows: Rows) -> tuple[Linear, ...]:
    """Relations that every row keeps which keeps these, whatever narrow floats are written as; rows (1, A).

    A relation compares the shortest decimals of float32 columns, and a program knows the floats themselves: a decimal
    lies within half a unit in the last place.
    """
    apart = np.zeros(len(space.factor))
    reach = np.abs(rows.table[0]) + FARTHEST * space.factor
    most = np.fmin(np.fmax(np.abs(rows.lower), np.abs(rows.upper))[0], reach)
    for held in space.columns.held:
        if held.is_float:
            limits = np.finfo(held.dtype)
            apart = np.where(held.where, most * limits.eps + float(limits.smallest_subnormal), apart)
    found: list[Linear] = []
    for linear in relations:
        named = linear.weights != 0
        slack = float(np.abs(linear.weights[named]) @ apart[named])
        if not slack:
            found.append(linear)
            continue
        if linear.sense in {"<", "<=", "=="}:
            found.append(replace(linear, bound=linear.bound + slack, sense="<="))
        if linear.sense in {">", ">=", "=="}:
            found.append(replace(linear, bound=linear.bound - slack, sense=">="))
    return tuple(found)


def named_columns(relations: tuple[Linear, ...]) -> set[int]:
    """The columns that relations depend on."""
    return {int(at) for linear in relations for at in np.flatnonzero(linear.weights)}


def broken_columns(space: FeatureSpace, table: Array) -> list[list[int]]:
    """The columns of every linear relation that a point (A,) breaks: by a strict sign, or by rounding."""
    return [
        sorted(named_columns(relation.linear))
        for relation in space.rules.relations
        if relation.linear and not relation(table[None])[0]
    ]


def moved_columns(
    space: FeatureSpace, rows: Rows, choices: list[Choices], price: Price, named: set[int]
) -> dict[int, Moved]:
    """The columns of one row, rows (1, A), that relations name and that have choices of more than one value."""
    found = {}
    for at in sorted(named):
        original = float(rows.table[0, at])
        if (choices[at].low == choices[at].high).all():
            continue
        pull = 0.0 if price.goal is None else float(price.goal[at] - rows.z[0, at])
        found[at] = Moved(at, original, float(space.factor[at]), pull, price)
    return found


def horizon(space: FeatureSpace, rows: Rows, named: set[int]) -> float:
    """The cost that no point outside of a program stays below: columns that relations name move only so far in it."""
    columns = sorted(named)
    far = np.maximum(rows.table - rows.lower, rows.upper - rows.table)[0, columns] > FARTHEST * space.factor[columns]
    return FARTHEST**2 if far.any() else np.inf


def repaired(table: Array, relations: tuple[Linear, ...], room: dict[int, tuple[float, float]]) -> Array:
    """The point (A,) with columns moved inside their `room` by so little that relations hold which rounding broke."""
    for slack in _REPAIRS:
        for linear in relations:
            missed = _missed(linear, table, slack)
            at = max(room, key=lambda at: abs(linear.weights[at]), default=None)
            if missed and at is not None and linear.weights[at]:
                table = table.copy()
                table[at] = clip(table[at] - missed / linear.weights[at], *map(np.asarray, room[at]))
        if not any(_missed(linear, table, 0.0) for linear in relations):
            break
    return table


def _missed(linear: Linear, table: Array, slack: float) -> float:
    """By how much weights · x has to fall (or rise, if negative) for a relation to hold, and by `slack` more."""
    terms = np.where(linear.weights != 0, linear.weights * table, 0.0)
    over = float(terms.sum()) - linear.bound
    more = slack * (float(np.abs(terms).sum()) + abs(linear.bound))
    if linear.sense == "==":
        return over
    if linear.sense in {">", ">="}:
        return over - more if over < 0 or (over == 0 and linear.sense == ">") else 0.0
    return over + more if over > 0 or (over == 0 and linear.sense == "<") else 0.0
