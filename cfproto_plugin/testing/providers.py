"""Checks of prototype providers: each takes a provider, points z (n, *s) and their classes 0 to K-1, (n,).

Every check fits the provider and asks it for the prototypes of some of the points. `allowed` has one class more than
the labels: a model may know a class that it predicts for no training row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.plugins import space_of
from cfproto_plugin.protocols import Array, PrototypeProvider
from cfproto_plugin.testing.kit import Check, bind, require, run_all

_ROWS = 12


def check_provider(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """Run every check of a prototype provider."""
    run_all(provider_checks(provider, z, labels))


def provider_checks(provider: PrototypeProvider, z: Array, labels: Array) -> list[Check]:
    """The checks of a prototype provider, one by one."""
    z, labels = np.asarray(z), np.asarray(labels)
    if z.ndim < 2 or labels.shape != (len(z),) or labels.dtype.kind not in "iu":  # noqa: PLR2004
        raise InputError(
            f"z has shape {z.shape} and labels are {labels.dtype} of shape {labels.shape}; expected points (n, *shape) "
            "and their classes, whole numbers (n,)"
        )
    if len(np.unique(labels)) < 2:  # noqa: PLR2004
        raise InputError(f"labels hold {len(np.unique(labels))} class; the checks need points of at least two")
    checks = (
        fit_returns_a_provider,
        points_and_classes_have_the_promised_shapes,
        classes_are_allowed_ones,
        every_class_with_points_has_a_prototype,
        rows_without_a_prototype_have_class_minus_one,
        nearest_comes_first,
        prototypes_are_deterministic,
        points_are_not_modified,
        prototypes_do_not_depend_on_the_batch,
    )
    return [bind(check, provider, z.copy(), labels.copy()) for check in checks]


def fit_returns_a_provider(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    made: Any = provider.fit(z, labels)
    require(callable(getattr(made, "nearest", None)), f"fit returned {made!r}, expected the provider itself")


def points_and_classes_have_the_promised_shapes(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """Points (n, m, *s) and classes (n, m). s is the shape of z, or of its encoding if the provider has an encoder."""
    z0, allowed = z[:_ROWS], _others(labels)[:_ROWS]
    points, classes = provider.fit(z, labels).nearest(z0, allowed)
    require(isinstance(points, np.ndarray) and isinstance(classes, np.ndarray), "nearest must return two NumPy arrays")
    shape = _own_space(provider, z0).shape[1:]
    width = points.shape[1:2]
    require(
        points.shape == (len(z0), *width, *shape) and width != (0,),
        f"points have shape {points.shape} for {len(z0)} rows, expected ({len(z0)}, m, {', '.join(map(str, shape))})",
    )
    require(classes.shape == points.shape[:2], f"classes have shape {classes.shape}, expected {points.shape[:2]}")
    require(classes.dtype.kind in "iu", f"classes are {classes.dtype}, expected whole numbers")
    require(bool(np.isfinite(points).all()), "a prototype is not finite")


def classes_are_allowed_ones(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    allowed = _others(labels)[:_ROWS]
    _, classes = provider.fit(z, labels).nearest(z[:_ROWS], allowed)
    for row, kinds in enumerate(classes):
        wrong = sorted(set(kinds.tolist()) - {*np.flatnonzero(allowed[row]).tolist(), -1})
        require(not wrong, f"row {row} got a prototype of class {wrong}, allowed are {np.flatnonzero(allowed[row])}")


def every_class_with_points_has_a_prototype(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """Where a single class is allowed, as for a user's target, its prototype is returned."""
    provider = provider.fit(z, labels)
    for label in np.unique(labels):
        allowed = np.zeros((min(_ROWS, len(z)), labels.max() + 2), dtype=bool)
        allowed[:, label] = True
        _, classes = provider.nearest(z[:_ROWS], allowed)
        require(bool((classes == label).all()), f"only class {label} is allowed, but classes are {np.unique(classes)}")


def rows_without_a_prototype_have_class_minus_one(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """Nothing is allowed, or only a class without a point: -1 throughout, also beside rows that have prototypes."""
    allowed = _others(labels)[:4]
    allowed[0] = False
    allowed[1] = np.arange(allowed.shape[1]) == labels.max() + 1
    _, classes = provider.fit(z, labels).nearest(z[:4], allowed)
    require(bool((classes[:2] == -1).all()), f"a row without any prototype has the classes {classes[:2].tolist()}")
    require(bool((classes[2:] >= 0).all()), f"a row with prototypes has the classes {classes[2:].tolist()}")


def nearest_comes_first(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """The Euclidean distance in the provider's own space, which the search measures, does not decrease."""
    z0 = z[:_ROWS]
    points, _ = provider.fit(z, labels).nearest(z0, np.ones((len(z0), labels.max() + 2), dtype=bool))
    own = _own_space(provider, z0).reshape(len(z0), 1, -1)
    distance = np.linalg.norm(points.reshape(*points.shape[:2], -1).astype(float) - own, axis=2)
    rise = float(-np.diff(distance, axis=1).min(initial=0))
    require(rise <= 1e-5 * (1 + float(distance.max())), f"a prototype is nearer than the one before it, by {rise:.3g}")


def prototypes_are_deterministic(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    z0, allowed = z[:_ROWS], _others(labels)[:_ROWS]
    first = provider.fit(z, labels).nearest(z0, allowed)
    again = provider.fit(z, labels).nearest(z0, allowed)
    require(all(map(np.array_equal, first, again)), "fitted and asked twice, the prototypes differ")


def points_are_not_modified(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    z0, allowed = z[:_ROWS].copy(), _others(labels)[:_ROWS]
    given = {"z": z, "labels": labels, "z0": z0, "allowed": allowed}
    before = {name: array.copy() for name, array in given.items()}
    provider.fit(z, labels).nearest(z0, allowed)
    changed = [name for name, array in given.items() if not np.array_equal(array, before[name])]
    require(not changed, f"{' and '.join(changed)} changed in place")


def prototypes_do_not_depend_on_the_batch(provider: PrototypeProvider, z: Array, labels: Array) -> None:
    """Alone, a row may have fewer prototypes: it repeats its last one then."""
    z0, allowed = z[:_ROWS], _others(labels)[:_ROWS]
    provider = provider.fit(z, labels)
    points, classes = provider.nearest(z0, allowed)
    for i in range(len(z0)):
        alone, kinds = provider.nearest(z0[i : i + 1], allowed[i : i + 1])
        at = np.minimum(np.arange(points.shape[1]), alone.shape[1] - 1)
        same = np.allclose(alone[0, at], points[i], atol=1e-5) and np.array_equal(kinds[0, at], classes[i])
        require(same, f"row {i} asked alone has other prototypes than in a batch")


def _others(labels: Array) -> Array:
    """For every point all classes but its own, one without points included."""
    return np.asarray(np.arange(labels.max() + 2) != labels[:, None])


def _own_space(provider: Any, z0: Array) -> Array:
    encoder = space_of(provider)
    return z0 if encoder is None else np.asarray(encoder.predict(z0))
