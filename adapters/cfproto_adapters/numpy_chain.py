"""Exact gradients in NumPy: a model as a chain of stages, each with its pullback.

Knows arrays only; `sklearn_parts.chains` and `torch_parts.dense` read them from models. Stages see (n, columns), never
change their input, and validate nothing: this is the inner loop of the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, log_expit, ndtr

from cfproto_plugin.helpers import softmax
from cfproto_plugin.protocols import Array, Pullback

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


class Stage(Protocol):
    """One step of a chain."""

    def __call__(self, x: Array) -> Array:
        """Return y = f(x)."""
        ...

    def pull(self, g: Array, x: Array, y: Array) -> Array:
        """Return dL/dx from g = dL/dy at x, where f(x) = y."""
        ...


@dataclass(frozen=True)
class Scale:
    """y = (x - shift) / divisor * factor + offset by columns; what is None is left out, as the scalers do."""

    shift: Array | None = None
    divisor: Array | None = None
    factor: Array | None = None
    offset: Array | None = None

    def __call__(self, x: Array) -> Array:
        x = x if self.shift is None else x - self.shift
        x = x if self.divisor is None else x / self.divisor
        x = x if self.factor is None else x * self.factor
        return x if self.offset is None else x + self.offset

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        g = g if self.divisor is None else g / self.divisor
        return g if self.factor is None else g * self.factor


@dataclass(frozen=True)
class Dense:
    """y = x W + b."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        y: Array = x @ self.weight
        y += self.bias
        return y

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g @ self.weight.T)


class Relu:
    """y = max(x, 0)."""

    def __call__(self, x: Array) -> Array:
        return np.maximum(x, 0)

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return g * (y > 0)


class Tanh:
    """y = tanh(x), dy/dx = 1 - y^2."""

    def __call__(self, x: Array) -> Array:
        return np.tanh(x)

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g * (1 - y * y))


class Logistic:
    """y = 1 / (1 + exp(-x)), dy/dx = y (1 - y)."""

    def __call__(self, x: Array) -> Array:
        return np.asarray(expit(x))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g * (y * (1 - y)))


class Sigmoid:
    """(n, 1) log-odds of the second class to (1 - p, p)."""

    def __call__(self, x: Array) -> Array:
        p = expit(x)
        return np.concatenate((1 - p, p), axis=1)

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray((g[:, 1:] - g[:, :1]) * (y[:, 1:] * (1 - y[:, 1:])))


class Softmax:
    """y_i = exp(x_i) / sum_j exp(x_j), dL/dx_i = y_i (g_i - sum_j g_j y_j)."""

    def __call__(self, x: Array) -> Array:
        return softmax(x)

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        gy = g * y
        return np.asarray(gy - y * gy.sum(axis=1, keepdims=True))


class LogSoftmax:
    """y_i = x_i - log sum_j exp(x_j), dL/dx_i = g_i - exp(y_i) sum_j g_j."""

    def __call__(self, x: Array) -> Array:
        x = x - x.max(axis=1, keepdims=True)
        return np.asarray(x - np.log(np.exp(x).sum(axis=1, keepdims=True)))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g - np.exp(y) * g.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class LeakyRelu:
    """y = x where x > 0, else slope x; slope is an array ()."""

    slope: Array

    def __call__(self, x: Array) -> Array:
        return np.where(x > 0, x, self.slope * x)

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.where(x > 0, g, self.slope * g)


@dataclass(frozen=True)
class Elu:
    """y = x where x > 0, else alpha (exp(x) - 1); alpha is an array ()."""

    alpha: Array

    def __call__(self, x: Array) -> Array:
        return np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0)))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.where(x > 0, g, g * self.alpha * np.exp(np.minimum(x, 0)))


class Gelu:
    """y = x P(x), P the normal distribution, dy/dx = P(x) + x exp(-x^2 / 2) / sqrt(2 pi)."""

    def __call__(self, x: Array) -> Array:
        return np.asarray(x * ndtr(x))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g * (ndtr(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)))


class Silu:
    """y = x s(x), s the logistic function, dy/dx = s(x) (1 + x - y)."""

    def __call__(self, x: Array) -> Array:
        return np.asarray(x * expit(x))

    def pull(self, g: Array, x: Array, y: Array) -> Array:
        return np.asarray(g * (expit(x) * (1 + x - y)))


class Selu:
    """y = s x where x > 0, else s a (exp(x) - 1), with the two constants of self-normalising networks."""

    def __call__(self, x: Array) -> Array:
        return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, 0)))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(_SELU_SCALE * np.where(x > 0, g, g * _SELU_ALPHA * np.exp(np.minimum(x, 0))))


