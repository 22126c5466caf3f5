"""A model in XGBoost's JSON, looked at before XGBoost reads it.

XGBoost follows the numbers of children and columns without a question: a file that was made to do harm would make it
read and write beyond its memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError

_NODES = (
    *("left_children", "right_children", "parents", "split_indices", "split_conditions", "default_left", "split_type"),
    *("loss_changes", "sum_hessian"),
)
_MOST_CATEGORIES = 2**24
_FEW_BRACKETS = 1000
_MOST_GROUPS = 10_000  # classes of a model without trees


def check_json(path: Path) -> None:
    """Raise InputError if the trees of a model are none, or if its sizes do not belong together."""
    try:
        text = path.read_bytes()
        brackets = text.count(b"[") + text.count(b"{")  # a list takes far more memory than text; a tree has about 20
        _require(brackets <= _FEW_BRACKETS + len(text) // 10, f"it has {brackets:,} lists in {len(text):,} bytes")
        learner = json.loads(text)["learner"]
        columns, booster = int(learner["learner_model_param"]["num_feature"]), learner["gradient_booster"]
        groups = max(1, *(int(learner["learner_model_param"].get(name, 1)) for name in ("num_class", "num_target")))
        if booster["name"] == "gblinear":
            _require(len(booster["model"]["weights"]) == (columns + 1) * groups, "its weights are not one per column")
            return
        model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
        trees = model["trees"]
        told = {int(group) + 1 for group in model["tree_info"]}  # every class has a tree, or a value in the leaves
        leaves = {int(tree["tree_param"]["size_leaf_vector"]) for tree in trees}
        most = max(told | leaves | {1 if trees else _MOST_GROUPS})
        _require(groups <= most, f"it declares {groups} classes for {len(trees)} trees")
        _require(len(model["tree_info"]) == len(trees), "its trees are not all told a class")
        _require(
            all(0 <= int(group) < groups for group in model["tree_info"]), "a tree is of a class that there is not"
        )
        _require(int(model["gbtree_model_param"]["num_trees"]) == len(trees), "it declares another number of trees")
        _check_rounds(model.get("iteration_indptr"), len(trees))
        if booster["name"] == "dart":
            _require(len(booster["weight_drop"]) == len(trees), "its trees do not all have a weight")
        for tree in trees:
            _check_tree(tree, columns, groups)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
        why = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise InputError(f"{path.name} is no model that XGBoost wrote: {why}") from error


def _check_rounds(starts: Any, trees: int) -> None:
    """The first trees of the rounds of training, which XGBoost before 2.0 does not write, and the number of trees."""
    if starts is None:
        return
    good = isinstance(starts, list) and all(type(start) is int for start in starts)
    good = good and starts[:1] == [0] and starts[-1] == trees and starts == sorted(starts)
    _require(good, f"its rounds start at the trees {str(starts)[:80]}; expected numbers that rise from 0 to {trees}")


def _check_tree(tree: dict[str, Any], columns: int, groups: int) -> None:
    nodes = {name: np.asarray(tree[name]) for name in _NODES}
    n = len(nodes["parents"])
    _require(all(each.shape == (n,) for each in nodes.values()) and n > 0, "the nodes of a tree are not complete")
    _require(int(tree["tree_param"]["num_nodes"]) == n, "a tree declares another number of nodes")
    size = max(1, int(tree["tree_param"]["size_leaf_vector"]))  # values of a leaf
    _require(size in {1, groups}, "the leaves of a tree have not as many values as there are classes")
    _require(len(tree["base_weights"]) == size * n, "the nodes of a tree do not all have a weight")
    left, right, parents, column = (nodes[name].astype(np.int64) for name in _NODES[:4])
    seen = np.zeros(n, dtype=bool)  # what is not reached from the root was pruned
    level = np.array([0])
    while len(level):
        seen[level] = True
        inner = level[left[level] != -1]
        level = np.concatenate([left[inner], right[inner]])
        _require(bool(((level >= 0) & (level < n)).all()), "a node of a tree has an unknown child")
        _require(bool(((column[inner] >= 0) & (column[inner] < columns)).all()), "a tree splits an unknown column")
        _require(not seen[level].any() and len(np.unique(level)) == len(level), "the nodes of a tree form a circle")
        _require(bool((parents[level] == np.tile(inner, 2)).all()), "a node of a tree has another parent")
    if "leaf_weights" in tree:  # of leaves with several values; the right child of a leaf is then its place
        place, count = right[seen & (left == -1)], len(tree["leaf_weights"]) // size
        _require(bool(((place >= 0) & (place < count)).all()), "a leaf of a tree has no values")
    _check_categories(tree, n)


def _check_categories(tree: dict[str, Any], n: int) -> None:
    parts = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    values, nodes, starts, sizes = (np.asarray(tree[name], dtype=np.int64) for name in parts)
    good = len(nodes) == len(starts) == len(sizes) and len(np.unique(nodes)) == len(nodes)
    good = good and all(each.ndim == 1 for each in (values, nodes, starts, sizes))
    good = good and bool(((nodes >= 0) & (nodes < n)).all() and ((values >= 0) & (values < _MOST_CATEGORIES)).all())
    good = good and bool(((starts >= 0) & (sizes >= 0) & (starts + sizes <= len(values))).all())
    _require(good, "the categories of a tree do not belong to its nodes")
    by_category = set(np.flatnonzero(np.asarray(tree["split_type"]) == 1).tolist())
    _require(by_category == set(nodes.tolist()), "a split by category has no categories")


def _require(good: bool, otherwise: str) -> None:
    if not good:
        raise InputError(otherwise)
