"""What the engine asks of models, prototype providers and categorical distances, and how plugins describe them.

Protocols and plain records only: nothing here knows a framework, a loss or a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Role: TypeAlias = Literal["classifier", "transform"]


@runtime_checkable
class ModelAdapter(Protocol):
    """A model the engine can call.

    In the role ``classifier`` the output is (n, k) probabilities with k >= 2; in the role ``transform`` (encoders and
    autoencoders) it is whatever the model computes, one item per row. The input is never modified.
    """

    def predict(self, x: Array) -> Array:
        """Map (n, *shape) to (n, k)."""
        ...


@runtime_checkable
class GradientAdapter(ModelAdapter, Protocol):
    """A model that can also pull gradients back to its input."""

    def vjp(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the output y of `predict` and the pullback: dL/dy, shaped like y, to dL/dx, shaped like x."""
        ...


@runtime_checkable
class HasThresholds(Protocol):
    """A tree model that can say where it splits."""

    def thresholds(self) -> list[Array]:
        """Sorted split values, one array per model-input column.

        An adapter that takes columns by name in any order has their names as `feature_names`, in the order of these.
        """
        ...


@runtime_checkable
class AcceptsFrames(Protocol):
    """A model that wants the columns by name; the engine then hands it a DataFrame if the training data was one."""

    accepts_frames: bool


@runtime_checkable
class HasClasses(Protocol):
    """A classifier that knows its labels."""

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        ...


class PrototypeProvider(Protocol):
    """Finds class prototypes near a point."""

    def fit(self, z: Array, labels: Array) -> PrototypeProvider:
        """Learn from points (n, *s) of the provider's own space and their classes, column numbers 0 to K-1."""
        ...

    def nearest(self, z0: Array, allowed: Array) -> tuple[Array, Array]:
        """Prototypes of the allowed classes, nearest first.

        z0 is (n, *s), allowed (n, K) bool. Returns points (n, m, *s) and their classes (n, m). A row with fewer than m
        prototypes repeats its last one; a row without any has class -1.
        """
        ...


class CategoryDistance(Protocol):
    """Measures how different the categories of a column are."""

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:
        """codes (n, C) of the categorical columns, context (n, M) binned numeric columns, labels (n,).

        Returns one symmetric (K, K) matrix with a zero diagonal per categorical column.
        """
        ...


@dataclass(frozen=True)
class AdapterSpec:
    """An adapter a plugin offers.

    claims: classes as "module:Class", looked up among the modules already imported, never by importing.
    factory: factory(model, *, role="classifier", **options) -> ModelAdapter.
    """

    name: str
    claims: tuple[str, ...]
    factory: Callable[..., ModelAdapter]
    priority: int = 0


@dataclass(frozen=True)
class PrototypeSpec:
    """A prototype provider a plugin offers.

    factory: factory(*, k=None, k_type="mean", encoder=None, **options) -> PrototypeProvider.
    """

    name: str
    factory: Callable[..., PrototypeProvider]


@dataclass(frozen=True)
class DistanceSpec:
    """A categorical distance a plugin offers. factory: factory(**options) -> CategoryDistance."""

    name: str
    factory: Callable[..., CategoryDistance]


def softmax(logits: Array) -> Array:
    """exp(z_i) / sum_j exp(z_j) along the last axis, without overflow."""
    exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exp / exp.sum(axis=-1, keepdims=True))


def two_columns(positive: Array) -> Array:
    """Turn the probability of the second class, (n,) or (n, 1), into the (n, 2) of a classifier."""
    columns = np.empty((len(positive), 2), dtype=positive.dtype)
    columns[:, 1] = positive.reshape(-1)
    np.subtract(1, columns[:, 1], out=columns[:, 0])
    return columns
