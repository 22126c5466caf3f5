"""What the user says about the columns: which may change, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cfproto_plugin.errors import ConfigError

Column = str | int


@dataclass(frozen=True)
class Features:
    """Rules about the columns, by name or index. They hold on every counterfactual that is returned.

    immutable: must keep their value. increasing, decreasing: may only change in that direction.
    ranges: lowest and highest value of a column; they bind the counterfactual even where the row itself lies outside.
        Without a range a column stays within the training data and the row's own value.
    integer: columns of whole numbers (integer columns of a DataFrame are found by themselves).
    scale: "auto" standardises the columns of tables for the search (not images, not with an encoder); None leaves them.
    """

    immutable: Sequence[Column] = ()
    increasing: Sequence[Column] = ()
    decreasing: Sequence[Column] = ()
    ranges: Mapping[Column, tuple[float, float]] = field(default_factory=dict)
    integer: Sequence[Column] = ()
    scale: Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        if self.scale not in ("auto", None):
            raise ConfigError(f"scale is {self.scale!r}; expected 'auto' or None")
        for name in ("immutable", "increasing", "decreasing", "integer"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ConfigError(
                    f"{name} is the string {value!r}; expected a sequence of columns such as ({value!r},)"
                )
        for column, (low, high) in self.ranges.items():
            if not low <= high:
                raise ConfigError(f"ranges[{column!r}] is ({low!r}, {high!r}); expected (lowest, highest)")
