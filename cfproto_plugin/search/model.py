"""The classifier as the search sees it: rows of the table in, probabilities out; counted, checked, batches bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.space import FeatureSpace, Rows


class Answer(NamedTuple):
    """What the model itself says of n rows."""

    proba: Array  # (n, k)
    label: Array  # (n,) column of the class it decides for


class SearchModel:
    """A classifier behind the conversions of a feature space.

    Holds the counts of one call of `explain`; the adapter itself is shared and not changed.
    """

    def __init__(
        self, adapted: Adapted, space: FeatureSpace, n_classes: int | None = None, tuning: Tuning | None = None
    ) -> None:
        self.space = space
        self.has_gradient = adapted.vjp is not None and space.columns.plain  # not through categories
        self.calls = 0
        self.predicted = 0
        self._adapted = adapted
        self._n_classes = n_classes
        tuning = tuning or Tuning()
        self._cells = tuning.cells if adapted.vjp is None else tuning.network

    @property
    def is_quick(self) -> bool:
        """Whether `quick` may differ from the model's own answer."""
        return self._adapted.recomputes or self._adapted.labels is not None

    @property
    def has_own_decision(self) -> bool:
        """Whether the class of a row is the model's own decision, not its largest probability."""
        return self._adapted.labels is not None

    def quick(self, table: Array) -> Array:
        """Probabilities (n, k) of rows (n, A) for searching, equal to the model's own up to rounding.

        Where decoding rounds, many rows are alike: each is predicted once.
        """
        return self._each_once(table, self._adapted.quick)

    def answer(self, table: Array) -> Answer:
        """What the model itself says of rows (n, A)."""
        proba = self._each_once(table, self._adapted.predict)
        return Answer(proba, proba.argmax(axis=1) if self._adapted.labels is None else self._own_labels(table))

    def first_answer(self, table: Array, what: str) -> Answer:
        """Likewise for rows that the model has not seen; says in the user's words if it cannot take missing values."""
        missing = np.isnan(table)
        try:
            return self.answer(table)
        except Exception as error:
            if not missing.any():
                raise
            row, at = np.argwhere(missing)[0].tolist()
            column = self.space.columns.attributes[at].name
            raise InputError(
                f"row {row} of {what} is NaN in column {self.space.columns.describe(at)}, and the model does not "
                f"accept missing values ({type(error).__name__}). Fill it in, or use a model that accepts NaN.",
                row=row,
                column=column,
            ) from error

    def at(self, rows: Rows) -> Callable[[Array], tuple[Array, Callable[[Array], Array]]]:
        """The vjp of the model at search points (n, D) of these rows, for models with gradients."""
        vjp = self._adapted.vjp
        if vjp is None:
            raise ModelError("the model has no gradient")
        space, shape = self.space, self.space.shape
        factor = None if space.is_identity else space.factor.astype(rows.z.dtype)

        def at(z: Array) -> tuple[Array, Callable[[Array], Array]]:
            self.calls += 1
            self.predicted += len(z)
            proba, pull = vjp(space.decode(z, rows).reshape(len(z), *shape))

            def pullback(cotangent: Array) -> Array:
                gradient: Array = pull(cotangent).reshape(z.shape)
                return gradient if factor is None else gradient * factor

            return proba, pullback

        return at

    def _each_once(self, table: Array, function: Callable[[Array], Array]) -> Array:
        if not self.space.rounds or len(table) == 1:
            return self._in_batches(table, function)
        # adding 0.0 turns -0.0, which rounding makes, into 0.0
        row_bytes = np.ascontiguousarray(table + 0.0).view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
        _, first, place = np.unique(row_bytes, return_index=True, return_inverse=True)
        return self._in_batches(table[first], function)[place]

    def _in_batches(self, table: Array, function: Callable[[Array], Array]) -> Array:
        size = max(1, self._cells // table.shape[1])
        if len(table) <= size:
            return self._call(table, function)
        parts = [self._call(table[i : i + size], function) for i in range(0, len(table), size)]
        return np.concatenate(parts)

    def _call(self, table: Array, function: Callable[[Array], Array]) -> Array:
        self.calls += 1
        self.predicted += len(table)
        proba = np.asarray(function(self.space.columns.to_model(table)))
        columns = self._n_classes or proba.shape[-1]
        if proba.shape != (len(table), columns) or columns < 2:  # noqa: PLR2004
            raise ModelError(
                f"the model returned shape {proba.shape} for {len(table)} rows; expected ({len(table)}, k) "
                f"probabilities of {self._n_classes or 'at least 2'} classes. Labels are not enough: pass a function "
                "x -> probabilities."
            )
        if not (math.isfinite(proba.sum()) or np.isfinite(proba).all()):
            row = int(np.argwhere(~np.isfinite(proba))[0, 0])
            origin = self._adapted.origin
            raise ModelError(
                f"the model returned {proba[row]} for a row of finite numbers; expected probabilities"
                + (f" ({origin})" if origin else "")
            )
        return proba

    def _own_labels(self, table: Array) -> Array:
        labels = self._adapted.labels
        if labels is None:
            raise ModelError("the model has no decision of its own")
        return np.asarray(labels(self.space.columns.to_model(table)))
