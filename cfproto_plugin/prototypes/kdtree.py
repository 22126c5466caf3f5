"""Prototypes from class-wise k-d trees: the paper's algorithm 2."""

from __future__ import annotations

from typing import Self

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.helpers.nearest import nearest_first
from cfproto_plugin.protocols import Array
from cfproto_plugin.prototypes.brute import BruteForce

_WIDE, _CELLS = 16, 20_000  # columns and numbers of a class from which all distances take less time than a tree


class KDTreePrototypes:
    """proto_j = the k-th nearest training item x_{j,k} of the class j whose x_{j,k} is closest to x0.

    per_class: how many items of each class to offer, from the k-th nearest on. The first is the paper's prototype.
    A class with fewer than k items offers its farthest. In wide tables all distances are compared instead of a tree:
    the same items in less time.
    """

    def __init__(self, *, k: int | None = 1, per_class: int = 1) -> None:
        if k is None:
            raise ConfigError("k is 'all', the mean of a whole class, which needs an encoder; k-d trees take a number")
        self.k = k
        self.per_class = per_class

    def fit(self, z: Array, labels: Array) -> Self:
        from scipy.spatial import KDTree

        flat = z.reshape(len(z), -1)
        self.classes_ = np.unique(labels)
        self.points_ = [flat[labels == label] for label in self.classes_]
        self.trees_ = [BruteForce(p) if _is_wide(p) else KDTree(p) for p in self.points_]
        return self

    def nearest(self, z0: Array, allowed: Array) -> tuple[Array, Array]:
        flat = z0.reshape(len(z0), -1)
        points, classes, distances = [], [], []
        wanted = allowed[:, self.classes_].any(axis=0)
        for at in np.flatnonzero(wanted) if wanted.any() else (0,):
            label, tree, items = self.classes_[at], self.trees_[at], self.points_[at]
            first = min(self.k, len(items))
            ranks = list(range(first, min(first + self.per_class, len(items) + 1)))
            distance, index = np.full((len(flat), len(ranks)), np.inf), np.zeros((len(flat), len(ranks)), dtype=int)
            rows = allowed[:, label].nonzero()[0]
            if len(rows):
                distance[rows], index[rows] = tree.query(flat[rows], k=ranks)
            points.append(items[index].astype(flat.dtype, copy=False))
            distances.append(distance)
            classes += [label] * len(ranks)
        stacked = np.concatenate(points, axis=1)
        found, found_classes = nearest_first(stacked, np.array(classes), np.concatenate(distances, axis=1), allowed)
        return found.reshape(*found.shape[:2], *z0.shape[1:]), found_classes


def _is_wide(points: Array) -> bool:
    """Whether all distances to these items (N, D) are likely to take less time than a search of their tree."""
    return bool(points.shape[1] >= _WIDE and points.size >= _CELLS)
