"""The trees of a booster as it saves them in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.protocols import Tree


def one_tree(tree: dict[str, Any], group: int, weight: float, n_groups: int) -> Tree:
    """One saved tree, with the values of its leaves in the column of its group."""
    left, right = np.asarray(tree["left_children"]), np.asarray(tree["right_children"])
    at = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)  # at a leaf its value
    is_split = (left != -1) & (np.asarray(tree["split_type"]) == 0)
    value = np.zeros((len(left), n_groups))
    value[:, group] = np.where(left == -1, weight * at, 0.0)
    column = np.where(is_split, np.asarray(tree["split_indices"]), -1)
    return Tree(column, at, left, right, np.asarray(tree["default_left"]) != 0, value)


def is_plain(tree: dict[str, Any]) -> bool:
    """No splits by category, one value per leaf."""
    return int(tree["tree_param"]["size_leaf_vector"]) <= 1 and not any(tree["split_type"])
