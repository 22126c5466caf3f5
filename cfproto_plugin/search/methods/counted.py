"""The encoder and the autoencoder while a search uses them: their gradients count."""

from __future__ import annotations

from dataclasses import dataclass

from cfproto_plugin.protocols import Array, GradientAdapter, Pullback
from cfproto_plugin.search.model import SearchModel


@dataclass(frozen=True)
class Counted:
    """A model beside the classifier; every row of `vjp` is one gradient."""

    adapter: GradientAdapter
    counts: SearchModel

    def predict(self, x: Array) -> Array:
        return self.adapter.predict(x)

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        self.counts.gradients += len(x)
        return self.adapter.vjp(x)
