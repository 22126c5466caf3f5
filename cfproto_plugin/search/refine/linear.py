"""The best point on a linear boundary: what sliding goes towards. Pure numerics, row by row."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.protocols import Array


def nearest_step(
    gradient: Array,
    least: Array,
    lower: Array,
    upper: Array,
    beta: float,
    theta: float = 0.0,
    goal: Array | None = None,
) -> Array:
    """argmin of beta·|d|_1 + |d|^2 + theta·|d - goal|^2 with gradient·d >= least and d in the bounds: (n, D).

    gradient, lower, upper, goal: (n, D). least: (n,). Where no d satisfies it, the one that comes nearest to it.

    At the price s of the constraint every column is d(u) = soft(u, beta) / (2 + 2·theta), clipped to the bounds, at
    u = s·gradient + 2·theta·goal. So gradient·d grows with s by a constant rate between the places where a column
    begins or ends to move; the price is found by passing these in order.
    """
    pull = np.zeros_like(gradient) if goal is None or not theta else 2 * theta * goal
    scale = 2 * (1 + theta)

    def step(price: Array) -> Array:
        u = price[:, None] * gradient + pull
        soft = np.sign(u) * np.maximum(np.abs(u) - beta, 0)
        return np.asarray(np.minimum(np.maximum(soft / scale, lower), upper))

    begin, end = _moving(gradient, pull, scale * lower, scale * upper, beta)
    place = np.concatenate([begin, end], axis=1)
    rate = np.where(np.isfinite(begin), np.tile(np.square(gradient) / scale, 2), 0)
    rate = np.concatenate([rate, -rate], axis=1)
    rate[~np.isfinite(place)] = 0
    place[~np.isfinite(place)] = np.finfo(place.dtype).max
    order = np.argsort(place, axis=1, kind="stable")
    place, rate = np.take_along_axis(place, order, axis=1), np.cumsum(np.take_along_axis(rate, order, axis=1), axis=1)
    used = place < np.finfo(place.dtype).max
    width = np.diff(np.where(used, place, np.max(np.where(used, place, 0), axis=1, keepdims=True)), axis=1)
    start = (gradient * step(np.zeros(len(gradient)))).sum(axis=1)
    reached = start[:, None] + np.concatenate(
        [np.zeros((len(gradient), 1)), np.cumsum(rate[:, :-1] * width, axis=1)], 1
    )
    return step(_price(place, used, rate, reached, start, least))


def _moving(gradient: Array, pull: Array, lower: Array, upper: Array, beta: float) -> tuple[Array, Array]:
    """Prices (n, 2D) from which on every column moves, below and above the dead zone, and at which it stops."""
    low, high = lower + beta * np.sign(lower), upper + beta * np.sign(upper)
    parts = []
    for first, last in ((low, np.minimum(high, -beta)), (np.maximum(low, beta), high)):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.sort([(first - pull) / gradient, (last - pull) / gradient], axis=0)
        moves = (first < last) & (gradient != 0) & (ends[1] > 0)
        parts.append((np.where(moves, np.maximum(ends[0], 0), np.inf), np.where(moves, ends[1], np.inf)))
    begins, stops = zip(*parts, strict=True)
    return np.concatenate(begins, axis=1), np.concatenate(stops, axis=1)


def _price(place: Array, used: Array, rate: Array, reached: Array, start: Array, least: Array) -> Array:
    """The smallest price (n,) at which what is reached is at least `least`; the last place where that is never."""
    each = np.arange(len(place))
    enough = used & (reached >= least[:, None])
    after = np.where(enough.any(axis=1), enough.argmax(axis=1), used.sum(axis=1))
    before = np.maximum(after - 1, 0)
    missing = least - reached[each, before]
    slope = rate[each, before]
    step = np.divide(missing, slope, out=np.zeros_like(missing), where=slope > 0)
    price = np.where(used[each, before], place[each, before] + np.maximum(step, 0), 0)
    return np.where((least <= start) | ~used.any(axis=1), 0, price)
