"""Points on their way to become answers: what methods yield, refining improves and the driver keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array

TRACE = np.dtype(
    [
        ("method", "U32"),
        ("prototype", np.intp),  # class of the prototype, a column of the probabilities; -1 for none
        ("theta", np.float64),  # on a path: where on it; infinite at the prototype itself
        ("step", np.intp),  # of the iteration
        ("c", np.float64),  # weight of L_pred
        ("steps", np.intp),  # gradient steps as the paper counts them
        ("before", np.float64),  # cost before polishing: NaN not polished, infinite not valid then
    ]
)

FAR = 1e6  # times the shortfall: a point that falls short of a wish comes after all that do not


class Candidates(NamedTuple):
    """m points, any number of them for a row."""

    row: Array  # (m,) line of the task
    table: Array  # (m, A) numbers and codes
    cost: Array  # (m,) what is minimised, J
    margin: Array  # (m,) of the best allowed class over every other
    valid: Array  # (m,) bool: another class, and every rule kept
    start: Array  # (m,) bool: polishing may start here
    path_end: Array  # (m, A) end of the path it lies on: its prototype inside the rules
    path: Array  # (m,) number of that path among those of its line; -1 for none
    shortfall: Array  # (m,) by how much it misses typicality and stability; 0 where that is not known
    polished: Array  # (m,) bool: changes that its class does not need are taken back
    trace: Array  # (m,) of dtype TRACE: how it was found

    @property
    def rank(self) -> Array:
        """(m,) what points of a line are compared by: those that meet the wishes first, then by cost."""
        return self.cost + FAR * self.shortfall

    def take(self, at: Array) -> Candidates:
        """Some of them, by position or mask."""
        at = at.nonzero()[0] if at.dtype == bool else at
        return Candidates._make([part.take(at, axis=0) for part in self])


def candidates(
    row: Array,
    table: Array,
    cost: Array,
    margin: Array,
    trace: Array,
    *,
    valid: Array | None = None,
    start: Array | None = None,
    path_end: Array | None = None,
    path: Array | None = None,
    shortfall: Array | None = None,
    polished: bool = False,
) -> Candidates:
    """Candidates that are valid, no starts and not polished, unless said otherwise."""
    m = len(row)
    return Candidates(
        row,
        table,
        cost,
        margin,
        np.ones(m, dtype=bool) if valid is None else valid,
        np.zeros(m, dtype=bool) if start is None else start,
        table if path_end is None else path_end,
        np.full(m, -1) if path is None else path,
        np.zeros(m) if shortfall is None else shortfall,
        np.full(m, polished),
        trace,
    )


def join(parts: list[Candidates]) -> Candidates:
    """All of them, one after the other; there must be at least one part."""
    if len(parts) == 1:
        return parts[0]
    return Candidates._make([np.concatenate(part) for part in zip(*parts, strict=True)])


def traces(
    m: int,
    method: str,
    *,
    prototype: Array | int = -1,
    theta: Array | float = np.nan,
    step: Array | int = 0,
    c: Array | float = np.nan,
    steps: Array | int = 0,
) -> Array:
    """(m,) records of how points were found."""
    found = np.zeros(m, dtype=TRACE)
    found["method"], found["prototype"], found["theta"] = method, prototype, theta
    found["step"], found["c"], found["steps"], found["before"] = step, c, steps, np.nan
    return found


def cheapest(row: Array, cost: Array, best: Array) -> Array:
    """Positions of the cheapest point of every row, where it is cheaper than the best of its row.

    row, cost: (m,) of the points. best: (n,) cost of the rows.
    """
    order = np.lexsort((cost, row))
    first = order[firsts(row[order])]
    return np.asarray(first[cost[first] < best[row[first]]])


def firsts(values: Array) -> Array:
    """Positions at which the values of a sorted array (m,) first occur."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return new.nonzero()[0]
