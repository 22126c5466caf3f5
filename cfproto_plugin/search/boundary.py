"""Points on both sides of a model's decision boundary, between training rows of different classes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from cfproto_plugin.errors import ModelGoneError
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.space import FeatureSpace

log = logging.getLogger(__name__)

_PAIRS = 12  # of training rows of different classes, between which the boundary is crossed
_STEPS = np.arange(1, 8) / 8  # fractions of the way between two points, predicted together
_ROUNDS = 8  # each divides the distance of two points on both sides of the boundary by eight

# points (m, A), training rows (m,) they are changes of -> probabilities (m, k), classes (m,)
AskBoth: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
Between: TypeAlias = Callable[[Array, Array, Array], Array]  # rows (m, A), others (m, A), t (m,) -> rows between them


class Crossing(NamedTuple):
    """m pairs of points on both sides of the boundary."""

    row: Array  # (m,) training rows that the points are changes of
    a: Array  # (m, A) points of the class of that row
    b: Array  # (m, A) points of another class
    proba_a: Array  # (m, k)
    proba_b: Array  # (m, k)


def margins(proba: Array) -> Array:
    """The largest probability minus the second largest: (n,)."""
    second, first = np.partition(proba, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def crossing(
    ask: AskBoth,
    train: Array,
    proba: Array,
    label: Array,
    between: Between,
    *,
    rounds: int = _ROUNDS,
    near: float = 0.0,
) -> Crossing:
    """Halve the way between training rows (N, A) of different classes until its ends lie close to the boundary.

    proba (N, k), label (N,): the model's answers to them. It ends after `rounds`, or when one end of every pair has a
    margin below `near`. No pairs if the model cannot answer between its rows.
    """
    low, high = _pairs(train, proba, label)
    each, side = np.arange(len(low)), label[low]
    found = Crossing(low, train[low], train[high], proba[low], proba[high])
    try:
        for _ in range(rounds if len(low) else 0):
            found = _closer(ask, found, side, each, between)
            if np.isnan(found.proba_a).any() or np.isnan(found.proba_b).any():  # the model cannot answer there
                return Crossing(*(part[:0] for part in found))
            if (np.minimum(margins(found.proba_a), margins(found.proba_b)) < near).all():
                break
    except ModelGoneError:
        raise
    except Exception as error:  # noqa: BLE001 whatever a model raises at a point that is no row of the user's
        log.info("the model is tried on training rows only; between them it raised %r", error)
        return Crossing(*(part[:0] for part in found))
    return found


def _closer(ask: AskBoth, at: Crossing, side: Array, each: Array, between: Between) -> Crossing:
    """The first two neighbours of different classes among points on the way between the ends of every pair."""
    count = len(_STEPS)
    a, b = np.repeat(at.a, count, axis=0), np.repeat(at.b, count, axis=0)
    points = between(a, b, np.tile(_STEPS, len(each)))
    proba, label = ask(points, np.repeat(at.row, count))
    if np.isnan(proba).any():
        return at._replace(proba_a=np.full_like(at.proba_a, np.nan))
    crossed = label.reshape(len(each), count) != side[:, None]
    first = np.where(crossed.any(axis=1), crossed.argmax(axis=1), count)
    line = np.concatenate([at.a[:, None], points.reshape(len(each), count, -1), at.b[:, None]], axis=1)
    said = np.concatenate([at.proba_a[:, None], proba.reshape(len(each), count, -1), at.proba_b[:, None]], axis=1)
    return Crossing(at.row, line[each, first], line[each, first + 1], said[each, first], said[each, first + 1])


def _pairs(train: Array, proba: Array, label: Array) -> tuple[Array, Array]:
    """Rows of different classes (m,), in turn: near the boundary, with large numbers, spread over the data.

    Rounding grows with the numbers. A row's partner is the first of another class in the same order.
    """
    if (label == label[0]).all():
        return np.zeros(0, int), np.zeros(0, int)
    near = np.argsort(margins(proba), kind="stable")
    large = np.argsort(-np.abs(np.nan_to_num(train)).max(axis=1), kind="stable")
    spread = np.linspace(0, len(train) - 1, _PAIRS // 3).astype(int)
    found = []
    for rank in range(min(_PAIRS // 3, len(train))):
        for order, rows in ((near, near), (large, large), (np.roll(near, len(near) // 2), spread)):
            others = order[label[order] != label[rows[rank]]]
            found.append((int(rows[rank]), int(others[min(rank, len(others) - 1)])))
    low, high = np.array(found).T
    return low, high


def between_rows(space: FeatureSpace, a: Array, b: Array, t: Array) -> Array:
    """Rows (m, A) at t (m,) of the way from a to b, as columns can hold them; a category is that of the nearer row."""
    t = t[:, None].astype(a.dtype)
    rows = space.rules.grid.snap(a + t * (b - a)).astype(a.dtype, copy=False)
    chosen = np.where(t < 0.5, a, b)  # noqa: PLR2004 half-way
    return np.where([attribute.levels is not None for attribute in space.columns.attributes], chosen, rows)