@dataclass(frozen=True)
class Clamp:
    """y = x between low and high, arrays (); dy/dx = 1 there, at the ends too."""

    low: Array
    high: Array

    def __call__(self, x: Array) -> Array:
        return np.asarray(np.minimum(np.maximum(x, self.low), self.high))

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return g * ((x >= self.low) & (x <= self.high))


@dataclass(frozen=True)
class HardTanh(Clamp):
    """Likewise, but dy/dx = 0 at the ends."""

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return g * ((x > self.low) & (x < self.high))


@dataclass(frozen=True)
class NormaliseRows:
    """y = (x - mean) / sqrt(variance + eps) * factor + offset by rows: a layer norm.

    eps is an array (); without factor and offset they are None.
    """

    eps: Array
    factor: Array | None = None
    offset: Array | None = None

    def __call__(self, x: Array) -> Array:
        y, _ = self._standard(x)
        y = y if self.factor is None else y * self.factor
        return y if self.offset is None else y + self.offset

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        standard, deviation = self._standard(x)
        g = g if self.factor is None else g * self.factor
        along = (g * standard).mean(axis=1, keepdims=True)
        return np.asarray((g - g.mean(axis=1, keepdims=True) - standard * along) / deviation)

    def _standard(self, x: Array) -> tuple[Array, Array]:
        """Rows of mean 0 and variance 1 (n, D), and what they were divided by (n, 1)."""
        x = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((x * x).mean(axis=1, keepdims=True) + self.eps)
        return x / deviation, deviation


@dataclass(frozen=True)
class Normalise:
    """y = (x - mean) / sqrt(variance + eps) * factor + offset by columns: a batch norm after its training.

    eps is an array (); without factor and offset they are None.
    """

    mean: Array
    variance: Array
    eps: Array
    factor: Array | None = None
    offset: Array | None = None

    def __call__(self, x: Array) -> Array:
        y = (x - self.mean) * self._slope()
        return y if self.offset is None else y + self.offset

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return np.asarray(g * self._slope())

    def _slope(self) -> Array:
        slope = 1 / np.sqrt(self.variance + self.eps)
        return np.asarray(slope if self.factor is None else slope * self.factor)


class OneVsRest:
    """y_i = s(x_i) / sum_j s(x_j) with s the logistic function: the softmax of log s, which never is 0 / 0.

    Scores so large that several s(x_i) are 1 tie in y, not in `model.predict`: its class gets the last bit more.
    """

    def __call__(self, x: Array) -> Array:
        return agree(softmax(np.asarray(log_expit(x))), x.argmax(axis=1))

    def pull(self, g: Array, x: Array, y: Array) -> Array:
        gy = g * y
        return np.asarray((gy - y * gy.sum(axis=1, keepdims=True)) * expit(-x))


class Chain:
    """Stages one after the other, in float32 if they and the rows are, else in float64."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = tuple(stages)
        arrays = [value for stage in stages for value in vars(stage).values() if value is not None]
        self._single = bool(arrays) and all(value.dtype == np.float32 for value in arrays)
        self._double = tuple(_double(stage) for stage in stages)

    def __call__(self, x: Array) -> Array:
        x, stages = self._cast(x)
        for stage in stages:
            x = stage(x)
        return x

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the output and the pullback, which gives the dtype of x."""
        dtype = x.dtype
        y, stages = self._cast(x)
        tape = []
        for stage in stages:
            before, y = y, stage(y)
            tape.append((stage.pull, before, y))
        tape.reverse()

        def pullback(g: Array) -> Array:
            for pull, before, after in tape:
                g = pull(g, before, after)
            return g.astype(dtype, copy=False)

        return y, pullback

    def _cast(self, x: Array) -> tuple[Array, tuple[Stage, ...]]:
        if self._single and x.dtype == np.float32:
            return x, self.stages
        return x.astype(np.float64, copy=False), self._double


def agree(p: Array, top: Array) -> Array:
    """Exchange probabilities where the largest is not that of class `top` (n,), so that argmax p = top.

    Where the two are equal the class named gets 1e-9 more.
    """
    found = p.argmax(axis=1)
    if np.array_equal(found, top):
        return p
    rows = np.flatnonzero(found != top)
    was, now = found[rows], top[rows]
    p = p.astype(np.float64)
    p[rows, was], p[rows, now] = p[rows, now], p[rows, was] * (1 + 1e-9)
    p[rows] /= p[rows].sum(axis=1, keepdims=True)
    return p


def _double(stage: Stage) -> Stage:
    """The stage with its arrays in float64, themselves where they are."""
    fields: dict[str, Any] = vars(stage)
    if not fields:
        return stage
    return type(stage)(**{key: None if v is None else v.astype(np.float64, copy=False) for key, v in fields.items()})
