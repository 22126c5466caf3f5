"""What may change and how far: the user's rules, resolved for the columns at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import Grid, changed, filled
from cfproto_plugin.tables.relations import Relation, read_relation

_TRIED = 4  # training rows that relations are tried on, so that a mistake shows early


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
    grid: Grid  # the numbers that a column can hold
    allowed: dict[int, Array] = field(default_factory=dict)  # (K,) bool per categorical attribute
    relations: tuple[Relation, ...] = ()
    fixed_by: tuple[str, ...] = ()  # of "immutable" and "vary", those that were given

    @classmethod
    def of(cls, features: Features, columns: Columns, train: Array) -> Rules:
        """Look up every column the rules name; where there is no range the training data bounds it."""
        count = len(columns.attributes)

        def mask(rule: str) -> Array:
            found = np.zeros(count, dtype=bool)
            found[[columns.find(column, rule) for column in getattr(features, rule)]] = True
            return found

        known, empty = filled(train)
        low, high = (end(known, axis=0).astype(np.float64) for end in (np.nanmin, np.nanmax))  # as ranges are given
        declared = np.zeros(count, dtype=bool)
        for column, (lowest, highest) in features.ranges.items():
            at = columns.find(column, "ranges")
            if at in columns.categories:
                raise ConfigError(
                    f"ranges names column {columns.describe(at)}, which is a category; use allowed for it",
                    column=column,
                )
            low[at], high[at], declared[at] = lowest, highest, True
        rising, falling = mask("increasing"), mask("decreasing")
        for at in columns.categories:
            if rising[at] or falling[at]:
                raise ConfigError(
                    f"increasing and decreasing need numbers; {columns.describe(at)} is a category",
                    column=columns.attributes[at].name,
                )
        relations = tuple(read_relation(relation, columns) for relation in features.relations)
        for relation in relations:
            relation(train[:_TRIED])
        return cls(
            columns,
            _fixed(features, mask, columns) | empty,
            rising,
            falling,
            declared,
            low,
            high,
            Grid(_steps(features, columns), columns.held),
            _allowed(features, columns),
            relations,
            tuple(rule for rule in ("immutable", "vary") if getattr(features, rule)),
        )

    @cached_property
    def plain(self) -> bool:
        """Whether only the training data bounds the columns."""
        return not (self.grid.stepped or (self.fixed | self.rising | self.falling | self.declared).any())

    @property
    def any_declared(self) -> bool:
        """Whether a rule says what may change, beside the steps of the columns."""
        masks = self.fixed | self.rising | self.falling | self.declared
        return bool(masks.any() or self.allowed or self.relations)

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Lowest and highest value of every cell of table rows x (n, A); for categories see `FeatureSpace.rows`."""
        if self.plain:
            lower, upper = self.grid.draw_in(x, np.fmin(self.low, x), np.fmax(self.high, x))
            return lower.astype(x.dtype), upper.astype(x.dtype)
        free = ~self.declared
        lower = np.where(free, np.fmin(self.low, x), self.low)
        upper = np.where(free, np.fmax(self.high, x), self.high)
        lower = np.where(self.rising, np.fmax(lower, x), lower)
        upper = np.where(self.falling, np.fmin(upper, x), upper)
        missing = np.isnan(x)
        fixed, bound = self.fixed | (missing & (self.rising | self.falling)), self.declared & ~missing
        lower = np.where(fixed, np.where(bound, np.fmax(lower, x), x), lower)
        upper = np.where(fixed, np.where(bound, np.fmin(upper, x), x), upper)
        lower, upper = self.grid.draw_in(x, lower, upper)
        return lower.astype(x.dtype), upper.astype(x.dtype)

    def broken(self, x: Array, original: Array, lower: Array, upper: Array) -> Array:
        """Which table rows x (n, A) break a rule as changes of `original`: (n,) bool."""
        differs = changed(x, original)
        fixed = self.fixed | (np.isnan(original) & (self.rising | self.falling))  # nothing to compare a value with
        bad = (x < lower) | (x > upper) | (np.isnan(x) & differs) | (fixed & differs)
        if self.grid.stepped:
            bad |= differs & self.grid.misses(x)
        for at in self.columns.categories:
            bad[:, at] = differs[:, at] & (self.fixed[at] | ~self.choices(at)[x[:, at].astype(int)])
            if at in self.allowed:
                bad[:, at] |= ~self.allowed[at][x[:, at].astype(int)]
        return np.asarray(bad.any(axis=1) | ~self.related(x))

    def related(self, x: Array) -> Array:
        """Which rows (n, A) satisfy every relation."""
        good = np.ones(len(x), dtype=bool)
        for relation in self.relations:
            good &= relation(x)
        return good

    def choices(self, at: int) -> Array:
        """The categories an attribute may change to: (K,) bool; none that the training data did not have."""
        attribute = self.columns.attributes[at]
        known = np.arange(len(attribute.levels)) < len(attribute.levels) - attribute.unknown
        return self.allowed.get(at, known)

    def keepable(self, at: int) -> Array:
        """The categories of an attribute that a row may keep: (K,) bool."""
        return self.allowed.get(at, np.ones(len(self.columns.attributes[at].levels), dtype=bool))

    def on(self, columns: Columns) -> Rules:
        """The same rules on rows that hold the columns in other dtypes, or hold further categories."""
        step = self.grid.step.copy()
        for at, attribute in enumerate(columns.attributes):
            if attribute.integer and (step[at] % 1 or not step[at]):
                step[at] = Fraction(step[at]).limit_denominator(10**6).numerator or 1
        allowed = {
            at: np.append(known, np.zeros(columns.attributes[at].unknown, dtype=bool))
            for at, known in self.allowed.items()
        }
        relations = tuple(relation.on(columns) for relation in self.relations)
        return replace(self, columns=columns, grid=Grid(step, columns.held), allowed=allowed, relations=relations)


def _fixed(features: Features, mask: Callable[[str], Array], columns: Columns) -> Array:
    """(A,) bool: the columns that may not change."""
    fixed = mask("immutable")
    if features.vary is None:
        return fixed
    varied = mask("vary")
    if (fixed & varied).any():
        at = int(np.argmax(fixed & varied))
        raise ConfigError(
            f"vary and immutable both name column {columns.describe(at)}; leave it out of one of them",
            column=columns.attributes[at].name,
        )
    return np.asarray(fixed | ~varied)


def _steps(features: Features, columns: Columns) -> Array:
    """(A,) the step of every number: 1 for integers, 0 where every value is possible."""
    steps = np.array([float(attribute.integer) for attribute in columns.attributes])
    given = [("integer", column, 1.0) for column in features.integer]
    given += [("step", column, float(size)) for column, size in features.step.items()]
    for rule, column, size in given:
        at = columns.find(column, rule)
        if at in columns.categories:
            raise ConfigError(f"{rule} needs numbers; {columns.describe(at)} is a category", column=column)
        if steps[at] and size % 1:
            raise ConfigError(
                f"step[{column!r}] is {size:g}, but {columns.describe(at)} holds integers; expected a whole number",
                column=column,
            )
        steps[at] = size
    return steps


def _allowed(features: Features, columns: Columns) -> dict[int, Array]:
    found = {}
    for column, values in features.allowed.items():
        at = columns.find(column, "allowed")
        codes = [columns.code(at, value, f"allowed[{column!r}]") for value in values]
        found[at] = np.isin(np.arange(len(columns.attributes[at].levels)), codes)
    return found
