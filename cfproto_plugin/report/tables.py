"""Answers as a table: how each line ended, then its counterfactual in the columns of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.helpers.kinds import library_of, load_pandas, to_pandas

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation

_MEASURES = ("n_changes", "distance", "typicality", "stability")
_CERTIFIED = ("objective", "lower_bound", "gap")  # if a bound was asked for
HEADS = (
    *("row", "status", "message", "original_class", "counterfactual_class", "proba_before", "proba_after"),
    *_MEASURES,
)


def as_table(explanation: Explanation) -> Any:
    """A pandas DataFrame: `HEADS` of each line, then its counterfactual in the columns of the rows.

    A row that is no vector, such as an image, is one cell of nested lists in the column `counterfactual`, None where
    there is none.
    """
    pandas = load_pandas()
    before, after = explanation.new_class_proba
    values = {name: getattr(explanation, name, None) for name in HEADS} | {"proba_before": before, "proba_after": after}
    names, rows = explanation.column_names, to_pandas(explanation.counterfactual)
    if names is None:
        pairs = zip(rows, explanation.found, strict=True)
        cells = [row.tolist() if there else None for row, there in pairs]
        return pandas.DataFrame({**values, "counterfactual": pandas.Series(cells, dtype=object)})
    rows = pandas.DataFrame(rows, columns=list(names)) if library_of(rows) is None else rows.reset_index(drop=True)
    heads = pandas.DataFrame(dict(zip(heads_beside(rows.columns), values.values(), strict=True)))
    return pandas.concat([heads, rows], axis=1)


def as_frame(explanation: Explanation) -> Any:
    """How each line ended, then every feature before and after; a frame of the kind of the rows and with their index.

    For arrays a pandas DataFrame.
    """
    pandas = load_pandas()
    before, after = explanation.new_class_proba
    heads = {
        "row": explanation.row,
        "status": explanation.status,
        "original_class": explanation.original_class,
        "counterfactual_class": explanation.counterfactual_class,
        "proba_before": before,
        "proba_after": after,
        **{name: getattr(explanation, name) for name in _MEASURES},
        **({} if np.isnan(explanation.lower_bound).all() else {n: getattr(explanation, n) for n in _CERTIFIED}),
        "message": explanation.message,
    }
    parts, names, original = [pandas.DataFrame(heads)], explanation.column_names, explanation.original
    if names is not None:
        sides = {"before": original, "after": explanation.counterfactual}
        frames = {side: pandas.DataFrame(to_pandas(x)).reset_index(drop=True) for side, x in sides.items()}
        parts += [frames[side].iloc[:, j].rename(f"{name}_{side}") for j, name in enumerate(names) for side in sides]
    frame = pandas.concat(parts, axis=1)
    return frame.set_index(original.index) if library_of(original) == "pandas" else explanation.in_own_kind(frame)


def heads_beside(columns: Iterable[str]) -> list[str]:
    """`HEADS`, with an underscore where a column of the rows has that name."""
    taken = set(columns)
    return [f"{name}_" if name in taken else name for name in HEADS]
