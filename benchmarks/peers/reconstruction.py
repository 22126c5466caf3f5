"""The autoencoder that NICE's plausibility is given: a small network on the standardised rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cases import Case


def reconstruction(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """Rows -> their mean squared errors of reconstruction."""
    from sklearn.neural_network import MLPRegressor

    mean, columns = case.train.mean(axis=0), case.train.shape[1]
    z = (case.train - mean) / case.scale
    layers = (max(2, columns // 2), max(2, columns // 4), max(2, columns // 2))
    network = MLPRegressor(hidden_layer_sizes=layers, max_iter=1000, random_state=0).fit(z, z)

    def loss(x: np.ndarray) -> np.ndarray:
        z = (np.asarray(x, dtype=float) - mean) / case.scale
        return np.square(network.predict(z).reshape(z.shape) - z).mean(axis=1)

    return loss
