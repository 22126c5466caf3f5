"""The same small networks in NumPy, scikit-learn, PyTorch and Keras, from one set of weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

Layers = list[tuple[np.ndarray, np.ndarray]]


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
    import torch

    modules: list[torch.nn.Module] = []
    for number, (weight, bias) in enumerate(layers):
        linear = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear, torch.nn.ReLU()] if number + 1 < len(layers) else [linear]
    return torch.nn.Sequential(*modules, *([torch.nn.Softmax(dim=1)] if softmax else []))


def in_keras(layers: Layers, *, softmax: bool = True):
    import keras

    model = keras.Sequential([keras.Input((layers[0][0].shape[0],))])
    for number, (weight, bias) in enumerate(layers):
        last = "softmax" if softmax else None
        dense = keras.layers.Dense(weight.shape[1], activation="relu" if number + 1 < len(layers) else last)
        model.add(dense)
        dense.set_weights([weight, bias])
    return model


def in_sklearn(layers: Layers):
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


def trained(x: np.ndarray, y: np.ndarray | None, widths: tuple[int, ...], *, epochs: int = 60, seed: int = 0) -> Layers:
    """Train a classifier on labels y, or an autoencoder if there are none; return its weights."""
    import torch

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
