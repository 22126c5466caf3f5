"""How much a term of the objective curves at a point, which says how long a stable step is."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.objective.terms import Term

_PROBES = 4  # gradients that measure it
_FLAT = 1e-12  # below this the encoder is locally constant


def curvature_of(term: Term, z: Array) -> Array:
    """The largest curvature (p,) of a term at points (p, D), by power iteration on differences of gradients."""
    base = term(z).gradient
    step = 1e-2 * (1 + np.linalg.norm(z, axis=1, keepdims=True))
    direction, size = base, np.zeros((len(z), 1), dtype=z.dtype)
    for _ in range(_PROBES):
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), _FLAT)
        direction = (term((z + step * direction).astype(z.dtype)).gradient - base) / step
        size = np.maximum(size, np.linalg.norm(direction, axis=1, keepdims=True))
    return np.asarray(np.maximum(size[:, 0], _FLAT))
