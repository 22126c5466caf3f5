"""Where the search moves: standardised numbers and embedded categories, beside the table of the user's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cfproto_plugin.distances.binning import bin_context
from cfproto_plugin.errors import InputError
from cfproto_plugin.features import Column, Features
from cfproto_plugin.plugins import category_distances
from cfproto_plugin.protocols import Array, CategoryDistance
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.embedding import embed
from cfproto_plugin.tables.geometry import clip
from cfproto_plugin.tables.rules import Rules


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
        return Rows._make([part[rows] for part in self])

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

    @classmethod
    def numeric(cls, columns: Columns, train: Array, features: Features, *, scale: bool) -> FeatureSpace:
        """The space of the numbers; `embedded` adds the categories."""
        empty = np.isnan(train).all(axis=0)
        if empty.any():
            at = int(empty.argmax())
            raise InputError(
                f"column {columns.describe(at)} of the training data has no value at all",
                column=columns.attributes[at].name,
            )
        rules = Rules.of(features, columns, train)
        spread = np.nanstd(train, axis=0) if scale else np.ones(train.shape[1])
        weights = _weights(columns, features.weights)
        centre = scale or np.isnan(train).any()
        return cls(
            columns,
            rules,
            np.nanmean(train, axis=0) if centre else np.zeros(train.shape[1]),
            np.where(spread > 0, spread, 1.0) / weights,
            {},
        )

    def embedded(self, train: Array, labels: Array, distance: CategoryDistance, features: Features) -> FeatureSpace:
        """Add the categories: pairwise distances, scaled to one number each with mean 0 and deviation 1."""
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
            found[at] = weights[at] * embed([distances[column]], scaling="standard", counts=[counts])[0]
        return replace(self, embeddings=found)

    def with_rules(self, features: Features, train: Array) -> FeatureSpace:
        """The same space under other rules."""
        return replace(self, rules=Rules.of(features, self.columns, train))

    @cached_property
    def is_identity(self) -> bool:
        """Whether the search moves in the table itself."""
        return not self.embeddings and not self.offset.any() and bool((self.factor == 1).all())

    @cached_property
    def rounds(self) -> bool:
        """Whether decoding lands elsewhere than the point it was given."""
        return bool(self.embeddings) or self.rules.grid.rounds

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row in the search: that of the user's where there are no categories."""
        return self.columns.shape if self.columns.plain else (len(self.columns.attributes),)

    def rows(self, x: Array) -> Rows:
        """Attach the bounds to rows of the table."""
        if self.is_identity and np.isnan(x).any():
            row, at = np.argwhere(np.isnan(x))[0].tolist()
            raise InputError(
                f"row {row} is NaN in column {self.columns.describe(at)}, and neither missing training values nor "
                "scaling give it a place in the search. Fill it in, or use Features(scale='auto').",
                row=row,
                column=self.columns.attributes[at].name,
            )
        lower, upper = self.rules.bounds(x)
        z = self.to_search(x)
        z_lower, z_upper = self.to_search(lower), self.to_search(upper)
        for at, embedding in self.embeddings.items():
            choice = embedding[self.rules.choices(at)]
            fixed = self.rules.fixed[at]
            z_lower[:, at] = z[:, at] if fixed else choice.min()
            z_upper[:, at] = z[:, at] if fixed else choice.max()
            lower[:, at] = x[:, at] if fixed else 0
            upper[:, at] = x[:, at] if fixed else len(embedding) - 1
        return Rows(x, z, lower, upper, z_lower, z_upper)

    def to_search(self, x: Array) -> Array:
        """Where rows of the table are in the search; a missing number stands at the mean."""
        if self.is_identity:
            return x
        z = (x - self.offset.astype(x.dtype, copy=False)) / self.factor.astype(x.dtype, copy=False)
        z = np.where(np.isnan(z), 0, z)
        for at, embedding in self.embeddings.items():
            code = np.nan_to_num(x[..., at]).astype(int).clip(0, len(embedding) - 1)
            z[..., at] = embedding[code]
        return z

    def decode(self, z: Array, rows: Rows) -> Array:
        """Search points (..., A) inside z_lower and z_upper as rows of the table; what did not move is the original."""
        if self.is_identity and not self.rounds:
            return z
        x = z if self.is_identity else z * self.factor.astype(z.dtype) + self.offset.astype(z.dtype)
        x = clip(x, rows.lower, rows.upper)
        if self.rules.grid.rounds:
            x = self.rules.grid.snap_inside(x, rows.lower, rows.upper, rows.table)
        moved = (z != rows.z) | (rows.table < rows.lower) | (rows.table > rows.upper)
        for at, embedding in self.embeddings.items():
            choices = self.rules.choices(at)
            x[..., at] = nearest_category(z[..., at], embedding, choices)
            moved[..., at] |= ~choices[rows.table[..., at].astype(int)]
        return np.asarray(np.where(moved, x, rows.table))

    def broken(self, x: Array, rows: Rows) -> Array:
        """Which counterfactuals break a rule: (n,) bool."""
        return self.rules.broken(x, rows.table, rows.lower, rows.upper)


def nearest_category(z: Array, embedding: Array, choices: Array) -> Array:
    """The code of the chosen category whose number is nearest to z."""
    codes = np.flatnonzero(choices)
    codes = codes[np.argsort(embedding[codes], kind="stable")]
    values = embedding[codes]
    return codes[np.searchsorted((values[1:] + values[:-1]) / 2, z)]


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
