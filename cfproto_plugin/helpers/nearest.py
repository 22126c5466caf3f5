"""The prototypes of all classes in order of distance, for any provider."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array


def nearest_first(points: Array, classes: Array, distance: Array, allowed: Array) -> tuple[Array, Array]:
    """Sort points (n, m, d) of classes (m,) by distance (n, m); allowed (n, K) says which classes each row may have.

    Returns points (n, w, d) and classes (n, w), where w is the largest number of allowed points of any row. A row with
    fewer repeats its last one; a row without any has class -1. Points at an infinite or NaN distance are left out.
    """
    distance = np.where(allowed[:, classes] & np.isfinite(distance), distance, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")
    count = np.isfinite(distance).sum(axis=1)
    width = max(1, int(count.max(initial=1)))
    column = np.minimum(np.arange(width), np.maximum(count - 1, 0)[:, None])
    rows = np.arange(len(points))[:, None]
    order = order[rows, column]
    return points[rows, order], np.where(count[:, None] > 0, classes[order], -1)
