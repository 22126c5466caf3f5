"""The arguments of `explain` and the training rows, read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.checks import as_items, is_count, is_number, shown
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.protocols import Array


def row_shape(shape: Any) -> tuple[int, ...]:
    """The shape of one row, from one that starts with the batch."""
    items = as_items(shape)
    if items is None or len(items) < 2 or not all(is_count(size) for size in items[1:]):  # noqa: PLR2004
        raise ConfigError(f"shape is {shown(shape)}; expected that of a batch of one row, such as (1, 28, 28, 1)")
    return tuple(int(size) for size in items[1:])


def rows_of(given: Any, shape: tuple[int, ...], what: str, *, one: bool = False) -> Array:
    """Rows (n, *shape) as float32. one: a single row may come without the batch."""
    try:
        rows = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} is {shown(given)}, which is not all numbers; expected an array of shape {_batch(shape)}"
        ) from error
    if one and rows.shape == shape:
        rows = rows[None]
    if rows.shape[1:] != shape or not len(rows):
        raise InputError(f"{what} has shape {rows.shape}; expected {_batch(shape)}, at least one row")
    finite = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    if not finite.all():
        row = int(finite.argmin())
        raise InputError(f"row {row} of {what} holds a missing or infinite value, or one beyond 32 bits", row=row)
    return rows


def labels_of(given: Any, proba: Array) -> Array:
    """The classes (n,) that one-hot labels say, or the model's own if there are none."""
    if given is None:
        return np.asarray(proba.argmax(axis=1))
    labels = np.asarray(given)
    if labels.shape != proba.shape or labels.dtype.kind not in "iufb":
        raise InputError(f"Y is {shown(given)}; expected one-hot labels of shape {proba.shape}, or None")
    return np.asarray(labels.argmax(axis=1))


def classes_of(given: Any, label: Array, n_classes: int) -> Array:
    """Which classes (n, k) are asked for: those of target_class, or every other than the row's own."""
    if given is None:
        return np.asarray(np.arange(n_classes) != label[:, None])
    wanted = (given,) if is_count(given, 0) else as_items(given)
    if not wanted or not all(is_count(each, 0) and each < n_classes for each in wanted):
        raise InputError(
            f"target_class is {shown(given)}; expected a list of classes of the model, numbers from 0 to "
            f"{n_classes - 1}"
        )
    return np.tile(np.isin(np.arange(n_classes), wanted), (len(label), 1))


def check_prototypes(wanted: Array, known: Array) -> None:
    """Refuse rows all of whose wanted classes (n, k) have no training row; known: classes that have some."""
    without = ~wanted[:, known].any(axis=1)
    if without.any():
        row = int(without.argmax())
        raise InputError(
            f"row {row} asks for the classes {np.flatnonzero(wanted[row]).tolist()}, which the model predicts for no "
            f"training row: there is no prototype. There are those of {known.tolist()}",
            row=row,
        )


def check_search(k: Any, k_type: Any, threshold: Any, print_every: Any) -> None:
    """Refuse numbers of `explain` that make no sense."""
    if k is not None and not is_count(k):
        raise InputError(f"k is {shown(k)}; expected a whole number of at least 1, or None")
    if k_type not in ("mean", "point"):
        raise InputError(f"k_type is {shown(k_type)}; expected 'mean' or 'point'")
    if not is_number(threshold) or threshold < 0:
        raise InputError(f"threshold is {shown(threshold)}; expected a trust score of at least 0")
    if not is_count(print_every):
        raise InputError(f"print_every is {shown(print_every)}; expected a whole number of at least 1")


def _batch(shape: tuple[int, ...]) -> str:
    return f"(n, {', '.join(map(str, shape))})"
