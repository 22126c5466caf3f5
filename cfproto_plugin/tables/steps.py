"""One change made to many rows: at least a value, at most a value, by an amount, or to a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.geometry import changed
from cfproto_plugin.tables.space import FeatureSpace, Rows


def stepped(space: FeatureSpace, rows: Rows, steps: Sequence[tuple[int, str, float]]) -> Array:
    """The table (n, A) of the rows after steps (column, kind, value), on the grid of every column; rules not looked at.

    A missing number takes the value of "at least" and "at most"; "by" an amount leaves it missing.
    """
    x = rows.table.copy()
    for at, kind, value in steps:
        if kind == "to":
            x[:, at] = value
        elif kind == "by":
            x[:, at] += value
        else:
            x[:, at] = (np.fmax if kind == "at least" else np.fmin)(x[:, at], value)
    return np.where(changed(x, rows.table), space.rules.grid.snap(x), rows.table).astype(x.dtype)
