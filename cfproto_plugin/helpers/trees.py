"""Tree ensembles as plain arrays: their scores, probabilities and split values, for any library that can say its trees.

All trees are walked at once, one level at a time: the nodes (trees, n) that the rows are at take one step down per
pass. Leaves are added tree by tree, so that sums round as they do in libraries that add in this order, and the scores
of a row do not depend on the other rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from cfproto_plugin.helpers.probabilities import softmax, two_columns
from cfproto_plugin.protocols import Array, Tree, TreeEnsemble

Leaves: TypeAlias = Callable[[Array], Array]

# Measured on forests of 100 trees grown on Breast Cancer and digits, for 1 to 5000 rows.
_CELLS_PER_CHUNK = 50_000  # (trees, rows) walked together; more leave the processor's cache
_LEVELS_PER_SWEEP = 4  # after how many levels the cells that have reached a leaf are set aside
_FEW_ROWS = 64  # for no more rows, walking all trees at once is faster than a compiled walk tree by tree
_CELLS_ADDED_AT_ONCE = 20_000  # for no more values, one cumulative sum is faster than a sum per tree


class _Packed(NamedTuple):
    """The nodes of all trees, level by level; the right child of a node follows its left child.

    The base is a tree of one node, or one per class. A leaf is its own left child, and no value is to the right of its
    threshold NaN.
    """

    roots: Array  # (trees,)
    column: Array  # (nodes,) 0 at a leaf
    threshold: Array  # (nodes,) in the dtype of the comparison
    left: Array  # (nodes,)
    missing_right: Array  # (nodes,) bool
    value: Array  # (nodes, m), or (nodes,) if every tree adds to one score only
    score: Array | None  # (trees,) which score that is
    depth: int
    codes: Array | None  # (sets, codes + 1) bool: which codes go to the right; nodes without categories have set 0
    codes_of: Array  # (nodes,) number of the set


_packed: weakref.WeakKeyDictionary[TreeEnsemble, _Packed] = weakref.WeakKeyDictionary()


def tree_scores(ensemble: TreeEnsemble, x: Array, compiled: Sequence[Leaves] | None = None) -> Array:
    """Return the scores (n, m) of rows x (n, columns), before the link.

    compiled: a function of each tree, rows (n, columns) in the ensemble's dtype to leaves (n,), where the library has
    one: faster for many rows.
    """
    packed = _packed.get(ensemble)
    if packed is None:
        packed = _packed[ensemble] = _pack(ensemble)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
        rows = np.ascontiguousarray(x, dtype=ensemble.dtype)
    if not np.isnan(ensemble.missing):
        rows = np.where(rows == rows.dtype.type(ensemble.missing), rows.dtype.type(np.nan), rows)
    if compiled and len(rows) > _FEW_ROWS:
        return _sum_by_tree(ensemble, packed.score, rows, compiled) / ensemble.divisor
    size = max(1, _CELLS_PER_CHUNK // len(packed.roots))
    scores = np.empty((len(rows), len(ensemble.base)))
    for start in range(0, len(rows), size):
        leaves = _leaves(packed, rows[start : start + size], equal_left=ensemble.equal_left)
        scores[start : start + size] = _sum(packed, leaves, scores.shape[1])
    scores /= ensemble.divisor
    return scores


def tree_probabilities(ensemble: TreeEnsemble, x: Array, compiled: Sequence[Leaves] | None = None) -> Array:
    """Return the probabilities (n, k) of rows x (n, columns). compiled: see `tree_scores`."""
    scores = tree_scores(ensemble, x, compiled)
    if ensemble.link == "logistic":
        from scipy.special import expit

        return two_columns(expit(scores))
    return softmax(scores) if ensemble.link == "softmax" else scores


def tree_thresholds(ensemble: TreeEnsemble) -> list[Array]:
    """Return the sorted split values by column.

    Infinite ones, which split off missing values only, are left out, and so are splits by category.
    """
    columns = np.concatenate([np.zeros(0, dtype=int), *(tree.column for tree in ensemble.trees)])
    values = np.concatenate([np.zeros(0), *(tree.threshold for tree in ensemble.trees)])
    inner = (columns >= 0) & (np.abs(values) < np.finfo(np.float32).max)
    columns, values = columns[inner], values[inner]
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(1, ensemble.n_columns))
    return [np.unique(part) for part in np.split(values[order], starts)]


def _leaves(packed: _Packed, rows: Array, *, equal_left: bool) -> Array:
    """The leaf (trees, n) of every row in every tree."""
    n_trees, (n, width) = len(packed.roots), rows.shape
    cells, has_missing = rows.ravel(), bool(np.isnan(rows).any())
    is_right = np.greater if equal_left else np.greater_equal
    found = node = np.repeat(packed.roots, n)
    start_of_row = np.tile(np.arange(n) * width, n_trees)
    walking: Array | None = None  # which entries of `found` are not at a leaf yet; None for all
    for level in range(1, packed.depth + 1):
        value = cells.take(start_of_row + packed.column.take(node))
        right = is_right(value, packed.threshold.take(node))
        if packed.codes is not None:
            right |= _has_right_code(packed.codes, packed.codes_of.take(node), value)
        if has_missing:
            right |= np.isnan(value) & packed.missing_right.take(node)
        node = packed.left.take(node)
        node += right
        if level % _LEVELS_PER_SWEEP == 0 or level == packed.depth:
            inner = np.flatnonzero(packed.left.take(node) != node)
            if walking is None:
                found, walking = node, inner
            else:
                found[walking] = node
                walking = walking[inner]
            node, start_of_row = node[inner], start_of_row[inner]
    return found.reshape(n_trees, n)


def _has_right_code(codes: Array, number: Array, value: Array) -> Array:
    """Which values (m,) have a code of the set of that number (m,); the last column of codes is that of none."""
    none = codes.shape[1] - 1
    code = np.where((value >= 0) & (value < none), value, none).astype(np.intp)
    return np.asarray(codes[number, code])


def _sum(packed: _Packed, leaves: Array, m: int) -> Array:
    """Add up what the leaves (trees, n) say, in the order of the trees: (n, m)."""
    n = leaves.shape[1]
    if packed.score is not None:
        place = np.add.outer(packed.score, np.arange(n) * m)
        return np.bincount(place.ravel(), packed.value.take(leaves.ravel()), n * m).reshape(n, m)
    if leaves.size * m <= _CELLS_ADDED_AT_ONCE:
        return np.asarray(np.add.accumulate(packed.value.take(leaves, axis=0), axis=0)[-1])
    total = np.zeros((n, m))
    for leaf in leaves:
        total += packed.value.take(leaf, axis=0)
    return total


def _sum_by_tree(ensemble: TreeEnsemble, score: Array | None, rows: Array, compiled: Sequence[Leaves]) -> Array:
    """The same (n, m) from leaves found tree by tree. score: as in `_Packed`."""
    if score is None:
        total = np.tile(np.asarray(ensemble.base, dtype=float), (len(rows), 1))
        for tree, leaves in zip(ensemble.trees, compiled, strict=True):
            total += tree.value.take(leaves(rows), axis=0)
        return total
    by_score = np.repeat(np.asarray(ensemble.base, dtype=float)[:, None], len(rows), axis=1)
    for tree, leaves, k in zip(ensemble.trees, compiled, score[len(ensemble.base) :], strict=True):
        by_score[k] += tree.value[:, k].take(leaves(rows))
    return np.ascontiguousarray(by_score.T)  # a softmax rounds by the order in memory


def _pack(ensemble: TreeEnsemble) -> _Packed:
    trees, score = _with_base(ensemble)
    sizes = np.array([len(tree.column) for tree in trees])
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    column, threshold, left, right, missing_left, value = (
        np.concatenate(part) for part in list(zip(*trees, strict=True))[:6]
    )
    left, right = left + np.repeat(first, sizes), right + np.repeat(first, sizes)
    levels = [first]
    while (inner := levels[-1][column[levels[-1]] >= 0]).size:
        levels.append(np.stack([left[inner], right[inner]], axis=1).ravel())
    order = np.concatenate(levels)
    place = np.zeros(len(column), dtype=np.intp)
    place[order] = np.arange(len(order))
    leaf = column[order] < 0
    value = value[order] if score is None else value[order].sum(axis=1)  # only one is not 0
    codes, codes_of = _code_sets(trees, first)
    return _Packed(
        roots=np.arange(len(first)),
        column=np.where(leaf, 0, column[order]).astype(np.intp),
        threshold=comparable(np.where(leaf, np.nan, threshold[order]), ensemble),
        left=np.where(leaf, np.arange(len(order)), place[np.where(leaf, 0, left[order])]),
        missing_right=~leaf & (missing_left[order] == 0),
        value=value,
        score=score,
        depth=len(levels) - 1,
        codes=codes,
        codes_of=codes_of[order],
    )


def _code_sets(trees: list[Tree], first: Array) -> tuple[Array | None, Array]:
    """The sets (sets, codes + 1) of codes that go to the right, the empty one first; and the set of every node."""
    total = int(first[-1]) + len(trees[-1].column)
    number = np.zeros(total, dtype=np.intp)
    sets: list[Array] = [np.zeros(0, dtype=int)]
    for tree, start in zip(trees, first.tolist(), strict=True):
        for node, codes in (tree.right_codes or {}).items():
            number[start + node] = len(sets)
            sets.append(np.asarray(codes, dtype=int))
    if len(sets) == 1:
        return None, number
    found = np.zeros((len(sets), 2 + max(int(codes.max(initial=-1)) for codes in sets)), dtype=bool)
    for place, codes in enumerate(sets):
        found[place, codes] = True
    return found, number


def _with_base(ensemble: TreeEnsemble) -> tuple[list[Tree], Array | None]:
    """The base as trees of one node, then the trees; and the score that each adds to, None if one adds to several.

    The base comes first because libraries start their sums with it.
    """
    trees = [Tree._make([*map(np.asarray, tree[:6]), tree.right_codes]) for tree in ensemble.trees]
    trees = [tree._replace(value=np.where(tree.column[:, None] < 0, tree.value, 0.0)) for tree in trees]
    used = [(tree.value != 0).any(axis=0) for tree in trees]
    single = all(np.count_nonzero(scores) <= 1 for scores in used)
    base = np.asarray(ensemble.base, dtype=float)
    starts = np.diag(base) if single else base[None]
    root = np.zeros(1, dtype=int)
    first = [Tree(root - 1, np.zeros(1), root, root, root, row[None]) for row in starts]
    score = np.array([*range(len(first)), *(int(scores.argmax()) for scores in used)]) if single else None
    return first + trees, score


def comparable(threshold: Array, ensemble: TreeEnsemble) -> Array:
    """Return thresholds in the dtype of the rows, rounded so that every comparison of such a row comes out the same.

    x <= t holds for the x up to the largest one that is not above t, x < t for those below the smallest not below t.
    """
    near = threshold.astype(ensemble.dtype)
    if ensemble.equal_left:
        return np.where(near > threshold, np.nextafter(near, near.dtype.type(-np.inf)), near)
    return np.where(near < threshold, np.nextafter(near, near.dtype.type(np.inf)), near)
