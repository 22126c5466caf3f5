"""The trees of a model read once: their splits numbered, and where each column of the table meets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.helpers.trees import comparable
from cfproto_plugin.protocols import Array, TreeEnsemble
from cfproto_plugin.tables.cells import is_missing
from cfproto_plugin.tables.space import FeatureSpace


class Nodes(NamedTuple):
    """A tree as lists, which are walked faster than arrays node by node."""

    split: list[int]  # number of the split, -1 at a leaf
    left: list[int]
    right: list[int]
    value: Array  # (nodes, m)


class Reading:
    """The splits of an ensemble in terms of the columns of a table.

    A split is a column of the model, a threshold or a set of codes, and the side of missing values.
    """

    def __init__(self, ensemble: TreeEnsemble, space: FeatureSpace, names: tuple[str, ...] | None) -> None:
        self.ensemble, self.space = ensemble, space
        self._column_of = _model_columns(space, ensemble.n_columns, names)
        sizes = [len(tree.column) for tree in ensemble.trees]
        column, threshold, missing_left = (
            np.concatenate([np.asarray(part, dtype=kind) for part in parts])
            for parts, kind in zip(
                zip(*((t.column, t.threshold, t.missing_left) for t in ensemble.trees), strict=True),
                (int, float, float),
                strict=True,
            )
        )
        inner, self.code_sets, code_set = column >= 0, *_code_sets(ensemble, sizes)
        by_number = comparable(np.where(code_set < 0, threshold, 0.0)[inner], ensemble)
        keys = np.stack([column[inner], by_number, missing_left[inner] != 0, code_set[inner]], axis=1)
        splits, number = np.unique(keys, axis=0, return_inverse=True)
        self.column, self.threshold, self.missing_left = splits[:, 0].astype(int), splits[:, 1], splits[:, 2] != 0
        self.code_set = splits[:, 3].astype(int)  # number of the set of codes, -1 where a threshold splits
        split = np.full(len(column), -1)
        split[inner] = number.ravel()
        self.trees = [
            Nodes(part.tolist(), np.asarray(t.left).tolist(), np.asarray(t.right).tolist(), np.asarray(t.value))
            for part, t in zip(np.split(split, np.cumsum(sizes)[:-1]), ensemble.trees, strict=True)
        ]
        self._firsts: dict[int, Array] = {}

    def splits_of(self, at: int) -> Array:
        """The numbers (L,) of the splits of an attribute."""
        sources = self.space.columns.attributes[at].sources
        return np.flatnonzero(np.isin(self.column, [self._column_of[source] for source in sources]))

    def is_right(self, at: int, value: Array, splits: Array) -> Array:
        """Which values (K,) of an attribute, in the table, lie on the right of its splits (L,): (L, K) bool."""
        attribute, found = self.space.columns.attributes[at], np.zeros((len(splits), len(value)), dtype=bool)
        for source, cells in zip(attribute.sources, attribute.cells(value), strict=True):
            here = np.flatnonzero(self.column[splits] == self._column_of[source])
            if not len(here):
                continue
            with np.errstate(over="ignore"):
                cell = self._as_numbers(at, self._column_of[source], cells).astype(self.ensemble.dtype)
            missing = np.isnan(cell) | (cell == np.asarray(self.ensemble.missing, dtype=cell.dtype))
            threshold = self.threshold[splits[here]][:, None]
            right = cell > threshold if self.ensemble.equal_left else cell >= threshold
            for place in np.flatnonzero(self.code_set[splits[here]] >= 0):
                codes = self.code_sets[self.code_set[splits[here[place]]]]
                right[place] = np.isin(np.floor(cell), codes)
            found[here] = np.where(missing, ~self.missing_left[splits[here]][:, None], right)
        return found

    def intervals(self, at: int, lower: float, upper: float, apart: Sequence[float] = ()) -> tuple[Array, Array]:
        """The intervals between the splits of a number from lower to upper: their first and last floats, (m,) each.

        apart: values that are intervals of their own.
        """
        dtype = self.held(at)
        alone = np.asarray(apart, dtype=dtype)
        first = np.union1d(self.first_right(at), [*alone, *np.nextafter(alone, dtype.type(np.inf))])
        first = first[(first > lower) & (first <= upper)]
        last = np.nextafter(first.astype(dtype), dtype.type(-np.inf)).astype(float)
        return np.append(lower, first), np.append(last, upper)

    def first_right(self, at: int) -> Array:
        """(m,) for every split of a number the smallest value on its right that the column can hold, ascending."""
        if at not in self._firsts:
            splits = self.splits_of(at)
            held, compared = self.held(at), np.dtype(self.ensemble.dtype)
            by_code = self.code_set[splits] >= 0
            edge = self.threshold[splits[~by_code]].astype(compared)
            edge = edge[np.isfinite(edge)]
            if self.ensemble.equal_left:
                edge = np.nextafter(edge, compared.type(np.inf))
            codes = np.concatenate(
                [np.zeros(0, int), *(self.code_sets[each] for each in self.code_set[splits[by_code]])]
            )
            edge = np.append(edge, np.append(codes, codes + 1).astype(compared))
            if np.isfinite(self.ensemble.missing):  # a number of its own, with splits on both sides
                missing = compared.type(self.ensemble.missing)
                edge = np.append(edge, [missing, np.nextafter(missing, compared.type(np.inf))])
            self._firsts[at] = np.unique(_smallest(edge, held).astype(float))
        return self._firsts[at]

    def held(self, at: int) -> np.dtype[Any]:
        """The floats that the column holds."""
        for held in self.space.rules.grid.held:
            if held.is_float and held.where[at]:
                return held.dtype
        return np.dtype(np.float64)

    def _as_numbers(self, at: int, column: int, cells: Any) -> Array:
        """The numbers that the trees see for cells (K,) of an attribute in one of the model's columns."""
        known = (self.ensemble.categories or {}).get(column)
        if known is not None:
            codes = {cell: code for code, cell in enumerate(known)}
            return np.array([np.nan if is_missing(cell) else codes.get(cell, -1.0) for cell in cells], dtype=float)
        name, attribute = self.space.columns.describe(at), self.space.columns.attributes[at]
        words = attribute.levels is not None and not attribute.group and self.space.columns.names is not None
        if words and (self.code_set[self.column == column] >= 0).any():
            raise ConfigError(
                f"certify needs to know which category has which code; the model does not say it of {name}. Leave "
                "certify out, or train the model with XGBoost 3.1 or later",
                column=attribute.name,
            )
        try:
            return np.asarray(cells, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"certify needs columns that the trees split by number; {name} holds others. Leave certify out, or "
                "give the model numbers",
                column=attribute.name,
            ) from error


