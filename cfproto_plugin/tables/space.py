"""Where the search moves: standardised numbers and embedded categories, beside the table of the user's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from cfproto_plugin.distances.binning import bin_context
from cfproto_plugin.errors import InputError
from cfproto_plugin.features import Column, Features
from cfproto_plugin.plugins import category_distances
from cfproto_plugin.protocols import Array, CategoryDistance
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.decimals import written_steps
from cfproto_plugin.tables.embedding import embed
from cfproto_plugin.tables.geometry import changed, clip, filled, middles, moments
from cfproto_plugin.tables.rules import Rules

_ROOM = 1e3  # leaves room for the sum of a million squares
_NOTICEABLE = 0.1 * (1 - 1e-9)  # standard deviations by which two numbers differ, less some rounding
_NEAR = 1e-3  # of the range: nearer to a category than this is as good as there


class Rows(NamedTuple):
    """Rows to explain and how far each of their cells may move, all (n, A) or (n, 1, A)."""

    table: Array  # their numbers and codes
    z: Array  # where they are in the search
    lower: Array  # bounds in the table; a category has none but its own code where it is fixed
    upper: Array
    z_lower: Array  # bounds in the search
    z_upper: Array

    def take(self, rows: Array) -> Rows:
        """A subset of the rows."""
        if len(rows) == len(self.table) == 1:
            return self
        return Rows._make([part.take(rows, axis=0) for part in self])

    def spread(self) -> Rows:
        """The rows (n, 1, A), for several points of each."""
        return Rows._make([part[:, None] for part in self])


@dataclass(frozen=True)
class FeatureSpace:
    """Three spaces and the way between them: the user's columns, the table of values, and the search.

    z = weight · (x - offset) / factor for numbers, weight · embedding[code] for categories.
    """

    columns: Columns
    rules: Rules
    offset: Array
    factor: Array
    embeddings: Mapping[int, Array]
    weights: Array  # (A,) what the user said that a change of a column counts
    deviation: Array  # (A,) standard deviations of the training data; 0 for a column that never varies
    written: Array | None = None  # (A,) the steps that training data is written in, where changed values follow them

    @classmethod
    def numeric(cls, columns: Columns, train: Array, features: Features, *, scale: bool) -> FeatureSpace:
        """The space of the numbers; `embedded` adds the categories."""
        rules = Rules.of(features, columns, train)
        known, _ = filled(train)
        mean, deviation = moments(known)
        centre, spread = (mean, deviation) if scale else (mean, np.ones(train.shape[1]))
        if scale and features.scale == "minmax":
            centre, spread = middles(known)
        weights = _weights(columns, features.weights)
        is_centred = scale or np.isnan(train).any()
        return cls(
            columns,
            rules,
            centre if is_centred else np.zeros(train.shape[1]),
            np.where(spread > 0, spread, 1.0) / weights,
            {},
            weights,
            deviation,
        )

    def embedded(self, train: Array, labels: Array, distance: CategoryDistance, features: Features) -> FeatureSpace:
        """Add the categories: pairwise distances, scaled to one number each like the columns of numbers."""
        places = list(self.columns.categories)
        if not places:
            return self
        codes = train[:, places].astype(int)
        sizes = [len(self.columns.attributes[at].levels) for at in places]
        numbers = np.delete(train, places, axis=1)
        weights = _weights(self.columns, features.weights)
        distances = category_distances(distance, codes, sizes, bin_context(numbers), labels)
        found = {}
        for column, (at, size) in enumerate(zip(places, sizes, strict=True)):
            counts = np.bincount(codes[:, column], minlength=size)
            scaling: Literal["minmax", "standard"] = "minmax" if features.scale == "minmax" else "standard"
            found[at] = weights[at] * embed([distances[column]], scaling=scaling, counts=[counts])[0]
        return replace(self, embeddings=found)

    def readable(self, train: Array, features: Features) -> FeatureSpace:
        """The same for changed values that are written as the training data is."""
        numbers = np.array([a.levels is None and a.dates is None for a in self.columns.attributes])
        written = written_steps(train, numbers, self.columns.held)
        return replace(self, written=written, rules=Rules.of(features, self.columns, train, written))

    def with_rules(self, features: Features, train: Array) -> FeatureSpace:
        """The same space under other rules."""
        return replace(self, rules=Rules.of(features, self.columns, train, self.written))

    def on(self, columns: Columns) -> FeatureSpace:
        """The same space for rows that hold the columns in other dtypes, or hold further categories.

        A category that the training data did not have stands at the mean of its column, off all others.
        """
        if columns is self.columns:
            return self
        embeddings = {
            at: np.append(known, np.full(columns.attributes[at].unknown, _off(known)))
            for at, known in self.embeddings.items()
        }
        return replace(self, columns=columns, rules=self.rules.on(columns), embeddings=embeddings)

    @cached_property
    def is_identity(self) -> bool:
        """Whether the search moves in the table itself."""
        return not self.embeddings and not self.offset.any() and bool((self.factor == 1).all())

    @cached_property
    def rounds(self) -> bool:
        """Whether decoding lands elsewhere than the point it was given."""
        return bool(self.embeddings) or self.rules.grid.rounds

    @cached_property
    def is_coarse(self) -> bool:
        """Whether it may land farther off than the last decimal that values are written with."""
        return bool(self.embeddings) or self.rules.grid.is_coarse

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row in the search: that of the user's where there are no categories."""
        return self.columns.shape if self.columns.plain else (len(self.columns.attributes),)

    def without_place(self, x: Array) -> dict[int, InputError]:
        """Rows (n, A) that have no place in the search, and why."""
        found: dict[int, InputError] = {}

        def note(cells: Array, why: str) -> None:
            for row, at in zip(*(part.tolist() for part in cells.nonzero()), strict=True):
                cell = "NaN" if np.isnan(x[row, at]) else x[row, at]
                text = f"row {row} is {cell} in column {self.columns.describe(at)}, {why}"
                found.setdefault(row, InputError(text, row=row, column=self.columns.attributes[at].name))

        if self.is_identity:
            why = "and neither missing training values nor scaling give it a place in the search."
            note(np.isnan(x), f"{why} Fill it in, or use Features(scale='auto').")
        with np.errstate(over="ignore"):
            far = np.abs(self.to_search(x)) > np.sqrt(np.finfo(x.dtype).max) / _ROOM
        note(far, "so far from the training data that its distance to other rows cannot be computed.")
        return found

    def rows(self, x: Array) -> Rows:
        """Attach the bounds to rows of the table."""
        lower, upper = self.rules.bounds(x)
        z = self.to_search(x)
        z_lower, z_upper = self.to_search(lower), self.to_search(upper)
        if np.isnan(x).any():  # a missing value may stay so, wherever the range lies
            z_lower, z_upper = (
                np.where(np.isnan(x), side(bound, z), bound)
                for side, bound in ((np.minimum, z_lower), (np.maximum, z_upper))
            )
        for at, embedding in self.embeddings.items():
            alike = not self.rules.is_directed(at)  # the same for every row
            choices = self.rules.choices_of(at, x[:1, at] if alike else x[:, at])
            least = np.where(choices, embedding, np.inf).min(axis=1)
            most = np.where(choices, embedding, -np.inf).max(axis=1)
            fixed = self.rules.fixed[at]
            keeps = self.rules.keepable(at)[x[:, at].astype(int)] | ~choices.any(axis=1)
            z_lower[:, at] = z[:, at] if fixed else np.where(keeps, np.minimum(least, z[:, at]), least)
            z_upper[:, at] = z[:, at] if fixed else np.where(keeps, np.maximum(most, z[:, at]), most)
            lower[:, at] = x[:, at] if fixed else 0
            upper[:, at] = x[:, at] if fixed else len(embedding) - 1
        return Rows(x, z, lower, upper, z_lower, z_upper)

    def to_search(self, x: Array) -> Array:
        """Where rows of the table are in the search; a missing number stands at the mean."""
        if self.is_identity:
            return x
        z = (x - self.offset.astype(x.dtype, copy=False)) / self.factor.astype(x.dtype, copy=False)
        missing = np.isnan(z)
        if np.count_nonzero(missing):
            z[missing] = 0
        for at, embedding in self.embeddings.items():
            code = np.nan_to_num(x[..., at]).astype(int).clip(0, len(embedding) - 1)
            z[..., at] = embedding[code]
        return np.asarray(z)

    def decode(self, z: Array, rows: Rows) -> Array:
        """Search points (..., A) inside z_lower and z_upper as rows of the table; what did not move is the original."""
        if self.is_identity and not self.rounds:
            return z.astype(rows.table.dtype, copy=False)
        factor, offset = (part.astype(z.dtype, copy=False) for part in (self.factor, self.offset))
        x = z if self.is_identity else z * factor + offset
        x = clip(x, rows.lower, rows.upper)
        if self.rules.grid.rounds:
            x = self.rules.grid.snap_inside(x, rows.lower, rows.upper, rows.table)
        moved = (z != rows.z) | (rows.table < rows.lower) | (rows.table > rows.upper)
        if self.rules.grid.listed:
            moved |= self.rules.grid.off_lists(rows.table)
        for at, embedding in self.embeddings.items():
            if self.rules.is_directed(at):
                x[..., at] = nearest_of(z[..., at], embedding, self.rules.choices_of(at, rows.table[..., at]))
            else:
                x[..., at] = nearest_category(z[..., at], embedding, self.rules.choices(at))
            moved[..., at] |= ~self.rules.keepable(at)[rows.table[..., at].astype(int)]
        x = x.astype(rows.table.dtype, copy=False)
        return np.asarray(np.where(moved & (x != rows.table), x, rows.table))  # the row's own 0.0 or -0.0

    def differ(self, x: Array, other: Array, original: Array, *, by_value: bool = False) -> Array:
        """Which of the counterfactuals x and other (n, A) of the same rows differ: (n,) bool.

        They change other columns, or have another category, or a number at least a tenth of a standard deviation away.
        by_value: the columns are not looked at, nor are they in images, where any pixel may change a little.
        """
        found = changed(x, other) & ~(np.abs(x - other) < self._noticeable)
        if not by_value and len(self.shape) == 1:
            found |= changed(x, original) != changed(other, original)
        return np.asarray(found.any(axis=1))

    @cached_property
    def _noticeable(self) -> Array:
        """(A,) the least difference of two numbers that counts; 0 for categories. All pixels share theirs."""
        least = self.deviation if len(self.shape) == 1 else np.full_like(self.deviation, _rms(self.deviation))
        least = _NOTICEABLE * least
        least[list(self.embeddings)] = 0
        return least

    def may_stay(self, rows: Rows) -> Array:
        """(n, A) bool: the cells of the rows that keep the rules as they are."""
        stays = ~((rows.table < rows.lower) | (rows.table > rows.upper) | self.rules.grid.off_lists(rows.table))
        for at in self.embeddings:
            stays[:, at] = self.rules.keepable(at)[rows.table[:, at].astype(int)]
        return np.asarray(stays)

    def broken(self, x: Array, rows: Rows) -> Array:
        """Which counterfactuals break a rule: (n,) bool."""
        return self.rules.broken(x, rows.table, rows.lower, rows.upper)


