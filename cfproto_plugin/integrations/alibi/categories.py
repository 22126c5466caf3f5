"""Categorical columns as numbers in which the search can move, and back.

`cat_vars` says where they are: {column: number of categories}, with codes 0, 1, ... in one column each, or one-hot
encoded (`ohe`) in that many columns from that one on. Either way the search has one column for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfproto_plugin.checks import as_plain, is_count, shown
from cfproto_plugin.distances import ABDM, MVDM, bin_context
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.embedding import embed

_TYPES = ("abdm", "mvdm", "abdm-mvdm")


@dataclass(frozen=True)
class Layout:
    """Where the categories of a table are. sizes: categories of each categorical column, by its ordinal position.

    starts: the first column of the user's rows for each column of the ordinal table. width: columns of the user's rows.
    """

    sizes: dict[int, int]
    starts: tuple[int, ...]
    width: int
    ohe: bool

    @classmethod
    def of(cls, cat_vars: Any, shape: tuple[int, ...], *, ohe: bool) -> Layout:
        """The layout of rows of that shape; ConfigError if cat_vars does not fit them."""
        if len(shape) != 1:
            raise ConfigError(f"cat_vars are for tables; rows of shape {shape} are not one")
        given = _checked(cat_vars, shape[0], ohe=ohe)
        sizes: dict[int, int] = {}
        starts: list[int] = []
        column = 0
        while column < shape[0]:
            starts.append(column)
            if column in given:
                sizes[len(starts) - 1] = given[column]
            column += given[column] if ohe and column in given else 1
        return cls(sizes, tuple(starts), shape[0], ohe)

    @property
    def numeric(self) -> list[int]:
        """The ordinal positions of the other columns."""
        return [column for column in range(len(self.starts)) if column not in self.sizes]

    def to_ordinal(self, rows: Array) -> Array:
        """Rows (n, width) as codes and numbers (n, C)."""
        if not self.ohe:
            return np.array(rows)
        found = np.array(rows[:, list(self.starts)])
        for column, size in self.sizes.items():
            first = self.starts[column]
            found[:, column] = rows[:, first : first + size].argmax(axis=1)
        return found

    def to_rows(self, ordinal: Array) -> Array:
        """Codes and numbers (n, C) as rows (n, width)."""
        if not self.ohe:
            return ordinal
        rows = np.zeros((len(ordinal), self.width), dtype=ordinal.dtype)
        rows[:, [self.starts[column] for column in self.numeric]] = ordinal[:, self.numeric]
        for column in self.sizes:
            rows[np.arange(len(rows)), self.starts[column] + ordinal[:, column].astype(int)] = 1
        return rows

    def check(self, rows: Array, what: str) -> None:
        """Refuse rows (n, width) with codes that are none, or groups that are not one-hot."""
        for column, size in self.sizes.items():
            first = self.starts[column]
            group = rows[:, first : first + size] if self.ohe else rows[:, [first]]
            if self.ohe:
                good = ((group == 0) | (group == 1)).all(axis=1) & (group.sum(axis=1) == 1)
                expected = f"one 1 and otherwise 0 in its {size} columns"
            else:
                good = np.isin(group[:, 0], np.arange(size))
                expected = f"a code from 0 to {size - 1}"
            if not good.all():
                row = int(good.argmin())
                raise InputError(
                    f"column {first} of {what}, row {row}, holds {group[row].tolist()}; expected {expected}, as "
                    "cat_vars says",
                    row=row,
                    column=first,
                )

    def bounds(self, bound: Any) -> Any:
        """One bound of feature_range for the ordinal table, if it was given for one-hot rows."""
        found = np.asarray(bound)
        if self.ohe and found.shape in {(self.width,), (1, self.width)} and self.width != len(self.starts):
            return found.reshape(-1)[list(self.starts)]
        return bound


@dataclass(frozen=True)
class Categories:
    """The numbers of the categories. values: by ordinal column, one for each category."""

    layout: Layout
    values: dict[int, Array]

    def encode(self, rows: Array) -> Array:
        """The user's rows (n, width) as points (n, C)."""
        z = self.layout.to_ordinal(rows)
        for column, values in self.values.items():
            z[:, column] = values[z[:, column].astype(int)]
        return z

    def decode(self, z: Array) -> Array:
        """Points (n, C) as rows, every category that of the nearest number."""
        ordinal = z.copy()
        for column, values in self.values.items():
            ordinal[:, column] = np.abs(z[:, [column]] - values).argmin(axis=1)
        return self.layout.to_rows(ordinal)

    def nearest(self, z: Array) -> Array:
        """Points (n, C) with every category at its number."""
        return self.encode(self.decode(z))


