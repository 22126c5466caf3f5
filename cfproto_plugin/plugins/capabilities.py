"""What an adapter or a provider can do, found out once. Nobody else asks for their optional members.

Members are looked up with `getattr`: a proxy that forwards them in `__getattr__` works on every version of Python.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers.trees import tree_thresholds
from cfproto_plugin.protocols import Array, ModelAdapter, PrototypeProvider, Pullback, TreeEnsemble

Vjp = Callable[[Array], tuple[Array, Pullback]]


@dataclass(frozen=True)
class Adapted:
    """A model behind its adapter, and what it can do. None or False stands for what it cannot."""

    name: str  # of the adapter, as plugins register it
    adapter: ModelAdapter
    origin: str  # the plugin it comes from, for messages
    vjp: Vjp | None
    quick: Callable[[Array], Array]  # for searching: the adapter's recomputation, or `predict` itself
    labels: Callable[[Array], Array] | None
    accepts_frames: bool
    feature_names: tuple[str, ...] | None
    max_rows: int | None

    @classmethod
    def of(cls, adapter: Any, name: str) -> Adapted:
        """Look at the adapter."""
        names = getattr(adapter, "feature_names", None)
        limit = getattr(adapter, "max_rows", None)
        if limit is not None and not (isinstance(limit, (int, np.integer)) and limit > 0):
            raise ModelError(f"max_rows of adapter {name!r} is {limit!r}; expected a whole number above 0", plugin=name)
        return cls(
            name=name,
            adapter=adapter,
            origin=str(getattr(adapter, "cfproto_origin", "")),
            vjp=_method(adapter, "vjp"),
            quick=_method(adapter, "quick") or adapter.predict,
            labels=_method(adapter, "labels"),
            accepts_frames=bool(getattr(adapter, "accepts_frames", False)),
            feature_names=None if names is None else tuple(map(str, names)),
            max_rows=None if limit is None else int(limit),
        )

    @property
    def predict(self) -> Callable[[Array], Array]:
        """The model's own answer."""
        return self.adapter.predict

    @cached_property
    def trees(self) -> TreeEnsemble | None:
        """The model as a sum of trees."""
        method = _method(self.adapter, "trees")
        found: TreeEnsemble | None = None if method is None else method()
        return found

    @property
    def has_quick(self) -> bool:
        """Whether `quick` is a recomputation of the adapter's, not `predict`."""
        return _method(self.adapter, "quick") is not None

    @property
    def has_classes(self) -> bool:
        """Whether the adapter names the classes."""
        return getattr(self.adapter, "classes", None) is not None

    @cached_property
    def thresholds(self) -> list[Array] | None:
        """Split values by column of the model: its own, or those of its trees."""
        method = _method(self.adapter, "thresholds")
        found: list[Array] | None = None if method is None else method()
        return tree_thresholds(self.trees) if found is None and self.trees is not None else found

    def classes(self, n_columns: int) -> Array:
        """The labels of the probability columns, asked after the first prediction; 0, 1, ... if it has none."""
        found = getattr(self.adapter, "classes", None)
        classes = np.arange(n_columns) if found is None else np.asarray(found)
        if len(classes) != n_columns:
            raise ModelError(f"the adapter names {len(classes)} classes but the model returns {n_columns} columns")
        return classes


def space_of(provider: PrototypeProvider) -> ModelAdapter | None:
    """The encoder whose codes the provider's points are; None if they are points of the search space."""
    return getattr(provider, "space", None)


def own_copy(provider: PrototypeProvider) -> PrototypeProvider:
    """A copy to be fitted, so that the user's provider stays as it is. Its encoder is shared, not copied."""
    space = space_of(provider)
    try:
        return copy.deepcopy(provider, {id(space): space})
    except Exception:  # noqa: BLE001 a provider may hold what cannot be copied; what it learns is then still its copy's
        return copy.copy(provider)


def _method(adapter: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(adapter, name, None)
    return found if callable(found) else None
