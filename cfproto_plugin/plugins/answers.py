"""What classifiers, prototype providers and distances answer, checked: a mistake of theirs is named as theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, ModelError, PluginError
from cfproto_plugin.plugins.capabilities import Adapted
from cfproto_plugin.plugins.members import origin_of, wrong
from cfproto_plugin.protocols import Array, CategoryDistance, PrototypeProvider, Pullback


def checked_proba(found: Any, n: int, n_classes: int | None, adapted: Adapted) -> Array:
    """Probabilities (n, k) of n rows; NaN in all columns where one is NaN or infinite. n_classes: k, if it is known."""
    proba = np.asarray(found)
    if proba.dtype.kind not in "fiub":
        raise ModelError(
            f"the model returned {proba.dtype}, such as {proba.ravel()[:1].tolist()}, for {n} rows; expected "
            f"({n}, k) probabilities as floats",
            plugin=adapted.plugin,
        )
    columns = n_classes or (proba.shape[-1] if proba.ndim else 0)
    if proba.shape != (n, columns) or columns < 2:  # noqa: PLR2004
        labels = proba.ndim == 1 or columns < 2  # noqa: PLR2004
        raise ModelError(
            f"the model returned shape {proba.shape} for {n} rows; expected ({n}, k) probabilities of "
            f"{n_classes or 'at least 2'} classes"
            + (". Labels are not enough: pass a function x -> probabilities." if labels else ""),
            plugin=adapted.plugin,
        )
    if not (math.isfinite(np.add.reduce(proba, axis=None)) or np.isfinite(proba).all()):
        proba = np.where(np.isfinite(proba).all(axis=1)[:, None], proba, np.nan)
    return proba


def checked_labels(adapted: Adapted, rows: Any, n_classes: int | None) -> Array:
    """The model's own decisions (n,) for n rows, columns of the probabilities. n_classes: how many, if it is known."""
    if adapted.labels is None:
        raise ModelError("the model has no decision of its own")
    n, last = len(rows), n_classes - 1 if n_classes else "k - 1"
    expected = f"({n},) whole numbers, columns of the probabilities from 0 to {last}"
    try:
        labels = np.asarray(adapted.labels(rows))
    except CfprotoError:
        raise
    except Exception as error:
        raise wrong(adapted.adapter, "labels", f"raised {type(error).__name__}: {error}", expected) from error
    whole = labels.shape == (n,) and labels.dtype.kind in "iu"
    if not whole or ((labels < 0) | (labels >= (n_classes or np.inf))).any():
        what = f"returned {labels.dtype} of shape {labels.shape}, such as {labels.ravel()[:3]}"
        raise wrong(adapted.adapter, "labels", what, expected)
    return labels.astype(np.intp)


def checked_vjp(adapted: Adapted, x: Array) -> tuple[Array, Pullback]:
    """The output (n, ...) for rows x (n, *shape), and the pullback; both checked."""
    expected = "the output and a function from dL/dy, shaped like the output, to dL/dx, shaped like the rows"
    if adapted.vjp is None:
        raise ModelError("the model has no gradient")
    found = adapted.vjp(x)
    if not isinstance(found, (tuple, list)) or len(found) != 2 or not callable(found[1]):  # noqa: PLR2004
        raise wrong(adapted.adapter, "vjp", f"returned {found!r}", expected)
    output = np.asarray(found[0])
    if output.ndim < 2 or len(output) != len(x) or output.dtype.kind != "f":  # noqa: PLR2004
        raise wrong(
            adapted.adapter, "vjp", f"returned {output.dtype} of shape {output.shape} for {len(x)} rows", expected
        )

    def pullback(cotangent: Array) -> Array:
        pulled = np.asarray(found[1](cotangent))
        if pulled.shape != x.shape or pulled.dtype.kind not in "fiu":
            what = f"has a pullback that returned {pulled.dtype} of shape {pulled.shape} for rows of shape {x.shape}"
            raise wrong(adapted.adapter, "vjp", what, expected)
        return pulled

    return output, pullback


def fitted_provider(provider: PrototypeProvider, z: Array, labels: Array) -> PrototypeProvider:
    """The provider after `fit`, which returns it."""
    fitted = _ask(provider, "prototypes", provider.fit, z, labels)
    if not callable(getattr(fitted, "nearest", None)):
        raise PluginError(f"fit of the prototypes {_name(provider)} returned {fitted!r}; expected the provider itself")
    made: PrototypeProvider = fitted
    return made


def nearest_prototypes(provider: PrototypeProvider, z: Array, allowed: Array) -> tuple[Array, Array]:
    """Points (n, m, *s) and their classes (n, m), columns of allowed (n, k) or -1, m at least 1."""
    found = _ask(provider, "prototypes", provider.nearest, z, allowed)
    if not isinstance(found, (tuple, list)) or len(found) != 2:  # noqa: PLR2004
        raise PluginError(
            f"the prototypes {_name(provider)} returned {type(found).__name__}; expected (points, classes)"
        )
    points, classes = np.asarray(found[0]), np.asarray(found[1])
    n, k = allowed.shape
    good = classes.ndim == 2 and classes.shape[0] == n and classes.size and points.shape[:2] == classes.shape  # noqa: PLR2004
    if not good or points.ndim < 3 or points.dtype.kind not in "iuf" or classes.dtype.kind not in "iu":  # noqa: PLR2004
        raise PluginError(
            f"the prototypes {_name(provider)} returned points {points.dtype} of shape {points.shape} and classes "
            f"{classes.dtype} of shape {classes.shape} for {n} rows; expected numbers ({n}, m, ...) and whole numbers "
            f"({n}, m) with m of at least 1"
        )
    if classes.min() < -1 or classes.max() >= k:
        raise PluginError(
            f"the prototypes {_name(provider)} returned classes from {classes.min()} to {classes.max()}; expected -1, "
            f"for none, to {k - 1}"
        )
    return points, classes


def category_distances(
    distance: CategoryDistance, codes: Array, sizes: Sequence[int], context: Array, labels: Array
) -> list[Array]:
    """One matrix (K, K) of numbers for each column of codes (n, C) with K = sizes[column] categories."""
    found = _ask(distance, "distance", distance, codes, sizes, context, labels)
    shapes = [(size, size) for size in sizes]
    try:
        matrices = [np.asarray(matrix, dtype=float) for matrix in found]
    except (TypeError, ValueError) as error:
        raise PluginError(
            f"the distance {_name(distance)} returned {found!r}; expected a list of {len(sizes)} matrices of numbers"
        ) from error
    if [matrix.shape for matrix in matrices] != shapes:
        raise PluginError(
            f"the distance {_name(distance)} returned shapes {[matrix.shape for matrix in matrices]}; expected {shapes}"
        )
    return matrices


def _ask(part: Any, what: str, method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except CfprotoError:
        raise
    except Exception as error:
        raise PluginError(f"the {what} {_name(part)} raised {type(error).__name__}: {error}") from error


def _name(part: Any) -> str:
    origin = origin_of(part)
    return str(getattr(part, "__name__", type(part).__name__) if origin is None else origin)
