"""What may change and how far: the user's rules, resolved for the columns at hand."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cfproto_plugin.columns import Columns
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array

_COMPARE = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_EXPRESSION = re.compile(r"^\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*$")
_GRID = 1e-9
Relation = Callable[[Array], Array]


@dataclass(frozen=True)
class Rules:
    """Rules by place in the table (n, A)."""

    columns: Columns
    fixed: Array  # (A,) bool
    rising: Array
    falling: Array
    declared: Array  # (A,) bool: low and high were given
    low: Array
    high: Array
    step: Array  # (A,) 0 where any value will do
    allowed: dict[int, Array] = field(default_factory=dict)  # (K,) bool per categorical attribute
    relations: tuple[tuple[str, Relation], ...] = ()

    @classmethod
    def of(cls, features: Features, columns: Columns, train: Array) -> Rules:
        """Look up every column the rules name; where there is no range the training data bounds it."""
        count = len(columns.attributes)

        def mask(rule: str) -> Array:
            found = np.zeros(count, dtype=bool)
            found[[columns.find(column, rule) for column in getattr(features, rule)]] = True
            return found

        low, high, declared = np.nanmin(train, axis=0), np.nanmax(train, axis=0), np.zeros(count, dtype=bool)
        for column, (lowest, highest) in features.ranges.items():
            at = columns.find(column, "ranges")
            if at in columns.categories:
                raise ConfigError(
                    f"ranges names column {columns.describe(at)}, which is a category; use allowed for it"
                )
            low[at], high[at], declared[at] = lowest, highest, True
        step = np.array([float(attribute.integer) for attribute in columns.attributes])
        for column, size in features.step.items():
            step[columns.find(column, "step")] = size
        rising, falling = mask("increasing"), mask("decreasing")
        for at in columns.categories:
            if rising[at] or falling[at]:
                raise ConfigError(f"increasing and decreasing need numbers; {columns.describe(at)} is a category")
        relations = tuple(_relation(relation, columns) for relation in features.relations)
        return cls(
            columns,
            mask("immutable"),
            rising,
            falling,
            declared,
            low,
            high,
            step,
            _allowed(features, columns),
            relations,
        )

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Lowest and highest value of every cell of table rows x (n, A); for categories see `FeatureSpace.rows`."""
        free = ~self.declared
        lower = np.where(free, np.fmin(self.low, x), self.low)
        upper = np.where(free, np.fmax(self.high, x), self.high)
        lower = np.where(self.rising, np.fmax(lower, x), lower)
        upper = np.where(self.falling, np.fmin(upper, x), upper)
        lower = np.where(self.fixed, np.where(self.declared, np.fmax(lower, x), x), lower)
        upper = np.where(self.fixed, np.where(self.declared, np.fmin(upper, x), x), upper)
        return lower.astype(x.dtype), upper.astype(x.dtype)

    def on_grid(self, x: Array, lower: Array, upper: Array, own: Array) -> Array:
        """The nearest multiples of the steps inside the bounds; the row's own value where there is none."""
        grid = self.step > 0
        if not grid.any():
            return x
        size = np.where(grid, self.step, 1.0)
        low, high = np.ceil(lower / size - _GRID) * size, np.floor(upper / size + _GRID) * size
        near = np.fmin(np.fmax(np.rint(x / size) * size, low), high)
        return np.where(grid, np.where(low <= high, near, own), x).astype(x.dtype)

    def broken(self, x: Array, own: Array, lower: Array, upper: Array) -> Array:
        """Which rows x (n, A) break a rule as changes of `own`: (n,) bool."""
        changed = x != own
        bad = (x < lower) | (x > upper) | (np.isnan(x) & ~np.isnan(own))
        size = np.where(self.step > 0, self.step, 1.0)
        off = np.abs(x / size - np.rint(x / size)) > _GRID * np.maximum(1, np.abs(x / size))
        bad |= (self.step > 0) & changed & off & ~np.isnan(x)
        for at in self.columns.categories:
            code = x[:, at].astype(int)
            bad[:, at] = self.fixed[at] & changed[:, at]
            if at in self.allowed:
                bad[:, at] |= ~self.allowed[at][code]
        return np.asarray(bad.any(axis=1) | ~self.related(x))

    def related(self, x: Array) -> Array:
        """Which rows (n, A) satisfy every relation."""
        good = np.ones(len(x), dtype=bool)
        for _, holds in self.relations:
            good &= np.asarray(holds(x), dtype=bool)
        return good

    def choices(self, at: int) -> Array:
        """The categories an attribute may take: (K,) bool."""
        return self.allowed.get(at, np.ones(len(self.columns.attributes[at].levels), dtype=bool))


def _allowed(features: Features, columns: Columns) -> dict[int, Array]:
    found = {}
    for column, values in features.allowed.items():
        at = columns.find(column, "allowed")
        codes = [columns.code(at, value, f"allowed[{column!r}]") for value in values]
        found[at] = np.isin(np.arange(len(columns.attributes[at].levels)), codes)
    return found


def _relation(relation: Any, columns: Columns) -> tuple[str, Relation]:
    """A name for messages, and a function of table rows."""
    if callable(relation):
        return getattr(relation, "__name__", repr(relation)), lambda x: relation(columns.to_model(x))
    match = _EXPRESSION.match(str(relation))
    if match is None:
        raise ConfigError(f"relation {relation!r} cannot be read; expected such as 'a <= b' or 'a >= 3', or a function")
    left, compare, right = match[1], _COMPARE[match[2]], match[3]
    first, second = _operand(left, columns, relation), _operand(right, columns, relation)
    return relation, lambda x: compare(first(x), second(x))


def _operand(text: str, columns: Columns, relation: Any) -> Callable[[Array], Any]:
    try:
        number = float(text)
    except ValueError:
        at = columns.find(text, f"relation {relation!r}")
        if at in columns.categories:
            raise ConfigError(f"relation {relation!r}: {text!r} is a category; pass a function instead") from None
        return lambda x: x[:, at]
    return lambda _x: number
