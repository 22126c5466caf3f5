"""Average ranks over many tables, Friedman's test and the critical difference of Nemenyi's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# by tool, row by row: None is no answer; a row that was cut off by a limit is NaN, or missing at the end
Values = dict[str, list[float | None]]


def ranks(values: Values, more_is_better: bool, middle: Callable[..., Any] = np.mean) -> np.ndarray | None:
    """(tools,) from 1, the best; None if no tool has a value.

    Every two tools are compared by their mean, or another `middle`, over the rows that both were asked, and a tool's
    rank is one plus the number of those that are better; equal ones count one half. Without a cut these are the usual
    ranks.
    """
    table = filled(values, more_is_better)
    if table is None:
        return None
    asked = np.array([[v is None or not math.isnan(v) for v in rows] for rows in _padded(values)])
    known = ~np.isnan(table).all(axis=0)
    found = np.ones(len(table))
    for i in range(len(table)):
        for j in range(len(table)):
            rows = asked[i] & asked[j] & known
            if i != j and rows.any():
                mine, other = (float(f"{middle(table[k, rows]):.9e}") for k in (i, j))
                better = other > mine if more_is_better else other < mine
                found[i] += 1.0 if better else 0.5 if other == mine else 0.0
    return found


def filled(values: Values, more_is_better: bool) -> np.ndarray | None:
    """(tools, n) where a missing answer counts as the worst that any tool gave to the row; NaN where none has one."""
    found = np.array([[np.nan if v is None else v for v in rows] for rows in _padded(values)], dtype=float)
    if np.isnan(found).all():
        return None
    known = ~np.isnan(found).all(axis=0)
    worst = np.full(found.shape[1], np.nan)
    worst[known] = (np.nanmin if more_is_better else np.nanmax)(found[:, known], axis=0)
    return np.where(np.isnan(found), worst, found)


def _padded(values: Values) -> list[list[float | None]]:
    width = max(map(len, values.values()))
    return [[*rows, *[math.nan] * (width - len(rows))] for rows in values.values()]


def critical_difference(tools: int, tables: int) -> float:
    """Nemenyi's, at 5 %."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(0.95, tools, math.inf) / math.sqrt(2)
    return float(q * math.sqrt(tools * (tools + 1) / (6 * tables)))


def averaged(by_case: dict[tuple[str, str], np.ndarray]) -> dict[str, Any]:
    """The mean rank of every tool, the critical difference and Friedman's p-value.

    by_case: ranks by table and model. Three models of one table are not independent: the tables are counted, each by
    the mean ranks over its models.
    """
    from scipy.stats import friedmanchisquare

    tables = list(dict.fromkeys(data for data, _ in by_case))
    means = np.array([np.mean([found for (data, _), found in by_case.items() if data == t], axis=0) for t in tables])
    p = float(friedmanchisquare(*means.T).pvalue) if len(tables) > 2 and means.shape[1] > 2 else math.nan
    overall = np.mean(list(by_case.values()), axis=0)
    return {
        "ranks": overall.tolist(),
        "difference": critical_difference(means.shape[1], len(tables)),
        "p": p,
        "tables": len(tables),
        "cases": len(by_case),
    }
