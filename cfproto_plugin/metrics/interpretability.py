"""How well a row fits the data of a class: the paper's IM1 and IM2, and the distance to the nearest rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.metrics.sparsity import flat
from cfproto_plugin.plugins import adapt
from cfproto_plugin.protocols import Array

_EPS = 1e-10  # the paper names an epsilon, not its value; it only keeps 0 / 0 away
_CELLS = 20_000_000


def im1(x: Any, ae_new: Any, ae_old: Any, eps: float = _EPS) -> Array:
    """|x - AE_new(x)|^2 / (|x - AE_old(x)|^2 + eps), per row; lower is closer to the new class than to the old one.

    The autoencoders of the two classes are anything an adapter claims, an adapter, or a function (n, *s) -> (n, *s).
    """
    return np.asarray(_error(x, reconstruct(ae_new, x)) / (_error(x, reconstruct(ae_old, x)) + eps))


def im2(x: Any, ae_new: Any, ae_all: Any, eps: float = _EPS) -> Array:
    """|AE_new(x) - AE(x)|^2 / (|x|_1 + eps), per row; low where the new class explains the row as well as all do."""
    return np.asarray(_error(reconstruct(ae_new, x), reconstruct(ae_all, x)) / (np.abs(flat(x)).sum(axis=1) + eps))


def neighbour_distance(x: Any, reference: Any, k: int = 5) -> Array:
    """Mean Euclidean distance to the k nearest rows of the reference; a row of the reference is its own neighbour."""
    from scipy.spatial.distance import cdist

    x, reference = flat(x), flat(reference)
    if not 1 <= k <= len(reference):
        raise InputError(f"k is {k}; expected 1 to {len(reference)}, the number of reference rows")
    if x.shape[1] != reference.shape[1]:
        raise InputError(f"rows have {x.shape[1]} features, reference rows {reference.shape[1]}; expected the same")
    at_once = max(1, _CELLS // len(reference))
    parts = [cdist(x[i : i + at_once], reference) for i in range(0, len(x), at_once)]
    nearest = [np.partition(part, k - 1, axis=1)[:, :k].mean(axis=1) for part in parts]
    return np.concatenate([np.empty(0), *nearest])


def reconstruct(model: Any, x: Any) -> Array:
    """The model's output for x, through whatever adapter claims it."""
    adapter = adapt(model, role="transform")
    x = np.asarray(x)
    made = adapter.predict(x) if len(x) else x
    if made.shape != x.shape:
        raise ModelError(f"the autoencoder returned shape {made.shape} for rows of shape {x.shape}; expected the same")
    return made


def _error(x: Any, y: Array) -> Array:
    return np.asarray(np.square(flat(x) - flat(y)).sum(axis=1))
