"""What the columns of a row can become, as far as the trees can tell values apart, and what each choice costs.

The values between two splits of a column are one choice: of these the cheapest stands for all. Every category is a
choice, and so is the row's own value.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.reading import Reading
from cfproto_plugin.tables.space import FeatureSpace, Rows

_FINE = 1000  # values of a grid that become a choice each, where a relation depends on the value
_NEAR = np.arange(-2, 3)  # steps from the multiple that is nearest to an end of an interval
FARTHEST = 1e4  # standard deviations that a column of a relation moves at most, and beyond the last split
_ROUNDING = 1e-9  # how far a multiple may lie outside of a bound that it stands for, relatively


class Price(NamedTuple):
    """The part of J that columns add up: beta·|d| + d^2 + theta·(z - goal)^2 + few_changes if the value changes."""

    beta: float
    few_changes: float
    theta: float = 0.0
    goal: Array | None = None  # (A,) the prototype in the search space


class Choices(NamedTuple):
    """The K choices of one column of the table; numbers ascend."""

    at: int
    value: Array  # (K,) the cheapest value of each, in the table
    cost: Array  # (K,)
    low: Array  # (K,) the smallest value of each, and the largest
    high: Array
    own: int  # the place of the row's own value, -1 if it may not stay
    ordered: bool  # numbers: every split has the first choices on its left and the others on its right

    def take(self, kept: Array) -> Choices:
        """Some of them (K,) bool."""
        own = int(kept[: self.own].sum()) if self.own >= 0 and kept[self.own] else -1
        value, cost, low, high = (part[kept] for part in (self.value, self.cost, self.low, self.high))
        return Choices(self.at, value, cost, low, high, own, self.ordered)


def choices_of(
    space: FeatureSpace,
    rows: Rows,
    reading: Reading,
    price: Price,
    *,
    apart: bool,
    related: AbstractSet[int] = frozenset(),
) -> list[Choices]:
    """The choices of every column of one row, rows (1, A).

    apart: a cheaper value between the same splits does not replace the row's own, because it counts as a change.
    related: the columns whose values matter in relations, not only their side of the splits.
    """
    stays = space.may_stay(rows)[0]
    found = []
    for at in range(rows.table.shape[1]):
        cost = _Cost(space, rows, price, at)
        if at in space.embeddings:
            found.append(_categories(space, rows, at, cost, stays=bool(stays[at])))
        elif at in related:
            found.append(_values(space, rows, reading, at, cost, stays=bool(stays[at])))
        else:
            found.append(_numbers(space, rows, reading, at, cost, stays=bool(stays[at]), apart=apart))
    return found


def affordable(choices: list[Choices], most: float) -> list[Choices]:
    """Without those that cost more than `most` even if every other column takes its cheapest."""
    if not np.isfinite(most):
        return choices
    least = sum(float(each.cost.min(initial=np.inf)) for each in choices)
    return [each.take(each.cost <= most - (least - each.cost.min(initial=np.inf))) for each in choices]


def places_of(choices: list[Choices], table: Array) -> Array | None:
    """(A,) the choices that have the values (A,) of a point; None if a column has none."""
    found = []
    for each in choices:
        value = float(table[each.at])
        if each.own >= 0 and np.array_equal(each.value[each.own], value, equal_nan=True):
            found.append(each.own)
            continue
        away = np.maximum(np.maximum(each.low - value, value - each.high), 0.0)
        away = np.where(np.isnan(away), np.inf, away)
        if away.min(initial=np.inf) > _ROUNDING * max(1.0, abs(value)):
            return None
        found.append(int(away.argmin()))
    return np.array(found)


class _Cost:
    """What values of one column of one row cost."""

    def __init__(self, space: FeatureSpace, rows: Rows, price: Price, at: int) -> None:
        self.original, self.z, self.price = float(rows.table[0, at]), float(rows.z[0, at]), price
        self.goal = self.z if price.goal is None else float(price.goal[at])
        self.theta = price.theta if price.goal is not None else 0.0
        self.embedding = space.embeddings.get(at)
        self.offset, self.factor = space.offset[at].astype(rows.table.dtype), space.factor[at].astype(rows.table.dtype)

    def __call__(self, value: Array) -> Array:
        """The cost (...) of values (...) in the table."""
        z = self._to_search(value)
        moved = np.abs(z - self.z)
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers beyond all others
            cost = self.price.beta * moved + moved**2 + self.theta * (z - self.goal) ** 2
        cost = np.where(np.isnan(cost), np.inf, cost)
        same = (value == self.original) | (np.isnan(value) & np.isnan(self.original))
        return np.asarray(cost + self.price.few_changes * ~same)

    def best(self) -> float:
        """The value that would cost least if every number were possible, few_changes aside."""
        pull = self.theta * (self.goal - self.z)
        moved = np.sign(pull) * max(abs(pull) - self.price.beta / 2, 0.0) / (1 + self.theta)
        if not moved and not np.isnan(self.original):
            return self.original
        return float((self.z + moved) * float(self.factor) + float(self.offset))

    def _to_search(self, value: Array) -> Array:
        if self.embedding is not None:
            return np.asarray(self.embedding[value.astype(int)])
        with np.errstate(over="ignore"):
            z = (value.astype(self.offset.dtype) - self.offset) / self.factor  # in the arithmetic of the search
        return np.asarray(np.nan_to_num(z), dtype=float)


def _categories(space: FeatureSpace, rows: Rows, at: int, cost: _Cost, *, stays: bool) -> Choices:
    own, rules = int(rows.table[0, at]), space.rules
    chosen = np.zeros(len(space.embeddings[at]), dtype=bool)
    if not rules.fixed[at]:
        chosen |= rules.choices_of(at, rows.table[:1, at])[0]
    chosen[own] = stays
    codes = np.flatnonzero(chosen).astype(float)
    place = int(np.searchsorted(codes, own)) if stays else -1
    return Choices(at, codes, cost(codes), codes, codes, place, ordered=False)


def _numbers(
    space: FeatureSpace, rows: Rows, reading: Reading, at: int, cost: _Cost, *, stays: bool, apart: bool
) -> Choices:
    original, rules = float(rows.table[0, at]), space.rules
    lower, upper = _ends(space, rows, reading, at, cost, beyond=1.0)
    missing = np.isnan(original)
    if rules.fixed[at] or (missing and (rules.rising[at] or rules.falling[at])):
        low = high = np.zeros(0)
    else:
        low, high = reading.intervals(at, lower, upper)
        low, high = _admissible(space, at, low, high, rows.table.dtype)
    value = _cheapest(space, at, low, high, cost)
    some = np.isfinite(cost(value))
    value, low, high = value[some], low[some], high[some]
    if len(low) and some[[0, -1]].all():  # the outermost choices stand for what was cut off, too
        low[0], high[-1] = min(low[0], float(rows.lower[0, at])), max(high[-1], float(rows.upper[0, at]))
    if stays:
        return _with_own(at, original, value, low, high, cost, apart=apart)
    return Choices(at, value, cost(value), low, high, -1, ordered=True)


def _ends(
    space: FeatureSpace, rows: Rows, reading: Reading, at: int, cost: _Cost, *, beyond: float
) -> tuple[float, float]:
    """The range of a number, without what lies so many standard deviations beyond the splits and the cheapest value.

    What is cut off is alike to the trees and costs more than what is left. Ranges may be infinite, programs may not.
    """
    lower, upper, original = (float(part[0, at]) for part in (rows.lower, rows.upper, rows.table))
    if at in space.rules.grid.listed:
        return lower, upper
    step = float(space.rules.grid.step[at])
    firsts = reading.first_right(at)
    marks = np.array([*firsts[[0, -1][: len(firsts)]], float(np.clip(cost.best(), lower, upper)), original])
    marks = marks[np.isfinite(marks)]
    margin = beyond * float(cost.factor) + len(_NEAR) * step
    ends = np.array([marks.min(initial=np.inf) - margin, marks.max(initial=-np.inf) + margin])
    if step > 0:
        ends = space.rules.grid.multiple_of(np.array([at]), np.rint(ends / step))
    least, most = reading.held(at).type(ends).astype(float)
    return max(lower, float(least)), min(upper, float(most))


def _values(space: FeatureSpace, rows: Rows, reading: Reading, at: int, cost: _Cost, *, stays: bool) -> Choices:
    """Every value of a grid, or the intervals with the row's own value apart; a missing value satisfies no relation."""
    original, grid, rules = float(rows.table[0, at]), space.rules.grid, space.rules
    lower, upper = _ends(space, rows, reading, at, cost, beyond=FARTHEST)
    missing = np.isnan(original)
    low = high = np.zeros(0)
    if not rules.fixed[at] and not (missing and (rules.rising[at] or rules.falling[at])):
        low, high = reading.intervals(at, lower, upper, () if missing else (original,))
        low, high = _admissible(space, at, low, high, rows.table.dtype)
        if at in grid.listed:
            values = grid.values(at, rows.table.dtype).astype(float)
            low = high = values[(values >= lower) & (values <= upper)]
        elif grid.step[at] > 0 and len(low) and (high[-1] - low[0]) / grid.step[at] < _FINE:
            count = np.arange(np.rint(low[0] / grid.step[at]), np.rint(high[-1] / grid.step[at]) + 1)
            low = high = np.clip(grid.multiple_of(np.array([at]), count), lower, upper)
    apart = ~((low == original) & (high == original))
    low, high = low[apart], high[apart]
    value, place = _cheapest(space, at, low, high, cost), -1
    if stays and not missing:
        place = int(np.searchsorted(low, original))
        low, high, value = (np.insert(part, place, original) for part in (low, high, value))
    return Choices(at, value, cost(value), low, high, place, ordered=True)


