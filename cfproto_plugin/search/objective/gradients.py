"""Gradients of models that only predict, by central differences: the paper's 2·D evaluations, in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array, GradientAdapter, ModelAdapter

Vjp = Callable[[Array], tuple[Array, Callable[[Array], Array]]]


def differences(predict: Callable[[Array, Array], Array], eps: Array, cells: int = 16_000_000) -> Vjp:
    """df/dx_k = (f(x + eps_k) - f(x - eps_k)) / (2 eps_k) for every feature k; x is (n, D).

    predict(points, row) gets all 2·D + 1 points of every row in one call of at most `cells` numbers, and the row each
    belongs to. eps: one number, or (D,).
    """

    def vjp(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        size = max(1, cells // ((2 * x.shape[1] + 1) * x.shape[1]))
        parts = [
            _stencil(predict, x[i : i + size], np.arange(i, min(i + size, len(x))), eps) for i in range(0, len(x), size)
        ]
        value, slope = (np.concatenate(part) for part in zip(*parts, strict=True))

        def pullback(cotangent: Array) -> Array:
            return np.asarray(np.einsum("ndk,nk->nd", slope, cotangent).astype(x.dtype, copy=False))

        return value, pullback

    return vjp


def _stencil(predict: Callable[[Array, Array], Array], x: Array, row: Array, eps: Array) -> tuple[Array, Array]:
    n, d = x.shape
    offsets = np.diag(np.broadcast_to(eps, d)).astype(x.dtype)
    points = np.concatenate([x[:, None], x[:, None] + offsets, x[:, None] - offsets], axis=1)
    y = predict(points.reshape(-1, d), np.repeat(row, 2 * d + 1)).reshape(n, 2 * d + 1, -1)
    width = 2 * np.broadcast_to(eps, d)[:, None]
    return y[:, 0], (y[:, 1 : d + 1] - y[:, d + 1 :]) / width


class WithDifferences:
    """An encoder or autoencoder that only predicts, with a gradient by differences."""

    def __init__(self, adapter: ModelAdapter, eps: Array) -> None:
        self._adapter = adapter
        self._eps = eps

    def predict(self, x: Array) -> Array:
        return self._adapter.predict(x)

    def vjp(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        shape: tuple[int, ...] = ()

        def predict(points: Array, _row: Array) -> Array:
            nonlocal shape
            y = np.asarray(self._adapter.predict(points.reshape(len(points), *x.shape[1:])))
            shape = y.shape[1:]
            return y.reshape(len(y), -1)

        y, pull = differences(predict, self._eps)(x.reshape(len(x), -1))
        return y.reshape(len(x), *shape), lambda cotangent: pull(cotangent.reshape(len(x), -1)).reshape(x.shape)


def with_gradient(model: Adapted, eps: Array) -> GradientAdapter:
    """The model's adapter if it has a gradient, else the adapter with differences."""
    return WithDifferences(model, eps) if model.vjp is None else cast("GradientAdapter", model)
