"""The nearest of many points, and the prototypes of all classes in order of distance, for any provider."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array

_GROUP = 64  # columns of a group


def nearest_first(points: Array, classes: Array, distance: Array, allowed: Array) -> tuple[Array, Array]:
    """Sort points (n, m, d) of classes (m,) by distance (n, m); allowed (n, K) says which classes each row may have.

    Returns points (n, w, d) and classes (n, w), where w is the largest number of allowed points of any row. A row with
    fewer repeats its last one; a row without any has class -1. Points at an infinite or NaN distance are left out.
    """
    distance = np.where(allowed[:, classes] & np.isfinite(distance), distance, np.inf)
    order = distance.argsort(axis=1, kind="stable")
    count = np.isfinite(distance).sum(axis=1)
    width = max(1, int(count.max(initial=1)))
    column = np.minimum(np.arange(width), np.maximum(count - 1, 0)[:, None])
    rows = np.arange(len(points))[:, None]
    order = order[rows, column]
    return points[rows, order], np.where(count[:, None] > 0, classes[order], -1)


def squared_lengths(points: Array) -> Array:
    """|point|^2 of points (N, D): (N,)."""
    return np.asarray(np.einsum("nd,nd->n", points, points))


def squared_distances(rows: Array, points: Array, lengths: Array | None = None) -> Array:
    """|row - point|^2 of all pairs (n, N) of rows (n, D) and points (N, D), up to rounding.

    lengths: (N,) the squared lengths of the points, if they are known.
    """
    found = (-2 * rows) @ points.T
    found += squared_lengths(points) if lengths is None else lengths
    found += squared_lengths(rows)[:, None]
    return np.asarray(found)


def shortlist(distance: Array, count: int) -> Array:
    """Positions (n, count) of the smallest of distances (n, N), in no order; all of them if count is N or more.

    The `count` smallest lie in the `count` groups of columns whose own smallest are smallest; only these are sorted.
    """
    n, width = distance.shape
    if count >= width:
        return np.broadcast_to(np.arange(width), distance.shape)
    groups = width // _GROUP
    if groups <= 2 * count:
        return np.argpartition(distance, count - 1, axis=1)[:, :count]
    least = distance[:, : groups * _GROUP].reshape(n, groups, _GROUP).min(axis=2)
    chosen = np.argpartition(least, count - 1, axis=1)[:, :count, None] * _GROUP + np.arange(_GROUP)
    rest = np.broadcast_to(np.arange(groups * _GROUP, width), (n, width - groups * _GROUP))
    some = np.concatenate([chosen.reshape(n, -1), rest], axis=1)
    best = np.argpartition(np.take_along_axis(distance, some, axis=1), count - 1, axis=1)[:, :count]
    return np.take_along_axis(some, best, axis=1)
