"""One small network in scikit-learn, PyTorch and Keras, from one set of weights. The tests use it too."""

from __future__ import annotations

from typing import Any

import numpy as np

Layers = list[tuple[np.ndarray, np.ndarray]]  # weights (n_in, n_out) and biases (n_out,), first layer first


def in_torch(layers: Layers, *, softmax: bool = True) -> Any:
    """Linear layers with ReLU between them, then softmax."""
    import torch

    modules: list[torch.nn.Module] = []
    for number, (weight, bias) in enumerate(layers):
        linear = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear, torch.nn.ReLU()] if number + 1 < len(layers) else [linear]
    return torch.nn.Sequential(*modules, *([torch.nn.Softmax(dim=1)] if softmax else []))


def in_keras(layers: Layers, *, softmax: bool = True) -> Any:
    """The same as a Sequential model."""
    import keras

    model = keras.Sequential([keras.Input((layers[0][0].shape[0],))])
    for number, (weight, bias) in enumerate(layers):
        last = "softmax" if softmax else None
        dense = keras.layers.Dense(weight.shape[1], activation="relu" if number + 1 < len(layers) else last)
        model.add(dense)
        dense.set_weights([weight, bias])
    return model


def in_sklearn(layers: Layers) -> Any:
    """An MLPClassifier with the given weights, softmax over two outputs too (scikit-learn itself would train one)."""
    from sklearn.neural_network import MLPClassifier

    n_in, n_out = layers[0][0].shape[0], layers[-1][0].shape[1]
    hidden = tuple(weight.shape[1] for weight, _ in layers[:-1])
    model = MLPClassifier(hidden, max_iter=1, solver="sgd", learning_rate_init=1e-9, random_state=0)
    rng = np.random.default_rng(0)
    labels = np.arange(4 * n_out) % n_out
    model.partial_fit(rng.standard_normal((len(labels), n_in)).astype(np.float32), labels, classes=np.arange(n_out))
    model.coefs_ = [weight.copy() for weight, _ in layers]
    model.intercepts_ = [bias.copy() for _, bias in layers]
    model.out_activation_, model.n_outputs_ = "softmax", n_out
    return model
