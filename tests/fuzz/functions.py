"""Functions and networks with drawn weights: (model, labels, probabilities), as their owner asks them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import reference_network

from .rows import is_missing


def layers(x: Any, y: np.ndarray, rng: np.random.Generator, width: int = 6) -> list[tuple[np.ndarray, np.ndarray]]:
    """A drawn network over standardised columns whose classes are about equally frequent on x."""
    x = numbers_of(x)
    k = max(2, int(y.max()) + 1)
    scale = 1 / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    first = rng.normal(size=(x.shape[1], width)) * scale[:, None]
    bias = rng.normal(size=width) - x.mean(axis=0) @ first
    hidden = np.maximum(x @ first + bias, 0)
    last = rng.normal(size=(width, k)) * 2
    return [(first, bias), (last, -np.median(hidden @ last, axis=0))]


def numbers_of(x: Any) -> np.ndarray:
    """A function's own reading of its cells: a missing one is 0, a text the length of it, whatever dtype holds them."""
    if not isinstance(x, pd.DataFrame):
        return np.asarray(x, dtype=float)
    return np.column_stack([_column(x[name]) for name in x]).astype(float)


def _column(cells: pd.Series) -> Any:
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells.astype(float).fillna(0.0)
    return [_number(cell) for cell in cells]


def _number(cell: Any) -> float:
    if is_missing(cell):
        return 0.0
    return float(cell) if isinstance(cell, (bool, int, float, np.bool_, np.number)) else float(len(str(cell)))


def softmax(scores: np.ndarray) -> np.ndarray:
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def _network(x, y, rng):
    weights = layers(x, y, rng)

    def proba(rows):
        (first, bias), (last, shift) = weights
        return softmax(np.maximum(numbers_of(rows) @ first + bias, 0) @ last + shift)

    return proba


def _plain(x, y, rng):
    proba = _network(x, y, rng)
    return proba, lambda rows: proba(rows).argmax(axis=1), proba


def _in_place(x, y, rng):
    inner, mean = _network(x, y, rng), numbers_of(x).mean(axis=0)

    def model(rows):
        if isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
            rows -= mean.astype(rows.dtype)
            rows += mean.astype(rows.dtype)
            proba = inner(rows)
            rows[:] = 0
            return proba
        return inner(rows)

    return model, lambda rows: model(rows.copy()).argmax(axis=1), lambda rows: model(rows.copy())


def _one_hot(x, y, rng):
    inner = _network(x, y, rng)

    def model(rows):
        proba = inner(rows)
        return (proba.argmax(axis=1)[:, None] == np.arange(proba.shape[1])).astype(int)

    return model, lambda rows: model(rows).argmax(axis=1), model


def _region(x: Any, rng: np.random.Generator) -> tuple[int, float, float]:
    """A column and an interval between two of its training values that no training row lies in."""
    x = numbers_of(x)
    at = int(rng.integers(x.shape[1]))
    values = np.unique(x[:, at])
    gap = int(np.argmax(np.diff(values))) if len(values) > 1 else 0
    high = values[min(gap + 1, len(values) - 1)]
    return at, float(values[gap]), float(high)


def _raising(x, y, rng):
    inner, (at, low, high) = _network(x, y, rng), _region(x, rng)

    def model(rows):
        values = numbers_of(rows)[:, at]
        if ((values > low) & (values < high)).any():
            raise RuntimeError("this model knows nothing about such rows")
        return inner(rows)

    return model, lambda rows: model(rows).argmax(axis=1), model


def _nan(x, y, rng):
    inner, (at, low, high) = _network(x, y, rng), _region(x, rng)

    def model(rows):
        proba, values = inner(rows), numbers_of(rows)[:, at]
        proba[(values > low) & (values < high)] = np.nan
        return proba

    return model, lambda rows: model(rows).argmax(axis=1), model


def _slow(x, y, rng):
    inner = _network(x, y, rng)

    def model(rows):
        time.sleep(0.002 + 2e-6 * len(rows))
        return inner(rows)

    return model, lambda rows: inner(rows).argmax(axis=1), inner


def _buffered(x, y, rng):
    """Every answer is a view of one array, which the next call overwrites."""
    inner, buffer = _network(x, y, rng), np.empty((2**16, max(2, int(y.max()) + 1)))

    def model(rows):
        buffer[: len(rows)] = inner(rows)
        return buffer[: len(rows)]

    return model, lambda rows: inner(rows).argmax(axis=1), inner


FUNCTIONS = {
    "function": (_plain, "numbers"),
    "function of frames": (_plain, "raw"),
    "in-place function": (_in_place, "numbers"),
    "one-hot function": (_one_hot, "numbers"),
    "function that raises in places": (_raising, "numbers"),
    "function that is NaN in places": (_nan, "numbers"),
    "slow function": (_slow, "numbers"),
    "function with one buffer": (_buffered, "numbers"),
}


def in_torch(name: str, x: Any, y: np.ndarray, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    import torch

    wide = np.float64 if name == "float64" else np.float32
    weights = [(w.astype(wide), b.astype(wide)) for w, b in layers(x, y, rng)]
    if name == "one sigmoid":
        weights[-1] = (weights[-1][0][:, 1:2] - weights[-1][0][:, :1], weights[-1][1][1:2] - weights[-1][1][:1])
    net = reference_network.in_torch(weights, softmax=name in ("softmax", "float64"))
    net = net.to(torch.float64) if wide is np.float64 else net
    if name == "one sigmoid":
        net = torch.nn.Sequential(net, torch.nn.Sigmoid())
    elif name == "dropout in training mode":
        net = torch.nn.Sequential(net[0], net[1], torch.nn.Dropout(0.4), *net[2:])
        net.train()

    def output(rows):
        mode = net.training
        net.eval()
        with torch.no_grad():
            out = net(torch.from_numpy(np.array(rows, dtype=wide))).numpy()
        net.train(mode)
        return out

    return net, *_asked(output, one=name == "one sigmoid", logits=name in ("logits", "dropout in training mode"))


def in_keras(name: str, x: Any, y: np.ndarray, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    import keras

    weights = [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers(x, y, rng)]
    if name == "one sigmoid":
        weights[-1] = (weights[-1][0][:, 1:2] - weights[-1][0][:, :1], weights[-1][1][1:2] - weights[-1][1][:1])
    net = reference_network.in_keras(weights, softmax=name == "softmax")
    if name == "one sigmoid":
        net.add(keras.layers.Activation("sigmoid"))

    def output(rows):
        return net.predict(np.array(rows, dtype=np.float32), verbose=0)

    return net, *_asked(output, one=name == "one sigmoid", logits=False)


def _asked(output, *, one: bool, logits: bool):
    """How the owner of a network gets labels and probabilities from its output."""
    if one:
        return lambda rows: (output(rows)[:, 0] > 0.5).astype(int), lambda rows: np.column_stack(
            [1 - output(rows), output(rows)]
        )
    return lambda rows: output(rows).argmax(axis=1), (lambda rows: softmax(output(rows))) if logits else output
