"""Checks of model adapters: each takes the adapter and rows and raises AssertionError with what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.plugins import Adapted, checked_vjp, of_any_size
from cfproto_plugin.protocols import Array, GradientAdapter, ModelAdapter, Role
from cfproto_plugin.testing.kit import Check, bind, predict, require, require_close, required, run_all
from cfproto_plugin.testing.optional import (
    a_batch_of_max_rows_is_predicted,
    a_frame_and_the_array_of_its_numbers_agree,
    columns_of_a_frame_may_come_in_any_order,
    feature_names_are_distinct_and_one_for_each_column,
    labels_are_columns_of_predict,
    labels_do_not_depend_on_the_batch,
    largest_score_is_the_label,
    optional_members_are_of_the_right_kind,
    quick_gives_what_predict_gives,
    trees_give_what_predict_gives,
    why_no_array,
)
from cfproto_plugin.testing.thresholds import (
    output_is_constant_between_neighbouring_thresholds,
    thresholds_are_sorted_for_every_column,
)
from cfproto_plugin.testing.untouched import (
    model_parameters_are_untouched,
    model_training_mode_is_untouched,
    output_does_not_depend_on_the_training_mode,
    state,
    switches,
    use,
)

_FEWEST = 3


def check_adapter(
    adapter: ModelAdapter, x: Any, *, role: Role = "classifier", atol: float = 1e-5, model: Any = None
) -> None:
    """Run every check that applies to the adapter on the rows x (at least three of them).

    model: what the adapter was made for, so that it can be seen whether it is left as it was.
    """
    run_all(adapter_checks(adapter, x, role=role, atol=atol, model=model))


def adapter_checks(
    adapter: ModelAdapter, x: Any, *, role: Role = "classifier", atol: float = 1e-5, model: Any = None
) -> list[Check]:
    """The checks of an adapter, one by one; those that do not apply say why."""
    if not hasattr(x, "shape") or len(x) < _FEWEST:
        raise InputError(
            f"the checks need an array or DataFrame of at least {_FEWEST} rows, got {type(x).__name__}"
            + (f" of shape {x.shape}" if hasattr(x, "shape") else "")
        )
    adapter = of_any_size(adapter)
    known = Adapted.of(adapter, type(adapter).__name__)
    transform = "" if role == "classifier" else f"its role is {role}"
    frame = "the rows are a DataFrame" if hasattr(x, "iloc") else ""
    no_classes = transform or ("" if known.has_classes else "the adapter has no classes")
    no_labels = transform or ("" if known.labels is not None else "the adapter has no labels(x)")
    no_scores = no_labels or ("" if known.scores is not None else "the adapter has no scores(x)")
    no_quick = "" if known.has_quick else "the adapter has no quick(x)"
    no_limit = "" if known.max_rows is not None else "the adapter has no max_rows"
    no_trees = transform or frame or ("" if _has(lambda: known.trees) else "the adapter has no trees()")
    no_names = "" if known.feature_names is not None else "the adapter has no feature_names"
    no_order = no_names or ("" if frame or known.accepts_frames else "the adapter takes no DataFrames")
    no_array = why_no_array(known, x)
    no_vjp = frame or ("" if known.vjp is not None else "the adapter has no vjp(x)")
    no_splits = frame or ("" if _has(lambda: known.thresholds) else "the adapter has no thresholds()")
    unknown = "the model was not given" if model is None else ""
    no_state = unknown or ("" if state(model) else "the state of the model cannot be read")
    no_mode = unknown or ("" if switches(model) else "the model has no training mode")
    # Each gets rows of its own: an adapter that writes into them must not hide it from the check that looks for this.
    return [
        bind(output_is_finite_with_one_item_per_row, adapter, x.copy()),
        bind(rows_are_probabilities_of_at_least_two_classes, adapter, x.copy(), skipped=transform),
        bind(classes_are_distinct_and_as_many_as_columns, adapter, x.copy(), skipped=no_classes),
        bind(optional_members_are_of_the_right_kind, adapter),
        bind(input_is_not_modified, adapter, x.copy()),
        bind(output_is_deterministic, adapter, x.copy()),
        bind(output_does_not_depend_on_the_batch, adapter, x.copy(), atol=atol),
        bind(float32_and_float64_agree, adapter, x.copy(), atol=atol, skipped=frame),
        bind(quick_gives_what_predict_gives, adapter, x.copy(), atol=max(atol, 1e-5), skipped=no_quick),
        bind(labels_are_columns_of_predict, adapter, x.copy(), skipped=no_labels),
        bind(labels_do_not_depend_on_the_batch, adapter, x.copy(), skipped=no_labels),
        bind(largest_score_is_the_label, adapter, x.copy(), skipped=no_scores),
        bind(a_batch_of_max_rows_is_predicted, adapter, x.copy(), atol=atol, skipped=no_limit),
        bind(feature_names_are_distinct_and_one_for_each_column, adapter, x.copy(), skipped=no_names),
        bind(columns_of_a_frame_may_come_in_any_order, adapter, x.copy(), atol=atol, skipped=no_order),
        bind(a_frame_and_the_array_of_its_numbers_agree, adapter, x.copy(), atol=max(atol, 1e-5), skipped=no_array),
        bind(pullback_agrees_with_random_direction_differences, adapter, x.copy(), atol=atol, skipped=no_vjp),
        bind(trees_give_what_predict_gives, adapter, x.copy(), atol=max(atol, 1e-5), skipped=no_trees),
        bind(thresholds_are_sorted_for_every_column, adapter, x.copy(), skipped=no_splits),
        bind(output_is_constant_between_neighbouring_thresholds, adapter, x.copy(), skipped=no_splits),
        bind(model_parameters_are_untouched, adapter, x.copy(), model, skipped=no_state),
        bind(model_training_mode_is_untouched, adapter, x.copy(), model, skipped=no_mode),
        bind(output_does_not_depend_on_the_training_mode, adapter, x.copy(), model, atol=atol, skipped=no_mode),
    ]


def _has(member: Callable[[], Any]) -> bool:
    """Whether it is there. A member that fails is: its checks say how."""
    try:
        return member() is not None
    except Exception:  # noqa: BLE001 whatever it raises, the other checks run
        return True


def output_is_finite_with_one_item_per_row(adapter: ModelAdapter, x: Any) -> None:
    y: Any = predict(adapter, x)
    require(isinstance(y, np.ndarray), f"predict returned {type(y).__name__}, expected a NumPy array")
    require(y.dtype.kind in "fiub", f"predict returned an array of {y.dtype}, expected numbers")
    require(y.ndim > 0 and len(y) == len(x), f"predict returned {len(y) if y.ndim else 1} items for {len(x)} rows")
    require(bool(np.isfinite(y).all()), "predict returned values that are not finite")


def rows_are_probabilities_of_at_least_two_classes(adapter: ModelAdapter, x: Any) -> None:
    y = predict(adapter, x)
    require(y.ndim == 2 and y.shape[1] >= 2, f"predict returned shape {y.shape}, expected (n, k) with k >= 2")  # noqa: PLR2004
    require(bool((y >= 0).all()), "a probability is negative")
    worst = float(np.abs(y.sum(axis=1) - 1).max())
    require(worst < 1e-5, f"a row of probabilities sums to 1 +- {worst:.2g}")  # noqa: PLR2004


def classes_are_distinct_and_as_many_as_columns(adapter: Any, x: Any) -> None:
    columns = predict(adapter, x).shape[-1]
    with required():
        Adapted.of(adapter).classes(columns)


def output_does_not_depend_on_the_batch(adapter: ModelAdapter, x: Any, *, atol: float = 1e-5) -> None:
    together = predict(adapter, x)
    alone = np.concatenate([adapter.predict(x[i : i + 1]) for i in range(len(x))])
    require_close(together, alone, atol, "rows predicted together and one by one differ")


def output_is_deterministic(adapter: ModelAdapter, x: Any) -> None:
    require(np.array_equal(predict(adapter, x), predict(adapter, x)), "two predictions of the same rows differ")


def input_is_not_modified(adapter: Any, x: Any) -> None:
    """By none of its methods, which are called themselves: `Adapted` may hand them copies."""
    before = x.copy()
    use(adapter, x)
    same = x.equals(before) if hasattr(x, "iloc") else np.array_equal(before, x, equal_nan=True)
    require(bool(same), "the rows were changed in place")


def float32_and_float64_agree(adapter: ModelAdapter, x: Array, *, atol: float = 1e-5) -> None:
    rows = x.astype(np.float32)
    single, double = predict(adapter, rows), predict(adapter, rows.astype(np.float64))
    require_close(single, double, max(atol, 1e-5), "float32 and float64 rows differ")


def pullback_agrees_with_random_direction_differences(
    adapter: GradientAdapter, x: Array, *, atol: float = 1e-5
) -> None:
    """<cotangent, (f(x + h d) - f(x - h d)) / 2h> = <pullback(cotangent), d> for random directions d.

    Kinks of ReLU networks may fall between the two points: the median over many directions and rows is compared.
    """
    rng = np.random.default_rng(0)
    known = Adapted.of(adapter)
    x = x[: known.max_rows]
    with required():
        y, pullback = checked_vjp(known, x)
    require_close(y, predict(adapter, x), max(atol, 1e-5), "vjp and predict give different outputs")
    h = 1e-3
    errors = []
    for _ in range(16):
        direction = rng.standard_normal(x.shape)
        cotangent = rng.standard_normal(y.shape).astype(y.dtype)
        with required():
            pulled = pullback(cotangent)
        require(bool(np.isfinite(pulled).all()), "the pullback returned values that are not finite")
        up, down = (predict(adapter, (x + s * h * direction).astype(x.dtype)) for s in (1, -1))
        axes = tuple(range(1, y.ndim))
        expected = (cotangent * (up.astype(float) - down)).sum(axis=axes) / (2 * h)
        got = (pulled.astype(float) * direction).sum(axis=tuple(range(1, x.ndim)))
        errors.append(np.abs(expected - got) / (1e-2 + np.abs(expected)))
    worst = float(np.median(np.stack(errors), axis=0).max())
    require(worst < 2e-2, f"the pullback is off finite differences by {worst:.2g} (relative)")  # noqa: PLR2004
