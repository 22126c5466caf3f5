"""Prototypes in the latent space of an encoder: the paper's algorithm 1."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from cfproto_plugin.errors import ConfigError
from cfproto_plugin.helpers.nearest import nearest_first
from cfproto_plugin.protocols import Array, ModelAdapter

_CHUNK = 4096


class EncoderPrototypes:
    """proto_i = mean of the K encodings of class i nearest to ENC(x0); the class of the nearest prototype is first.

    k: K, or None for the mean of the whole class. k_type "point" takes the K-th nearest encoding instead of the mean.
    A class with fewer than K items uses all it has. The points it returns are codes of `space`, the encoder.
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        k_type: Literal["mean", "point"] = "mean",
        encoder: ModelAdapter | None = None,
    ) -> None:
        if encoder is None:
            raise ConfigError("prototypes='encoder' needs an encoder; pass encoder=..., or use prototypes='kdtree'")
        self.k = k
        self.k_type = k_type
        self.space = encoder

    def fit(self, z: Array, labels: Array) -> Self:
        from sklearn.neighbors import NearestNeighbors

        encodings = self._encode(z)
        self.shape_ = encodings.shape[1:]
        self.classes_ = np.unique(labels)
        flat = encodings.reshape(len(z), -1)
        self.encodings_ = [flat[labels == label] for label in self.classes_]
        self.indices_ = [NearestNeighbors().fit(items) for items in self.encodings_]
        return self

    def nearest(self, z0: Array, allowed: Array) -> tuple[Array, Array]:
        code = self._encode(z0).reshape(len(z0), -1)
        points = np.stack([self._prototypes(code, number) for number in range(len(self.classes_))], axis=1)
        distance = np.linalg.norm(points - code[:, None], axis=2)
        found, found_classes = nearest_first(points, self.classes_, distance, allowed)
        return found.reshape(*found.shape[:2], *self.shape_), found_classes

    def _prototypes(self, code: Array, number: int) -> Array:
        items = self.encodings_[number]
        k = min(self.k or len(items), len(items))
        if k == len(items) and self.k_type == "mean":
            return np.broadcast_to(items.mean(axis=0), code.shape)
        index = self.indices_[number].kneighbors(code, n_neighbors=k, return_distance=False)
        return np.asarray(items[index[:, -1]] if self.k_type == "point" else items[index].mean(axis=1))

    def _encode(self, z: Array) -> Array:
        return np.concatenate([self.space.predict(z[i : i + _CHUNK]) for i in range(0, len(z), _CHUNK)])
