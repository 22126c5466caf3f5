"""ABDM and MVDM together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfproto_plugin.distances.abdm import ABDM
from cfproto_plugin.distances.mvdm import MVDM
from cfproto_plugin.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.protocols import Array


class Mix:
    """weight · ABDM + (1 - weight) · MVDM, each divided by its largest distance in any column.

    ABDM is unbounded (tens on real tables) and MVDM at most 2, so unscaled ABDM alone would decide. One factor for all
    columns of a metric keeps what the metric says of the columns: one whose categories hardly differ stays narrow.
    """

    def __init__(self, weight: float = 0.5, alpha: float = 1.0) -> None:
        if not 0 <= weight <= 1:
            raise ConfigError(f"weight of the distance 'abdm-mvdm' is {weight!r}; expected a number from 0 to 1.")
        self.weight = weight
        self._abdm, self._mvdm = ABDM(), MVDM(alpha)

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:
        abdm, mvdm = (_unit(metric(codes, n_categories, context, labels)) for metric in (self._abdm, self._mvdm))
        return [self.weight * a + (1 - self.weight) * m for a, m in zip(abdm, mvdm, strict=True)]


def _unit(matrices: list[Array]) -> list[Array]:
    largest = max((matrix.max(initial=0) for matrix in matrices), default=0)
    return [matrix / largest for matrix in matrices] if largest > 0 else matrices
