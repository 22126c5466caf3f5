"""Putting the prototypes of all classes in order of distance. Shared by the providers."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array


def nearest_first(points: Array, classes: Array, distance: Array, allowed: Array) -> tuple[Array, Array]:
    """Sort candidate points (n, m, d) of classes (m,) by distance (n, m), classes not allowed left out.

    A row with fewer than the most repeats its last prototype; a row without any has class -1 throughout.
    """
    distance = np.where(allowed[:, classes] & np.isfinite(distance), distance, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")
    count = np.isfinite(distance).sum(axis=1)
    width = max(1, int(count.max(initial=1)))
    column = np.minimum(np.arange(width), np.maximum(count - 1, 0)[:, None])
    rows = np.arange(len(points))[:, None]
    order = order[rows, column]
    return points[rows, order], np.where(count[:, None] > 0, classes[order], -1)
