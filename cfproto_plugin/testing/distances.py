"""Checks of categorical distances.

Each takes the distance and a table: codes (n, C), how many categories each column has, binned numbers (n, M), and
labels (n,).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.protocols import Array, CategoryDistance
from cfproto_plugin.testing.kit import Check, bind, require, run_all


def check_distance(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    """Run every check of a categorical distance."""
    run_all(distance_checks(distance, codes, n_categories, context, labels))


def distance_checks(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> list[Check]:
    """The checks of a categorical distance, one by one."""
    codes, context, labels = np.asarray(codes), np.asarray(context), np.asarray(labels)
    if codes.ndim != 2 or codes.shape[1] != len(n_categories):  # noqa: PLR2004
        raise InputError(f"codes have shape {codes.shape}; expected (n, {len(n_categories)}), as many as n_categories")
    if context.ndim != 2 or not len(codes) == len(context) == len(labels):  # noqa: PLR2004
        raise InputError(
            f"context has shape {context.shape} and labels {labels.shape}; expected ({len(codes)}, M) and "
            f"({len(codes)},), as many rows as codes"
        )
    checks = (
        there_is_one_matrix_per_column,
        distances_are_finite_and_not_negative,
        distances_are_symmetric,
        a_category_is_at_no_distance_from_itself,
        a_column_with_one_category_works,
        a_category_without_rows_works,
        a_table_without_numbers_works,
        distances_are_deterministic,
        the_table_is_not_modified,
    )
    sizes = tuple(int(n) for n in n_categories)
    return [bind(check, distance, codes.copy(), sizes, context.copy(), labels.copy()) for check in checks]


def there_is_one_matrix_per_column(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    _require_matrices(distance(codes, n_categories, context, labels), n_categories)


def distances_are_finite_and_not_negative(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    for column, matrix in enumerate(distance(codes, n_categories, context, labels)):
        _require_lengths(matrix, column)


def distances_are_symmetric(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    for column, matrix in enumerate(distance(codes, n_categories, context, labels)):
        worst = np.abs(matrix - matrix.T)
        a, b = np.unravel_index(int(worst.argmax()), worst.shape)
        require(
            bool(worst[a, b] <= 1e-9 * (1 + np.abs(matrix).max())),
            f"column {column}: from category {a} to {b} it is {matrix[a, b]:.6g}, back it is {matrix[b, a]:.6g}",
        )


def a_category_is_at_no_distance_from_itself(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    for column, matrix in enumerate(distance(codes, n_categories, context, labels)):
        own = np.diagonal(matrix)
        a = int(np.abs(own).argmax())
        require(own[a] == 0, f"column {column}: category {a} is at distance {own[a]:.6g} from itself, expected 0")


def a_column_with_one_category_works(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    codes = np.concatenate([codes, np.zeros((len(codes), 1), dtype=codes.dtype)], axis=1)
    _require_sound(distance, codes, (*n_categories, 1), context, labels)


def a_category_without_rows_works(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    """A category that the data declares and no row has."""
    _require_sound(distance, codes, tuple(n + 1 for n in n_categories), context, labels)


def a_table_without_numbers_works(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    """No number columns, and a single column of categories."""
    _require_sound(distance, codes[:, :1], n_categories[:1], context[:, :0], labels)


def distances_are_deterministic(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    first, again = (distance(codes, n_categories, context, labels) for _ in range(2))
    require(all(map(np.array_equal, first, again)), "asked twice, the distances differ")


def the_table_is_not_modified(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    sizes = list(n_categories)
    given: dict[str, Any] = {"codes": codes, "n_categories": sizes, "context": context, "labels": labels}
    before = {name: value.copy() for name, value in given.items()}
    distance(codes, sizes, context, labels)
    changed = [name for name, value in given.items() if not np.array_equal(value, before[name])]
    require(not changed, f"{' and '.join(changed)} changed in place")


def _require_sound(
    distance: CategoryDistance, codes: Array, n_categories: Sequence[int], context: Array, labels: Array
) -> None:
    found = distance(codes, n_categories, context, labels)
    _require_matrices(found, n_categories)
    for column, matrix in enumerate(found):
        _require_lengths(matrix, column)


def _require_matrices(found: Any, n_categories: Sequence[int]) -> None:
    require(len(found) == len(n_categories), f"{len(found)} matrices for {len(n_categories)} columns")
    for column, (matrix, n) in enumerate(zip(found, n_categories, strict=True)):
        require(isinstance(matrix, np.ndarray), f"column {column}: {type(matrix).__name__}, expected a NumPy array")
        require(matrix.shape == (n, n), f"column {column}: shape {matrix.shape}, expected ({n}, {n})")


def _require_lengths(matrix: Array, column: int) -> None:
    require(bool(np.isfinite(matrix).all()), f"column {column}: a distance is not finite")
    require(bool((matrix >= 0).all()), f"column {column}: a distance is negative")
