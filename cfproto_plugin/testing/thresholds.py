"""Checks of the split values of tree models."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array, ModelAdapter
from cfproto_plugin.testing.kit import predict, require, required

_PAIRS = 2000  # of a row and a column
_ROUNDING = 1e-6  # trees compare in float32: nearer than this to a split, relatively, either side may be meant


def thresholds_are_sorted_for_every_column(adapter: ModelAdapter, x: Array) -> None:
    found = _thresholds(adapter)
    columns = x[0].size
    require(len(found) == columns, f"thresholds of {len(found)} columns for {columns} columns")
    require(all((np.diff(t) > 0).all() for t in found), "thresholds are not sorted and distinct")


def output_is_constant_between_neighbouring_thresholds(adapter: ModelAdapter, x: Array) -> None:
    """f(row with its column at a) = f(row with its column at b) for a and b between the same two thresholds.

    Random rows, columns and cells; one batch. A column without thresholds is one cell, unless it may hold categories,
    which have none: whole numbers only.
    """
    rng = np.random.default_rng(0)
    flat = x.reshape(len(x), -1)
    splits = [np.asarray(values, dtype=float) for values in _thresholds(adapter)]
    columns = [j for j, values in enumerate(splits) if len(values) or (flat[:, j] % 1 > 0).any()]
    moves = []
    for row, j in zip(rng.integers(len(flat), size=_PAIRS), rng.choice(columns or [0], size=_PAIRS), strict=True):
        cell = _cell(rng, splits[j], flat[:, j], flat[row, j]) if columns else None
        if cell is not None:
            moves.append((row, j, *cell))
    if not moves:
        return
    row, column, low, high = (np.array(part) for part in zip(*moves, strict=True))
    places = np.stack([low, rng.uniform(low, high), high])
    rows = np.repeat(flat[row][None], len(places), axis=0)
    rows[:, np.arange(len(row)), column] = places
    y = np.asarray(predict(adapter, rows.reshape(-1, *x.shape[1:])), dtype=float).reshape(len(places), len(row), -1)
    wrong = np.flatnonzero((y != y[0]).any(axis=(0, 2)))
    if len(wrong):
        i = wrong[0]
        raise AssertionError(
            f"no threshold of column {column[i]} lies between {low[i]:.6g} and {high[i]:.6g}, yet the output of row "
            f"{row[i]} changes there by {np.abs(y[:, i] - y[0, i]).max():.3g} ({len(wrong)} of {len(row)} moves do so)"
        )


def _cell(rng: np.random.Generator, splits: Array, values: Array, original: float) -> tuple[float, float] | None:
    """The ends of a cell, a little inside: around the original value or, as often, any; None if it is too narrow."""
    known = np.concatenate([splits, values[np.isfinite(values)], [0.0] if not np.isfinite(values).any() else []])
    spread = max(1.0, float(np.ptp(known)))
    edges = np.concatenate([[known.min() - spread], splits, [known.max() + spread]])
    stay = np.isfinite(original) and rng.random() < 0.5  # noqa: PLR2004
    at = int(np.searchsorted(splits, original)) if stay else int(rng.integers(len(edges) - 1))
    low, high = edges[at], edges[at + 1]
    margin = _ROUNDING * max(abs(low), abs(high))
    return (low + margin, high - margin) if 2 * margin < high - low else None


def _thresholds(adapter: ModelAdapter) -> list[Array]:
    with required():
        return Adapted.of(adapter).thresholds or []
