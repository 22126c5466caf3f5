"""How much the answers of a model vary although the row does not: with the batch, and with the call.

Matrix products round differently for one row and for many, so a network gives the same row slightly different
probabilities, most of all near its decision boundary. What it varies by there is what a margin must exceed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.boundary import Between, crossing, margins

_ROWS = 8  # training rows with the smallest margins
_NEAR = 0.5  # margin below which a point shows the noise: farther out a softmax hides it
_ALONE = 16  # rows that are also predicted alone
_FILL = 256  # training rows beside the others in the largest batch
_SAFETY = 8.0  # times what was seen: some thirty points do not show the largest noise of all
_RANDOM = 1e-3  # a larger difference between two equal calls is not rounding
_MOST = 0.5  # margin that is asked for at most: models that answer at random must stay answerable

Ask: TypeAlias = Callable[[Array, Array], Array]  # points (m, A), training rows (m,) they are changes of -> (m, k)


class Noise(NamedTuple):
    """What a margin must exceed. Zero: a tie counts, and goes to the class that the model's own rule names."""

    own: float = 0.0  # in the model's own answers
    quick: float = 0.0  # between these and the recomputed ones
    random: bool = False  # two equal calls gave different answers
    by_batch: bool = False  # the other rows of a call matter, by more than rounding does and any margin covers

    @property
    def lead(self) -> float:
        """What the margin of a recomputed answer must exceed. Without noise, rows that tie are not recomputed."""
        return self.own + self.quick if self.own else 0.0

    @property
    def repeated(self) -> float:
        """What it must exceed in the model's own answer to a point that was judged before, in another batch."""
        return self.own / 2


def noise_of(own: Ask, train: Array, proba: Array, between: Between) -> Noise:
    """Measure the noise in a model's own answers, in some thirty calls.

    train: (N, A), whose probabilities in one call are proba (N, k). A cell that a point shares with its training row is
    that row's own, also where a float does not hold it: all calls that are compared are about the same cells.
    """
    near = np.argsort(margins(proba), kind="stable")[:_ROWS]
    at = crossing(partial(_with_class, own), train, proba, proba.argmax(axis=1), between, near=_NEAR)
    probes = np.concatenate([at.a, at.b, train[near], train[:_FILL]])
    rows = np.concatenate([at.row, at.row, near, np.arange(len(train[:_FILL]))])

    def ask(part: Array) -> Array:
        return own(probes[part], rows[part])

    count = 2 * len(at.row) + len(near)
    every, half = np.arange(count), count // 2
    first, again = ask(every), ask(every)
    small = np.concatenate([ask(part) for part in (every[:3], every[3:half], every[half:]) if len(part)])
    large = ask(np.arange(len(probes)))[:count]
    alone = np.unique(np.linspace(0, count - 1, _ALONE).astype(int))
    by_row = np.concatenate([ask(alone[at : at + 1]) for at in range(len(alone))])
    margin = max(
        *(as_margin(first, other) for other in (again, small, large)),
        as_margin(first[alone], by_row),
        as_margin(first[-len(near) :], proba[near]),
    )
    random = bool(np.abs(first - again).max() > _RANDOM)
    return Noise(min(margin, _MOST), random=random, by_batch=margin > _MOST and not random)


def as_margin(proba: Array, other: Array) -> float:
    """The margin that covers the difference of two answers to the same rows (n, k): it has two probabilities."""
    return 2 * _SAFETY * float(np.abs(proba.astype(float) - other).max(initial=0.0))


def _with_class(own: Ask, points: Array, rows: Array) -> tuple[Array, Array]:
    proba = own(points, rows)
    return proba, proba.argmax(axis=1)
