"""Which classes a counterfactual may have."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.protocols import Array


def allowed_classes(target: Any, classes: Array, original: Array) -> Array:
    """The allowed classes (n, k) of rows whose own classes are the columns `original` (n,).

    None: every class but the row's own. A label, or a list, tuple or set of labels: the same for all rows. An array or
    Series: one label per row.
    """
    n, k = len(original), len(classes)
    if target is None:
        return np.asarray(np.arange(k) != original[:, None])
    if isinstance(target, (list, tuple, set, frozenset)):
        if not target:
            raise InputError("target is empty; expected at least one label, or None for any other class")
        allowed = np.zeros((n, k), dtype=bool)
        allowed[:, [_column(label, classes) for label in target]] = True
        return allowed
    if np.ndim(target) == 0:
        return np.broadcast_to(np.arange(k) == _column(target, classes), (n, k))
    labels = np.asarray(target)
    if labels.shape != (n,):
        raise InputError(
            f"target has shape {labels.shape} for {n} rows; expected one label per row, or a list of allowed labels"
        )
    return np.asarray(np.arange(k) == np.array([_column(label, classes) for label in labels])[:, None])


def _column(label: Any, classes: Array) -> int:
    for column, known in enumerate(classes.tolist()):
        if type(label) is not bool and isinstance(known, bool):
            continue
        if known == label:
            return column
    there = ", ".join(repr(known) for known in classes.tolist()[:20])
    raise InputError(
        f"target {label!r} is not a class of the model.{did_you_mean(label, classes)} Its classes are: {there}"
    )
