"""Arithmetic over columns, read from a text by a parser of its own: nothing is ever evaluated as Python.

    chain   = sum (compare sum)+             compare = <= >= < > == !=
    sum     = product (("+" | "-") product)*
    product = factor (("*" | "/") factor)*
    factor  = ("+" | "-") factor | "(" sum ")" | number | column | 'category'

The name of a column is the longest known one that fits, so that it may hold signs and blanks; `...` in backquotes is
always a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import ConfigError, did_you_mean
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import listed
from cfproto_plugin.tables.columns import Columns

SMALLEST = 1e-290  # numbers below may have lost digits, or all of them
COMPARISONS = ("<=", ">=", "<", ">", "==", "!=")
_SIGNS = re.compile(r"[<>=!≤≥≠]+")
_MEANT = {"=<": "<=", "=>": ">=", "<>": "!=", "=": "==", "===": "==", "=!": "!=", "≤": "<=", "≥": ">=", "≠": "!="}
_AFTER = "<>=!≤≥≠+-*/()"  # what may follow a name
_NUMBER = re.compile(r"(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[^<>=!≤≥≠+*/()'\"`-]+")
_JOINED = re.compile(r"\b(and|or|not)\b|[&|]")
_DEEPEST = 50  # brackets and signs inside one another
_EXAMPLE = "expected such as 'a <= b', '0 <= a <= 3' or 'a + b <= 3', or a function"


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float

    def __call__(self, x: Array) -> float:  # noqa: ARG002 as the others
        return self.value


@dataclass(frozen=True)
class Place:
    """A column, by its place in the table."""

    at: int

    def __call__(self, x: Array) -> Array:
        return np.asarray(x[:, self.at])


@dataclass(frozen=True)
class Level:
    """A category, by the words of the user."""

    value: str | bool

    def __call__(self, x: Array) -> Array:
        raise ConfigError(f"{self.value!r} is no number, in {len(x)} rows")


@dataclass(frozen=True)
class Operation:
    """Two expressions and +, -, * or / between them."""

    sign: str
    left: Expression
    right: Expression

    def __call__(self, x: Array) -> Array | float:
        left, right = self.left(x), self.right(x)
        if self.sign == "+":
            return left + right
        if self.sign == "-":
            return left - right
        return left * right if self.sign == "*" else left / right


Expression = Number | Place | Level | Operation


class Sum(NamedTuple):
    """weights · x + constant over the columns of a table."""

    weights: Array  # (A,)
    constant: float


def as_sum(expression: Expression, count: int) -> Sum | None:
    """An expression over `count` columns as a weighted sum; None if it multiplies columns or names a category."""
    if isinstance(expression, Level):
        return None
    if isinstance(expression, Number):
        return Sum(np.zeros(count), expression.value)
    if isinstance(expression, Place):
        return Sum(np.eye(1, count, expression.at)[0], 0.0)
    left, right = as_sum(expression.left, count), as_sum(expression.right, count)
    return None if left is None or right is None else _combined(expression.sign, left, right)


def _combined(sign: str, left: Sum, right: Sum) -> Sum | None:
    if sign in "+-":
        factor = 1.0 if sign == "+" else -1.0
        return Sum(left.weights + factor * right.weights, left.constant + factor * right.constant)
    if left.weights.any() and right.weights.any():
        return None
    many, factor = (right, left.constant) if right.weights.any() else (left, right.constant)
    factor = 1 / factor if sign == "/" else factor
    found = Sum(factor * many.weights, factor * many.constant)
    return None if factor and (_lost(found.weights, many.weights) or _lost(found.constant, many.constant)) else found


def _lost(products: Array | float, numbers: Array | float) -> bool:
    """Whether products of these numbers are too small to be exact: in another order they may be other numbers."""
    return bool(np.any((np.abs(products) < SMALLEST) & (np.asarray(numbers) != 0)))


def places(expression: Expression) -> Iterator[int]:
    """The columns that an expression names."""
    if isinstance(expression, Place):
        yield expression.at
    elif isinstance(expression, Operation):
        yield from places(expression.left)
        yield from places(expression.right)


def largest(expression: Expression, most: Array) -> float:
    """What the absolute value of no part of an expression exceeds, for columns that are at most `most` (A,) in size."""
    if isinstance(expression, Operation):
        left, right = largest(expression.left, most), largest(expression.right, most)
        if expression.sign in "+-":
            return left + right
        return left * right if expression.sign == "*" else left / abs(float(expression.right(most[None])))
    if isinstance(expression, Level):
        return np.inf
    return abs(expression.value) if isinstance(expression, Number) else float(most[expression.at])


def multiplies(expression: Expression) -> bool:
    """Whether an expression has a product or a quotient, which may be too small for a float."""
    if not isinstance(expression, Operation):
        return False
    return expression.sign in "*/" or multiplies(expression.left) or multiplies(expression.right)


def read_chain(text: str, columns: Columns) -> tuple[list[Expression], list[str]]:
    """The expressions of a text, and the comparisons between them."""
    return _Reader(text, columns).chain()


class _Reader:
    """A text, and how far it is read."""

    def __init__(self, text: str, columns: Columns) -> None:
        self.text, self.at, self.columns, self.depth = text, 0, columns, 0
        names = {name: name for name in columns.names or () if isinstance(name, str)}
        names |= {a.name: a.name for a in columns.attributes if isinstance(a.name, str)}
        self.quoted = {**{str(name): name for name in columns.names or ()}, **names}
        if columns.names is None:
            self.quoted |= {f"x{at}": at for at in range(int(np.prod(columns.shape)))}
            names |= {key: at for key, at in self.quoted.items() if key not in names}
        self.names, self.longest = names, max(map(len, names), default=0)

    def error(self, problem: str) -> ConfigError:
        return ConfigError(f"relation {self.text!r} {problem}")

    def chain(self) -> tuple[list[Expression], list[str]]:
        sides, signs = [self.sum()], []
        while self.rest():
            signs.append(self.comparison())
            sides.append(self.sum())
        if not signs:
            raise self.error(f"cannot be read; {_EXAMPLE}")
        return sides, signs

    def rest(self) -> str:
        """What is not read yet, without blanks before it."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at :]

    def comparison(self) -> str:
        found = _SIGNS.match(self.rest())
        if found is None:
            raise self.error(f"cannot be read from {self.rest()!r} on; {_EXAMPLE}")
        if found[0] not in COMPARISONS:
            meant = f" Did you mean {_MEANT[found[0]]!r}?" if found[0] in _MEANT else ""
            raise self.error(f"compares by {found[0]!r}.{meant} There are: {', '.join(COMPARISONS)}")
        self.at += len(found[0])
        return found[0]

    def sum(self) -> Expression:
        found = self.product()
        while self.rest()[:1] in ("+", "-"):
            found = self.operation(found, self.product)
        return found

    def product(self) -> Expression:
        found = self.factor()
        while self.rest()[:1] in ("*", "/"):
            found = self.operation(found, self.factor)
        return found

    def operation(self, left: Expression, right: Callable[[], Expression]) -> Operation:
        sign = self.text[self.at]
        self.at += 1
        start = self.at
        found = Operation(sign, left, right())
        if isinstance(left, Level) or isinstance(found.right, Level):
            raise self.error("calculates with a category; only numbers can be")
        if sign == "/" and not isinstance(_folded(found.right), Number):
            raise self.error(f"divides by {self.text[start : self.at].strip()!r}; expected a number. {_MULTIPLY}")
        if sign == "/" and _folded(found.right) == Number(0.0):
            raise self.error("divides by 0")
        return found

    def factor(self) -> Expression:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("has too many brackets and signs inside one another; pass a function instead")
        found = self.one()
        self.depth -= 1
        return found

    def one(self) -> Expression:
        rest = self.rest()
        column = self.column()
        if column is not None:
            return column
        if rest[:1] in ("+", "-"):
            self.at += 1
            inner = self.factor()
            return inner if rest[0] == "+" else _folded(Operation("*", Number(-1.0), inner))
        if rest[:1] == "(":
            self.at += 1
            inner = self.sum()
            if self.rest()[:1] != ")":
                raise self.error("has a bracket that is not closed")
            self.at += 1
            return inner
        if rest[:1] in ("'", '"'):
            return self.category(rest)
        return self.number_or_error(rest)

    def column(self) -> Place | None:
        rest = self.rest()
        if rest[:1] == "`":
            name, closed, _ = rest[1:].partition("`")
            if not closed:
                raise self.error("has a backquote that is not closed")
            if name not in self.quoted:
                raise self.unknown(name)
            self.at += len(name) + 2
            return self.place(self.quoted[name])
        for size in range(min(self.longest, len(rest)), 0, -1):
            after = rest[size:].lstrip()
            if rest[:size] in self.names and (not after or after[0] in _AFTER):
                self.at += size
                return self.place(self.names[rest[:size]])
        return None

    def place(self, name: str | int) -> Place:
        return Place(self.columns.find(name, f"relation {self.text!r}"))

    def category(self, rest: str) -> Level:
        value, closed, _ = rest[1:].partition(rest[0])
        if not closed:
            raise self.error(f"has a quote {rest[0]} that is not closed")
        self.at += len(value) + 2
        return Level(value)

    def number_or_error(self, rest: str) -> Expression:
        found = _NUMBER.match(rest)
        after = rest[found.end() :].lstrip() if found else ""
        if found and (not after or after[0] in _AFTER):
            self.at += found.end()
            return Number(float(found[0]))
        name = _NAME.match(rest)
        if name is None:
            raise self.error(f"cannot be read{f' from {rest!r} on' if rest else ': its end is missing'}; {_EXAMPLE}")
        word = name[0].strip()
        if word in ("True", "False", "inf"):
            self.at += name.end()
            return Number(np.inf) if word == "inf" else Level(word == "True")
        if _JOINED.search(word):
            raise self.error("joins comparisons by a word; give a relation for each of them, or a function for 'or'")
        side = _SIGNS.split(rest)[0].strip()  # a name with a typo may hold a minus
        raise self.unknown(side if did_you_mean(side, self.names) else word)

    def unknown(self, name: str) -> ConfigError:
        meant = did_you_mean(name, self.names)
        of = [at for at, attribute in self.columns.categories.items() if name in map(str, attribute.levels)]
        if of:
            at = max(of, key=lambda at: self._length_in_text(str(self.columns.attributes[at].name)))
            meant = f" It is a category of {self.columns.describe(at)}: write it in quotes, {name!r}."
        return ConfigError(
            f"relation {self.text!r} names column {name!r}, which is not there.{meant} There are: {listed(self.names)}",
            column=name,
        )

    def _length_in_text(self, name: str) -> int:
        """How long the name of a column is if the relation holds it, else 0: of several that fit, it is the longest."""
        return len(name) if name in self.text else 0


_MULTIPLY = "Multiply both sides instead, or pass a function."


def _folded(expression: Expression) -> Expression:
    """A number in place of an operation on numbers."""
    if isinstance(expression, Operation):
        left, right = _folded(expression.left), _folded(expression.right)
        if isinstance(left, Number) and isinstance(right, Number):
            value = Operation(expression.sign, left, right)(np.zeros((0, 0)))
            return Number(float(value))
    return expression
