"""The nearest of many points by all distances: faster than a k-d tree where there are many columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfproto_plugin.helpers.nearest import shortlist, squared_distances, squared_lengths
from cfproto_plugin.protocols import Array

_SPARE = 8  # points measured exactly beside those asked for: with none, rounding leaves the order of most rows open
_CELLS = 4_000_000  # distances that are held at once


class BruteForce:
    """Points (N, D). Distances are matrix products in 32 bits; those that rounding could misplace are measured again.

    What is returned is exact: in order of distance, of equals the first.
    """

    def __init__(self, points: Array) -> None:
        self.points, self._centre = points, points.mean(axis=0)
        self._single = self._narrow(points)
        with np.errstate(over="ignore"):
            self._lengths = squared_lengths(self._single)

    def query(self, z: Array, k: Sequence[int]) -> tuple[Array, Array]:
        """Distances (n, r) and positions (n, r) of the k-th nearest to z (n, D), for ascending k from 1 to N."""
        size = max(1, _CELLS // len(self.points))
        found = [self._nearest(z[i : i + size], k[-1]) for i in range(0, max(len(z), 1), size)]
        distance, index = (np.concatenate(part)[:, np.array(k) - 1] for part in zip(*found, strict=True))
        return distance, index

    def _nearest(self, z: Array, count: int) -> tuple[Array, Array]:
        """Distances and positions (n, count) of the nearest to z (n, D), in order."""
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 32 bits are measured again
            rows = self._narrow(z)
            near = squared_distances(rows, self._single, self._lengths)
            at = np.sort(shortlist(near, count + _SPARE), axis=1)
            distance, index = self._exact(z, at, count)
            # Sums of D products in 32 bits are off by at most c (|z|^2 + |p|^2), and |p|^2 <= 2 |z|^2 + 2 |z - p|^2.
            c = (z.shape[1] + 16) * float(np.finfo(np.float32).eps)
            limit = (1 + 2 * c) * np.square(distance[:, -1]) + 3 * c * squared_lengths(rows.astype(np.float64))
            edge = np.take_along_axis(near, at, axis=1).max(axis=1)
            for row in np.flatnonzero(~(edge > limit) & (at.shape[1] < len(self.points))).tolist():
                wider = np.flatnonzero(~(near[row] > limit[row]))[None]
                distance[[row]], index[[row]] = self._exact(z[[row]], wider, count)
        return distance, index

    def _exact(self, z: Array, at: Array, count: int) -> tuple[Array, Array]:
        """The nearest `count` of points at (n, m), which ascend: distances and positions (n, count)."""
        distance = np.sqrt(np.square(self.points[at] - z[:, None]).sum(axis=2, dtype=np.float64))
        order = np.argsort(distance, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(distance, order, axis=1), np.take_along_axis(at, order, axis=1)

    def _narrow(self, z: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(z - self._centre, dtype=np.float32)
