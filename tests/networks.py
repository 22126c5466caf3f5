"""Small networks in NumPy, scikit-learn, PyTorch and Keras.

A test that asks for a framework that is not installed is left out, and says so.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import reference_network
from reference_network import Layers, in_sklearn

__all__ = ["Layers", "forward", "in_keras", "in_sklearn", "in_torch", "trained"]


def forward(layers: Layers, x: np.ndarray, *, softmax: bool = True) -> np.ndarray:
    """ReLU layers, the last linear, then softmax."""
    for number, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        if number + 1 < len(layers):
            x = np.maximum(x, 0)
    if not softmax:
        return x
    exp = np.exp(x - x.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def in_torch(layers: Layers, *, softmax: bool = True):
    needed("torch")
    return reference_network.in_torch(layers, softmax=softmax)


def in_keras(layers: Layers, *, softmax: bool = True):
    needed("keras")
    return reference_network.in_keras(layers, softmax=softmax)


def needed(package: str):
    """The package; the test is left out where it is not installed."""
    return pytest.importorskip(package, reason=f"needs {package}, which is not installed")


def trained(x: np.ndarray, y: np.ndarray | None, widths: tuple[int, ...], *, epochs: int = 60, seed: int = 0) -> Layers:
    """Train a classifier on labels y, or an autoencoder if there are none; return its weights."""
    torch = needed("torch")

    torch.manual_seed(seed)
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=5e-3)
    inputs = torch.from_numpy(x)
    targets = inputs if y is None else torch.from_numpy(y)
    loss = torch.nn.functional.mse_loss if y is None else torch.nn.functional.cross_entropy
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(128):
            out = inputs[batch]
            for number, layer in enumerate(layers):
                out = layer(out) if number + 1 == len(layers) else torch.relu(layer(out))
            optimiser.zero_grad()
            loss(out, targets[batch]).backward()
            optimiser.step()
    return [(layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()) for layer in layers]
