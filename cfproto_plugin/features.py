"""What the user says about the columns: which may change, and how far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cfproto_plugin.errors import ConfigError

Column = str | int


@dataclass(frozen=True)
class Features:
    """Rules about the columns, by name or index. They hold on every counterfactual that is returned.

    categorical: columns whose values have no order (string, category and boolean columns of a DataFrame are
        recognised). one_hot: groups of columns that encode one category; one level may have been dropped.
    immutable: must keep their value. increasing, decreasing: may only change in that direction.
    ranges: lowest and highest value of a column; they bind the counterfactual even where the row itself lies outside.
        Without a range a column stays between the smallest and the largest value of the training data and the row.
    allowed: the categories a column may take; they bind like ranges.
    integer: columns of whole numbers (integer columns of a DataFrame are recognised). step: a changed value is a
        multiple of it.
    weights: 3.0 makes every change of the column count as three times as long.
    relations: what must hold between columns: expressions such as "a <= b" or "age >= 18", or functions of the rows (a
        DataFrame or an array) that return one truth value per row.
    scale: "auto" standardises the numbers of tables for the search (not images, not with an encoder); None leaves them.
    """

    categorical: Sequence[Column] = ()
    one_hot: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    immutable: Sequence[Column] = ()
    increasing: Sequence[Column] = ()
    decreasing: Sequence[Column] = ()
    ranges: Mapping[Column, tuple[float, float]] = field(default_factory=dict)
    allowed: Mapping[Column, Sequence[Any]] = field(default_factory=dict)
    integer: Sequence[Column] = ()
    step: Mapping[Column, float] = field(default_factory=dict)
    weights: Mapping[Column, float] = field(default_factory=dict)
    relations: Sequence[str | Callable[[Any], Any]] = ()
    scale: Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        if self.scale not in ("auto", None):
            raise ConfigError(f"scale is {self.scale!r}; expected 'auto' or None")
        for name in ("categorical", "immutable", "increasing", "decreasing", "integer", "relations"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ConfigError(f"{name} is the string {value!r}; expected a sequence such as ({value!r},)")
        self._check_values()

    def _check_values(self) -> None:
        for column, given in self.ranges.items():
            if not (np.ndim(given) == 1 and len(given) == 2 and all(map(_is_number, given)) and given[0] <= given[1]):  # noqa: PLR2004 a pair
                raise ConfigError(
                    f"ranges[{column!r}] is {given!r}; expected (lowest, highest), infinite where there is no limit"
                )
        for name in ("step", "weights"):
            for column, value in getattr(self, name).items():
                if not (_is_number(value) and 0 < value < math.inf):
                    raise ConfigError(f"{name}[{column!r}] is {value!r}; expected a number above 0")
        for column, values in self.allowed.items():
            if isinstance(values, str) or not len(values):
                raise ConfigError(f"allowed[{column!r}] is {values!r}; expected a sequence of categories")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
