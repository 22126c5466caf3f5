"""Shapley values of the m changes of a counterfactual: pure numbers, no model.

phi_j = sum over sets S of changes without j of |S|! (m - |S| - 1)! / m! · (v(S + j) - v(S)); they add up to
v(all) - v(none).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cfproto_plugin.protocols import Array


def all_masks(m: int) -> Array:
    """(2^m, m) bool: every set of m changes. Set number i holds change j if bit j of i is 1: none first, all last."""
    return (np.arange(2**m)[:, None] >> np.arange(m) & 1).astype(bool)


def shapley(values: Array) -> Array:
    """(m,) from the values (2^m,) of all sets, in the order of `all_masks`."""
    m = len(values).bit_length() - 1
    number = np.arange(2**m)
    size = all_masks(m).sum(axis=1)
    weight = np.array([math.factorial(s) * math.factorial(m - s - 1) / math.factorial(m) for s in range(m)])
    found = np.empty(m)
    for j in range(m):
        without = number[number >> j & 1 == 0]
        found[j] = weight[size[without]] @ (values[without | 1 << j] - values[without])
    return found


def orders(m: int, pairs: int, seed: int) -> Array:
    """(2 pairs, m) random orders of m changes, each followed by its reverse: their errors tend to cancel."""
    random = np.random.default_rng((seed, m))
    forward = np.stack([random.permutation(m) for _ in range(pairs)])
    return np.stack([forward, forward[:, ::-1]], axis=1).reshape(2 * pairs, m)


def order_masks(order: Array) -> Array:
    """(s, m - 1, m) bool: the first 1, 2, ..., m - 1 changes of orders (s, m)."""
    rank = np.argsort(order, axis=1)
    return np.asarray(rank[:, None, :] < np.arange(1, order.shape[1])[:, None])


def sampled_shapley(order: Array, values: Array) -> tuple[Array, Array]:
    """(m,) the mean over orders (2p, m) of what a change adds when its turn comes, and its standard error.

    values: (2p, m + 1) of the first 0, 1, ..., m changes of every order. Every order adds up to the whole, and so does
    the mean. The error is that of the mean of p pairs.
    """
    added = np.empty(order.shape)
    np.put_along_axis(added, order, np.diff(values, axis=1), axis=1)
    pairs = added.reshape(-1, 2, order.shape[1]).mean(axis=1)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / math.sqrt(len(pairs))
