"""A conformance kit: call these checks from the tests of an adapter. Each raises AssertionError with what went wrong.

>>> from cfproto_plugin.testing import check_adapter
>>> def test_my_adapter_conforms():
...     check_adapter(MyAdapter(model), x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter, HasClasses, HasThresholds, ModelAdapter, Role

if TYPE_CHECKING:
    from collections.abc import Callable


def check_adapter(adapter: ModelAdapter, x: Array, *, role: Role = "classifier", atol: float = 1e-5) -> None:
    """Run every check that applies to the adapter on the rows x (at least three of them)."""
    checks: list[Callable[..., None]] = [output_is_finite_with_one_item_per_row]
    if role == "classifier":
        checks.append(rows_are_probabilities_of_at_least_two_classes)
    checks += [
        input_is_not_modified,
        output_is_deterministic,
        output_does_not_depend_on_the_batch,
        float32_and_float64_agree,
    ]
    if isinstance(adapter, GradientAdapter):
        checks.append(pullback_agrees_with_random_direction_differences)
    if isinstance(adapter, HasThresholds):
        checks.append(thresholds_are_sorted_for_every_column)
    for check in checks:
        rows = x.copy()  # an adapter that writes into its rows must not hide it from the check that looks for this
        if check in _WITH_TOLERANCE:
            check(adapter, rows, atol=atol)
        else:
            check(adapter, rows)


def output_is_finite_with_one_item_per_row(adapter: ModelAdapter, x: Array) -> None:
    y = adapter.predict(x)
    _require(isinstance(y, np.ndarray), f"predict returned {type(y).__name__}, expected a NumPy array")
    _require(len(y) == len(x), f"predict returned {len(y)} items for {len(x)} rows")
    _require(bool(np.isfinite(y).all()), "predict returned values that are not finite")


def rows_are_probabilities_of_at_least_two_classes(adapter: ModelAdapter, x: Array) -> None:
    y = adapter.predict(x)
    _require(y.ndim == 2 and y.shape[1] >= 2, f"predict returned shape {y.shape}, expected (n, k) with k >= 2")  # noqa: PLR2004
    _require(bool((y >= 0).all()), "a probability is negative")
    worst = float(np.abs(y.sum(axis=1) - 1).max())
    _require(worst < 1e-5, f"a row of probabilities sums to 1 +- {worst:.2g}")  # noqa: PLR2004
    if isinstance(adapter, HasClasses):
        _require(len(adapter.classes) == y.shape[1], f"{len(adapter.classes)} classes for {y.shape[1]} columns")


def output_does_not_depend_on_the_batch(adapter: ModelAdapter, x: Array, *, atol: float = 1e-5) -> None:
    together = adapter.predict(x)
    alone = np.concatenate([adapter.predict(x[i : i + 1]) for i in range(len(x))])
    _close(together, alone, atol, "rows predicted together and one by one differ")


def output_is_deterministic(adapter: ModelAdapter, x: Array) -> None:
    _require(np.array_equal(adapter.predict(x), adapter.predict(x)), "two predictions of the same rows differ")


def input_is_not_modified(adapter: ModelAdapter, x: Array) -> None:
    before = x.copy()
    adapter.predict(x)
    if isinstance(adapter, GradientAdapter):
        y, pullback = adapter.vjp(x)
        pullback(np.ones_like(y))
    _require(np.array_equal(before, x, equal_nan=True), "the rows were changed in place")


def float32_and_float64_agree(adapter: ModelAdapter, x: Array, *, atol: float = 1e-5) -> None:
    rows = x.astype(np.float32)
    single, double = adapter.predict(rows), adapter.predict(rows.astype(np.float64))
    _close(single, double, max(atol, 1e-5), "float32 and float64 rows differ")


def pullback_agrees_with_random_direction_differences(
    adapter: GradientAdapter, x: Array, *, atol: float = 1e-5
) -> None:
    """<cotangent, (f(x + h d) - f(x - h d)) / 2h> = <pullback(cotangent), d> for random directions d.

    Kinks of ReLU networks may fall between the two points: the median over many directions and rows is compared.
    """
    rng = np.random.default_rng(0)
    y, pullback = adapter.vjp(x)
    _close(y, adapter.predict(x), max(atol, 1e-5), "vjp and predict give different outputs")
    h = 1e-3
    errors = []
    for _ in range(16):
        direction = rng.standard_normal(x.shape)
        cotangent = rng.standard_normal(y.shape).astype(y.dtype)
        pulled = pullback(cotangent)
        _require(pulled.shape == x.shape, f"the pullback has shape {pulled.shape}, expected {x.shape}")
        up, down = (adapter.predict((x + s * h * direction).astype(x.dtype)) for s in (1, -1))
        axes = tuple(range(1, y.ndim))
        expected = (cotangent * (up.astype(float) - down)).sum(axis=axes) / (2 * h)
        got = (pulled.astype(float) * direction).sum(axis=tuple(range(1, x.ndim)))
        errors.append(np.abs(expected - got) / (1e-2 + np.abs(expected)))
    worst = float(np.median(np.stack(errors), axis=0).max())
    _require(worst < 2e-2, f"the pullback is off finite differences by {worst:.2g} (relative)")  # noqa: PLR2004


def thresholds_are_sorted_for_every_column(adapter: HasThresholds, x: Array) -> None:
    found = adapter.thresholds()
    columns = x[0].size
    _require(len(found) == columns, f"thresholds of {len(found)} columns for {columns} columns")
    _require(all((np.diff(t) > 0).all() for t in found), "thresholds are not sorted and distinct")


_WITH_TOLERANCE = {
    output_does_not_depend_on_the_batch,
    float32_and_float64_agree,
    pullback_agrees_with_random_direction_differences,
}


def _close(a: Array, b: Array, atol: float, message: str) -> None:
    worst = float(np.abs(a.astype(float) - b).max()) if a.shape == b.shape else np.inf
    _require(worst <= atol, f"{message}: by {worst:.3g}, more than {atol:.3g}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