def _with_own(at: int, original: float, value: Array, low: Array, high: Array, cost: _Cost, *, apart: bool) -> Choices:
    """The choices with the row's own value: in place of its interval, or beside it where another value is cheaper."""
    own = np.array([original])
    price = cost(value)
    if np.isnan(original):
        parts = (np.append(own, part) for part in (value, low, high))
        value, low, high = parts
        return Choices(at, value, np.append(cost(own), price), low, high, 0, ordered=False)
    here = np.flatnonzero((low <= original) & (original <= high))
    own_cost = float(cost(own)[0])
    beside = len(here) > 0 and price[here[0]] < own_cost and value[here[0]] != original
    if beside and not apart:
        return Choices(at, value, price, low, high, -1, ordered=True)
    place = int(here[0]) if len(here) else int(np.searchsorted(low, original))
    if len(here) and not beside:
        value[place], price[place] = original, own_cost
        return Choices(at, value, price, low, high, place, ordered=True)
    place += bool(beside and value[place] < original)
    value, low, high = (np.insert(part, place, original) for part in (value, low, high))
    return Choices(at, value, np.insert(price, place, own_cost), low, high, place, ordered=True)


def _admissible(space: FeatureSpace, at: int, low: Array, high: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The smallest and the largest numbers inside intervals (m,) that the column can hold; without empty ones."""
    grid = space.rules.grid
    if at in grid.listed:
        values = grid.values(at, dtype)
        first, last = np.searchsorted(values, low), np.searchsorted(values, high, side="right") - 1
        some = first <= last
        return values[first[some]].astype(float), values[last[some]].astype(float)
    if grid.step[at] > 0:
        low, high = _multiples(space, at, low, high)
    some = low <= high
    return low[some], high[some]


def _multiples(space: FeatureSpace, at: int, low: Array, high: Array) -> tuple[Array, Array]:
    """The first and the last multiples of the step inside intervals (m,); first > last where there is none.

    The outer ends are bounds of the rules, on which a multiple may lie up to its rounding; splits are exact.
    """
    grid = space.rules.grid
    column, step = np.array([at]), grid.step[at]
    slack = np.zeros((2, len(low)))
    if len(low):
        slack[0, 0], slack[1, -1] = (_ROUNDING * max(1.0, abs(end / step)) * step for end in (low[0], high[-1]))
    ends = []
    for side, end in enumerate((low, high)):
        near = grid.multiple_of(column, np.rint(end / step)[:, None] + _NEAR)
        inside = near >= (end - slack[0])[:, None] if side == 0 else near <= (end + slack[1])[:, None]
        place = inside.argmax(axis=1) if side == 0 else len(_NEAR) - 1 - inside[:, ::-1].argmax(axis=1)
        ends.append(near[np.arange(len(end)), place])
    return np.maximum(ends[0], low), np.minimum(ends[1], high)


def _cheapest(space: FeatureSpace, at: int, low: Array, high: Array, cost: _Cost) -> Array:
    """The cheapest number of the column in intervals (m,) whose ends it can hold."""
    grid, best = space.rules.grid, cost.best()
    near = np.clip(best, low, high)
    if at in grid.listed:
        values = np.asarray(grid.listed[at], dtype=float)
        place = np.searchsorted(values, near) + np.array([[-1], [0]])
        near = values[np.clip(place, 0, len(values) - 1)]
    elif grid.step[at] > 0:
        count = np.rint(near / grid.step[at]) + np.array([[-1.0], [0.0], [1.0]])
        near = grid.multiple_of(np.array([at]), count)
    else:
        near = near[None]
        for held in grid.held:
            if held.is_float and held.where[at]:
                near = held.rounded(near)
    tried = np.concatenate([np.clip(near, low, high), low[None], high[None]])
    return np.asarray(np.take_along_axis(tried, cost(tried).argmin(axis=0)[None], axis=0)[0])
