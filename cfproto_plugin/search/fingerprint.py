"""A few rows and what the model said of them at `fit`: how a model that was fitted again is noticed.

Half of them are training rows. Models that fit these exactly, such as trees, answer them alike after every fit: the
other half lies at the decision boundary, which the next fit moves.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.boundary import between_rows, crossing, margins
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.noise import Noise
from cfproto_plugin.tables.given import Given

_ROWS = 8  # of the training data
_PAIRS = 4  # of points on both sides of the boundary
_ROUNDS = 4  # to find these: they are 1/4096 of the distance of two training rows apart. More would show rounding.
_BATCHES = (1, 256)  # other rows in a call, which must not change the answer to a point at the boundary
_ROUNDING = 1e-6  # difference of a probability that another machine or version may make


class Fingerprint(NamedTuple):
    """Rows as the model takes them, and its own answers."""

    rows: Any
    answer: Answer
    tolerance: float  # difference of a probability that is no change of the model; infinite if nothing can be told
    flips: int  # rows whose class may be another by noise alone
    classes: Array  # (k,) labels that the model named

    @classmethod
    def take(cls, model: SearchModel, given: Given, answer: Answer, noise: Noise, classes: Array) -> Fingerprint:
        """Choose the rows. given, answer: the training rows and what the model said of them."""
        row = _training_rows(answer)
        tolerance = np.inf if noise.random or noise.by_batch else max(noise.own, _ROUNDING)
        rows, said = given.for_model(given.table[row], row), Answer(*(part[row] for part in answer))
        if np.isfinite(tolerance):
            points, owner = _at_boundary(model, given, answer)
            both = given.for_model(np.concatenate([given.table[row], points]), np.concatenate([row, owner]))
            steady, now = _steady(model, given, both, tolerance)
            steady[: len(row)] = True
            rows, said = take(both, np.flatnonzero(steady)), Answer(*(part[steady] for part in now))
        flips = 0 if not noise.own else 1 if model.decides else len(rows)
        return cls(rows, said, tolerance, flips, classes)

    def check(self, answer: Answer, classes: Array) -> None:
        """Raise ModelError if the model answers these rows differently now, or names other classes (k,)."""
        difference = self.difference(answer, classes)
        if difference is not None:
            raise ModelError(
                f"the model changed after explainer.fit: {difference}. Call explainer.fit again with the model as it "
                "is now."
            )

    def difference(self, answer: Answer, classes: Array) -> str | None:
        """What is different in today's answer to these rows, and in the names (k,) of its columns; None if nothing."""
        then, now = self.classes.tolist(), classes.tolist()
        if then != now and list(map(repr, then)) != list(map(repr, now)):  # NaN is not equal to itself
            return f"its classes are now {now}, then {then}"
        away = ~(np.abs(answer.proba - self.answer.proba).max(axis=1) <= self.tolerance)
        other = answer.label != self.answer.label
        if other.sum() > self.flips:
            away |= other
        if not away.any() or not np.isfinite(self.tolerance):
            return None
        row = int(away.argmax())
        return f"of one row it said {self._said(self.answer, row)} at fit, and says {self._said(answer, row)} now"

    def _said(self, answer: Answer, row: int) -> str:
        return f"{answer.proba[row]} and class {self.classes[answer.label[row]]}"


def _training_rows(answer: Answer) -> Array:
    """Half of the rows near the boundary, half spread over the classes."""
    near = np.argsort(margins(answer.proba), kind="stable")[: _ROWS // 2]
    by_class = np.argsort(answer.label, kind="stable")
    spread = by_class[np.linspace(0, len(by_class) - 1, _ROWS // 2).astype(int)]
    return np.unique(np.concatenate([near, spread]))


def _at_boundary(model: SearchModel, given: Given, answer: Answer) -> tuple[Array, Array]:
    """Points (m, A) on both sides of the boundary, and the training rows (m,) that they are changes of.

    Of all pairs, those with the most similar probabilities: they show a moved threshold first.
    """

    def ask(points: Array, row: Array) -> tuple[Array, Array]:
        return Answer.of(*model.strictly(points, row)[0])

    found = crossing(ask, given.table, *answer, partial(between_rows, model.space), rounds=_ROUNDS)
    apart = np.abs(found.proba_a - found.proba_b).max(axis=1)
    pair = np.argsort(apart, kind="stable")[:_PAIRS]
    return np.concatenate([found.a[pair], found.b[pair]]), np.tile(found.row[pair], 2)


def _steady(model: SearchModel, given: Given, rows: Any, tolerance: float) -> tuple[Array, Answer]:
    """Which rows (m,) bool the model answers alike in calls of any size, and its answer to them alone."""
    first = Answer.of(*model.say(rows))
    good = np.ones(len(rows), dtype=bool)
    for count in _BATCHES:
        some = np.arange(min(count, len(given)))
        again = Answer.of(*model.strictly(given.table[some], some, rows)[1])
        good &= (np.abs(again.proba - first.proba).max(axis=1) <= tolerance) & (again.label == first.label)
    return good, first
