"""The rules that a changed cell breaks, read from what was declared: none of it is the code that keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .draw import Case, group_of, is_amount, levels_of
from .rows import is_missing, is_same, value_of

GRID = 1e-6  # how far a multiple of a step may be from a whole number, relatively


def broken(case: Case, name: Any, own: Any, new: Any) -> list[str]:
    """The rules that a cell breaks."""
    rules, same = case.rules, is_same(own, new)
    out = ["immutable"] * (name in rules.get("immutable", ()) and not same)
    if not is_amount(case, name):
        levels = levels_of(case, name)
        out += ["not allowed"] * (name in rules.get("allowed", {}) and new not in rules["allowed"][name])
        if not same and levels and not (column_has_missing(case, name) if is_missing(new) else new in levels):
            out.append("unknown category")
        return out
    old, value = value_of(own), value_of(new)
    if is_missing(new):
        return out + ["a number went missing"] * (not same)
    if name in group_of(case):
        return out
    low, high = rules.get("ranges", {}).get(name) or _span(case, name, old)
    slack = GRID * max(1.0, abs(value)) if name not in rules.get("ranges", {}) else 0.0
    out += ["out of range"] * (not same or name in rules.get("ranges", {})) * (not low - slack <= value <= high + slack)
    out += ["increasing"] * (name in rules.get("increasing", ()) and value < old)
    out += ["decreasing"] * (name in rules.get("decreasing", ()) and value > old)
    step = rules.get("step", {}).get(name, 1.0 if name in rules.get("integer", ()) else 0.0)
    if step and not same:
        steps = value / step
        out += ["off the grid"] * (abs(steps - round(steps)) > GRID * max(1.0, abs(steps)))
    return out


def column_has_missing(case: Case, name: Any) -> bool:
    return isinstance(case.train, pd.DataFrame) and bool(case.train[name].isna().any())


def _span(case: Case, name: Any, own: float) -> tuple[float, float]:
    """Without a range a number stays between the training data and the row."""
    column = case.train[name] if isinstance(case.train, pd.DataFrame) else pd.Series(case.train[:, name])
    return float(np.nanmin([column.min(), own])), float(np.nanmax([column.max(), own]))
