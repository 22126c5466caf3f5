"""What a row is led to, chosen as the reference does it, and how far its counterfactuals may be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.protocols import Array


class Prototypes(NamedTuple):
    """The prototypes of n rows for every class of the training data."""

    classes: Array  # (m,) columns of the probabilities
    points: Array  # (n, m, *s)
    distance: Array  # (n, m) by which the class is chosen

    def nearest(self, allowed: Array) -> tuple[Array, Array]:
        """Points (n, *s) and classes (n,) of the nearest among the allowed (n, k)."""
        at = np.where(allowed[:, self.classes], self.distance, np.inf).argmin(axis=1)
        return self.points[np.arange(len(at)), at], self.classes[at]


class Guide(Protocol):
    """Where prototypes come from: codes of an encoder, or k-d trees of training rows."""

    classes: Array

    def prototypes(self, points: Array, k: int | None, k_type: str) -> Prototypes: ...


class EncodedClasses:
    """Codes (N, *s) of training rows with labels (N,).

    The prototype of a class is the mean of its k codes nearest to that of the row, or the k-th nearest (k_type
    "point"); the class is chosen by the mean of these k distances, or by the k-th. Without k it is the mean of all.
    """

    def __init__(self, codes: Array, labels: Array) -> None:
        self.classes = np.unique(labels)
        self._codes = [codes[labels == label] for label in self.classes]

    def prototypes(self, points: Array, k: int | None, k_type: str) -> Prototypes:
        found = [self._of(codes, points, k, k_type) for codes in self._codes]
        return Prototypes(self.classes, *(np.stack(part, axis=1) for part in zip(*found, strict=True)))

    def _of(self, codes: Array, points: Array, k: int | None, k_type: str) -> tuple[Array, Array]:
        n, flat = len(points), codes.reshape(len(codes), -1)
        if k is None:
            mean = np.broadcast_to(codes.mean(axis=0), points.shape)
            return mean, np.linalg.norm((points - mean).reshape(n, -1), axis=1)
        protos, distances = [], []
        for point in points:
            distance = np.linalg.norm(flat - point.reshape(1, -1), axis=1)
            nearest = np.argsort(distance, kind="stable")[:k]
            if k_type == "point":
                nearest = nearest[-1:]
            protos.append(codes[nearest].mean(axis=0))
            distances.append(distance[nearest].mean())
        return np.stack(protos), np.array(distances)


@dataclass(frozen=True)
class TrustOptions:
    """The arguments of alibi's TrustScore, which its k-d trees are built with."""

    k_filter: int = 10
    alpha: float = 0.0
    filter_type: str | None = None
    leaf_size: int = 40
    metric: str = "euclidean"
    dist_filter_type: str = "point"

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> TrustOptions:
        """The options of trustscore_kwargs; ConfigError for one that there is not."""
        known = list(cls.__dataclass_fields__)
        for name in given or {}:
            if name not in known:
                raise ConfigError(
                    f"trustscore_kwargs has {name!r}; expected {', '.join(known)}.{did_you_mean(name, known)}"
                )
        found = cls(**(given or {}))
        if found.filter_type not in {None, "distance_knn", "probability_knn"}:
            raise ConfigError(
                f"filter_type is {shown(found.filter_type)}; expected 'distance_knn', 'probability_knn' or None"
            )
        if not 0 <= found.alpha < 1:
            raise ConfigError(f"alpha is {shown(found.alpha)}; expected a share from 0 to below 1")
        if found.dist_filter_type not in {"point", "mean"}:
            raise ConfigError(f"dist_filter_type is {shown(found.dist_filter_type)}; expected 'point' or 'mean'")
        return found


class ClassTrees:
    """k-d trees of the points (N, D) of each class. A prototype is the k-th nearest point of its class."""

    def __init__(self, z: Array, labels: Array, options: TrustOptions) -> None:
        from sklearn.neighbors import KDTree

        self.classes = np.unique(labels)
        keep = _kept(z, labels, options)
        self._points = [z[(labels == label) & keep] for label in self.classes]
        self._trees = [KDTree(p, leaf_size=options.leaf_size, metric=options.metric) for p in self._points]

    def prototypes(self, points: Array, k: int | None, k_type: str) -> Prototypes:  # noqa: ARG002 only codes have means
        rank = k or 1
        least = min(map(len, self._points))
        if rank > least:
            raise InputError(
                f"k is {rank}, but the smallest class has {least} training rows; expected at most that many"
            )
        found, distances = [], []
        for tree, items in zip(self._trees, self._points, strict=True):
            distance, index = tree.query(points, k=rank)
            found.append(items[index[:, -1]])
            distances.append(distance[:, -1])
        return Prototypes(self.classes, np.stack(found, axis=1), np.stack(distances, axis=1))


def _kept(z: Array, labels: Array, options: TrustOptions) -> Array:
    """Which training points (N,) stay after the filter of the trust score."""
    from sklearn.neighbors import KDTree, KNeighborsClassifier

    keep = np.ones(len(z), dtype=bool)
    if options.filter_type is None or options.alpha == 0:
        return keep
    if options.filter_type == "probability_knn":
        voted = KNeighborsClassifier(n_neighbors=options.k_filter, metric=options.metric).fit(z, labels)
        own = voted.predict_proba(z)[np.arange(len(z)), np.searchsorted(voted.classes_, labels)]
        return np.asarray(own >= np.quantile(own, options.alpha))
    for label in np.unique(labels):
        at = np.flatnonzero(labels == label)
        tree = KDTree(z[at], leaf_size=options.leaf_size, metric=options.metric)
        near = tree.query(z[at], k=min(options.k_filter, len(at)))[0]
        radius = near[:, -1] if options.dist_filter_type == "point" else near.mean(axis=1)
        keep[at] = radius <= np.quantile(radius, 1 - options.alpha)
    return keep
