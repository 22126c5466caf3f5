"""The numbers that columns may change to: steps that the user gave, and the decimals that values are written with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import Grid


def grid_of(
    features: Features, columns: Columns, written: Array | None, ranges: Array, listed: Mapping[int, Array]
) -> Grid:
    """The grid of every column.

    written: (A,) the steps that the training data is written in, for decimals="auto". ranges: (2, A) those that the
    user gave, NaN where there is none: decimals of the data that leave no number inside one are not used. listed: the
    values (V,) of columns whose values the user listed, which have no decimals.
    """
    steps = _steps(features, columns)
    if features.decimals == "auto":
        found = np.zeros(len(steps)) if written is None else written
        with np.errstate(invalid="ignore"):
            first, last = Grid(found).ends(*ranges)
        found = np.where(first > last, 0.0, found)
    else:
        found = _decimals(features, columns)
    free = (steps == 0) | (np.isin(np.arange(len(steps)), _integers(columns)) & (found > 1))
    free[[at for at, attribute in enumerate(columns.attributes) if at in listed or attribute.dates]] = False
    for column in (*features.step, *features.integer):
        free[columns.find(column, "step")] = False
    by_decimals = free & (found > 0)
    steps = np.where(by_decimals, found, steps)
    numbers = np.array([attribute.levels is None for attribute in columns.attributes])
    shortened = numbers & free & (steps == 0) & (features.decimals == "auto" and written is not None)
    return Grid(steps, columns.held, listed, by_decimals, shortened)


def _integers(columns: Columns) -> list[int]:
    return [at for at, attribute in enumerate(columns.attributes) if attribute.integer]


def _decimals(features: Features, columns: Columns) -> Array:
    """(A,) the steps of the decimals that the user gave, 0 where there are none."""
    given = features.decimals
    numbers = [at for at, a in enumerate(columns.attributes) if a.levels is None and a.dates is None]
    found = np.zeros(len(columns.attributes))
    if isinstance(given, int):
        found[numbers] = _step(given)
    elif isinstance(given, Mapping):
        for column, count in given.items():
            at = columns.find(column, "decimals")
            if at not in numbers:
                raise ConfigError(f"decimals needs numbers; {columns.describe(at)} holds others", column=column)
            if at in {columns.find(other, "step") for other in features.step}:
                raise ConfigError(f"decimals and step both name column {columns.describe(at)}; use one", column=column)
            if columns.attributes[at].integer and count > 0:
                raise ConfigError(
                    f"decimals[{column!r}] is {count}, but {columns.describe(at)} holds integers; expected 0, or -2 "
                    "for hundreds",
                    column=column,
                )
            found[at] = _step(count)
    return found


def _step(decimals: int) -> float:
    return float(f"1e{-decimals}")


def _steps(features: Features, columns: Columns) -> Array:
    """(A,) the step of every number: 1 for integers, 0 where every value is possible."""
    steps = np.array([a.dates.step if a.dates else float(a.integer) for a in columns.attributes])
    given = [("integer", column, 1.0) for column in features.integer]
    given += [("step", column, float(size)) for column, size in features.step.items()]
    for rule, column, size in given:
        at = columns.find(column, rule)
        if at in columns.categories:
            raise ConfigError(f"{rule} needs numbers; {columns.describe(at)} is a category", column=column)
        if steps[at] and size % 1 and columns.attributes[at].dates is None:
            raise ConfigError(
                f"step[{column!r}] is {size:g}, but {columns.describe(at)} holds integers; expected a whole number",
                column=column,
            )
        steps[at] = size
    return steps
