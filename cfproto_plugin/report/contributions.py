"""What each change of a counterfactual adds to the probability of the new class, as Shapley values."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import is_count, shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.report.shapley import all_masks, order_masks, orders, sampled_shapley, shapley
from cfproto_plugin.report.subsets import MOST_EXACT, ChangedFeature, Subsets, ask_subsets, changed_features

if TYPE_CHECKING:
    from cfproto_plugin.protocols import Array

log = logging.getLogger(__name__)
ORDERS = 64  # random orders of the changes of a line that has too many for all subsets
MOST = 1024  # changes of a line: 65,000 predicted rows


class Contribution(NamedTuple):
    """What one change adds; the contributions of a line add up to the change of the new class's probability.

    row: the row of x. feature: the name of the column or one-hot group, or the index of the pixel. before, after: the
    cell, or for a group the name of the column that is 1. error: the standard error of a sampled contribution, 0.0 of
    an exact one.
    """

    row: int
    feature: str | tuple[int, ...]
    before: Any
    after: Any
    contribution: float
    error: float


class LineContributions(NamedTuple):
    """The contributions of one line."""

    line: int
    features: tuple[ChangedFeature, ...]
    values: Array  # (m,); NaN if the model fails for a subset of the changes
    errors: Array  # (m,)
    raised: str | None


def contributions_of(explanation: Any, orders_asked: int = ORDERS, seed: int = 0) -> list[LineContributions]:
    """Of every line that has a counterfactual, in the order of the lines.

    Exact up to MOST_EXACT changes, from all of their subsets; beyond that from `orders_asked` random orders.
    """
    _check(orders_asked, seed)
    features = changed_features(explanation)
    lines = np.flatnonzero(explanation.found).tolist()
    for line in lines:
        if len(features[line]) > MOST:
            raise InputError(
                f"row {explanation.row[line]} changes {len(features[line])} features; contributions are for at most "
                f"{MOST}. Look at e.delta, or search with SearchConfig.few() or max_changes"
            )
    masks, chosen = [], []
    for line in lines:
        m = len(features[line])
        order = None if m <= MOST_EXACT else orders(m, orders_asked // 2, seed)
        masks.append(all_masks(m) if order is None else order_masks(order).reshape(-1, m))
        chosen.append(order)
    asked = ask_subsets(explanation, lines, [features[line] for line in lines], masks)
    before, after = explanation.new_class_proba
    column = explanation.is_new_class().argmax(axis=1)
    found = [
        _of_line(each, order, column[each.line], before[each.line], after[each.line])
        for each, order in zip(asked, chosen, strict=True)
    ]
    for each in found:
        if each.raised is not None:
            log.warning(
                "row %d has no contributions: the model fails for some of its changes without the others (%s)",
                explanation.row[each.line],
                each.raised,
            )
    return found


def _of_line(asked: Subsets, order: Array | None, column: int, before: float, after: float) -> LineContributions:
    m, values = len(asked.features), asked.proba[:, column]
    if np.isnan(values).any():
        raised = asked.raised or "it returned no number"
        return LineContributions(asked.line, asked.features, np.full(m, math.nan), np.full(m, math.nan), raised)
    if order is None:
        return LineContributions(asked.line, asked.features, shapley(values), np.zeros(m), None)
    ends = np.full((len(order), 1), before), np.full((len(order), 1), after)
    mean, error = sampled_shapley(order, np.hstack([ends[0], values.reshape(len(order), m - 1), ends[1]]))
    return LineContributions(asked.line, asked.features, mean, error, None)


def as_records(explanation: Any, found: list[LineContributions]) -> list[Contribution]:
    """One record per line and change."""
    return [
        Contribution(int(explanation.row[each.line]), f.name, f.before, f.after, float(value), float(error))
        for each in found
        for f, value, error in zip(each.features, each.values, each.errors, strict=True)
    ]


def _check(orders_asked: int, seed: int) -> None:
    if not is_count(orders_asked, 4) or orders_asked % 2:
        raise InputError(f"samples is {shown(orders_asked)}; expected an even whole number of at least 4")
    if not is_count(seed, 0):
        raise InputError(f"seed is {shown(seed)}; expected a whole number of at least 0")
