"""Where a peer's point lies beside the front of our settings: distance against one quality, on the same rows.

The distance of a point is the geometric mean of EN, its quality the mean over the rows. For each half of the rows, the
other half chooses two of our settings: the best quality at no more than the peer's distance, and the smallest distance
at no less than the peer's quality. The differences to the peer, row by row, are resampled for 95 % intervals. A peer
lies on the better side of the front if it is better than both choices by more than the interval; a choice that no
setting of ours offers is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

QUALITIES = {"survival": 1, "typicality": 1, "outlier": -1, "l0": -1}  # 1: more is better
SAMPLES = 2000

Score = dict[str, list[Any]]


def point(score: Score, quality: str) -> list[float]:
    """Distance and quality of a tool over its valid rows."""
    at = np.flatnonzero(score["valid"])
    return [float(np.exp(np.log(_array(score, "en", at)).mean())), float(_array(score, quality, at).mean())]


def verdict(peer: Score, ours: dict[str, Score], quality: str) -> dict[str, Any]:
    """On the rows where the peer has a valid answer.

    quality: the peer's gain over our best at no more than its distance; distance: that of our nearest with at least its
    quality, over the peer's. Each with its interval; None where no setting of ours is that near, or that good.
    """
    rows, sign = np.flatnonzero(peer["valid"]), QUALITIES[quality]
    names = list(ours)
    distance = np.array([np.log(_array(ours[name], "en", rows)) for name in names])
    good = np.array([sign * _array(ours[name], quality, rows) for name in names])
    its_distance, its_good = np.log(_array(peer, "en", rows)), sign * _array(peer, quality, rows)
    halves = [np.arange(len(rows)) % 2 == half for half in (0, 1)]
    best = [_best(_means(good, half), _means(distance, half) <= its_distance[half].mean()) for half in halves]
    near = [_best(-_means(distance, half), _means(good, half) >= its_good[half].mean()) for half in halves]
    gained, farther = its_good - _crossed(good, best, halves), _crossed(distance, near, halves) - its_distance
    found = {"quality": _with_interval(gained), "distance": _with_interval(farther)}
    return {
        "rows": len(rows),
        "quality": found["quality"],
        "distance": found["distance"] and [float(value) for value in np.exp(found["distance"])],
        "verdict": _words(found["quality"], found["distance"]),
        "chosen": sorted({names[at] for at in (*best, *near) if at is not None}),
    }


def _words(quality: list[float] | None, distance: list[float] | None) -> str:
    """Each is the mean of what the peer is better by, and its interval; None is lost to the peer."""
    if all(each is None or each[1] > 0 for each in (quality, distance)):
        return "peer"
    return "ours" if any(each is not None and each[2] < 0 for each in (quality, distance)) else "even"


def _means(values: np.ndarray, half: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, half].mean(axis=1))


def _best(value: np.ndarray, allowed: np.ndarray) -> int | None:
    """The place of the largest value among those allowed."""
    return int(np.where(allowed, value, -np.inf).argmax()) if allowed.any() else None


def _crossed(values: np.ndarray, chosen: list[int | None], halves: list[np.ndarray]) -> np.ndarray:
    """What the setting that one half chose gives to the rows of the other; NaN where there is none."""
    found = np.full(values.shape[1], np.nan)
    for at, half in zip(chosen, halves, strict=True):
        if at is not None:
            found[~half] = values[at][~half]
    return found


def _with_interval(values: np.ndarray) -> list[float] | None:
    return None if np.isnan(values).any() else [float(values.mean()), *interval(values)]


def interval(values: np.ndarray) -> tuple[float, float]:
    """95 % of the means of resampled rows."""
    at = np.random.default_rng(0).integers(len(values), size=(SAMPLES, len(values)))
    low, high = np.quantile(values[at].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _array(score: Score, name: str, rows: np.ndarray) -> np.ndarray:
    return np.array([score[name][at] for at in rows], dtype=float)
