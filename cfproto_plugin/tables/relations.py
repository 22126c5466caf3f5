"""Relations between columns, as texts or functions: read once, then asked of table rows, their answers checked."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, ConfigError
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import is_missing, listed
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.expressions import Expression, Level, Number, Place, as_sum, places, read_chain
from cfproto_plugin.tables.held import Held

_COMPARE = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, eq=False)
class Linear:
    """weights · x (sense) bound, for rows x (n, A) of the table; sense is <=, >=, <, >, == or !=."""

    weights: Array  # (A,)
    bound: float
    sense: str


@dataclass(frozen=True)
class Comparison:
    """Expressions and the comparisons between them, all of which must hold."""

    name: str
    sides: tuple[Expression, ...]
    signs: tuple[str, ...]
    linear: tuple[Linear, ...] | None = field(default=None, compare=False)  # None if one is of categories or a product
    narrow: tuple[tuple[Held, tuple[int, ...]], ...] = field(default=(), compare=False)  # its columns of float32 and so

    def __call__(self, x: Array) -> Array:
        """Compare in every table row of x (n, A), calculating in 64 bits; a float32 is what it is written as."""
        good, x = np.ones(len(x), dtype=bool), self._written(x)
        with np.errstate(over="ignore", invalid="ignore"):
            sides = [side(x) for side in self.sides]
            for left, sign, right in zip(sides, self.signs, sides[1:], strict=False):
                good &= _COMPARE[sign](left, right)
        return good

    def on(self, columns: Columns) -> Comparison:
        """The same for rows that hold the columns otherwise."""
        named = {at for side in self.sides for at in places(side)}
        pairs = ((held, tuple(sorted(named & {*np.flatnonzero(held.where)}))) for held in columns.held if held.is_float)
        return replace(self, narrow=tuple((held, at) for held, at in pairs if at))

    def _written(self, x: Array) -> Array:
        """The rows x (n, A) in 64 bits, with the shortest decimals of narrower floats."""
        wide = x.astype(np.float64, copy=bool(self.narrow))
        for held, at in self.narrow:
            wide[:, at] = held.decimals(wide[:, at])
        return wide


@dataclass(frozen=True)
class Condition:
    """A function of the user's, which gets rows as the training data came."""

    name: str
    function: Callable[[Any], Any]
    columns: Columns
    linear: None = None  # a function does not say

    def __call__(self, x: Array) -> Array:
        """Ask the function about table rows x (n, A); rows whose answer is missing do not fulfil it."""
        try:
            found = np.asarray(self.function(self.columns.to_named(x.copy())))
        except CfprotoError:
            raise
        except Exception as error:
            raise ConfigError(f"relation {self.name!r} raised {type(error).__name__}: {error}") from error
        if found.dtype == object and found.ndim == 1:
            found = np.array(
                [False if is_missing(truth) else truth for truth in found], dtype=None if len(found) else bool
            )
        if found.shape != (len(x),) or found.dtype != bool:
            raise ConfigError(
                f"relation {self.name!r} returned {found.dtype} of shape {found.shape} for {len(x)} rows; expected "
                "True or False for each row"
            )
        return found

    def on(self, columns: Columns) -> Condition:
        """The same for rows that hold the columns in other dtypes, or hold further categories."""
        return replace(self, columns=columns)


Relation = Comparison | Condition


def read_relation(relation: Any, columns: Columns) -> Relation:
    """Look up the columns that a text names; a function is taken as it is."""
    if callable(relation):
        return Condition(getattr(relation, "__name__", repr(relation)), relation, columns)
    sides, signs = read_chain(relation, columns)
    if not any(True for side in sides for _ in places(side)):
        raise ConfigError(
            f"relation {relation!r} names no column; expected such as 'a <= b', x0, x1, ... for columns without a name"
        )
    for side in sides:
        for at in places(side) if not isinstance(side, Place) else ():
            if at in columns.categories:
                raise ConfigError(
                    f"relation {relation!r}: {columns.describe(at)} is a category, which cannot be calculated with; "
                    "pass a function instead",
                    column=columns.attributes[at].name,
                )
    compared = [[*sides[max(0, i - 1) : i], *sides[i + 1 : i + 2]] for i in range(len(sides))]
    coded = [_coded(relation, *each, signs, columns) for each in zip(sides, compared, strict=True)]
    named = {at for side in sides for at in places(side)}
    linear = None if named & set(columns.categories) else _linear(sides, signs, len(columns.attributes))
    return Comparison(relation, tuple(coded), tuple(signs), linear).on(columns)


def _linear(sides: list[Expression], signs: list[str], count: int) -> tuple[Linear, ...] | None:
    """Comparisons over `count` columns as linear ones; None if one of them is not."""
    sums = [as_sum(side, count) for side in sides]
    found = []
    for left, sign, right in zip(sums, signs, sums[1:], strict=False):
        if left is None or right is None:
            return None
        found.append(Linear(left.weights - right.weights, right.constant - left.constant, sign))
    return tuple(found)


def _coded(
    relation: str, side: Expression, compared: list[Expression], signs: list[str], columns: Columns
) -> Expression:
    """A side of a comparison; a category of the column it is compared with as its code."""
    if isinstance(side, Place) and side.at in columns.categories:
        if not all(isinstance(other, (Level, Number)) for other in compared) or not {*signs} <= {"==", "!="}:
            raise ConfigError(
                f"relation {relation!r}: {columns.describe(side.at)} is a category; compare it by == or != with one of "
                f"its categories in quotes ({listed(columns.attributes[side.at].levels)}), or pass a function",
                column=columns.attributes[side.at].name,
            )
        return side
    if not isinstance(side, (Level, Number)):
        return side
    for other in compared:
        if isinstance(side, Level) and isinstance(other, Place) and columns.attributes[other.at].dates is not None:
            return Number(columns.number(other.at, side.value, f"relation {relation!r}"))
        if isinstance(other, Place) and other.at in columns.categories:
            return Number(float(columns.code(other.at, side.value, f"relation {relation!r}")))
    if isinstance(side, Level):
        raise ConfigError(f"relation {relation!r}: {side.value!r} is a category, and is compared with numbers")
    return side
