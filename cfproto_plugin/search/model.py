"""The classifier as the search sees it: search points in, probabilities out; counted, checked, batches bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.space import FeatureSpace, Rows

_CELLS_PER_CALL = 16_000_000
_CELLS_OF_A_NETWORK = 100_000  # whose layers hold many times more: 128 images of 28x28


class SearchModel:
    """A classifier adapter behind the conversions of a feature space.

    Holds the counts of one call of `explain`; the adapter itself is shared and not changed.
    """

    def __init__(self, adapter: Adapted, space: FeatureSpace, n_classes: int | None = None, *, network: bool) -> None:
        self.adapter = adapter
        self.space = space
        self.n_classes = n_classes
        self.has_gradient = network and space.columns.plain  # not through categories
        self._cells = _CELLS_OF_A_NETWORK if network else _CELLS_PER_CALL
        self.calls = 0
        self.predicted = 0

    def proba(self, x: Array) -> Array:
        """Probabilities (n, k) of rows of the table. Where decoding rounds, many are alike: each is predicted once."""
        if self.space.rounds and len(x) > 1:
            # adding 0.0 turns -0.0, which rounding makes, into 0.0
            bytes_of_row = np.ascontiguousarray(x + 0.0).view(np.dtype((np.void, x.itemsize * x.shape[1]))).ravel()
            _, first, place = np.unique(bytes_of_row, return_index=True, return_inverse=True)
            return self._in_batches(x[first])[place]
        return self._in_batches(x)

    def _in_batches(self, x: Array) -> Array:
        size = max(1, self._cells // x.shape[1])
        if len(x) <= size:
            return self._call(x)
        parts = [self._call(x[i : i + size]) for i in range(0, len(x), size)]
        return np.concatenate(parts)

    def at(self, rows: Rows) -> Callable[[Array], tuple[Array, Callable[[Array], Array]]]:
        """The vjp of the model at search points of these rows, for models with gradients."""
        adapter: Any = self.adapter
        space, shape = self.space, self.space.shape
        factor = None if space.is_identity else space.factor.astype(rows.z.dtype)

        def vjp(z: Array) -> tuple[Array, Callable[[Array], Array]]:
            self.calls += 1
            self.predicted += len(z)
            proba, pull = adapter.vjp(space.decode(z, rows).reshape(len(z), *shape))

            def pullback(cotangent: Array) -> Array:
                gradient: Array = pull(cotangent).reshape(z.shape)
                return gradient if factor is None else gradient * factor

            return proba, pullback

        return vjp

    def _call(self, x: Array) -> Array:
        self.calls += 1
        self.predicted += len(x)
        proba = np.asarray(self.adapter.quick(self.space.columns.to_model(x)))
        columns = self.n_classes or proba.shape[-1]
        if proba.shape != (len(x), columns) or columns < 2:  # noqa: PLR2004
            raise ModelError(
                f"the model returned shape {proba.shape} for {len(x)} rows; expected ({len(x)}, k) probabilities of "
                f"{self.n_classes or 'at least 2'} classes. Labels are not enough: pass a function x -> probabilities."
            )
        if not (math.isfinite(proba.sum()) or np.isfinite(proba).all()):
            row = int(np.argwhere(~np.isfinite(proba))[0, 0])
            origin = self.adapter.origin
            raise ModelError(
                f"the model returned {proba[row]} for a row of finite numbers; expected probabilities"
                + (f" ({origin})" if origin else "")
            )
        return proba
