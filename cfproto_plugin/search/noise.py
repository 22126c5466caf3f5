"""How much the answers of a model vary although the row does not: with the batch, and with the call.

Matrix products round differently for one row and for many, so a network gives the same row slightly different
probabilities, most of all near its decision boundary. What it varies by there is what a margin must exceed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from cfproto_plugin.protocols import Array

log = logging.getLogger(__name__)

_PAIRS = 12  # of training rows of different classes, between which the boundary is crossed
_ROWS = 8  # training rows with the smallest margins
_STEPS = np.arange(1, 8) / 8  # of the way between two points, predicted together
_ROUNDS = 8  # each divides the distance of two points on both sides of the boundary by eight
_NEAR = 0.5  # margin below which a point shows the noise: farther out a softmax hides it
_ALONE = 16  # rows that are also predicted alone
_FILL = 256  # training rows beside the others in the largest batch
_SAFETY = 8.0  # times what was seen: some thirty points do not show the largest noise of all
_RANDOM = 1e-3  # a larger difference between two equal calls is not rounding
_MOST = 0.5  # margin that is asked for at most: models that answer at random must stay answerable

Ask: TypeAlias = Callable[[Array, Array], Array]  # points (m, A), training rows (m,) they are changes of -> (m, k)
Between: TypeAlias = Callable[[Array, Array, Array], Array]  # rows (m, A), others (m, A), t (m,) -> rows between them


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
    crossing, low = _boundary(own, train, proba, between)
    probes = np.concatenate([crossing, train[near], train[:_FILL]])
    rows = np.concatenate([low, near, np.arange(len(train[:_FILL]))])

    def ask(part: Array) -> Array:
        return own(probes[part], rows[part])

    count = len(crossing) + len(near)
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


def margins(proba: Array) -> Array:
    """The largest probability minus the second largest: (n,)."""
    second, first = np.partition(proba, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def _boundary(own: Ask, train: Array, proba: Array, between: Between) -> tuple[Array, Array]:
    """Points (m, A) on both sides of the boundary and near to it, as changes of training rows (m,).

    None if the model cannot answer between its rows.
    """
    low, high = _pairs(train, proba)
    each, a, b, side = np.arange(len(low)), train[low], train[high], proba.argmax(axis=1)[low]
    margin_a, margin_b = margins(proba)[low], margins(proba)[high]
    try:
        for _ in range(_ROUNDS if len(low) else 0):
            steps = np.repeat(a, len(_STEPS), axis=0), np.repeat(b, len(_STEPS), axis=0), np.tile(_STEPS, len(a))
            points = between(*steps)
            found = own(points, np.repeat(low, len(_STEPS)))
            if np.isnan(found).any():  # the model cannot answer there
                return train[:0], low[:0]
            crossed = found.argmax(axis=1).reshape(len(a), -1) != side[:, None]
            first = np.where(crossed.any(axis=1), crossed.argmax(axis=1), len(_STEPS))
            line = np.concatenate([a[:, None], points.reshape(*crossed.shape, -1), b[:, None]], axis=1)
            margin = np.concatenate(
                [margin_a[:, None], margins(found).reshape(crossed.shape), margin_b[:, None]], axis=1
            )
            a, b, margin_a, margin_b = (
                line[each, first],
                line[each, first + 1],
                margin[each, first],
                margin[each, first + 1],
            )
            if (np.minimum(margin_a, margin_b) < _NEAR).all():
                break
    except Exception as error:  # noqa: BLE001 whatever a model raises at a point that is no row of the user's
        log.info("the noise of the model is measured on training rows only; between them it raised %r", error)
        return train[:0], low[:0]
    return np.concatenate([a, b]), np.tile(low, 2)


def _pairs(train: Array, proba: Array) -> tuple[Array, Array]:
    """Rows of different classes (m,), a third each: near the boundary, with large numbers, spread over the data.

    Rounding grows with the numbers. A row's partner is the first of another class in the same order.
    """
    label = proba.argmax(axis=1)
    if (label == label[0]).all():
        return np.zeros(0, int), np.zeros(0, int)
    near = np.argsort(margins(proba), kind="stable")
    large = np.argsort(-np.abs(np.nan_to_num(train)).max(axis=1), kind="stable")
    spread = np.linspace(0, len(train) - 1, _PAIRS // 3).astype(int)
    found = []
    for order, rows in ((near, near), (large, large), (np.roll(near, len(near) // 2), spread)):
        for rank, row in enumerate(rows[: _PAIRS // 3].tolist()):
            others = order[label[order] != label[row]]
            found.append((row, int(others[min(rank, len(others) - 1)])))
    low, high = np.array(found).T
    return low, high
