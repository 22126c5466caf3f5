"""The terms of the objective and their gradients, over flat search points (n, D). A sum of terms is a term.

Terms name no framework: they form dL/dy themselves and ask the model only to pull it back to dL/dx.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.objective.gradients import Vjp


class Evaluation(NamedTuple):
    """A term at n points."""

    value: Callable[[], Array]  # (n,), found when somebody asks: the iteration needs the gradient alone
    gradient: Array  # (n, D)
    proba: Array | None = None  # (n, k) what the classifier said, if the term asked it


class Term(Protocol):
    """A differentiable part of the objective."""

    def __call__(self, z: Array) -> Evaluation: ...


@dataclass(frozen=True)
class Sum:
    """The sum of terms."""

    terms: Sequence[Term]

    def __call__(self, z: Array) -> Evaluation:
        found = [term(z) for term in self.terms]
        _, gradient, proba = found[0]
        for other in found[1:]:
            gradient = gradient + other.gradient
            proba = other.proba if proba is None else proba
        if not math.isfinite(gradient.sum()):  # a point at which a model fails stays where it is
            gradient = np.where(np.isfinite(gradient).all(axis=1, keepdims=True), gradient, 0)
        return Evaluation(lambda: np.sum([each.value() for each in found], axis=0), gradient, proba)


@dataclass(frozen=True)
class Prediction:
    """c · max(max over i not in T of p_i - max over i in T of p_i, -kappa), T the allowed classes (n, k)."""

    vjp: Vjp
    c: Array
    allowed: Array
    kappa: float

    @cached_property
    def _pair(self) -> tuple[Array, Array, Array] | None:
        """Of two classes of which one is allowed: the sign (n,) of the second's gap, dL/dp (n, 2) with and without it.

        Both have the signs of their zeros, so that the gradient is the same to the bit whichever is taken.
        """
        if self.allowed.shape[1] != 2 or not (self.allowed.sum(axis=1) == 1).all():  # noqa: PLR2004
            return None
        sign = np.where(self.allowed, -1, 1).astype(self.c.dtype)
        return sign[:, 1], sign * self.c[:, None], sign * 0

    def __call__(self, z: Array) -> Evaluation:
        proba, pullback = self.vjp(z)
        if self._pair is not None:
            sign, pulled, idle = self._pair
            gap = (proba[:, 1] - proba[:, 0]) * sign.astype(proba.dtype, copy=False)
            cotangent = np.where((gap > -self.kappa)[:, None], pulled, idle)
            return Evaluation(lambda: self._value(gap), pullback(cotangent.astype(proba.dtype, copy=False)), proba)
        at = np.arange(len(z))
        outside = np.where(self.allowed, -np.inf, proba).argmax(axis=1)
        inside = np.where(self.allowed, proba, -np.inf).argmax(axis=1)
        gap = proba[at, outside] - proba[at, inside]
        weight = np.where(gap > -self.kappa, self.c, 0)
        cotangent = np.zeros_like(proba)
        cotangent[at, outside] = weight
        cotangent[at, inside] = -weight
        return Evaluation(lambda: self._value(gap), pullback(cotangent), proba)

    def _value(self, gap: Array) -> Array:
        return np.asarray(self.c * np.maximum(gap, -self.kappa))


@dataclass(frozen=True)
class Probability:
    """c · max(low - p, p - high, 0) for the class nearest to its interval; low, high (n, k), NaN for none."""

    vjp: Vjp
    c: Array
    low: Array
    high: Array

    def __call__(self, z: Array) -> Evaluation:
        proba, pullback = self.vjp(z)
        gap = np.maximum(self.low - proba, proba - self.high)
        at = np.arange(len(z)), np.where(np.isnan(gap), np.inf, gap).argmin(axis=1)
        cotangent = np.zeros_like(proba)
        cotangent[at] = np.where(gap[at] > 0, self.c, 0) * np.where(proba[at] > self.high[at], 1, -1)
        return Evaluation(lambda: self.c * np.maximum(gap[at], 0), pullback(cotangent), proba)


@dataclass(frozen=True)
class Distance:
    """weight · |z - point|^2: L2 with the row itself as the point, L_proto with a prototype in search space."""

    point: Array
    weight: float = 1.0

    def __call__(self, z: Array) -> Evaluation:
        gap = z - self.point
        return Evaluation(lambda: self.weight * _squares(gap), (2 * self.weight) * gap)


@dataclass(frozen=True)
class LatentDistance:
    """weight · |ENC(z) - prototype|^2, the prototype an encoding (n, *e)."""

    encoder: GradientAdapter
    prototype: Array
    shape: tuple[int, ...]
    weight: float

    def __call__(self, z: Array) -> Evaluation:
        code, pullback = self.encoder.vjp(z.reshape(len(z), *self.shape))
        gap = code - self.prototype
        return Evaluation(lambda: self.weight * _squares(gap), pullback((2 * self.weight) * gap).reshape(z.shape))


@dataclass(frozen=True)
class Reconstruction:
    """weight · |z - AE(z)|^2."""

    autoencoder: GradientAdapter
    shape: tuple[int, ...]
    weight: float

    def __call__(self, z: Array) -> Evaluation:
        x = z.reshape(len(z), *self.shape)
        copy, pullback = self.autoencoder.vjp(x)
        gap = x - copy.reshape(x.shape)
        pulled = pullback(gap.reshape(copy.shape).astype(copy.dtype, copy=False))
        gradient = (2 * self.weight) * (gap - pulled.reshape(x.shape))
        return Evaluation(lambda: self.weight * _squares(gap), gradient.reshape(z.shape))


def _squares(gap: Array) -> Array:
    flat = gap.reshape(len(gap), -1)
    return np.asarray(np.einsum("nd,nd->n", flat, flat))
