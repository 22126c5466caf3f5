"""What the user says about the columns: which may change, and how far."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

import numpy as np

from cfproto_plugin.checks import as_items, as_plain, is_count, is_number, shown
from cfproto_plugin.errors import ConfigError

Column = str | int


@dataclass(frozen=True)
class Features:
    """Rules about the columns, by name or index. They hold on every counterfactual that is returned.

    Where columns or relations are expected, a single one may be given as it is: immutable="age".

    categorical: columns whose values have no order (string, category and boolean columns of a DataFrame are
        recognised). one_hot: groups of columns that encode one category; one level may have been dropped.
    immutable: must keep their value. vary: only these may change. increasing, decreasing: numbers and ordered
        categories that may only change in that direction; a missing value, which cannot be compared, stays missing.
    ranges: lowest and highest value of a column, numbers or dates; they bind the counterfactual even where the row
        itself lies outside. Without a range a column stays between the smallest and the largest value of the training
        data and the row. A range binds numbers: a missing value may stay missing, or become a number inside it.
    allowed: the categories, or the numbers, that a column may take; they bind like ranges.
    integer: columns of whole numbers (integers by their dtype are recognised). step: a changed value is a
        multiple of it. decimals: with how many decimals changed values are written: {"age": 0, "income": -2}, one
        number for all columns, or "auto" for as many as the training data has, if these are at most six; where it has
        more, as few as class and rules allow. None writes all digits.
    weights: 3.0 makes every change of the column count as three times as long.
    relations: what must hold between columns: expressions such as "a <= b", "0 <= a <= 3", "a + b <= 2*c" or
        "sex == 'Male'", or functions of the rows (a DataFrame or an array) that return one truth value per row. Names
        with signs or blanks can be put in backquotes, columns without a name are x0, x1, ...
    scale: "auto" standardises the columns of tables for the search, numbers and embedded categories alike (not images,
        not with an encoder); "minmax" lets them run from -1 to 1 in the training data instead; None leaves the numbers.
    """

    categorical: Sequence[Column] = ()
    one_hot: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    immutable: Sequence[Column] = ()
    vary: Sequence[Column] | None = None
    increasing: Sequence[Column] = ()
    decreasing: Sequence[Column] = ()
    ranges: Mapping[Column, tuple[Any, Any]] = field(default_factory=dict)
    allowed: Mapping[Column, Sequence[Any]] = field(default_factory=dict)
    integer: Sequence[Column] = ()
    step: Mapping[Column, float] = field(default_factory=dict)
    weights: Mapping[Column, float] = field(default_factory=dict)
    decimals: Literal["auto"] | int | Mapping[Column, int] | None = "auto"
    relations: Sequence[str | Callable[[Any], Any]] = ()
    scale: Literal["auto", "minmax"] | None = "auto"

    def __post_init__(self) -> None:
        if not (self.scale is None or (isinstance(self.scale, str) and self.scale in _SCALES)):
            raise ConfigError(f"scale is {shown(self.scale)}; expected 'auto', 'minmax' or None")
        for name in _COLUMNS:
            object.__setattr__(self, name, _columns(getattr(self, name), name))
        if self.vary is not None:
            object.__setattr__(self, "vary", _columns(self.vary, "vary"))
            if not self.vary:
                raise ConfigError("vary is empty, so that nothing could change; expected columns, or None for all")
        object.__setattr__(self, "relations", _relations(self.relations))
        object.__setattr__(self, "decimals", _decimals(self.decimals))
        for name, (check, example) in _MAPPINGS.items():
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise ConfigError(f"{name} is {shown(given)}; expected a dict such as {example}")
            checked = {as_plain(key): check(value, f"{name}[{key!r}]") for key, value in given.items()}
            object.__setattr__(self, name, checked)
        both = [column for column in self.increasing if column in self.decreasing]
        if both:
            raise ConfigError(
                f"increasing and decreasing both name column {both[0]!r}, which could then not change at all; name it "
                "in immutable if that is meant",
                column=both[0],
            )


def _columns(value: Any, name: str) -> tuple[Column, ...]:
    """A name or an index is one column."""
    if isinstance(value, str) or is_count(value, -_ANY):
        return (as_plain(value),)
    items = as_items(value)
    if items is None:
        raise ConfigError(f"{name} is {shown(value)}; expected a column, or columns such as ('age', 'sex')")
    return items


def _relations(value: Any) -> tuple[str | Callable[[Any], Any], ...]:
    items = (value,) if isinstance(value, str) or callable(value) else as_items(value)
    for item in (value,) if items is None else items:
        if items is None or inspect.isclass(item) or not (isinstance(item, str) or callable(item)):
            raise ConfigError(
                f"a relation is {shown(item)}; expected a text such as 'a <= b', or a function of the rows"
            )
    return items or ()


def _decimals(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    for count in value.values() if isinstance(value, Mapping) else (value,):
        if not (is_count(count, -_DECIMALS) and count <= _DECIMALS):
            raise ConfigError(
                f"decimals is {shown(value)}; expected 'auto', None, a whole number from {-_DECIMALS} to {_DECIMALS}, "
                "or one by column such as {'age': 0}"
            )
    if isinstance(value, Mapping):
        return {as_plain(column): as_plain(count) for column, count in value.items()}
    return as_plain(value)


def _group(value: Any, what: str) -> tuple[Column, ...]:
    columns = _columns(value, what)
    if not columns:
        raise ConfigError(f"{what} is empty; expected the columns that encode the category")
    return columns


def _range(value: Any, what: str) -> tuple[Any, Any]:
    pair = as_items(value) if isinstance(value, Sequence) or hasattr(value, "ndim") else None
    if pair is None or len(pair) != 2 or not (_is_ordered(pair) or _is_dated(pair)):  # noqa: PLR2004 a pair
        raise ConfigError(
            f"{what} is {shown(value)}; expected (lowest, highest), infinite where there is no limit{_no_range(pair)}"
        )
    return pair[0], pair[1]


def _is_ordered(pair: tuple[Any, ...]) -> bool:
    """Two numbers, the lowest first."""
    return all(map(is_number, pair)) and pair[0] <= pair[1] and pair[0] != math.inf and pair[1] != -math.inf


def _is_dated(pair: tuple[Any, ...]) -> bool:
    """Two dates, or one and no limit; they are compared where the column, and its time zone, is known."""
    return any(map(_is_date, pair)) and all(
        _is_date(end) or (is_number(end) and end == limit)
        for end, limit in zip(pair, (-math.inf, math.inf), strict=True)
    )


def _is_date(value: Any) -> bool:
    """A date, a duration, or the text of a date."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)) and value == value  # noqa: PLR0124 NaT


