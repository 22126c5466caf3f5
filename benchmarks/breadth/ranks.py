"""Average ranks over many tables, Friedman's test and the critical difference of Nemenyi's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Values = dict[str, list[float | None]]  # by tool, row by row


def filled(values: Values, more_is_better: bool) -> np.ndarray:
    """(tools, n) where a missing answer counts as the worst that any tool gave to the row; rows without any go."""
    found = np.array([[np.nan if v is None else v for v in rows] for rows in values.values()], dtype=float)
    found = found[:, ~np.isnan(found).all(axis=0)]
    worst = (np.nanmin if more_is_better else np.nanmax)(found, axis=0) if found.size else found
    return np.where(np.isnan(found), worst, found)


def ranks(values: np.ndarray, more_is_better: bool) -> np.ndarray:
    """(tools,) from 1, the best; equal values share the mean of their ranks. Ten digits are compared."""
    from scipy.stats import rankdata

    return np.asarray(rankdata([float(f"{(-v if more_is_better else v):.9e}") for v in values]))


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
