"""The classifier as the search sees it: rows of the table in, probabilities out; counted, checked, batches bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.clock import Pace
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.space import FeatureSpace, Rows

Vjp = Callable[[Array], tuple[Array, Callable[[Array], Array]]]


class Answer(NamedTuple):
    """What the model itself says of n rows."""

    proba: Array  # (n, k)
    label: Array  # (n,) column of the class it decides for

    @classmethod
    def of(cls, proba: Array, decision: Array | None) -> Answer:
        """The class is the model's own decision (n,), or the first largest probability."""
        return cls(proba, proba.argmax(axis=1) if decision is None else decision)


class SearchModel:
    """A classifier behind the conversions of a feature space.

    Holds the counts of one call of `explain`; the adapter itself is shared and not changed.
    """

    def __init__(
        self,
        adapted: Adapted,
        space: FeatureSpace,
        n_classes: int | None = None,
        tuning: Tuning | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.space = space
        self.pace = pace or Pace()
        self.has_gradient = adapted.vjp is not None and space.columns.plain  # not through categories
        self.calls = 0
        self.predicted = 0
        self.gradients = 0
        self.decides = adapted.labels is not None  # the class of a row is the model's own decision
        self._adapted = adapted
        self._n_classes = n_classes
        tuning = tuning or Tuning()
        self._cells = tuning.cells if adapted.vjp is None else tuning.network

    @property
    def most_rows(self) -> int:
        """The largest number of rows that is asked about in one call."""
        return max(1, self._cells // len(self.space.columns.attributes))

    @property
    def is_quick(self) -> bool:
        """Whether `quick` is not the model's own answer."""
        return self._adapted.has_quick

    def quick(self, table: Array) -> Array:
        """Probabilities (n, k) of rows (n, A) for searching, equal to the model's own up to rounding.

        Where decoding rounds, many rows are alike: each is predicted once.
        """
        return self._proba(table, self._adapted.quick)

    def answer(self, table: Array) -> Answer:
        """What the model itself says of rows (n, A)."""
        return Answer.of(*self.own(table))

    def own(self, table: Array) -> tuple[Array, Array | None]:
        """The model's own probabilities (n, k) and decision (n,) of rows (n, A)."""
        proba = self._proba(table, self._adapted.predict)
        self._n_classes = self._n_classes or proba.shape[1]
        return proba, self.decision(table) if self.decides else None

    def decision(self, table: Array) -> Array:
        """The model's own decision for rows (m, A): columns (m,) of the probabilities. Only if it `decides`."""
        labels = self._adapted.labels
        if labels is None:
            raise ModelError("the model has no decision of its own")
        found = self._in_parts(table, lambda rows: self._asked(rows, labels))
        whole = found.shape == (len(table),) and found.dtype.kind in "iu"
        if not whole or ((found < 0) | (found >= (self._n_classes or np.inf))).any():
            raise ModelError(
                f"labels of adapter {self._adapted.name!r} returned {found.dtype} of shape {found.shape}, such as "
                f"{found.ravel()[:3]}; expected ({len(table)},) whole numbers, columns of the probabilities from 0 to "
                f"{(self._n_classes or 'k')!s} - 1",
                plugin=self._adapted.plugin,
            )
        return found

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
            proba, pull = self._vjp_in_parts(vjp, space.decode(z, rows).reshape(len(z), *shape))

            def pullback(cotangent: Array) -> Array:
                gradient: Array = pull(cotangent).reshape(z.shape)
                return gradient if factor is None else gradient * factor

            return proba, pullback

        return at

    def _count(self, n: int) -> None:
        """Count a question about n rows; an adapter is called once for every `max_rows` of them."""
        self.calls += -(-n // (self._adapted.max_rows or n or 1))
        self.predicted += n

    def _proba(self, table: Array, function: Callable[[Array], Array]) -> Array:
        """Ask for each different row once, in batches that memory allows."""
        place = None
        if self.space.rounds and len(table) > 1:
            # adding 0.0 turns -0.0, which rounding makes, into 0.0
            whole_rows = np.dtype((np.void, table.itemsize * table.shape[1]))
            keys = np.ascontiguousarray(table + 0.0).view(whole_rows).ravel()
            _, first, place = np.unique(keys, return_index=True, return_inverse=True)
            table = table[first]
        proba = self._in_parts(table, lambda rows: self._call(rows, function))
        return proba if place is None else proba[place]

    def _in_parts(self, table: Array, call: Callable[[Array], Array]) -> Array:
        """What a call returns for rows (n, A), asked in parts that memory and the time that is left allow."""
        found: list[Array] = []
        start = 0
        while start < len(table) or not found:
            part = table[start : start + self.pace.rows(self.most_rows)]
            with self.pace.timed(len(part)):
                found.append(call(part))
            start += len(part)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _vjp_in_parts(self, vjp: Vjp, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The vjp at rows (n, *shape), asked in parts that the time that is left allows."""
        self.gradients += len(x)
        outputs, pulls, start = [], [], 0
        while start < len(x):
            part = x[start : start + self.pace.rows(len(x))]
            self._count(len(part))
            with self.pace.timed(len(part)):
                proba, pull = vjp(part)
            outputs.append(proba)
            pulls.append(pull)
            start += len(part)
        if len(pulls) == 1:
            return outputs[0], pulls[0]
        ends = np.cumsum([len(y) for y in outputs])[:-1]

        def pullback(cotangent: Array) -> Array:
            parts = zip(pulls, np.split(cotangent, ends), strict=True)
            return np.concatenate([pull(part) for pull, part in parts])

        return np.concatenate(outputs), pullback

    def _asked(self, table: Array, function: Callable[[Array], Array]) -> Array:
        self._count(len(table))
        return np.asarray(function(self.space.columns.to_model(table)))

    def _call(self, table: Array, function: Callable[[Array], Array]) -> Array:
        proba = self._asked(table, function)
        columns = self._n_classes or proba.shape[-1]
        if proba.shape != (len(table), columns) or columns < 2:  # noqa: PLR2004
            raise ModelError(
                f"the model returned shape {proba.shape} for {len(table)} rows; expected ({len(table)}, k) "
                f"probabilities of {self._n_classes or 'at least 2'} classes. Labels are not enough: pass a function "
                "x -> probabilities.",
                plugin=self._adapted.plugin,
            )
        if not (math.isfinite(proba.sum()) or np.isfinite(proba).all()):
            row = int(np.argwhere(~np.isfinite(proba))[0, 0])
            origin = self._adapted.origin
            raise ModelError(
                f"the model returned {proba[row]} for a row of finite numbers; expected probabilities"
                + (f" ({origin})" if origin else ""),
                plugin=self._adapted.plugin,
            )
        return proba
