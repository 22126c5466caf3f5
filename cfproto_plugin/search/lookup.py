"""What searches ask of the training rows again and again; made at the first question.

The rows of every class as points in 32 bits, ready for matrix products, and the quantiles of the columns.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.helpers.nearest import squared_lengths
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.space import FeatureSpace

_ROWS = 65_536  # that are converted at once
SUREST = 8  # rows with the highest probability of their class, which they may keep wherever they are moved


class ClassPoints(NamedTuple):
    """The training rows of one class."""

    which: Array  # (N,) their numbers
    points: Array  # (N, D) in 32 bits, without the centre
    lengths: Array  # (N,) squared lengths of these
    low: Array  # (D,) the range of the rows in the search
    high: Array  # (D,)
    surest: Array  # (m,) places of the rows with the highest probability of the class, highest first


ByClass = dict[int, ClassPoints]


class Lookup:
    """Points of the classes, by class. A million rows of 20 columns take 84 MB.

    Rules and dtypes of a call change nothing that matters here: distances in 32 bits make a shortlist only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[Array, ByClass] | None = None
        self._quantiles: dict[tuple[int, int], Array] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes its own points."""
        return {}

    def __setstate__(self, _state: dict[str, Any]) -> None:
        self._lock, self._known, self._quantiles = threading.Lock(), None, {}

    def of(
        self, space: FeatureSpace, train: Array, labels: Array, proba: Array
    ) -> tuple[Array, dict[int, ClassPoints]]:
        """The centre (D,) of the training rows, and their points by class.

        train: (N, A) table; labels, proba: (N,) their classes and the probability of these.
        """
        with self._lock:
            if self._known is None:
                sample = train[:: max(1, len(train) // _ROWS)]
                centre = np.asarray(space.to_search(sample).mean(axis=0))
                classes = {
                    label: _points(space, train, np.flatnonzero(labels == label), centre, proba)
                    for label in np.unique(labels).tolist()
                }
                self._known = centre, classes
            return self._known

    def quantiles(self, train: Array, step: int, count: int) -> Array:
        """`count` quantiles (A, count) of every column of each `step`-th training row; NaN in a column without a value.

        train: (N, A) table.
        """
        with self._lock:
            if (step, count) not in self._quantiles:
                found = np.full((train.shape[1], count), np.nan)
                for at, column in enumerate(train[::step].T):
                    known = column[~np.isnan(column)]
                    if len(known):
                        found[at] = np.quantile(known, np.linspace(0, 1, count))
                self._quantiles[step, count] = found
            return self._quantiles[step, count]


def _points(space: FeatureSpace, train: Array, which: Array, centre: Array, proba: Array) -> ClassPoints:
    points = np.empty((len(which), train.shape[1]), dtype=np.float32)
    low, high = np.full(train.shape[1], np.inf), np.full(train.shape[1], -np.inf)
    for start in range(0, len(which), _ROWS):
        part = slice(start, start + _ROWS)
        z = space.to_search(train[which[part]])
        low, high = np.minimum(low, z.min(axis=0)), np.maximum(high, z.max(axis=0))
        points[part] = z - centre
    surest = np.argsort(-proba[which], kind="stable")[:SUREST]
    return ClassPoints(which, points, squared_lengths(points), low, high, surest)
