"""What the columns of the training data are: numbers, categories, or groups of one-hot columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Column, Features
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import (
    as_floats,
    categories,
    cells_of,
    column_of,
    is_category,
    is_missing,
    listed,
    number_dtype,
)
from cfproto_plugin.tables.dates import Dates, is_date


@dataclass(frozen=True)
class Attribute:
    """One column of the table: a number, a category in a column of its own, or a category in a group of columns."""

    name: Any
    sources: tuple[int, ...]  # the user's columns
    levels: Any = None  # the categories in the order of their codes, None for a number
    integer: bool = False  # the dtype of the column holds integers only
    group: bool = False  # a one-hot group; one category may have no column, its level is None
    dates: Dates | None = None  # a number of days, which the user's column holds as a date or a duration
    order: tuple[Any, ...] | None = None  # the categories in the order that the dtype of the column gives them
    unknown: int = 0  # how many levels at the end are not from the training data: a row may keep one, never take it

    @cached_property
    def ranks(self) -> Array | None:
        """(K,) the place of every level in the order; NaN for one that has none. None without an order."""
        if self.order is None:
            return None
        known = {level: float(place) for place, level in enumerate(self.order)}
        return np.array([np.nan if is_missing(level) else known.get(level, np.nan) for level in self.levels])

    @property
    def dropped(self) -> int:
        """How many levels of a group have no column: 1 or 0."""
        return len(self.levels) - len(self.sources)

    def with_unknown(self, values: Sequence[Any]) -> Attribute:
        """The same with further categories, which the training data did not have."""
        numbers = isinstance(self.levels, np.ndarray) and self.levels.dtype.kind in "iufb"
        if numbers and np.asarray(values).dtype.kind in "iufb":
            return replace(self, levels=np.append(self.levels, np.asarray(values)), unknown=len(values))
        levels = np.empty(len(self.levels) + len(values), dtype=object)
        for code, level in enumerate([*self.levels, *values]):
            levels[code] = level
        return replace(self, levels=levels, unknown=len(values))

    def cells(self, part: Array) -> list[Any]:
        """What the user's columns hold for a column of the table."""
        if self.dates is not None:
            return [self.dates.cells(part)]
        if self.levels is None:
            return [part]
        if not self.group:
            return [cells_of(part, self.levels)]
        return [np.where(np.isnan(part), np.nan, part == at + self.dropped) for at in range(len(self.sources))]


def position(column: Column, names: tuple[Any, ...] | None, count: int, rule: str) -> int:
    """The place of a column among the user's."""
    if names is not None and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and -count <= column < count:
        return int(column) % count
    known = listed(names) if names is not None else f"0 to {count - 1}"
    raise ConfigError(
        f"{rule} names column {column!r}, which is not there.{did_you_mean(column, names or ())} There are: {known}",
        column=column,
    )


def attributes_of(raw: Any, names: tuple[Any, ...] | None, features: Features) -> tuple[Attribute, ...]:
    """Numbers and categories in the order of the user's columns; a group stands where its first column stood."""
    count = int(np.prod(raw.shape[1:]))
    categorical = {position(column, names, count, "categorical") for column in features.categorical}
    groups = {
        name: tuple(position(column, names, count, f"one_hot[{name!r}]") for column in columns)
        for name, columns in features.one_hot.items()
    }
    grouped = {at: name for name, columns in groups.items() for at in columns}
    if len(grouped) < sum(map(len, groups.values())) or categorical & set(grouped):
        raise ConfigError(
            f"a column belongs to two groups of one_hot, or to one and to categorical: {features.one_hot}"
        )
    found = []
    for at in range(count):
        if at in grouped:
            if groups[grouped[at]][0] == at:
                found.append(_one_hot(raw, names, grouped[at], groups[grouped[at]]))
            continue
        name = names[at] if names is not None else at
        dtype = raw.dtypes.iloc[at] if names is not None else raw.dtype
        if names is not None and is_date(dtype) and at not in categorical:
            found.append(Attribute(name, (at,), dates=Dates.of(column_of(raw, at))))
        elif at in categorical or (names is not None and is_category(dtype)):
            order = tuple(dtype.categories) if getattr(dtype, "ordered", False) else None
            found.append(Attribute(name, (at,), categories(column_of(raw, at), name), order=order))
        else:
            found.append(Attribute(name, (at,), integer=holds_integers(dtype)))
    return tuple(found)


def _one_hot(raw: Any, names: tuple[Any, ...] | None, name: Any, columns: tuple[int, ...]) -> Attribute:
    ones = np.stack([as_floats(column_of(raw, at))[0] for at in columns], axis=1)
    dropped = bool((ones.sum(axis=1) == 0).any())
    labels = [names[at] if names is not None else at for at in columns]
    levels = np.full(len(labels) + dropped, None, dtype=object)
    levels[dropped:] = labels  # the dropped level is the first, as encoders drop it: same codes, same embedding
    return Attribute(name, columns, levels, group=True)


def holds_integers(dtype: Any) -> bool:
    """Whether a column of numbers of this dtype holds whole numbers only; truth values are 0 and 1."""
    found = number_dtype(dtype)
    return found is not None and found.kind in "iub"


def check_dtypes(raw: Any, names: tuple[Any, ...] | None) -> None:
    """Refuse what is neither numbers nor categories: complex numbers, records, arrays of dates or durations.

    Arrow's dictionaries in pandas as well: pandas loses missing values when a cell of such a column changes.
    """
    for name, dtype in [(None, raw.dtype)] if names is None else raw.dtypes.items():
        kind, where = getattr(dtype, "kind", "O"), "the array" if names is None else f"column {name!r}"
        if kind in ("cmMV" if names is None else "cV"):
            better = "" if kind in "cV" else ", or make it a column of a DataFrame"
            raise InputError(f"{where} holds {dtype}; turn it into numbers or categories first{better}", column=name)
        if str(getattr(dtype, "pyarrow_dtype", "")).startswith("dictionary"):
            raise InputError(
                f"{where} holds {dtype}, whose cells pandas cannot sort or change; make it a category first: "
                f'astype({{{name!r}: "category"}})',
                column=name,
            )


def check_unique(names: Sequence[Any], what: str) -> None:
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InputError(f"{what} has two columns {twice[0]!r}; expected every name once", column=twice[0])
    texts: dict[str, Any] = {}
    for name in names:
        other = texts.setdefault(str(name), name)
        if other is not name:
            raise InputError(
                f"{what} has the columns {other!r} and {name!r}, which read the same in reports; rename one of them",
                column=name,
            )
