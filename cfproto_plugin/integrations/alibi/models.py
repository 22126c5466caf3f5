"""The classifier, the encoder and the autoencoder on points of the search.

Without categories a point is a row, and models give their own gradients where they have any. With categories a point is
decoded to a row first, and gradients are found by differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cfproto_plugin.integrations.alibi.categories import Categories
from cfproto_plugin.integrations.alibi.settings import Settings
from cfproto_plugin.plugins import Adapted, checked_proba, checked_vjp
from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.objective.gradients import Vjp, WithDifferences, differences, with_gradient
from cfproto_plugin.search.objective.terms import Evaluation, LatentDistance, Prediction, Reconstruction, Term


@dataclass(frozen=True)
class Networks:
    """The models of an explainer. shape: of one point of the search, without the batch."""

    classifier: Adapted
    encoder: Adapted | None
    autoencoder: Adapted | None
    categories: Categories | None
    shape: tuple[int, ...]
    settings: Settings

    @property
    def has_gradient(self) -> bool:
        """Whether the classifier gives its gradient with respect to points of the search."""
        return self.classifier.vjp is not None and self.categories is None

    def rows(self, z: Array) -> Array:
        """The user's rows of points (n, D)."""
        return z.reshape(len(z), *self.shape) if self.categories is None else self.categories.decode(z)

    def predict(self, z: Array) -> Array:
        """Probabilities (n, k) at points (n, D)."""
        return probabilities(self.classifier, self.rows(z))

    def prediction(self, allowed: Array, c: Array) -> Term:
        """c · L_pred; allowed (n, k) bool: the classes asked for."""
        kappa = self.settings.kappa
        if self.has_gradient:
            return Prediction(self._vjp, c.astype(np.float32), allowed, kappa)
        vjp = differences(lambda points, _: self.predict(points), self.settings.eps[1])
        return NumericPrediction(vjp, c, allowed, kappa, self.settings.eps[0])

    def reconstruction(self) -> Term | None:
        """gamma · |x - AE(x)|^2, in the user's columns."""
        model, gamma = self.autoencoder, self.settings.gamma
        if model is None or gamma == 0:
            return None
        if self.categories is None:
            return Reconstruction(with_gradient(model, self.settings.eps[1]), self.shape, gamma)

        def loss(points: Array, _: Array) -> Array:
            rows = self.rows(points)
            gap = rows - np.asarray(model.predict(rows)).reshape(rows.shape)
            return np.asarray(gamma * np.square(gap).sum(axis=1, keepdims=True))

        return NumericTerm(differences(loss, self.settings.eps[1]))

    def prototype_distance(self, codes: Array) -> Term:
        """theta · |ENC(x) - code|^2."""
        return LatentDistance(self._latent(), codes, self.shape, self.settings.theta)

    def encode(self, z: Array) -> Array:
        """The encoder's codes (n, *s) of points (n, D)."""
        return np.asarray(self._latent().predict(z.reshape(len(z), *self.shape)))

    def _latent(self) -> GradientAdapter:
        model, eps = self.encoder, self.settings.eps[1]
        if model is None:
            raise RuntimeError("there is no encoder")
        return with_gradient(model, eps) if self.categories is None else WithDifferences(_Decoded(self, model), eps)

    def _vjp(self, z: Array) -> tuple[Array, Callable[[Array], Array]]:
        proba, pull = checked_vjp(self.classifier, self.rows(z))
        return proba, lambda cotangent: pull(cotangent.astype(proba.dtype, copy=False)).reshape(z.shape)


def probabilities(classifier: Adapted, rows: Array) -> Array:
    """What the classifier says of rows (n, ...), checked: (n, k)."""
    return checked_proba(classifier.predict(rows), len(rows), None, classifier)


@dataclass(frozen=True)
class _Decoded:
    """An encoder of the user's rows as one of points (n, D)."""

    networks: Networks
    model: Adapted

    def predict(self, z: Array) -> Array:
        return np.asarray(self.model.predict(self.networks.rows(z)))


@dataclass(frozen=True)
class NumericTerm:
    """A term (n, 1) whose gradient is found by differences."""

    vjp: Vjp

    def __call__(self, z: Array) -> Evaluation:
        value, pull = self.vjp(z.astype(np.float64))
        return Evaluation(lambda: value[:, 0], pull(np.ones_like(value)))


@dataclass(frozen=True)
class NumericPrediction:
    """c · L_pred by differences in both steps: dL/dp with eps (k,) or (1,), dp/dx with the steps of vjp.

    L_pred = max(max over i not in T of p_i - max over i in T of p_i, -kappa), T the allowed classes (n, k).
    """

    vjp: Vjp
    c: Array
    allowed: Array
    kappa: float
    eps: Array

    def __call__(self, z: Array) -> Evaluation:
        proba, pull = self.vjp(z.astype(np.float64))  # small steps vanish in 32 bits
        steps = np.diag(np.broadcast_to(self.eps, proba.shape[1]))
        around = proba[:, None].astype(np.float64)
        slope = (self._loss(around + steps) - self._loss(around - steps)) / (2 * self.eps)
        return Evaluation(lambda: self.c * self._loss(around)[:, 0], pull(self.c[:, None] * slope), proba)

    def _loss(self, proba: Array) -> Array:
        """L_pred (n, m) of probabilities (n, m, k)."""
        allowed = self.allowed[:, None]
        outside = np.where(allowed, -np.inf, proba).max(axis=2)
        return np.asarray(np.maximum(outside - np.where(allowed, proba, -np.inf).max(axis=2), -self.kappa))
