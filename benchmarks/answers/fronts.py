"""Where a peer's point lies beside the front of our settings: distance against one quality, on the same rows.

The distance of a point is the geometric mean of EN, its quality the mean over the rows. For each half of the rows, the
other half chooses two of our settings: the best quality at no more than the peer's distance, and the smallest distance
at no less than the peer's quality. The differences to the peer, row by row, are resampled for 95 % intervals. A peer
lies on the better side of the front if it is better than both choices by more than the interval.
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
    """On the rows where the peer has a valid answer."""
    rows, sign = np.flatnonzero(peer["valid"]), QUALITIES[quality]
    names = list(ours)
    distance = np.array([np.log(_array(ours[name], "en", rows)) for name in names])
    good = np.array([sign * _array(ours[name], quality, rows) for name in names])
    its_distance, its_good = np.log(_array(peer, "en", rows)), sign * _array(peer, quality, rows)
    gained, farther = np.zeros(len(rows)), np.zeros(len(rows))
    chosen = set()
    for half in (0, 1):
        choose, judge = np.arange(len(rows)) % 2 == half, np.arange(len(rows)) % 2 != half
        mean_distance, mean_good = distance[:, choose].mean(axis=1), good[:, choose].mean(axis=1)
        best = _best(mean_good, mean_distance <= its_distance[choose].mean(), -mean_distance)
        near = _best(-mean_distance, mean_good >= its_good[choose].mean(), mean_good)
        gained[judge] = its_good[judge] - good[best][judge]
        farther[judge] = distance[near][judge] - its_distance[judge]
        chosen |= {names[best], names[near]}
    quality_range, distance_range = _interval(gained), _interval(farther)
    return {
        "rows": len(rows),
        "quality": [float(gained.mean()), *quality_range],  # the peer's gain at no more than its distance
        "distance": [float(value) for value in np.exp([farther.mean(), *distance_range])],  # ours / the peer's
        "verdict": _words(quality_range, distance_range),
        "chosen": sorted(chosen),
    }


def _words(quality: tuple[float, float], distance: tuple[float, float]) -> str:
    if quality[0] > 0 and distance[0] > 0:
        return "peer"
    return "ours" if quality[1] < 0 or distance[1] < 0 else "even"


def _best(value: np.ndarray, allowed: np.ndarray, otherwise: np.ndarray) -> int:
    """The largest value among those allowed; where none is, the largest of the other measure."""
    return int(np.where(allowed, value, -np.inf).argmax() if allowed.any() else otherwise.argmax())


def _interval(values: np.ndarray) -> tuple[float, float]:
    """95 % of the means of resampled rows."""
    at = np.random.default_rng(0).integers(len(values), size=(SAMPLES, len(values)))
    low, high = np.quantile(values[at].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _array(score: Score, name: str, rows: np.ndarray) -> np.ndarray:
    return np.array([score[name][at] for at in rows], dtype=float)
