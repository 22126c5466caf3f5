"""Relative frequencies of one column given another, which both distances are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cfproto_plugin.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.protocols import Array


def conditional(given: Array, n_given: int, other: Array, n_other: int) -> Array:
    """p(other | given) as (n_given, n_other), from two columns of codes; a category without rows has p = 0."""
    counts = np.bincount(given * n_other + other, minlength=n_given * n_other).reshape(n_given, n_other)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def dense(values: Array) -> tuple[Array, int]:
    """Any values as codes 0 to K-1, and K."""
    found, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1), len(found)


def checked(codes: Array, n_categories: Sequence[int], other: Array) -> Array:
    """The codes, if they are (n, C) numbers of existing categories with as many rows as the other columns."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(n_categories):  # noqa: PLR2004
        raise InputError(f"codes have shape {codes.shape}; expected (n, {len(n_categories)}).")
    if len(codes) != len(other):
        raise InputError(f"codes have {len(codes)} rows, the columns to compare with {len(other)}; expected as many.")
    for column, (values, n) in enumerate(zip(codes.T, n_categories, strict=True)):
        if len(values) and not (values.min() >= 0 and values.max() < n):
            raise InputError(
                f"codes of column {column} run from {values.min()} to {values.max()}; expected 0 to {n - 1}."
            )
    return codes.astype(np.intp)