def _code_sets(ensemble: TreeEnsemble, sizes: list[int]) -> tuple[list[Array], Array]:
    """The sets of codes that go to the right somewhere, and by node of all trees the number of its set, or -1."""
    known: dict[tuple[int, ...], int] = {}
    number, start = np.full(sum(sizes), -1), 0
    for tree, size in zip(ensemble.trees, sizes, strict=True):
        for node, codes in (tree.right_codes or {}).items():
            number[start + node] = known.setdefault(tuple(sorted(map(int, codes))), len(known))
        start += size
    return [np.array(codes, dtype=int) for codes in known], number


def _smallest(edge: Array, held: np.dtype[Any]) -> Array:
    """The smallest floats (m,) of a dtype that are at least the edge (m,) when they are rounded to its dtype."""
    if held.itemsize <= edge.itemsize:
        near = edge.astype(held)
        return np.asarray(np.where(near < edge, np.nextafter(near, held.type(np.inf)), near))
    below = np.nextafter(edge, edge.dtype.type(-np.inf))
    middle = (below.astype(held) + edge.astype(held)) / 2
    above = np.nextafter(middle, held.type(np.inf))
    return np.asarray(np.where(middle.astype(edge.dtype) >= edge, middle, above))


def _model_columns(space: FeatureSpace, count: int, names: tuple[str, ...] | None) -> list[int]:
    """The model's column of each of the user's columns: by name where the model takes them so, else by place."""
    columns = space.columns
    own = list(map(str, columns.names or ()))
    total = int(np.prod(columns.shape))
    if total != count:
        raise ConfigError(
            f"certify needs a model whose trees split the columns of the table: they have {count} columns and the "
            f"table {total}. Leave certify out"
        )
    if names and set(own) == set(names):
        return [names.index(name) for name in own]
    return list(range(total))
