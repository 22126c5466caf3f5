"""How typical points are of a class: the conformal p-value of their isolation among the class's training rows.

The isolation of a point is its mean distance to its nearest rows of the class, divided by the same distance of these
rows themselves: about 1 inside the class, wherever it is dense or thin, and larger outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from cfproto_plugin.protocols import Array

NEIGHBOURS = 15
MOST_ROWS = 2000  # of a class that points are compared with; of more, as many are drawn
_LEAST_ROWS = 2  # of a class: with fewer nothing is typical or untypical
_THIN = 0.25  # share of the class's mean distance: rows that are closer to each other, such as doubles, count as this
_ROUNDING = 1e-9
_FEW_COLUMNS = 8  # up to which a tree finds neighbours faster than all distances do
_CELLS = 4_000_000  # numbers of the largest array of distances


class Typicality:
    """Learned from the training rows z (N, D) and their classes (N,), in the units of the search without weights."""

    def __init__(self, z: Array, labels: Array, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.classes = {}
        for label in np.unique(labels).tolist():
            rows = (labels == label).nonzero()[0]
            if len(rows) > MOST_ROWS:
                rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
            if len(rows) >= _LEAST_ROWS:
                self.classes[label] = _Class.of(z[rows].astype(float))

    def __call__(self, z: Array, labels: Array) -> Array:
        """The share (m,) of the class's rows that are at least as isolated as points z (m, D); NaN in tiny classes."""
        found = np.full(len(z), np.nan)
        for label in set(labels.tolist()):
            if label in self.classes:
                at = labels == label
                found[at] = self.classes[label].typicality(z[at].astype(float))
        return found

    def described(self) -> dict[str, Any]:
        """What is measured, and by how many rows of each class."""
        return {
            "measure": f"mean distance to {NEIGHBOURS} rows of the class, over that of these rows",
            "rows": [len(each.rows) for each in self.classes.values()],
        }


class _Class(NamedTuple):
    """The rows of one class."""

    rows: Array  # (m, D)
    around: Array  # (m,) the mean distance of each to its nearest, itself left out
    isolation: Array  # (m,) sorted

    @classmethod
    def of(cls, rows: Array) -> Self:
        distance, _ = _nearest(rows, rows)
        around = distance.mean(axis=1)
        around = np.maximum(around, _THIN * around.mean() or 1.0)  # 1 where all rows are the same
        known = cls(rows, around, np.zeros(0))
        return known._replace(isolation=np.sort(known.isolated(rows)))

    def isolated(self, z: Array) -> Array:
        """How isolated points (q, D) are; a row of the class itself is not its own neighbour."""
        distance, at = _nearest(z, self.rows)
        return np.asarray(_mean(distance) / _mean(self.around[at]))

    def typicality(self, z: Array) -> Array:
        isolated = self.isolated(z) * (1 - _ROUNDING)
        more = len(self.isolation) - self.isolation.searchsorted(isolated)
        return np.asarray((1 + more) / (1 + len(self.isolation)))


def _mean(values: Array) -> Array:
    """Of every row (q, k): as `values.mean(axis=1)`, in a third of its time for a single row."""
    return np.asarray(np.add.reduce(values, axis=1) / values.shape[1])


def _nearest(z: Array, rows: Array) -> tuple[Array, Array]:
    """Distances and positions (q, k) of the nearest rows (m, D) of points (q, D); one at distance 0 is left out."""
    count = min(NEIGHBOURS + 1, len(rows))
    size = max(1, _CELLS // len(rows))
    parts = [_nearest_of(z[at : at + size], rows, count) for at in range(0, max(len(z), 1), size)]
    distance, found = parts[0] if len(parts) == 1 else (np.concatenate(part) for part in zip(*parts, strict=True))
    same = (distance[:, :1] == 0).astype(int)
    each, places = np.arange(len(distance))[:, None], np.arange(count - 1) + same
    return distance[each, places], found[each, places]


def _nearest_of(z: Array, rows: Array, count: int) -> tuple[Array, Array]:
    if rows.shape[1] <= _FEW_COLUMNS:
        from scipy.spatial import KDTree

        distance, at = KDTree(rows).query(z, k=range(1, count + 1))
        return np.asarray(distance), np.asarray(at)
    from scipy.spatial.distance import cdist

    distance = cdist(z, rows, "sqeuclidean")
    at = np.argpartition(distance, count - 1, axis=1)[:, :count] if count < len(rows) else _all(distance)
    each = np.arange(len(z))[:, None]
    near = distance[each, at]
    order = np.lexsort((at, near), axis=1)
    return np.sqrt(near[each, order]), at[each, order]


def _all(distance: Array) -> Array:
    return np.broadcast_to(np.arange(distance.shape[1]), distance.shape)
