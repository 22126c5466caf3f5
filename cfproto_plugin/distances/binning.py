"""Numeric columns as a few bins, so that categorical distances can use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.protocols import Array


def bin_context(numeric: Array, percentiles: Sequence[float] = (25, 50, 75)) -> Array:
    """Bin numbers of the columns of (n, M) between their percentiles: a < v <= b, equal edges merge.

    Missing values (NaN) of a column are a bin of their own.
    """
    numeric = np.asarray(numeric, dtype=np.float64)
    bins = np.zeros(numeric.shape, dtype=np.intp)
    for column, values in enumerate(numeric.T):
        known = ~np.isnan(values)
        if known.any():
            edges = np.unique(np.percentile(values[known], percentiles))
            bins[:, column] = np.where(known, np.searchsorted(edges, values, side="left"), len(edges) + 1)
    return bins
