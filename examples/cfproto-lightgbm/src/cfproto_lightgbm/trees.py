"""LightGBM's own description of a model, `Booster.dump_model()`, as arrays."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
from cfproto_plugin.protocols import Tree, TreeEnsemble

ZERO = float(np.float32(1e-35))  # with zero_as_missing, numbers from -ZERO to ZERO count as missing
SIDES = ("left_child", "right_child")


class Dump:
    """What the description says.

    plain: whether every split is x <= t with one side for missing values, and every leaf a constant. Otherwise the
    trees have the right splits by number, which `tree_thresholds` reads, and nothing else is right.
    zeros: the columns in which numbers next to zero go where missing values go.
    """

    def __init__(self, dump: dict[str, Any]) -> None:
        settings = str(dump.get("objective", "custom"))  # such as "binary sigmoid:1"
        self.objective = settings.partition(" ")[0]
        self.n_columns = len(dump["feature_names"])
        self.n_scores = int(dump["num_tree_per_iteration"])
        made_up = [f"Column_{i}" for i in range(self.n_columns)]  # what arrays get
        self.feature_names: list[str] | None = None if dump["feature_names"] == made_up else dump["feature_names"]
        trees = [_nodes(tree["tree_structure"]) for tree in dump["tree_info"]]
        inner = [node for nodes in trees for node in nodes if "split_feature" in node]
        self.linear = any("leaf_coeff" in node for nodes in trees for node in nodes)
        self.zeros = {node["split_feature"] for node in inner if node["missing_type"] == "Zero"}
        self.plain = not (self.linear or self.zeros) and all(node["decision_type"] == "<=" for node in inner)
        slope = re.search(r"sigmoid:(\S+)", settings)
        factor = float(slope[1]) if slope else 1.0
        if dump["average_output"]:  # a forest
            factor /= len(trees) // self.n_scores
        self._trees = tuple(_tree(nodes, i % self.n_scores, self.n_scores, factor) for i, nodes in enumerate(trees))

    def ensemble(self, link: Literal["identity", "softmax", "logistic"]) -> TreeEnsemble:
        """All trees. LightGBM compares in double precision, and equality goes to the left."""
        base = np.zeros(self.n_scores)
        return TreeEnsemble(self._trees, base, self.n_columns, link, equal_left=True, dtype="float64")


def _nodes(root: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a tree, parents first."""
    nodes = [root]
    for node in nodes:
        nodes.extend(node[side] for side in SIDES if side in node)
    return nodes


def _tree(nodes: list[dict[str, Any]], score: int, n_scores: int, factor: float) -> Tree:
    """The nodes as arrays. NaN is taken for zero where training saw no missing values."""
    place = {id(node): i for i, node in enumerate(nodes)}
    left, right = (np.array([place.get(id(node.get(side)), 0) for node in nodes]) for side in SIDES)
    numeric = [node.get("decision_type") == "<=" for node in nodes]
    column = [node["split_feature"] if split else -1 for node, split in zip(nodes, numeric, strict=True)]
    threshold = [float(node["threshold"]) if split else 0.0 for node, split in zip(nodes, numeric, strict=True)]
    missing = [
        node["default_left"] if node.get("missing_type") == "NaN" else at >= 0
        for node, at in zip(nodes, threshold, strict=True)
    ]
    value = np.zeros((len(nodes), n_scores))
    value[:, score] = [factor * node.get("leaf_value", 0.0) for node in nodes]
    return Tree(np.array(column), np.array(threshold), left, right, np.array(missing), value)
