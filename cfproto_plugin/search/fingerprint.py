"""A few training rows and what the model said of them at `fit`: how a model that was fitted again is noticed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.noise import Noise, margins
from cfproto_plugin.tables.given import Given

_ROWS = 8
_ROUNDING = 1e-6  # difference of a probability that another machine or version may make


class Fingerprint(NamedTuple):
    """Rows of the training data, as the model takes them, and its own answers."""

    rows: Any
    answer: Answer
    tolerance: float  # difference of a probability that is no change of the model; infinite if nothing can be told
    flips: int  # rows whose class may be another by noise alone
    classes: Array  # (k,) labels that the model named

    @classmethod
    def take(cls, given: Given, answer: Answer, noise: Noise, classes: Array, *, decides: bool) -> Fingerprint:
        """Half of the rows near the boundary, half spread over the classes. decides: by a rule of its own."""
        near = np.argsort(margins(answer.proba), kind="stable")[: _ROWS // 2]
        by_class = np.argsort(answer.label, kind="stable")
        spread = by_class[np.linspace(0, len(given) - 1, _ROWS // 2).astype(int)]
        rows = np.unique(np.concatenate([near, spread]))
        tolerance = np.inf if noise.random or noise.by_batch else max(noise.own, _ROUNDING)
        return cls(
            given.for_model(given.table[rows], rows),
            Answer(*(part[rows] for part in answer)),
            tolerance,
            0 if not noise.own else 1 if decides else _ROWS,
            classes,
        )

    def check(self, answer: Answer, classes: Array) -> None:
        """Raise ModelError if the model answers these rows differently now, or names other classes (k,)."""
        then, now = self.classes.tolist(), classes.tolist()
        if then != now and list(map(repr, then)) != list(map(repr, now)):  # NaN is not equal to itself
            raise ModelError(
                f"the model changed after explainer.fit: its classes are now {now}, then {then}. Call explainer.fit "
                "again with the model as it is now."
            )
        away = ~(np.abs(answer.proba - self.answer.proba).max(axis=1) <= self.tolerance)
        other = answer.label != self.answer.label
        if other.sum() > self.flips:
            away |= other
        if away.any() and np.isfinite(self.tolerance):
            row = int(away.argmax())
            raise ModelError(
                f"the model changed after explainer.fit: for a training row it said {self.answer.proba[row]} at fit, "
                f"and now says {answer.proba[row]}. Call explainer.fit again with the model as it is now."
            )