@dataclass(frozen=True)
class Measure:
    """How numbers are made of categories: the arguments of `fit`, checked."""

    d_type: str = "abdm"
    w: float | None = None
    disc_perc: Sequence[float] = (25, 50, 75)
    standardize: bool = False
    smooth: float = 1.0
    center: bool = True

    def __post_init__(self) -> None:
        if self.d_type not in _TYPES:
            raise ConfigError(f"d_type is {shown(self.d_type)}; expected one of {', '.join(map(repr, _TYPES))}")
        if self.d_type == "abdm-mvdm" and (self.w is None or not 0 <= self.w <= 1):
            raise ConfigError(f"w is {shown(self.w)}; d_type='abdm-mvdm' needs the weight of abdm, from 0 to 1")
        if not 0 < self.smooth <= 1:
            raise ConfigError(f"smooth is {shown(self.smooth)}; expected an exponent above 0 and at most 1")

    def values(self, layout: Layout, ordinal: Array, labels: Array, bounds: tuple[Array, Array]) -> dict[int, Array]:
        """One number for each category. ordinal (n, C) training rows, labels (n,), bounds (C,) of the search."""
        columns = list(layout.sizes)
        codes = ordinal[:, columns].astype(int)
        context = bin_context(ordinal[:, layout.numeric], self.disc_perc)
        parts = {
            "abdm": lambda: self._units(ABDM()(codes, list(layout.sizes.values()), context, labels)),
            "mvdm": lambda: self._units(MVDM()(codes, list(layout.sizes.values()), context, labels)),
        }
        found: dict[int, Array] = {}
        chosen = [parts[name]() for name in self.d_type.split("-")]
        for number, column in enumerate(columns):
            low, high = bounds[0][column], bounds[1][column]
            scaled = [self._placed(units[number], low, high) for units in chosen]
            weight = 1.0 if self.w is None or len(scaled) == 1 else self.w
            mixed = scaled[0] if len(scaled) == 1 else weight * scaled[0] + (1 - weight) * scaled[1]
            found[column] = self._finished(mixed).astype(np.float32)
        return found

    def _units(self, distances: list[Array]) -> list[Array]:
        """Numbers of every column, the widest from -1/2 to 1/2."""
        return embed([distance**self.smooth for distance in distances], span=(-0.5, 0.5))

    def _placed(self, unit: Array, low: float, high: float) -> Array:
        """Scaled to the range of the column: from its lower end on if not centred."""
        return unit * (high - low) if self.center else (unit - unit.min()) * (high - low) + low

    def _finished(self, values: Array) -> Array:
        if self.center:
            values = values - (values.max() + values.min()) / 2
        if self.standardize:
            values = (values - values.mean()) / (values.std() or 1.0)
        return values


def ord_to_ohe(X_ord: Any, cat_vars_ord: Mapping[int, int]) -> tuple[Array, dict[int, int]]:  # noqa: N803 alibi's name
    """Codes to one-hot columns: the rows, and cat_vars for them."""
    rows = np.asarray(X_ord)
    given = _checked(cat_vars_ord, rows.shape[1], ohe=False)
    Layout.of(given, rows.shape[1:], ohe=False).check(rows, "X_ord")
    starts, column = {}, 0
    parts = []
    for number in range(rows.shape[1]):
        size = given.get(number)
        if size is not None:
            starts[column] = size
        parts.append(rows[:, [number]] if size is None else np.eye(size, dtype=rows.dtype)[rows[:, number].astype(int)])
        column += size or 1
    return np.concatenate(parts, axis=1), starts


def ohe_to_ord(X_ohe: Any, cat_vars_ohe: Mapping[int, int]) -> tuple[Array, dict[int, int]]:  # noqa: N803 alibi's name
    """One-hot columns to codes: the rows, and cat_vars for them."""
    rows = np.asarray(X_ohe)
    layout = Layout.of(cat_vars_ohe, rows.shape[1:], ohe=True)
    return layout.to_ordinal(rows), dict(layout.sizes)


def _checked(cat_vars: Any, width: int, *, ohe: bool) -> dict[int, int]:
    """cat_vars as plain numbers, by column in order."""
    if not isinstance(cat_vars, Mapping) or not cat_vars:
        raise ConfigError(f"cat_vars is {shown(cat_vars)}; expected a dict of column to number of categories: {{0: 4}}")
    found = {as_plain(column): as_plain(size) for column, size in cat_vars.items()}
    for column, size in found.items():
        if not is_count(column, 0) or not is_count(size):
            raise ConfigError(
                f"cat_vars has {shown(column)}: {shown(size)}; expected the number of a column and how many "
                "categories it has"
            )
    end = 0
    for column in sorted(found):
        last = column + (found[column] if ohe else 1)
        if column < end or last > width:
            raise ConfigError(
                f"cat_vars has {column}: {found[column]}, columns {column} to {last - 1} of rows with {width}"
                + (" that another entry has too" if column < end else "")
                + (". With ohe=True a key is the first one-hot column of a variable" if ohe else "")
            )
        end = last
    return {column: found[column] for column in sorted(found)}
