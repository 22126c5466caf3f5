"""The modified value distance metric (Cost and Salzberg, 1993): categories are close if their classes are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cfproto_plugin.distances.frequencies import checked, conditional, dense
from cfproto_plugin.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.protocols import Array


class MVDM:
    """d(a, b) = sum over the classes i of |p(i | a) - p(i | b)|^alpha. The context is not used."""

    def __init__(self, alpha: float = 1.0) -> None:
        if not alpha > 0:
            raise ConfigError(f"alpha of the distance 'mvdm' is {alpha!r}; expected a number above 0.")
        self.alpha = alpha

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:  # noqa: ARG002
        labels = np.asarray(labels).reshape(-1)
        columns = zip(checked(codes, n_categories, labels).T, n_categories, strict=True)
        return [self._distances(conditional(*column, *dense(labels))) for column in columns]

    def _distances(self, p: Array) -> Array:
        total = np.zeros((len(p), len(p)))
        for of_class in p.T:
            total += np.abs(of_class[:, None] - of_class) ** self.alpha
        return total
