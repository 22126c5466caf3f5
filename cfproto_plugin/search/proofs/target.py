"""The classes that are asked for, as linear conditions on the scores of the trees.

A row counts if one of several sets of conditions holds, one set for every class that it may have. Where a condition on
probabilities is not linear in the scores, a linear one that it implies stands for it: bounds stay valid, and the model
itself judges what is found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array, TreeEnsemble

_ROUNDING = 1e-6  # of a probability in float32, with room to spare: thresholds are lowered by it
_LEAST_ODDS = 1e-300


class Condition(NamedTuple):
    """weights · scores >= least, before the division by the number of trees; > if strict."""

    weights: Array  # (m,)
    least: float
    strict: bool


class Wanted(NamedTuple):
    """One class that a row may have: its conditions, all of which must hold."""

    label: int
    conditions: tuple[Condition, ...]
    least_proba: float | None = None  # of a softmax, which the conditions only imply


def wanted_classes(ensemble: TreeEnsemble, allowed: Array, kappa: float, min_proba: float | None) -> list[Wanted]:
    """The classes (k,) bool that are allowed: each must lead those that are not, by kappa and with min_proba."""
    others = np.flatnonzero(~allowed)
    found = []
    for label in np.flatnonzero(allowed).tolist():
        conditions = [_leads(ensemble, label, int(other), kappa) for other in others]
        least = None
        if min_proba is not None:
            if min_proba - _ROUNDING > (1 + kappa) / 2:
                conditions = []  # implied; and HiGHS has called programs with both infeasible that have points
            conditions += _at_least(ensemble, len(allowed), label, min_proba)
            least = min_proba if ensemble.link == "softmax" else None
        found.append(Wanted(label, tuple(conditions), least))
    return found if len(others) or min_proba is not None else [Wanted(-1, ())]


def wanted_intervals(ensemble: TreeEnsemble, low: Array, high: Array) -> list[Wanted]:
    """The classes whose probability has to lie from low (k,) to high (k,), NaN where it is not asked about."""
    found = []
    for label in np.flatnonzero(~np.isnan(low)).tolist():
        conditions = _at_least(ensemble, len(low), label, float(low[label])) if low[label] > 0 else []
        if high[label] < 1:
            conditions += _at_most(ensemble, len(low), label, float(high[label]))
        least = float(low[label]) if ensemble.link == "softmax" and low[label] > 0 else None
        found.append(Wanted(label, tuple(conditions), least))
    return found


def tangent(ensemble: TreeEnsemble, label: int, least: float, scores: Array) -> Condition:
    """The condition log p(label) >= log(least), linearised at scores (m,): log p is concave in the scores."""
    shifted = np.exp(scores - scores.max())
    proba = shifted / shifted.sum()
    logs = float(np.log(shifted.sum()) + scores.max())
    weights = -proba
    weights[label] += 1
    bound = float(np.log(max(least - _ROUNDING, _LEAST_ODDS))) + logs - float(proba @ scores)
    return Condition(weights, bound * ensemble.divisor, strict=False)


def rounding(ensemble: TreeEnsemble, condition: Condition) -> float:
    """How far the model's own sum may be from the exact one where the condition is just met, in its own arithmetic.

    Each addition rounds by half a unit of the last place of the partial sum S_i. That is no larger than what was added
    so far, and no larger than the final sum, here the least, plus what is still to be added.
    """
    unit = float(np.finfo(ensemble.dtype).eps)  # twice the rounding of one addition
    largest = [float(np.abs(tree.value[tree.column < 0] @ condition.weights).max()) for tree in ensemble.trees]
    terms = np.array([float(np.abs(ensemble.base @ condition.weights)), *largest])
    so_far = np.cumsum(terms)
    to_come = so_far[-1] - so_far + abs(condition.least)
    return float(unit * (np.minimum(so_far, to_come).sum() + 8 * max(1.0, abs(condition.least))))


def _leads(ensemble: TreeEnsemble, label: int, other: int, kappa: float) -> Condition:
    """p(label) - p(other) >= kappa; without kappa a tie goes to the first class.

    Models with one score differ in what they make of a tie, so that there both classes may have it.
    """
    least = 0.0
    if kappa:
        least = kappa - _ROUNDING if ensemble.link == "identity" else _log_odds((1 + kappa) / 2 - _ROUNDING)
    strict = label > other and ensemble.link != "logistic"
    return Condition(_difference(ensemble, label, other), least * ensemble.divisor, strict)


def _at_least(ensemble: TreeEnsemble, k: int, label: int, proba: float) -> list[Condition]:
    """P(label) >= proba: then every other class has no more than the rest."""
    if ensemble.link == "identity":
        weights = np.zeros(len(ensemble.base))
        weights[label] = 1
        return [Condition(weights, (proba - _ROUNDING) * ensemble.divisor, strict=False)]
    least = _log_odds(proba - _ROUNDING) * ensemble.divisor
    return [Condition(_difference(ensemble, label, other), least, strict=False) for other in range(k) if other != label]


def _at_most(ensemble: TreeEnsemble, k: int, label: int, proba: float) -> list[Condition]:
    """P(label) <= proba; nothing for a softmax of several classes, where that is not linear."""
    if ensemble.link == "identity":
        (at_least,) = _at_least(ensemble, k, label, proba + 2 * _ROUNDING)
        return [Condition(-at_least.weights, -at_least.least, strict=False)]
    if k > 2:  # noqa: PLR2004 classes
        return []
    return _at_least(ensemble, k, 1 - label, 1 - proba)


def _difference(ensemble: TreeEnsemble, label: int, other: int) -> Array:
    """The weights (m,) of score(label) - score(other)."""
    weights = np.zeros(len(ensemble.base))
    if ensemble.link == "logistic":
        weights[0] = 1 if label else -1
        return weights
    weights[label], weights[other] = 1, -1
    return weights


def _log_odds(proba: float) -> float:
    return float(np.log(max(proba, _LEAST_ODDS)) - np.log(max(1 - proba, _LEAST_ODDS)))
