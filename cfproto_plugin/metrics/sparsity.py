"""How much of a row was changed. Rows (n, *s) in, one number per row out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.protocols import Array


class ChangedAttributes(NamedTuple):
    """Per row: how many features changed, and to how many different attributes they belong."""

    features: Array
    attributes: Array


def elastic_net(x: Any, x0: Any, beta: float = 0.1) -> Array:
    """EN(delta) = beta · |delta|_1 + |delta|_2^2 with delta = x - x0, the paper's measure of sparsity."""
    return np.asarray(beta * l1(x, x0) + l2(x, x0))


def l0(x: Any, x0: Any, tolerance: float = 0.0) -> Array:
    """How many features moved by more than the tolerance."""
    delta = _delta(x, x0)
    return np.where(np.isnan(delta).any(axis=1), np.nan, (np.abs(delta) > tolerance).sum(axis=1))


def l1(x: Any, x0: Any) -> Array:
    """Sum of |delta| over the features."""
    return np.asarray(np.abs(_delta(x, x0)).sum(axis=1))


def l2(x: Any, x0: Any) -> Array:
    """Sum of delta^2 over the features: the squared norm, as in the paper's objective."""
    return np.asarray(np.square(_delta(x, x0)).sum(axis=1))


def changed_attributes(delta: Any, groups: Sequence[Any], threshold: float = 0.0) -> ChangedAttributes:
    """Count the features with |delta| > threshold, and the attributes they belong to.

    groups: the attribute of every feature. Mean, error and worst radius of the Breast Cancer data are three features of
    one attribute; the paper counts changes of more than one standard deviation, threshold=1 on standardised data.
    """
    delta = np.atleast_2d(np.asarray(delta, dtype=float))
    if len(groups) != delta.shape[1]:
        raise InputError(f"groups names {len(groups)} attributes; expected one for each of {delta.shape[1]} features")
    changed = np.abs(delta) > threshold
    names = np.asarray(groups)
    attributes = [changed[:, names == name].any(axis=1) for name in np.unique(names)]
    return ChangedAttributes(changed.sum(axis=1), np.sum(attributes, axis=0))


def flat(x: Any) -> Array:
    """Rows as vectors of float64: (n, *s) to (n, D)."""
    rows: Array = np.asarray(x, dtype=float)
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _delta(x: Any, x0: Any) -> Array:
    if np.shape(x) != np.shape(x0):
        raise InputError(f"x has shape {np.shape(x)} and x0 {np.shape(x0)}; expected the same rows before and after")
    return flat(x) - flat(x0)
