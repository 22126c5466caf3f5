"""Trust scores: how much nearer a counterfactual is to its new class than to the class it comes from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfproto_plugin.integrations.alibi.prototypes import Guide, Prototypes
from cfproto_plugin.protocols import Array

Trust = Callable[[Array, Array, Array], Array]


def trust_of(guide: Guide, encode: Callable[[Array], Array] | None, label: Array, found: Prototypes) -> Trust:
    """Points (m, D), their classes (m,) and rows (m,) -> distance to the row's class over that to their own (m,).

    The distance to a class is that to its nearest training row, or with an encoder, in codes, to the prototype of the
    class for the row. label: (n,) classes of the rows. A class without training rows is infinitely far.
    """
    column = {int(label): number for number, label in enumerate(guide.classes)}

    def trust(points: Array, reached: Array, row: Array) -> Array:
        if not len(points):
            return np.zeros(0)
        if encode is None:
            distance = guide.prototypes(points, 1, "point").distance
        else:
            gap = encode(points)[:, None] - found.points[row]
            distance = np.linalg.norm(gap.reshape(*gap.shape[:2], -1), axis=2)
        distance = np.concatenate([distance, np.full((len(points), 1), np.inf)], axis=1)
        old, new = ([column.get(int(each), -1) for each in labels] for labels in (label[row], reached))
        lines = np.arange(len(points))
        return np.asarray(distance[lines, old] / np.maximum(distance[lines, new], np.finfo(float).tiny))

    return trust
