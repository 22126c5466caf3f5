"""Prototypes that stand for groups of a class: each is a training row in the middle of its group."""

from __future__ import annotations

from typing import Self

import numpy as np
from cfproto_plugin.helpers import nearest_first
from cfproto_plugin.protocols import Array

_ROUNDS = 100


class MedoidPrototypes:
    """The prototypes of a class are its k-medoids: rows M that minimise sum_i min_(m in M) |x_i - m|^2.

    With squared distances the medoid of a group is its row nearest to the group's mean, because
    sum_i |x_i - m|^2 = n |mean - m|^2 + a constant. So every round is linear in the number of rows: each row joins its
    nearest medoid, each group takes its own medoid, until nothing changes. The start is drawn as in k-means++.

    Beside k-d trees, which lead to the nearest row of a class however odd it is, medoids lead to typical rows.

    per_class: how many medoids each class has; a class with fewer different rows offers them all.
    seed: of the start. The points lie in the search space: an encoder is not used, neither are k and k_type.
    """

    def __init__(self, *, per_class: int = 8, seed: int = 0) -> None:
        self.per_class = per_class
        self.seed = seed

    def fit(self, z: Array, labels: Array) -> Self:
        flat = z.reshape(len(z), -1)
        rng = np.random.default_rng(self.seed)
        medoids = {label: _medoids(flat[labels == label], self.per_class, rng) for label in np.unique(labels).tolist()}
        self.points_ = np.concatenate(list(medoids.values()))
        self.classes_ = np.repeat(list(medoids), [len(points) for points in medoids.values()])
        return self

    def nearest(self, z0: Array, allowed: Array) -> tuple[Array, Array]:
        """Return the medoids of the allowed classes, nearest first."""
        flat = z0.reshape(len(z0), -1)
        medoids = np.broadcast_to(self.points_.astype(z0.dtype, copy=False), (len(z0), *self.points_.shape))
        points, classes = nearest_first(medoids, self.classes_, _squared(flat, self.points_), allowed)
        return points.reshape(*points.shape[:2], *z0.shape[1:]), classes


def _medoids(x: Array, k: int, rng: np.random.Generator) -> Array:
    points = _start(x, k, rng)
    for _ in range(_ROUNDS):
        group = _squared(x, points).argmin(axis=1)
        moved = np.stack([_middle(x[group == i]) for i in range(len(points))])
        if np.array_equal(moved, points):
            break
        points = moved
    return points


def _start(x: Array, k: int, rng: np.random.Generator) -> Array:
    """The middle of all rows, then rows drawn in proportion to their squared distance to the nearest chosen."""
    chosen = [_middle(x)]
    nearest = _squared(x, chosen[0][None])[:, 0]
    while len(chosen) < k and nearest.any():
        chosen.append(x[rng.choice(len(x), p=nearest / nearest.sum())])
        nearest = np.minimum(nearest, _squared(x, chosen[-1][None])[:, 0])
    return np.stack(chosen)


def _middle(x: Array) -> Array:
    """The row nearest to the mean of the rows."""
    return np.asarray(x[_squared(x, x.mean(axis=0)[None])[:, 0].argmin()])


def _squared(a: Array, b: Array) -> Array:
    """Squared distances (n, m) between the rows of a and of b; one column per b keeps the memory small."""
    return np.stack([((a - point) ** 2).sum(axis=1) for point in b.astype(np.float64)], axis=1)
