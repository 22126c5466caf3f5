"""The trees of a booster as it saves them in JSON."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cfproto_plugin.protocols import Array, Tree

_ASCII = 128  # letters that are one byte
_LEAST = np.float32(1e-6)  # XGBoost keeps base scores this far from 0 and 1


def one_tree(tree: dict[str, Any], group: int, weight: float, n_groups: int) -> Tree:
    """One saved tree, with the values of its leaves in the column of its group."""
    left, right = np.asarray(tree["left_children"]), np.asarray(tree["right_children"])
    at = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)  # at a leaf its value
    by_category = (left != -1) & (np.asarray(tree["split_type"]) == 1)
    value = np.zeros((len(left), n_groups))
    value[:, group] = np.where(left == -1, weight * at, 0.0)
    column = np.where(left != -1, np.asarray(tree["split_indices"]), -1)
    threshold = np.where(by_category, np.nan, at)
    return Tree(column, threshold, left, right, np.asarray(tree["default_left"]) != 0, value, _codes(tree))


def log_odds(base: Array) -> Array:
    """The margins of base scores (m,), in the arithmetic of XGBoost: in float32 that of 0.999999 is off by 0.07."""
    one = np.float32(1)
    return np.asarray(-np.log(one / base.astype(np.float32).clip(_LEAST, one - _LEAST) - one), dtype=float)


def is_plain(tree: dict[str, Any]) -> bool:
    """One value per leaf."""
    return int(tree["tree_param"]["size_leaf_vector"]) <= 1


def splits_by_category(tree: dict[str, Any]) -> bool:
    """Whether a tree has splits by category."""
    return any(tree["split_type"])


def categories_of(model: dict[str, Any]) -> dict[int, tuple[Any, ...]] | None:
    """By column, the categories of the frame that a model was trained on, in the order of their codes.

    Words are saved as the bytes of all of them, one after the other, and where each begins. None if that cannot be
    told: XGBoost 3.2 counts letters, not bytes, and models of versions before 3.1 do not say their categories.
    """
    if "cats" not in model:
        return None
    found: dict[int, tuple[Any, ...]] = {}
    for column, each in enumerate(model["cats"]["enc"]):
        words = each["values"]
        if "offsets" in each:
            if not all(0 <= byte < _ASCII for byte in words):
                return None
            text, starts = bytes(words).decode(), each["offsets"]
            words = [text[i:j] for i, j in pairwise(starts)]
        if words:
            found[column] = tuple(words)
    return found


def _codes(tree: dict[str, Any]) -> dict[int, Array]:
    """By node that splits by category, the codes that go to the right."""
    nodes, starts, sizes = (tree[f"categories_{name}"] for name in ("nodes", "segments", "sizes"))
    codes = np.asarray(tree["categories"], dtype=int)
    return {node: codes[start : start + size] for node, start, size in zip(nodes, starts, sizes, strict=True)}
