"""The association based distance metric (Le and Ho, 2005): categories are close if the other columns look alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cfproto_plugin.distances.frequencies import checked, conditional, dense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.protocols import Array

EPS = 1e-12


class ABDM:
    """d(a, b) = sum over the other columns x_j of Psi(p(x_j | a), p(x_j | b)).

    Psi is the symmetric Kullback-Leibler divergence. The other columns are the other categorical ones and the binned
    numeric ones; without any of them every distance is 0. The labels are not used.
    """

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:  # noqa: ARG002
        context = np.asarray(context)
        columns = list(zip(checked(codes, n_categories, context).T, n_categories, strict=True))
        bins = [dense(column) for column in context.T]
        return [
            sum(
                (divergence(conditional(*column, *other)) for other in columns[:i] + columns[i + 1 :] + bins),
                start=np.zeros((column[1], column[1])),
            )
            for i, column in enumerate(columns)
        ]


def divergence(p: Array) -> Array:
    """sum_k (p_ak - p_bk) · (ln(p_ak + eps) - ln(p_bk + eps)) for all pairs of rows a and b.

    Multiplied out it is s_a + s_b - c_ab - c_ba with c = p · ln(p + eps)^T and s its diagonal: one matrix product.
    """
    cross = p @ np.log(p + EPS).T
    own = np.diagonal(cross)
    return np.asarray(np.maximum(own[:, None] + own - (cross + cross.T), 0))
