"""The encoder and the autoencoder while a search uses them: their gradients count, and points they fail for stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter, Pullback
from cfproto_plugin.search.clock import Pace
from cfproto_plugin.search.failures import ask_vjp
from cfproto_plugin.search.model import SearchModel

_CALLS = 64  # that finding the points it fails for may take
_SECONDS = 2.0  # likewise, for slow models


@dataclass(frozen=True)
class Counted:
    """A model beside the classifier; every row of `vjp` is one gradient. shape: that of its output for one row."""

    adapter: GradientAdapter
    counts: SearchModel
    shape: tuple[int, ...]

    def predict(self, x: Array) -> Array:
        return self.adapter.predict(x)

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """The output and the pullback at rows (n, *s): NaN and zero where the model fails."""
        self.counts.gradients += len(x)
        found, pull = ask_vjp(self.adapter.vjp, x, Pace(), _CALLS, _SECONDS)
        return np.full((len(x), *self.shape), np.nan, dtype=x.dtype) if found is None else found, pull
