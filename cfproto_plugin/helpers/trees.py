"""Tree ensembles as plain arrays: their scores, probabilities and split values, for any library that can say its trees.

All trees are walked at once, one level at a time: (n, trees) nodes take one step down per pass.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from cfproto_plugin.helpers.probabilities import softmax, two_columns
from cfproto_plugin.protocols import Array, TreeEnsemble

_CELLS_PER_CHUNK = 1_000_000  # (rows, trees) nodes walked together


class _Packed(NamedTuple):
    """The nodes of all trees one after the other; a leaf is its own child."""

    roots: Array  # (trees,)
    column: Array  # (nodes,)
    threshold: Array
    children: Array  # (nodes, 2): left, right
    missing_left: Array
    value: Array  # (nodes, m)
    depth: int


_packed: weakref.WeakKeyDictionary[TreeEnsemble, _Packed] = weakref.WeakKeyDictionary()


def tree_scores(ensemble: TreeEnsemble, x: Array) -> Array:
    """Return the scores (n, m) of rows x (n, columns), before the link."""
    packed = _pack(ensemble)
    rows = np.asarray(x).astype(ensemble.dtype)
    scores = np.empty((len(rows), len(ensemble.base)))
    size = max(1, _CELLS_PER_CHUNK // max(1, len(packed.roots)))
    for start in range(0, len(rows), size):
        leaves = _leaves(packed, rows[start : start + size], equal_left=ensemble.equal_left)
        scores[start : start + size] = ensemble.base + packed.value[leaves].sum(axis=1)
    return scores


def tree_probabilities(ensemble: TreeEnsemble, x: Array) -> Array:
    """Return the probabilities (n, k) of rows x (n, columns)."""
    scores = tree_scores(ensemble, x)
    if ensemble.link == "logistic":
        return two_columns(expit(scores))
    return softmax(scores) if ensemble.link == "softmax" else scores


def tree_thresholds(ensemble: TreeEnsemble) -> list[Array]:
    """Return the sorted split values by column. Infinite ones, which split off missing values only, are left out."""
    columns = np.concatenate([np.zeros(0, dtype=int), *(tree.column for tree in ensemble.trees)])
    values = np.concatenate([np.zeros(0), *(tree.threshold for tree in ensemble.trees)])
    inner = (columns >= 0) & (np.abs(values) < np.finfo(np.float32).max)
    columns, values = columns[inner], values[inner]
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(1, ensemble.n_columns))
    return [np.unique(part) for part in np.split(values[order], starts)]


def _leaves(packed: _Packed, rows: Array, *, equal_left: bool) -> Array:
    """The leaf (n, trees) of every row in every tree."""
    node = np.broadcast_to(packed.roots, (len(rows), len(packed.roots)))
    each = np.arange(len(rows))[:, None]
    holes = bool(np.isnan(rows).any())
    for _ in range(packed.depth):
        value, threshold = rows[each, packed.column[node]], packed.threshold[node]
        right = ~(value <= threshold) if equal_left else ~(value < threshold)
        if holes:
            right &= ~(np.isnan(value) & packed.missing_left[node])
        node = packed.children[node, right.view(np.int8)]
    return node


def _pack(ensemble: TreeEnsemble) -> _Packed:
    found = _packed.get(ensemble)
    if found is None:
        found = _packed[ensemble] = _packed_nodes(ensemble)
    return found


def _packed_nodes(ensemble: TreeEnsemble) -> _Packed:
    trees = ensemble.trees
    sizes = np.array([len(tree.column) for tree in trees])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    offset = np.repeat(roots, sizes)
    itself = np.arange(int(sizes.sum()))
    column, threshold, left, right, missing, value = (np.concatenate(part) for part in zip(*trees, strict=True))
    leaf = column < 0
    children = np.stack([np.where(leaf, itself, side + offset) for side in (left, right)], axis=1)
    return _Packed(
        roots,
        np.where(leaf, 0, column),
        threshold.astype(ensemble.dtype),
        children,
        missing,
        np.asarray(value, dtype=float),
        max(_depth(tree.left, tree.right, tree.column) for tree in trees),
    )


def _depth(left: Array, right: Array, column: Array) -> int:
    """The number of steps from the root to the deepest leaf."""
    depth, level = 0, np.zeros(1, dtype=int)
    while (inner := level[column[level] >= 0]).size:
        level = np.concatenate([left[inner], right[inner]])
        depth += 1
    return depth
