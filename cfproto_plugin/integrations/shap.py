"""Explanations as `shap.Explanation`, for SHAP's own plots. `e.to_shap()` calls this; SHAP is imported then.

Below `explanation` in the order of imports: it reads the members of the explanation it is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError, MissingPackageError
from cfproto_plugin.helpers.kinds import cells_of, library_of, take, to_pandas
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.contributions import LineContributions, contributions_of
from cfproto_plugin.report.subsets import active_column
from cfproto_plugin.report.words import value_text
from cfproto_plugin.tables.cells import is_missing

_MISSING = "missing"


class _Column(NamedTuple):
    """A feature of the plot: one of the user's columns, or a one-hot group."""

    name: str
    places: tuple[int, ...]


def load_shap() -> Any:
    """Import SHAP, or say how to install it."""
    try:
        import shap
    except ImportError as error:
        raise MissingPackageError(
            "this needs SHAP, which is not installed: pip install 'cfproto-plugin[shap]'"
        ) from error
    return shap


def as_shap(explanation: Any, values: str, samples: int, seed: int) -> Any:
    """A `shap.Explanation` of contributions or deltas, one line each; zeros for lines without a counterfactual."""
    if values not in ("contributions", "delta"):
        raise InputError(f"values is {values!r}; expected 'contributions' or 'delta'")
    shap = load_shap()
    if values == "delta":
        return _of_deltas(shap, explanation)
    return _of_contributions(shap, explanation, contributions_of(explanation, samples, seed))


def background_of(explanation: Any) -> Any:
    """The counterfactuals that there are, as background data: an array, or a pandas frame with the dtypes of x."""
    lines = np.flatnonzero(explanation.found)
    if not len(lines):
        raise InputError("no line has a counterfactual, and so there is no background")
    rows, original = (to_pandas(take(x, lines)) for x in (explanation.counterfactual, explanation.original))
    if library_of(original) is None:
        return rows.astype(original.dtype) if original.dtype.kind in "iufb" else rows
    numbers = {name: d for name, d in original.dtypes.items() if isinstance(d, np.dtype) and d.kind in "iufb"}
    return rows.astype(numbers)


def _of_contributions(shap: Any, explanation: Any, found: list[LineContributions]) -> Any:
    for each in found:
        if each.raised is not None:
            row = int(explanation.row[each.line])
            raise InputError(
                f"row {row} has no contributions: the model fails for some of its changes without the others "
                f"({each.raised}). Leave it out by e[e.row != {row}], or use values='delta'",
                row=row,
            )
    before = np.nan_to_num(explanation.new_class_proba[0])
    if explanation.column_names is None:
        values, errors = (np.zeros(np.shape(explanation.original)) for _ in range(2))
        for each in found:
            for feature, value, error in zip(each.features, each.values, each.errors, strict=True):
                values[(each.line, *feature.name)] = value  # an index of a pixel
                errors[(each.line, *feature.name)] = error
        return shap.Explanation(values, before, data=np.asarray(explanation.original), error_std=errors)
    columns = _columns(explanation.column_names, explanation.source.groups)
    number = {column.places: at for at, column in enumerate(columns)}  # two names may be the same text
    values, errors = (np.zeros((len(explanation), len(columns))) for _ in range(2))
    for each in found:
        at = [number[feature.places] for feature in each.features]
        values[each.line, at], errors[each.line, at] = each.values, each.errors
    return _table(shap, explanation, columns, values, before, errors)


def _of_deltas(shap: Any, explanation: Any) -> Any:
    """Counterfactual minus original; 1 for a cell that changed and is no number before or after."""
    before, after = (cells_of(x) for x in (explanation.original, explanation.counterfactual))
    values = np.zeros(before.shape)
    for at in map(tuple, np.argwhere(explanation.is_changed).tolist()):
        old, new = _as_number(before[at]), _as_number(after[at])
        gap = math.nan if old is None or new is None else new - old
        values[at] = 1.0 if math.isnan(gap) else gap
    if explanation.column_names is None:
        return shap.Explanation(values, np.zeros(len(values)), data=np.asarray(explanation.original))
    columns = _columns(explanation.column_names, {})
    return _table(shap, explanation, columns, values, np.zeros(len(values)), None)


def _table(
    shap: Any, explanation: Any, columns: Sequence[_Column], values: Array, base: Array, errors: Array | None
) -> Any:
    """SHAP's plots want numbers as data; what is no number is a code there, and itself in display_data."""
    names = explanation.column_names
    before, after = (_features(cells_of(x), columns, names) for x in (explanation.original, explanation.counterfactual))
    data, shown = np.empty(values.shape), np.empty(values.shape, dtype=object)
    for j in range(len(columns)):
        data[:, j], shown[:, j] = _encoded(before[:, j])
    if len(explanation) == 1 and explanation.found[0]:  # a plot of a single row: say what changes
        for at, sides in enumerate(zip(before[0], after[0], strict=True)):
            old, new = map(value_text, sides)
            shown[0, at] = shown[0, at] if old == new else f"{old} → {new}"
    plain = all(isinstance(cell, float) for cell in shown.flat)
    return shap.Explanation(
        values,
        base,
        data=data,
        display_data=None if plain else shown,
        feature_names=[column.name for column in columns],
        error_std=errors,
    )


def _columns(names: Sequence[str], groups: Any) -> list[_Column]:
    """The columns, and every group at the place of its first column."""
    first = {min(places): _Column(str(name), tuple(places)) for name, places in groups.items()}
    inside = {place for places in groups.values() for place in places}
    singles = {at: _Column(name, (at,)) for at, name in enumerate(names) if at not in inside}
    return [column for _, column in sorted({**singles, **first}.items())]


def _features(cells: Array, columns: Sequence[_Column], names: Sequence[str]) -> Array:
    """(n, features) the cells of single columns, and for groups the name of the column that is 1."""
    found = np.empty((len(cells), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        single = len(column.places) == 1
        found[:, j] = cells[:, column.places[0]] if single else [active_column(c, column.places, names) for c in cells]
    return found


def _encoded(cells: Array) -> tuple[Array, Array]:
    """Cells (n,) as numbers and as they are shown. Where one is no number, all are codes in the order of their text."""
    numbers = [_as_number(cell) for cell in cells]
    if None not in numbers:
        return np.array(numbers, dtype=float), np.array(numbers, dtype=object)
    texts = [_MISSING if is_missing(cell) else str(cell) for cell in cells]
    codes = {text: float(code) for code, text in enumerate(sorted(set(texts) - {_MISSING}))}
    return np.array([codes.get(text, math.nan) for text in texts]), np.array(texts, dtype=object)


def _as_number(cell: Any) -> float | None:
    """A number or a truth value as a float, NaN for what is missing or infinite; None for anything else."""
    if is_missing(cell):
        return math.nan
    if not isinstance(cell, (bool, int, float, np.bool_, np.number)):
        return None
    return float(cell) if math.isfinite(cell) else math.nan
