"""What the comparison of losses needs of their counterfactuals, chunk by chunk in files that are committed.

The counterfactuals themselves are not kept. A chunk is searched again where the networks, recognised by the accuracy of
the classifier, or the settings are others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from mnist import Experiment
from mnist_networks import apply, before_softmax
from mnist_searches import LOSSES, Found
from store import Arrays, Store


@dataclass(frozen=True)
class Fitting:
    """The counterfactuals of one loss as the comparison sees them."""

    images: int  # that were searched
    features: np.ndarray  # (m, 256) activations of the m counterfactuals that were found
    label: np.ndarray  # (m,) their classes
    proba: np.ndarray  # (m,) the probability of that class


def fitting(of: Experiment, store: Store, deadline: float = np.inf) -> dict[str, Fitting]:
    """By loss; what is not in the store is searched, and what is in it beyond the size that was asked for is taken too.

    deadline: by time.monotonic; a chunk that is not there yet is not begun after it, but for the first.
    """
    settings = {
        "accuracy": round(of.accuracy, 4),
        "iterations": of.size.iterations,
        "per_class": of.size.per_class,
        "seeds": [of.size.seed, of.size.images],
    }
    parts: list[Arrays] = []
    for chunk in count():
        name = f"seed{of.size.seed}/{chunk:03d}"
        enough = chunk >= of.size.chunks or (parts and time.monotonic() > deadline)
        if enough and not store.has(name, settings):
            break
        parts.append(store.get(name, settings, partial(_of_chunk, of, chunk)))
    return {loss.name: _joined(loss.name, parts, of.size.per_class) for loss in LOSSES}


def real_features(of: Experiment) -> np.ndarray:
    """The activations (n, 256) of the test images."""
    return apply(before_softmax(of.networks.classifier), of.test[0])


def _of_chunk(of: Experiment, chunk: int) -> Arrays:
    found = of.find(LOSSES, (chunk,))
    return {f"{loss}_{what}": values for loss, part in found.items() for what, values in _seen(of, part).items()}


def _seen(of: Experiment, found: Found) -> Arrays:
    """Half precision is enough for distances between activations."""
    good = found.taken(found.valid)
    proba = apply(of.networks.classifier, good.x)
    return {
        "features": apply(before_softmax(of.networks.classifier), good.x).astype(np.float16),
        "label": good.counterfactual_class.astype(np.int8),
        "proba": proba[np.arange(len(proba)), good.counterfactual_class],
    }


def _joined(loss: str, parts: list[Arrays], per_class: int) -> Fitting:
    features, label, proba = (
        np.concatenate([part[f"{loss}_{what}"] for part in parts]) for what in ("features", "label", "proba")
    )
    return Fitting(10 * per_class * len(parts), features.astype(np.float32), label, proba)
