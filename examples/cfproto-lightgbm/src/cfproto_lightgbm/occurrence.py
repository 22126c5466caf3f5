"""How different two categories are, judged by nothing but how often they occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cfproto_plugin.protocols import Array


class OccurrenceDistance:
    """d(a, b) = ln p(a) · ln p(b) for a != b, the occurrence frequency measure of Boriah, Chandola and Kumar (2008).

    p(a) = (rows with a + 1) / (rows + categories), so that a category without rows has a distance as well. Frequent
    categories are near each other, rare ones far from each other. The context and the labels are not used.
    """

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:  # noqa: ARG002
        return [_distances(column, n) for column, n in zip(np.asarray(codes).T, n_categories, strict=True)]


def _distances(column: Array, n: int) -> Array:
    rarity = np.log(len(column) + n) - np.log(np.bincount(column, minlength=n) + 1)
    distances = np.outer(rarity, rarity)
    np.fill_diagonal(distances, 0.0)
    return distances
