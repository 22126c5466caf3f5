"""The rules that a changed cell breaks, read from what was declared: none of it is the code that keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .draw import Case, group_of, is_amount, is_date, levels_of
from .rows import is_missing, is_same, value_of

GRID = 1e-6  # how far a multiple of a step may be from a whole number, relatively


def broken(case: Case, name: Any, own: Any, new: Any) -> list[str]:
    """The rules that a cell breaks."""
    rules, same = case.rules, is_same(own, new)
    out = ["immutable"] * (name in rules.get("immutable", ()) and not same)
    out += ["not among those that vary"] * ("vary" in rules and name not in rules["vary"] and not same)
    if is_date(case, name):
        return out + ([] if is_missing(new) else _broken_date(case, name, own, new))
    if not is_amount(case, name):
        levels = levels_of(case, name)
        out += _turned(case, name, own, new)
        out += ["not allowed"] * (name in rules.get("allowed", {}) and new not in rules["allowed"][name])
        if not same and levels and not (column_has_missing(case, name) if is_missing(new) else new in levels):
            out.append("unknown category")
        return out
    old, value = value_of(own), value_of(new)
    if is_missing(new):
        return out + ["a number went missing"] * (not same)
    if name in group_of(case):
        return out
    if name in rules.get("allowed", {}):
        return out + _unlisted(case, name, old, value, new)
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


def _unlisted(case: Case, name: Any, old: float, value: float, new: Any) -> list[str]:
    """A number that may take a few values only, as its dtype holds them."""
    given = case.x[name].dtype if isinstance(case.x, pd.DataFrame) else getattr(new, "dtype", np.float64)
    dtype = given if isinstance(given, np.dtype) and given.kind == "f" else np.float64
    out = ["not one of its values"] * (value not in np.array(case.rules["allowed"][name], dtype=dtype).tolist())
    out += ["increasing"] * (name in case.rules.get("increasing", ()) and value < old)
    return out + ["decreasing"] * (name in case.rules.get("decreasing", ()) and value > old)


def _turned(case: Case, name: Any, own: Any, new: Any) -> list[str]:
    """A category that went against the direction of its order; one that is missing, or unknown, may not change."""
    rules, same = case.rules, is_same(own, new)
    up, down = (name in rules.get(rule, ()) for rule in ("increasing", "decreasing"))
    if same or not (up or down):
        return []
    order = list(case.train[name].dtype.categories)
    if own not in order or new not in order:
        return ["a category without a place in the order changed"]
    moved = order.index(new) - order.index(own)
    return ["increasing"] * (up and moved < 0) + ["decreasing"] * (down and moved > 0)


def _broken_date(case: Case, name: Any, own: Any, new: Any) -> list[str]:
    """Dates are whole days of their zone, inside their range or among those allowed."""
    rules, train = case.rules, case.train[name]
    old, new = (pd.Timestamp(cell) if not is_missing(cell) else pd.NaT for cell in (own, new))
    if train.dt.tz is not None and new.tz is None:
        return ["a date lost its time zone"]
    same = old == new
    out = ["not a whole day"] * (not same and new != new.normalize())
    low, high = rules.get("ranges", {}).get(name) or (train.min(), train.max())
    if name in rules.get("ranges", {}) or not same:
        out += ["out of range"] * (not (low <= new <= high) and not (name not in rules.get("ranges", {}) and same))
    out += ["not allowed"] * (name in rules.get("allowed", {}) and new not in rules["allowed"][name])
    up, down = (name in rules.get(rule, ()) for rule in ("increasing", "decreasing"))
    return out + ["increasing"] * (up and not new >= old) + ["decreasing"] * (down and not new <= old)


def column_has_missing(case: Case, name: Any) -> bool:
    return isinstance(case.train, pd.DataFrame) and bool(case.train[name].isna().any())


def _span(case: Case, name: Any, own: float | None) -> tuple[float, float]:
    """Without a range a number stays between the training data and the row."""
    column = case.train[name] if isinstance(case.train, pd.DataFrame) else pd.Series(case.train[:, name])
    own = np.nan if own is None else own
    return float(np.nanmin([column.min(), own])), float(np.nanmax([column.max(), own]))