def _no_range(pair: tuple[Any, ...] | None) -> str:
    """What is wrong with a pair, where that can be told."""
    if pair and all(isinstance(end, str) for end in pair):
        return ". Ranges are numbers or dates such as '2026-01-31': use allowed for categories"
    if pair and len(pair) == 2 and all(map(is_number, pair)) and pair[0] > pair[1]:  # noqa: PLR2004 a pair
        return ". The lowest is above the highest"
    return ""


def _size(value: Any, what: str) -> float:
    if not (is_number(value) and 0 < value < math.inf):
        raise ConfigError(f"{what} is {shown(value)}; expected a number above 0")
    return float(value)


def _weight(value: Any, what: str) -> float:
    if not (is_number(value) and 1 / _HEAVIEST <= value <= _HEAVIEST):
        raise ConfigError(
            f"{what} is {shown(value)}; expected a number from {1 / _HEAVIEST:g} to {_HEAVIEST:g}. To keep a column as "
            "it is, name it in immutable"
        )
    return float(value)


def _categories(value: Any, what: str) -> tuple[Any, ...]:
    items = as_items(value)
    if not items:
        example = f", such as ({value!r},)" if isinstance(value, str) else ""
        raise ConfigError(f"{what} is {shown(value)}; expected a sequence of categories or numbers{example}")
    return items


_HEAVIEST = 1e12  # weights beyond make distances whose squares single floats cannot hold
_ANY = 2**63  # an index may count from the end
_DECIMALS = 15  # that a float can tell apart
_SCALES = ("auto", "minmax")
_COLUMNS = ("categorical", "immutable", "increasing", "decreasing", "integer")
_MAPPINGS: dict[str, tuple[Callable[[Any, str], Any], str]] = {
    "one_hot": (_group, "{'colour': ('colour_red', 'colour_blue')}"),
    "ranges": (_range, "{'age': (17, 90)}"),
    "allowed": (_categories, "{'workclass': ('Private', 'State-gov')}"),
    "step": (_size, "{'income': 100}"),
    "weights": (_weight, "{'age': 3.0}"),
}
