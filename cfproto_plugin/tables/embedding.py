"""From pairwise distances to one number per category, in which the search can move.

Arrays in, arrays out: where the distances come from and how a number is decoded to a category is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.protocols import Array

# The reference's numbers are those of four random starts from seed 0, stopped at this tolerance. Where the distances
# fit a line (MVDM with two classes) that is up to 0.002 on [-1, 1] from the limit, so the settings are part of the
# result: a smaller tolerance, or classical scaling as a start, fits better and agrees less.
_STARTS, _SEED, _TOLERANCE, _ITERATIONS = 4, 0, 1e-9, 5000
_MANY = 50  # above it one start from classical scaling: random ones would take minutes for 1,000 categories
_MANY_ITERATIONS, _MANY_TOLERANCE = 100, 1e-6
_GAP = 1e-5  # of the widest column: below every real difference seen, and well above the resolution of float32
_ASYMMETRY = 1e-6  # of the largest distance: rounding, not a mistake


def embed(
    distances: Sequence[Array],
    span: tuple[float, float] = (-1.0, 1.0),
    scaling: Literal["minmax", "standard"] = "minmax",
    counts: Sequence[Array] | None = None,
) -> list[Array]:
    """One number per category from one (K, K) distance matrix per column.

    Each column is scaled to two dimensions; a category's number is its distance from the category with the largest
    norm, up to a shift of the column and one factor for all columns, so that a column whose categories hardly differ
    stays narrow beside the others:

    minmax: every column is centred in the span and the widest fills it.
    standard: every column has mean 0 and the largest standard deviation is 1, over rows that hold the categories as
    often as `counts` says (one array (K,) per column; without it every category counts once). The span is not used.

    No two categories of a column get the same number, else the second could never be decoded: those that the distance
    cannot tell apart follow one another, in their order, at 1e-5 of the widest column. If it tells nothing apart in any
    column, they are spaced evenly.
    """
    if scaling not in {"minmax", "standard"}:
        raise ConfigError(f"scaling is {scaling!r}; expected 'minmax' or 'standard'.")
    raw = [_radii(_checked(matrix, column)) for column, matrix in enumerate(distances)]
    widest = max((float(np.ptp(values)) for values in raw), default=0.0)
    apart = [separated(values, _GAP * (widest or 1.0)) for values in raw]
    return _to_span(apart, span) if scaling == "minmax" else _to_unit_variance(apart, counts)


def plane(distances: Array) -> Array:
    """Points (K, 2), centred at 0, with small stress: sum over pairs of (|x_a - x_b| - d_ab)^2.

    Up to 50 categories the best of four random starts, each run until the stress falls by less than 1e-9 of the
    squared distances; above, one start from classical scaling and at most 100 iterations. The same distances always
    give the same points.
    """
    largest = distances.max(initial=0)
    if largest == 0:
        return np.zeros((len(distances), 2))
    from sklearn.manifold import smacof

    unit = distances / largest  # smacof has absolute constants
    common = {"n_components": 2, "normalized_stress": False, "n_jobs": 1, "random_state": _SEED}
    if len(unit) <= _MANY:
        points, _ = smacof(unit, n_init=_STARTS, max_iter=_ITERATIONS, eps=_TOLERANCE, **common)
    else:
        start = classical(unit)
        points, _ = smacof(unit, init=start, n_init=1, max_iter=_MANY_ITERATIONS, eps=_MANY_TOLERANCE, **common)
    return np.asarray(points * largest)


def classical(distances: Array) -> Array:
    """Classical scaling: the two leading eigenvectors of -J d^2 J / 2, J = I - 1/K, times the roots of their values."""
    squared = -(distances**2) / 2
    mean = squared.mean(axis=0)
    values, vectors = np.linalg.eigh(squared - mean - mean[:, None] + mean.mean())
    return np.asarray(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0)))


def separated(values: Array, gap: float) -> Array:
    """The values with at least `gap` between neighbours, none lowered and each raised as little as that takes.

    In ascending order v'_i = max(v_i, v'_(i-1) + gap), which is i·gap + the running maximum of v_i - i·gap. Equal
    values keep their order.
    """
    order = np.argsort(values, kind="stable")
    steps = gap * np.arange(len(values))
    result = np.empty(len(values))
    result[order] = np.maximum.accumulate(values[order] - steps) + steps
    return result


def _radii(distances: Array) -> Array:
    """The distance of every point of the plane from the one with the largest norm."""
    points = plane(distances)
    origin = points[np.linalg.norm(points, axis=1).argmax()]
    return np.asarray(np.linalg.norm(points - origin, axis=1))


def _to_span(columns: list[Array], span: tuple[float, float]) -> list[Array]:
    low, high = span
    if not (np.isfinite([low, high]).all() and low < high):
        raise ConfigError(f"span is {span!r}; expected two finite numbers, the lower first.")
    widest = max((np.ptp(values) for values in columns), default=0.0) or 1.0
    middles = [(values.max() + values.min()) / 2 for values in columns]
    return [
        np.clip((low + high) / 2 + (values - middle) / widest * (high - low), low, high)
        for values, middle in zip(columns, middles, strict=True)
    ]


def _to_unit_variance(columns: list[Array], counts: Sequence[Array] | None) -> list[Array]:
    weights = [np.full(len(v), 1 / len(v)) for v in columns] if counts is None else _shares(columns, counts)
    centred = [values - weight @ values for values, weight in zip(columns, weights, strict=True)]
    deviations = [float(np.sqrt(weight @ values**2)) for values, weight in zip(centred, weights, strict=True)]
    # Rows that all hold one category per column have no deviation; the range is then the only scale there is.
    largest = max(deviations, default=0.0) or max((float(np.ptp(v)) for v in columns), default=0.0) or 1.0
    return [values / largest for values in centred]


def _shares(columns: list[Array], counts: Sequence[Array]) -> list[Array]:
    """Relative frequencies from counts."""
    if len(counts) != len(columns):
        raise InputError(f"counts are given for {len(counts)} columns; expected {len(columns)}, one per matrix.")
    result = []
    for column, (values, given) in enumerate(zip(columns, counts, strict=True)):
        count = np.asarray(given, dtype=np.float64)
        if count.shape != values.shape:
            raise InputError(f"counts of column {column} have shape {count.shape}; expected {values.shape}.")
        if not (np.isfinite(count).all() and (count >= 0).all() and count.sum() > 0):
            raise InputError(f"counts of column {column} are {count}; expected numbers from 0, not all of them 0.")
        result.append(count / count.sum())
    return result


def _checked(matrix: Array, column: int) -> Array:
    """The matrix made exactly symmetric, if it holds distances."""
    matrix = np.asarray(matrix, dtype=np.float64)
    where = f"distances of column {column}"
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004 a matrix
        raise InputError(f"{where} have shape {matrix.shape}; expected (K, K) for K >= 1 categories.")
    _refuse(~np.isfinite(matrix), matrix, f"{where} are not all finite", "Expected finite numbers.")
    _refuse(matrix < 0, matrix, f"{where} are partly negative", "Expected numbers from 0.")
    rounding = _ASYMMETRY * matrix.max()
    diagonal = np.eye(len(matrix), dtype=bool) & (matrix > rounding)
    _refuse(diagonal, matrix, f"{where} are not 0 on the diagonal", "Expected d(a, a) = 0.")
    skew = np.abs(matrix - matrix.T) > rounding
    _refuse(skew, matrix, f"{where} are not symmetric", "Expected d(a, b) = d(b, a).")
    return np.asarray(matrix / 2 + matrix.T / 2)


def _refuse(bad: Array, matrix: Array, problem: str, expected: str) -> None:
    if bad.any():
        a, b = np.argwhere(bad)[0].tolist()
        found = f"d({a}, {b}) is {matrix[a, b]:g}" + (f", d({b}, {a}) is {matrix[b, a]:g}" if a != b else "")
        raise InputError(f"{problem}: {found}. {expected}")
