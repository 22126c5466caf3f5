"""The classifier as the search sees it: rows of the table in, probabilities out; counted, checked, batches bounded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ModelError, ModelGoneError
from cfproto_plugin.helpers.kinds import can_join, join, take
from cfproto_plugin.plugins import Adapted, checked_labels, checked_proba, checked_vjp
from cfproto_plugin.protocols import Array, Pullback
from cfproto_plugin.search.boundary import margins
from cfproto_plugin.search.clock import Pace
from cfproto_plugin.search.failures import ask, ask_vjp, halved, in_words
from cfproto_plugin.search.noise import Noise
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.space import FeatureSpace, Rows

_CALLS = 4096  # that finding the points a model fails for may take; more find more points that it can answer
_TABLE_ROWS = 1024  # of a wide table that a network takes at once: its layers hold no more than the table does
_SECONDS = 2.0  # likewise, for slow models


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

    given: the user's rows. A point that is a change of row x is predicted as that row with its changed cells: the cells
    and dtypes that the user gets back. Holds the counts of one call of `explain`; the adapter itself is shared and not
    changed.
    """

    def __init__(
        self,
        adapted: Adapted,
        space: FeatureSpace,
        n_classes: int | None = None,
        tuning: Tuning | None = None,
        pace: Pace | None = None,
        *,
        given: Given | None = None,
        noise: Noise | None = None,
        by_proba: bool = False,
        ends: Array | None = None,
    ) -> None:
        self.space = space
        self.pace = pace or Pace()
        self.given = given
        self.has_gradient = adapted.vjp is not None and space.columns.plain  # not through categories
        self.calls = 0
        self.predicted = 0
        self.gradients = 0
        self.raised: str | None = None  # what it raised last at a point of the search
        self.gone: ModelGoneError | None = None  # it is not asked again
        self.decides = adapted.labels is not None  # the class of a row is the model's own decision
        self.noise = noise or Noise()
        self._itself = False
        # scores say which class is decided for, not how probable it is
        self._guided = self.decides and adapted.scores is not None and not by_proba and ends is None
        self.is_quick = adapted.has_quick or self._guided  # `quick` is not the model's own answer
        self._ends = ends  # of the intervals that a probability has to lie in
        self._adapted = adapted
        self._n_classes = n_classes
        tuning = tuning or Tuning()
        self._cells, self._most_cells = tuning.cells if adapted.vjp is None else tuning.network, tuning.cells

    @cached_property
    def most_rows(self) -> int:
        """The largest number of rows that is asked about in one call."""
        columns = len(self.space.columns.attributes)
        rows = self._cells // columns
        if len(self.space.shape) == 1 and rows < _TABLE_ROWS:
            rows = min(_TABLE_ROWS, self._most_cells // columns)
        return max(1, rows)

    @contextmanager
    def asking_itself(self) -> Iterator[None]:
        """While this lasts, `quick` is the model's own answer."""
        self._itself = True
        try:
            yield
        finally:
            self._itself = False

    def quick(self, table: Array, x: Array | None = None) -> Array:
        """Probabilities (n, k) of rows (n, A) for searching, equal to the model's own up to rounding.

        Scores, whose largest is the class, for a model that has such and decides by a rule of its own.
        Where decoding rounds, many rows are alike: each is predicted once. NaN where the model fails. A model without
        noise may decide by a tie: rows that rounding could tie or untie are asked of the model itself.
        x: (n,) the user's rows that they are changes of, which matter only where floats do not hold their cells.
        """
        x = self._where_exact(x)
        if self._itself:
            return self.own_proba(table, x)
        if self._guided and self._adapted.scores is not None:
            return self._proba(table, self._adapted.scores, x)
        proba = self._proba(table, self._adapted.quick, x, floats=self.is_quick)
        if self.noise.quick and not self.noise.own:
            near = np.flatnonzero(self._is_near(proba))
            if len(near):
                proba = proba.copy()
                proba[near] = self.own_proba(table[near], None if x is None else x[near])
        return proba

    def _is_near(self, proba: Array) -> Array:
        """Which answers (n, k) rounding could turn: those near a tie, or near the end of an interval."""
        if self._ends is None:
            return np.asarray(margins(proba) <= self.noise.quick)
        return np.asarray((np.abs(proba[:, :, None] - self._ends) <= self.noise.quick).any(axis=(1, 2)))

    def quick_decision(self, table: Array, x: Array | None = None) -> Array | None:
        """The model's own decision (n,) where `quick` does not tell it."""
        told = not self.decides or (self._guided and not self._itself)
        return None if told else self.decision(table, self._where_exact(x))

    def quick_labels(self, table: Array, x: Array | None = None) -> Array:
        """The classes (n,) of rows (n, A) while searching, -1 where the model fails."""
        decision = self.quick_decision(table, x)
        if decision is not None:
            return decision
        proba = self.quick(table, x)
        failed = np.isnan(proba).any(axis=1)  # the first NaN of a row would count as its largest
        return np.where(failed, -1, proba.argmax(axis=1))

    def _where_exact(self, x: Array | None) -> Array | None:
        """The user's rows (n,) if floats do not hold all that is in them: writing changes into them takes time."""
        return x if self.given is not None and self.given.beyond_floats else None

    def answer(self, table: Array, x: Array | None = None) -> Answer:
        """What the model itself says of rows (n, A); x (n,): the user's rows that they are changes of."""
        return Answer.of(*self.own(table, x))

    def own_proba(self, table: Array, x: Array | None = None) -> Array:
        """The model's own probabilities (n, k) of rows (n, A), changes of the user's rows x (n,)."""
        proba = self._proba(table, self._adapted.predict, x)
        self._n_classes = self._n_classes or proba.shape[1]
        return proba

    def own(self, table: Array, x: Array | None = None) -> tuple[Array, Array | None]:
        """Likewise, and its own decision (n,) if it has one."""
        return self.own_proba(table, x), self.decision(table, x) if self.decides else None

    def decision(self, table: Array, x: Array | None = None) -> Array:
        """The model's own decision for rows (m, A): columns (m,) of the probabilities, -1 where the model fails.

        Only if it `decides`. x: (m,) the user's rows that they are changes of.
        """
        rows = self._rows(table, x)

        def some(at: Array) -> Array:
            found = ask(lambda part: self._labels(rows(at[part])), len(at), _CALLS, _SECONDS).joined(len(at), -1)
            return np.full(len(at), -1) if found is None else found

        return self._in_parts(len(table), some)

    def _labels(self, rows: Any) -> Array:
        labels: Array = self._ask(len(rows), checked_labels, self._adapted, rows, self._n_classes)
        return labels

    def strictly(
        self, table: Array, x: Array | None = None, beside: Any = None
    ) -> tuple[tuple[Array, Array | None], tuple[Array, Array | None]]:
        """Likewise, in one call per batch; what the model raises is raised. NaN where it returns such.

        beside: further rows, as the model takes them, and then their answers; asked in the same call if their dtypes
        are the same.
        """
        n, rows = len(table), self._rows(table, x)
        if beside is None:
            return self._say(n, rows), (np.zeros(0), None)
        if not can_join(rows(np.arange(min(n, 1))), beside):
            return self._say(n, rows), self.say(beside)
        proba, decision = self._say(
            n + len(beside),
            lambda at: join(rows(at[at < n]), take(beside, at[at >= n] - n)) if at[-1] >= n else rows(at),
        )
        if decision is None:
            return (proba[:n], None), (proba[n:], None)
        return (proba[:n], decision[:n]), (proba[n:], decision[n:])

    def say(self, rows: Any) -> tuple[Array, Array | None]:
        """The model's own probabilities and decision of rows as it takes them; what it raises is raised."""
        return self._say(len(rows), lambda at: take(rows, at))

    def _say(self, n: int, rows: Callable[[Array], Any]) -> tuple[Array, Array | None]:
        proba = self._in_parts(n, lambda at: self._call(rows(at), self._adapted.predict))
        self._n_classes = proba.shape[1]
        return proba, self._in_parts(n, lambda at: self._labels(rows(at))) if self.decides else None

    @property
    def plugin(self) -> str | None:
        """The plugin that the model's adapter comes from."""
        return self._adapted.plugin

    @property
    def owner(self) -> str:
        """What messages call the model's adapter."""
        return self._adapted.owner

    @property
    def n_classes(self) -> int:
        """How many columns the probabilities have."""
        if self._n_classes is None:
            raise ModelError("the model has not been asked yet")
        return self._n_classes

    @property
    def classes(self) -> Array:
        """The labels (k,) that the model names now."""
        return self._adapted.classes(self.n_classes)

    def no_number(self, proba: Array, where: str) -> ModelError:
        """The error of a model that returns NaN or infinite numbers."""
        origin = f" ({self._adapted.origin})" if self._adapted.origin else ""
        return ModelError(
            f"the model returned {proba} for {where}; expected probabilities{origin}", plugin=self._adapted.plugin
        )

    def at(self, rows: Rows) -> Callable[[Array], tuple[Array, Pullback]]:
        """The vjp of the model at search points (n, D) of these rows, for models with gradients."""
        space, shape = self.space, self.space.shape
        factor = None if space.is_identity else space.factor.astype(rows.z.dtype)

        def at(z: Array) -> tuple[Array, Pullback]:
            proba, pull = self._vjp_at(space.decode(z, rows).reshape(len(z), *shape))

            def pullback(cotangent: Array) -> Array:
                gradient: Array = pull(cotangent).reshape(z.shape)
                return gradient if factor is None else gradient * factor

            return proba, pullback

        return at

    def _ask(self, n: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer to a question about n rows. A model that is gone is not asked, and one that goes is noted."""
        if self.gone is not None:
            raise self.gone
        self._count(n)
        try:
            return function(*arguments)
        except ModelGoneError as error:
            self.gone = error
            raise

    def _count(self, n: int) -> None:
        """Count a question about n rows; an adapter is called once for every `max_rows` of them."""
        self.calls += -(-n // (self._adapted.max_rows or n or 1))
        self.predicted += n

    def _rows(self, table: Array, x: Array | None, *, floats: bool = False) -> Callable[[Array], Any]:
        """Some (m,) of the rows (n, A), as the model takes them."""
        given, columns = self.given, self.space.columns
        if x is None or given is None:  # what is asked about are different rows in order: as many are all of them
            return lambda at: columns.to_model(table if len(at) == len(table) else table[at], floats=floats)
        return lambda at: given.for_model(table[at], x[at])

    def _proba(
        self, table: Array, function: Callable[[Array], Array], x: Array | None = None, *, floats: bool = False
    ) -> Array:
        """Ask for each different row once, in batches that memory allows; NaN where the model fails."""
        place = None
        if self.space.is_coarse and len(table) > 1:
            told = table if x is None else np.column_stack([table, x])  # bit for bit: a model may tell -0.0 from 0.0
            keys = np.ascontiguousarray(told).view(np.dtype((np.void, told.itemsize * told.shape[1]))).ravel()
            _, first, place = np.unique(keys, return_index=True, return_inverse=True)
            table, x = table[first], None if x is None else x[first]
        rows = self._rows(table, x, floats=floats)
        proba = self._in_parts(len(table), lambda at: self._some(at, lambda part: self._call(rows(part), function)))
        return proba if place is None else proba[place]

    def _in_parts(self, n: int, call: Callable[[Array], Array]) -> Array:
        """What a call returns for rows 0 to n - 1, asked in parts that memory and the time that is left allow."""
        found: list[Array] = []
        start = 0
        while start < n or not found:
            part = np.arange(start, min(n, start + self.pace.rows(self.most_rows)))
            begun = time.perf_counter()
            found.append(call(part))
            self.pace.note(len(part), time.perf_counter() - begun)
            start += len(part)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _some(self, at: Array, call: Callable[[Array], Array]) -> Array:
        """What the model says of rows (m,) of a question; NaN for those that it fails for."""
        try:
            return call(at)
        except ModelGoneError:
            raise
        except Exception as error:  # noqa: BLE001 whatever a model raises
            deadline = time.perf_counter() + _SECONDS
            asked = halved(lambda part: call(at[part]), np.arange(len(at)), error, _CALLS, deadline)
        if asked.failed:
            self.raised = in_words(next(iter(asked.failed.values())))
        found = asked.joined(len(at), np.nan)
        return np.full((len(at), self._n_classes or 2), np.nan) if found is None else found

    def _vjp_at(self, x: Array) -> tuple[Array, Pullback]:
        """The vjp at rows (n, *shape); where the model fails, the output is NaN and the gradient zero."""
        self.gradients += len(x)
        proba, pull = ask_vjp(self._vjp, x, self.pace, _CALLS, _SECONDS)
        return np.full((len(x), self.n_classes), np.nan) if proba is None else proba, pull

    def _vjp(self, x: Array) -> tuple[Array, Pullback]:
        found: tuple[Array, Pullback] = self._ask(len(x), checked_vjp, self._adapted, x)
        return found

    def _call(self, rows: Any, function: Callable[[Any], Array]) -> Array:
        """Probabilities (n, k) of rows for the model; NaN in all columns where one is NaN or infinite."""
        n = len(rows)
        return checked_proba(self._ask(n, function, rows), n, self._n_classes, self._adapted)
