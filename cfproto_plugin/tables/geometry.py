"""What it means that a cell has changed: defined once, for the search, the rules and the result."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array


def changed(x: Array, original: Array, x_missing: Array | None = None, original_missing: Array | None = None) -> Array:
    """Which cells of x differ from the original: bool, of the shape that the two broadcast to.

    Two missing values do not differ; a missing and a present one do. The masks x_missing and original_missing have the
    shapes of x and original; by default they are the NaN of numeric arrays. Arrays of other types need them.
    """
    x_missing = np.isnan(x) if x_missing is None else x_missing
    original_missing = np.isnan(original) if original_missing is None else original_missing
    return np.asarray((x != original) & ~(x_missing & original_missing))
