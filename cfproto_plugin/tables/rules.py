"""What may change and how far: the user's rules, resolved for the columns at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from cfproto_plugin.checks import is_number, shown
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import listed
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import Grid, changed, filled
from cfproto_plugin.tables.grids import grid_of
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
    def of(cls, features: Features, columns: Columns, train: Array, written: Array | None = None) -> Rules:
        """Look up every column the rules name; where there is no range the training data bounds it.

        written: (A,) the steps that the numbers of the training data are written in, if changed values follow them.
        """
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
            what = f"ranges[{column!r}]"
            low[at], high[at] = (
                end if is_number(end) and np.isinf(end) else columns.number(at, end, what) for end in (lowest, highest)
            )
            if low[at] > high[at]:
                raise ConfigError(f"{what} is {shown((lowest, highest))}; expected the lowest first", column=column)
            declared[at] = True
        rising, falling = mask("increasing"), mask("decreasing")
        for at, attribute in columns.categories.items():
            if (rising[at] or falling[at]) and attribute.order is None:
                raise ConfigError(
                    f"increasing and decreasing need an order; {columns.describe(at)} is a category without one. Make "
                    "it an ordered category of pandas, CategoricalDtype([...], ordered=True), or an Enum of polars",
                    column=attribute.name,
                )
        allowed, lists = _allowed(features, columns)
        for at, values in lists.items():
            inside = values[(values >= low[at]) & (values <= high[at])] if declared[at] else values
            if not len(inside):
                raise ConfigError(
                    f"allowed and ranges leave no value for column {columns.describe(at)}: none of "
                    f"{listed(values.tolist())} is from {columns.shown(at, low[at])} to {columns.shown(at, high[at])}",
                    column=columns.attributes[at].name,
                )
            lists[at], low[at], high[at], declared[at] = inside, inside[0], inside[-1], True
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
            grid_of(features, columns, written, np.where(declared, [low, high], np.nan), lists),
            allowed,
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

    @property
    def ranged(self) -> bool:
        """Whether a number of a table that may change has the range of the training data, because none was given."""
        free = np.delete(~(self.fixed | self.declared), list(self.columns.categories))
        return len(self.columns.shape) == 1 and bool(free.any())

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
        bad = (x < lower) | (x > upper) | ((np.isnan(x) | fixed) & differs)
        if self.grid.stepped:
            bad |= differs & self.grid.misses(x)
        if self.grid.listed:
            bad |= self.grid.off_lists(x)
        for at in self.columns.categories:
            chosen = self.choices_of(at, original[:, at])[np.arange(len(x)), x[:, at].astype(int)]
            bad[:, at] = differs[:, at] & (self.fixed[at] | ~chosen)
            if at in self.allowed:
                bad[:, at] |= ~self.allowed[at][x[:, at].astype(int)]
        broken = bad.any(axis=1)
        return np.asarray(broken | ~self.related(x) if self.relations else broken)

    def related(self, x: Array) -> Array:
        """Which rows (n, A) satisfy every relation, in the numbers that their columns hold."""
        good = np.ones(len(x), dtype=bool)
        for each in self.columns.held if self.relations else ():
            x = np.where(each.where, each.rounded(x), x) if each.rounds else x
        for relation in self.relations:
            good &= relation(x)
        return good

    @cached_property
    def bounds_suffice(self) -> bool:
        """Whether bounds express every rule but `allowed` categories and steps, which decoding keeps."""
        return not (self.relations or self.grid.listed or self._directed)

    def permits(self, x: Array, original: Array) -> Array:
        """Which rows (n, A) keep the rules that bounds cannot express, as changes of `original`: (n,) bool."""
        good = self.related(x)
        if self.grid.listed:
            good &= ~self.grid.off_lists(x).any(axis=1)
        for at in self._directed:
            chosen = self.choices_of(at, original[:, at])[np.arange(len(x)), x[:, at].astype(int)]
            good &= chosen | (x[:, at] == original[:, at])
        return good

    @cached_property
    def _directed(self) -> list[int]:
        """The categories that may only rise or only fall."""
        return [at for at in self.columns.categories if self.is_directed(at)]

    def choices(self, at: int) -> Array:
        """The categories an attribute may change to: (K,) bool; none that the training data did not have."""
        attribute = self.columns.attributes[at]
        known = np.arange(len(attribute.levels)) < len(attribute.levels) - attribute.unknown
        return self.allowed.get(at, known)

    def choices_of(self, at: int, codes: Array) -> Array:
        """The categories that cells (...) of an attribute with these codes may change to: (..., K) bool."""
        choices, ranks = self.choices(at), self.columns.attributes[at].ranks
        if ranks is None or not self.is_directed(at):
            return np.broadcast_to(choices, (*codes.shape, len(choices)))
        own = ranks[codes.astype(int)][..., None]  # nothing compares with a missing value, which stays
        return np.asarray(choices & ((ranks >= own) if self.rising[at] else (ranks <= own)))

    def is_directed(self, at: int) -> bool:
        """Whether an attribute may only rise or only fall."""
        return bool(self.rising[at] or self.falling[at])

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
        grid = replace(self.grid, step=step, held=columns.held)
        return replace(self, columns=columns, grid=grid, allowed=allowed, relations=relations)


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


def _allowed(features: Features, columns: Columns) -> tuple[dict[int, Array], dict[int, Array]]:
    """By attribute: the allowed categories (K,) bool, and the allowed numbers, ascending."""
    found, lists = {}, {}
    for column, values in features.allowed.items():
        at = columns.find(column, "allowed")
        what = f"allowed[{column!r}]"
        if at not in columns.categories:
            lists[at] = np.unique([columns.number(at, value, what) for value in values]) + 0.0  # never -0.0
            _check_list(features, columns, at, lists[at])
            continue
        codes = [columns.code(at, value, what) for value in values]
        found[at] = np.isin(np.arange(len(columns.attributes[at].levels)), codes)
    return found, lists


def _check_list(features: Features, columns: Columns, at: int, values: Array) -> None:
    """A column of integers holds integers only, and a list says already which values there are."""
    name = columns.attributes[at].name
    if at in {columns.find(column, "step") for column in features.step}:
        raise ConfigError(
            f"allowed and step both name column {columns.describe(at)}; allowed alone says which values there are",
            column=name,
        )
    whole = columns.attributes[at].integer or at in {columns.find(column, "integer") for column in features.integer}
    if whole and (values % 1).any():
        raise ConfigError(
            f"allowed[{name!r}] has {values[values % 1 != 0][0]:g}, but {columns.describe(at)} holds integers",
            column=name,
        )
