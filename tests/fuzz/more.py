"""What is drawn beside the rest, from random numbers of its own, so that older seeds stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .models import Owned

if TYPE_CHECKING:
    from .draw import Case

DAY_ZERO = pd.Timestamp("2001-01-01")
Told = dict[str, Callable[[dict[Any, Any]], bool]]


def with_dates(table: Any, kind: Any, owned: Owned, rng: np.random.Generator) -> tuple[Any, Owned]:
    """Sometimes the whole numbers of a raw frame are dates, and the model a function that reads them."""
    if kind.takes != "raw" or owned.proba is None or rng.random() > 0.3:
        return table, owned
    zone = [None, None, "Europe/Berlin"][rng.integers(3)]
    unit, dtype = ["s", "us", "ns"][rng.integers(3)], table.x["age"].dtype

    def dated(x: pd.DataFrame) -> pd.DataFrame:
        moments = (DAY_ZERO + pd.to_timedelta(x["age"].astype(int), unit="D")).dt.tz_localize(zone).dt.as_unit(unit)
        return x.assign(age=moments)

    def proba(rows: pd.DataFrame) -> Any:
        moments = rows["age"].dt.tz_localize(None)
        days = (moments - DAY_ZERO) / pd.Timedelta(days=1)
        ages = days if days.isna().any() else days.astype(dtype)
        return owned.proba(rows.assign(age=ages))

    return table._replace(x=dated(table.x), held=dated(table.held)), Owned(
        proba, lambda rows: np.asarray(proba(rows)).argmax(axis=1), proba
    )


def more(case: Case, names: list[Any], amounts: list[Any], dates: list[Any], rng: np.random.Generator) -> None:
    """Sometimes vary, numbers that are listed, directions of ordered categories and dates, arithmetic, intervals."""
    rules = case.rules
    if rng.random() < 0.15:
        free = [name for name in names if name not in rules.get("immutable", ())]
        if free:
            rules["vary"] = tuple(free[i] for i in rng.permutation(len(free))[: rng.integers(1, len(free) + 1)])
    if rng.random() < 0.2 and amounts:
        _list_numbers(case, amounts[rng.integers(len(amounts))], rng)
    directed = [name for name in names if _is_ordered(case, name)] + dates
    if rng.random() < 0.4 and directed:
        rule = ["increasing", "decreasing"][rng.integers(2)]
        rules[rule] = (*rules.get(rule, ()), directed[rng.integers(len(directed))])
    if rng.random() < 0.3 and dates:
        known = case.train[dates[0]]
        rules.setdefault("ranges", {})[dates[0]] = (known.quantile(0.1, "nearest"), known.quantile(0.9, "nearest"))
        rules.get("allowed", {}).pop(dates[0], None)
    if rng.random() < 0.2 and len(amounts) > 1:
        _relate(case, amounts, rng)
    if rng.random() < 0.15 and case.owned.proba is not None and "min_proba" not in case.search:
        _ask_for_probabilities(case, rng)


def _is_ordered(case: Case, name: Any) -> bool:
    return isinstance(case.train, pd.DataFrame) and bool(getattr(case.train[name].dtype, "ordered", False))


def _list_numbers(case: Case, name: Any, rng: np.random.Generator) -> None:
    """The column may take a few of its training values only."""
    for rule in ("ranges", "step"):
        case.rules.get(rule, {}).pop(name, None)
    case.rules["integer"] = [other for other in case.rules.get("integer", []) if other != name]
    column = case.train[name] if isinstance(case.train, pd.DataFrame) else pd.Series(case.train[:, name])
    known = np.unique(column.dropna().astype(float))
    some = rng.permutation(known)[: rng.integers(1, 6)].tolist()
    case.rules.setdefault("allowed", {})[name] = some


def _relate(case: Case, amounts: list[Any], rng: np.random.Generator) -> None:
    """A sum that about nine training rows in ten keep, as a text and as a function of one row."""
    frame = isinstance(case.train, pd.DataFrame)
    one, two = (amounts[i] for i in rng.permutation(len(amounts))[:2])
    factor = int(rng.integers(2, 4))
    columns = [case.train[name] if frame else pd.Series(case.train[:, name]) for name in (one, two)]
    a, b = (column.astype("float64") for column in columns)
    bound = float(np.ceil((factor * a - b).dropna().quantile(0.9)))
    spelt = [f"`{name}`" if frame else f"x{name}" for name in (one, two)]
    text = f"{factor}*{spelt[0]} - ({spelt[1]} + 1) <= {bound - 1}"
    width = np.float32 if not frame and case.x.dtype in (np.float16, np.float32) else np.float64

    def holds(after: dict[Any, Any]) -> bool:
        first, second = (width(after[name]) if not pd.isna(after[name]) else width(np.nan) for name in (one, two))
        return bool(width(factor) * first - (second + width(1)) <= width(bound - 1))

    case.told[text] = holds
    case.rules["relations"] = (*case.rules.get("relations", ()), text)


def _ask_for_probabilities(case: Case, rng: np.random.Generator) -> None:
    """An interval of one class, for all rows or row by row."""
    classes = np.unique(case.owned.labels(case.train)).tolist()
    if len(classes) < 2 or len(classes) != np.shape(case.owned.proba(case.train))[1]:
        return
    low = rng.choice([0.0, 0.2, 0.3, 0.5, 0.6], len(case.x)).tolist()
    width, label = float(rng.choice([0.1, 0.2, 0.4])), classes[rng.integers(len(classes))]
    if rng.random() < 0.5:
        low = [low[0]] * len(low)
    case.intervals = [{label: (start, start + width)} for start in low]
    case.target = np.array(case.intervals, dtype=object) if len(set(low)) > 1 else case.intervals[0]
    case.wanted = None