def nearest_category(z: Array, embedding: Array, choices: Array) -> Array:
    """The code of the chosen category whose number is nearest to z."""
    codes = np.flatnonzero(choices)
    codes = codes[np.argsort(embedding[codes], kind="stable")]
    values = embedding[codes]
    return codes[np.searchsorted((values[1:] + values[:-1]) / 2, z)]


def nearest_of(z: Array, embedding: Array, choices: Array) -> Array:
    """Likewise for cells (...) with choices (..., K) of their own; for a cell without any, the nearest of all."""
    gap = np.abs(z[..., None] - embedding)
    return np.asarray(np.where(choices | ~choices.any(axis=-1, keepdims=True), gap, np.inf).argmin(axis=-1))


def _rms(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _off(known: Array) -> float:
    """The mean of the numbers (K,) of categories, 0, or a place near it that none of them has."""
    values = np.unique(known)
    if np.abs(values).min() > _NEAR * max(float(np.ptp(values)), 1.0):
        return 0.0
    gaps = np.diff(values)
    if not len(gaps):
        return float(values[0] + 1)
    widest = int(gaps.argmax())
    return float(values[widest] + gaps[widest] / 2)


def _weights(columns: Columns, given: Mapping[Column, float]) -> Array:
    weights = np.ones(len(columns.attributes))
    for column, weight in given.items():
        weights[columns.find(column, "weights")] = weight
    return weights


def keep_largest(z: Array, z0: Array, most: int) -> Array:
    """Search points with all but the largest `most` changes taken back."""
    if most >= z.shape[-1]:
        return z
    order = np.argsort(-np.abs(z - z0), axis=-1, kind="stable")
    kept = np.zeros(z.shape, dtype=bool)
    np.put_along_axis(kept, order[..., :most], values=True, axis=-1)
    return np.asarray(np.where(kept, z, z0))
