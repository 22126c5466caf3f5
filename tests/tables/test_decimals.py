"""With how many decimals columns are written, multiples of a step, and the numbers of a grid beside a split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.tables.decimals import as_ratio, written_steps
from cfproto_plugin.tables.geometry import Grid
from cfproto_plugin.tables.held import Held
from cfproto_plugin.tables.splits import Splits

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=500)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (NUMBERS.round(2), 0.01),
        ((100 * NUMBERS).round(), 1.0),
        (NUMBERS, 0.0),
        (NUMBERS.round(6), 1e-6),
        (NUMBERS.round(7), 0.0),
        (np.where(np.arange(500) < 4, NUMBERS, NUMBERS.round(1)), 0.1),
        (np.where(np.arange(500) < 6, NUMBERS, NUMBERS.round(1)), 0.0),
        (np.where(np.arange(500) % 2 == 0, np.nan, NUMBERS.round(3)), 0.001),
        (np.full(500, np.nan), 0.0),
        (1e17 * NUMBERS, 0.0),
        (np.arange(500) % 2, 1.0),
        (10 * (100 * NUMBERS).round(), 10.0),
        (np.array([1000.0, 2000, 3000, 5000, 8000] * 20), 1000.0),
        (np.where(np.arange(500) < 4, 1234, 1000 * (100 * NUMBERS).round()), 1000.0),
        (np.where(np.arange(500) < 9, 5000, 0), 1.0),
        (np.where(np.arange(500) % 9 == 0, 7 * np.arange(500), 0), 1.0),
    ],
)
def test_the_step_is_the_last_decimal_of_99_percent_of_the_values(values, step):
    assert written_steps(values[:, None].astype(float), np.array([True]), ()).tolist() == [step]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_numbers_that_all_end_in_noughts_are_answered_in_such_numbers(dtype):
    x = np.column_stack([RNG.choice([1000, 2000, 3000, 5000, 8000], 400), 10 * RNG.integers(100, 500, 400)]).astype(
        dtype
    )
    model = LogisticRegression(max_iter=1000).fit(x / 1000, x @ [1, 2] > 12_000)
    asked = lambda rows: model.predict_proba(rows / 1000)  # noqa: E731
    found = CounterfactualExplainer(asked, search=SearchConfig.close()).fit(x).explain(x[:40]).counterfactual
    moved = found != x[:40]
    assert moved.any(axis=1).all()
    assert moved.any(axis=0).all()
    assert (found % [1000, 10] == 0).all()


def test_few_values_and_categories_tell_nothing():
    few = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert written_steps(few, np.array([True, True]), ()).tolist() == [0, 0]
    assert written_steps(np.tile(few, (50, 1)), np.array([True, False]), ()).tolist() == [1, 0]


def test_columns_of_integers_have_no_decimals():
    held = Held(np.dtype(np.uint8), np.array([True, True]), rounds=False)
    table = np.column_stack([np.zeros(100), np.arange(100)])
    assert written_steps(table, np.array([True, True]), (held,)).tolist() == [0, 0]


def test_a_float32_is_written_with_the_decimals_that_a_float32_needs():
    single = NUMBERS.round(2).astype(np.float32)
    held = Held(np.dtype(np.float32), np.array([True]), rounds=True)
    assert written_steps(single[:, None], np.array([True]), ()).tolist() == [0.01]
    assert written_steps(single[:, None].astype(float), np.array([True]), (held,)).tolist() == [0.01]
    assert written_steps(single[:, None].astype(float), np.array([True]), ()).tolist() == [0]
    thousands = (1000 * NUMBERS).astype(np.float32)[:, None]  # every such float32 has few decimals
    assert written_steps(thousands, np.array([True]), ()).tolist() == [0]


@given(st.integers(-(10**6), 10**6), st.sampled_from([1e-6, 0.001, 0.1, 0.05, 0.25, 1.0, 100.0]))
def test_a_multiple_of_a_step_is_the_float_of_its_decimal(count, step):
    numerator, denominator = as_ratio(step)
    grid = Grid(np.array([step]))
    expected = float(f"{count * numerator:.0f}") / denominator
    assert grid.multiple(np.array([float(count)]))[0] == expected
    assert grid.snap(np.array([expected + step / 3]))[0] == expected
    assert len(repr(expected)) <= 14


def test_a_step_without_a_short_decimal_is_taken_as_it_is():
    assert as_ratio(1 / 3) == (1 / 3, 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
@pytest.mark.parametrize("equal_left", [True, False, None])
@given(st.integers(-3000, 3000), st.sampled_from([0.0, 0.003, 0.0071, 1e-9]))
def test_the_numbers_beside_a_split_are_the_nearest_that_the_model_puts_on_either_side(dtype, equal_left, number, off):
    split = float(np.float32(number / 100 + off))
    grid = Grid(np.array([0.01]), written=np.array([True]))
    splits = Splits([np.array([split])], equal_left=equal_left, dtype=dtype, grid=grid)
    far = np.array([[-1e3], [1e3]])
    above, below = splits.across(far, -far, 1)[..., 0].ravel()
    numbers = np.arange(number - 5, number + 6) / 100
    seen = [numbers.astype(kind) for kind in ("float32", "float64") if dtype in (kind, None)]
    is_above = np.all([x >= split if equal_left is False else x > split for x in seen], axis=0)
    is_below = np.all([x <= split if equal_left else x < split for x in seen], axis=0)
    assert above == numbers[is_above].min()
    assert below == numbers[is_below].max()


def test_splits_of_columns_without_a_grid_have_their_sides_next_to_them():
    splits = Splits([np.array([0.5]), np.array([0.55])], grid=Grid(np.array([0.0, 0.1])))
    start, end = np.array([0.0, 0.0]), np.array([1.0, 1.0])
    assert splits.across(start, end, 1).ravel().tolist() == [np.nextafter(np.float32(0.5), np.float32(1)), 0.6]


@pytest.mark.parametrize(
    ("equal_left", "down", "up"), [(False, [0.1, 0.2], [0.2, 0.3]), (True, [0.2, -5.0], [0.3, 0.4])]
)
def test_a_value_on_a_split_lies_on_the_side_that_the_model_puts_it(equal_left, down, up):
    """From 0.3 down and from 0.1 up, with splits at 0.2 and 0.3 in float32, which are not 0.2 and 0.3 in float64."""
    split = np.array([0.2, 0.3], dtype=np.float32).astype(float)
    grid = Grid(np.array([0.1]), written=np.array([True]))
    splits = Splits([split], equal_left=equal_left, dtype="float32", grid=grid)
    found = splits.across(np.array([[0.3], [0.1]]), np.array([[-5.0], [5.0]]), 2)
    assert found.reshape(2, 2).tolist() == [down, up]
