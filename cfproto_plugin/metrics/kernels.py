"""Kernels and the maximum mean discrepancy (MMD) between samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.metrics.sparsity import flat
from cfproto_plugin.protocols import Array

Kernel: TypeAlias = Callable[[Array, Array], Array]


def imq_kernel(x: Any, y: Any, c: float = 1.0) -> Array:
    """The inverse multiquadratic kernel (c^2 + |x_i - y_j|^2)^(-1/2) of all pairs: (n, D), (m, D) -> (n, m)."""
    from scipy.spatial.distance import cdist

    if not c > 0:
        raise InputError(f"c is {c!r}; expected a number above 0, about the distance at which rows count as different")
    return np.asarray(1 / np.sqrt(c**2 + cdist(flat(x), flat(y), "sqeuclidean")))


def mmd2_u(x: Any, y: Any, kernel: Kernel = imq_kernel) -> float:
    """Unbiased estimate of MMD^2 = E k(x, x') + E k(y, y') - 2 E k(x, y), from n and m rows.

    Every pair of different rows of one sample, and every pair across. It is 0 on average where both samples come from
    one distribution, and may then be negative.
    """
    x, y = flat(x), flat(y)
    n, m = len(x), len(y)
    if min(n, m) < 2:  # noqa: PLR2004 a pair
        raise InputError(f"the samples have {n} and {m} rows; expected at least 2 each")
    inside = _off_diagonal(kernel(x, x)).sum() / (n * (n - 1)) + _off_diagonal(kernel(y, y)).sum() / (m * (m - 1))
    return float(inside - 2 * kernel(x, y).mean())


def h_values(x: Array, y: Array, kernel: Kernel) -> Array:
    """(n, n), zero on the diagonal: h(z_a, z_b) = k(x_a, x_b) + k(y_a, y_b) - k(x_a, y_b) - k(x_b, y_a), z = (x, y).

    The mean over a != b is an unbiased estimate of MMD^2 for samples of one size.
    """
    across = kernel(x, y)
    return _off_diagonal(kernel(x, x) + kernel(y, y) - across - across.T)


def _off_diagonal(values: Array) -> Array:
    return np.asarray(np.where(np.eye(len(values), dtype=bool), 0, values))
