from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.distances import ABDM, MVDM
from cfproto_plugin.errors import UnknownNameError
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import count_changed
from cfproto_plugin.tables.space import FeatureSpace, keep_largest, nearest_category


def mixed(n=400, seed=0):
    """A number and a category with an order that shows in the number and in the label."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 4, n)
    a = level + rng.normal(scale=0.5, size=n)
    frame = pd.DataFrame({"a": a, "school": np.array(["primary", "secondary", "bachelor", "doctor"])[level]})
    return frame, (level + rng.normal(size=n) > 1.5).astype(int)


def space_of(data, features=None, labels=None, distance=None, *, scale=True):
    features = features or Features()
    columns, given = Columns.learn(data, features, accepts_frames=True)
    table = given.table
    space = FeatureSpace.numeric(columns, table, features, scale=scale)
    if labels is not None:
        space = space.embedded(table, labels, distance or ABDM(), features)
    return space, table


def model(rows):
    gain = rows["school"].map({"primary": 0.0, "secondary": 1.0, "bachelor": 2.0, "doctor": 3.0}).astype(float)
    p = 1 / (1 + np.exp(-(rows["a"] + gain - 3).to_numpy()))
    return np.stack([1 - p, p], axis=1)


def test_numbers_are_standardised_and_weighted():
    data = np.array([[0.0, 10.0], [2.0, 30.0]])
    space, table = space_of(data, Features(weights={1: 3.0}))
    assert np.allclose(space.to_search(table), [[-1, -3], [1, 3]])
    unscaled, table = space_of(data, scale=False)
    assert unscaled.is_identity
    assert np.array_equal(unscaled.to_search(table), data)


def test_minmax_lets_numbers_and_categories_run_from_minus_one_to_one():
    frame, labels = mixed()
    frame.loc[:3, "a"] = np.nan
    space, table = space_of(frame, Features(scale="minmax"), labels)
    z = space.to_search(table)[4:]
    assert z.min(axis=0) == pytest.approx([-1, -1])
    assert z.max(axis=0) == pytest.approx([1, 1])
    again = space.decode(z, space.rows(table[4:]))
    assert np.allclose(again, table[4:])
    standard, _ = space_of(frame, Features(), labels)
    order = [np.argsort(one.embeddings[1]).tolist() for one in (space, standard)]
    assert order[0] == order[1]
    assert np.array_equal(space.deviation, standard.deviation), "noise is in standard deviations all the same"


def test_minmax_of_very_large_numbers_is_finite():
    space, table = space_of(np.array([[-1e300], [1e300], [0.0]]), Features(scale="minmax"))
    assert space.to_search(table).ravel().tolist() == pytest.approx([-1, 1, 0])


def test_an_explainer_with_minmax_scaling_finds_and_confirms():
    frame, _ = mixed()
    e = CounterfactualExplainer(model, features=Features(scale="minmax")).fit(frame).explain(frame[:10])
    assert e.found.all()
    assert (model(e.counterfactual).argmax(axis=1) != model(frame[:10]).argmax(axis=1)).all()


@pytest.mark.parametrize("scale", ["auto", "minmax"])
def test_a_constant_column_and_a_column_of_one_category_do_not_divide_by_zero(scale):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [5.0, 5.0, 5.0], "c": ["only"] * 3})
    space, table = space_of(frame, Features(scale=scale), labels=np.array([0, 1, 1]))
    z = space.to_search(table)
    assert np.isfinite(z).all()
    assert (z[:, 1:] == 0).all()
    assert np.array_equal(space.decode(z, space.rows(table)), table)


def test_a_column_without_any_value_stays_as_it_is():
    space, _ = space_of(pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [np.nan, np.nan, np.nan]}))
    assert space.rules.fixed.tolist() == [False, True]
    rows = space.rows(np.array([[1.0, np.nan], [2.0, 7.0]]))
    z = np.clip(rows.z + 0.1, rows.z_lower, rows.z_upper)
    assert np.array_equal(space.decode(z, rows)[:, 1], [np.nan, 7.0], equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_too_far_away_for_distances_has_no_place(dtype):
    space, _ = space_of(np.array([[1.0, 2.0], [2.0, 5.0], [3.0, 1.0]], dtype=dtype))
    far = np.array([[1.0, 2.0], [np.finfo(dtype).max / 2, 2.0]], dtype=dtype)
    ((row, error),) = space.without_place(far).items()
    assert row == 1
    assert "so far from the training data that its distance" in str(error)


def test_points_that_did_not_move_decode_to_exactly_the_row():
    frame, labels = mixed()
    space, table = space_of(frame, labels=labels)
    rows = space.rows(table)
    assert np.array_equal(space.decode(rows.z, rows), table)
    moved = space.decode(rows.z + np.array([1e-3, 0]), rows)
    assert (moved[:, 0] != table[:, 0]).sum() > 390  # all but the largest, which the bound holds
    assert np.array_equal(moved[:, 1], table[:, 1])


def test_a_missing_number_stands_at_the_mean_and_comes_back_missing_unless_it_moved():
    data = np.array([[1.0], [3.0], [np.nan], [5.0]])
    space, table = space_of(data, scale=False)
    rows = space.rows(table)
    assert rows.z[2, 0] == 0
    assert np.isnan(space.decode(rows.z, rows)[2, 0])
    assert space.decode(rows.z + 1, rows)[2, 0] == pytest.approx(4)
    plain, _ = space_of(data[:2], scale=False)
    ((row, error),) = plain.without_place(data[1:3]).items()
    assert row == 1
    assert "row 1 is NaN in column 0" in str(error)


def test_nearest_category_is_the_nearest_among_those_chosen():
    embedding = np.array([0.5, -1.0, 2.0, 0.0])
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 200)
    for choices in (
        np.ones(4, dtype=bool),
        np.array([True, False, True, False]),
        np.array([False, False, True, False]),
    ):
        distance = np.where(choices, np.abs(z[:, None] - embedding), np.inf)
        assert np.array_equal(nearest_category(z, embedding, choices), distance.argmin(axis=1))


def test_categories_decode_to_allowed_ones_only():
    frame, labels = mixed()
    space, table = space_of(frame, Features(allowed={"school": ("primary", "doctor")}), labels)
    rows = space.rows(table)
    assert set(space.decode(rows.z, rows)[:, 1]) == {1, 2}  # bachelor, doctor, primary, secondary
    assert (rows.z_lower[:, 1] <= rows.z_upper[:, 1]).all()


@pytest.mark.parametrize("distance", [ABDM(), MVDM()])
def test_embeddings_keep_the_order_of_categories_that_behave_alike(distance):
    frame, labels = mixed(2000)
    space, _ = space_of(frame, labels=labels, distance=distance)
    codes = {level: code for code, level in enumerate(space.columns.attributes[1].levels)}
    values = [space.embeddings[1][codes[level]] for level in ("primary", "secondary", "bachelor", "doctor")]
    assert values in (sorted(values), sorted(values, reverse=True))
    counts = frame["school"].value_counts(normalize=True)[list(codes)].to_numpy()
    embedding = space.embeddings[1]
    assert counts @ embedding == pytest.approx(0, abs=1e-9)
    assert counts @ embedding**2 == pytest.approx(1)


def test_a_dearer_category_lies_farther_away():
    frame, labels = mixed()
    even, _ = space_of(frame, labels=labels)
    dear, _ = space_of(frame, Features(weights={"school": 4.0}), labels)
    assert np.allclose(dear.embeddings[1], 4 * even.embeddings[1])


@pytest.mark.parametrize("distance", ["abdm", "mvdm", "abdm-mvdm", ABDM(), MVDM()])
def test_every_distance_leads_to_true_counterfactuals(distance):
    frame, _ = mixed()
    e = CounterfactualExplainer(model, distance=distance).fit(frame).explain(frame[:40])
    assert set(e.status) <= {"found", "fallback"}
    assert (model(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()
    assert (e.counterfactual_class != e.original_class).all()
    assert (e.counterfactual["school"] != e.original["school"]).any()


def test_a_distance_may_be_any_function_of_the_codes():
    seen = {}

    def by_code(codes, n_categories, context, labels):
        seen.update(codes=codes.shape, sizes=list(n_categories), context=context.shape, labels=labels.shape)
        return [np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float) for n in n_categories]

    frame, _ = mixed()
    explainer = CounterfactualExplainer(model, distance=by_code).fit(frame)
    assert seen == {"codes": (400, 1), "sizes": [4], "context": (400, 1), "labels": (400,)}
    order = np.argsort(explainer.fitted_.space.embeddings[1]).tolist()
    assert order in ([0, 1, 2, 3], [3, 2, 1, 0])
    with pytest.raises(UnknownNameError, match="mvdm"):
        CounterfactualExplainer(model, distance="mvdn").fit(frame)


def test_a_column_of_a_thousand_categories_is_explained():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 1000, 5000)
    frame = pd.DataFrame({"a": rng.normal(size=5000), "city": [f"city {i}" for i in code]})

    def by_city(rows):
        number = rows["city"].str.removeprefix("city ").astype(int).to_numpy()
        p = 1 / (1 + np.exp(-(rows["a"].to_numpy() + 3 * (number % 2) - 1.5)))
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(by_city, distance="mvdm").fit(frame).explain(frame[:20])
    assert set(e.status) <= {"found", "fallback"}
    assert (by_city(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()


def test_only_the_largest_changes_are_kept():
    z0 = np.zeros((3, 4))
    z = np.array([[0, 0, 0, 5.0], [1, -3, 2, 0], [2, 2, 2, 2]])
    assert keep_largest(z, z0, 1).tolist() == [[0, 0, 0, 5], [0, -3, 0, 0], [2, 0, 0, 0]]
    assert keep_largest(z, z0, 2).tolist() == [[0, 0, 0, 5], [0, -3, 2, 0], [2, 2, 0, 0]]
    assert keep_largest(z, z0, 4) is z


def test_two_missing_values_are_no_change():
    assert count_changed(np.array([[np.nan, 1, 2]]), np.array([[np.nan, np.nan, 1]])).tolist() == [2]


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e160, float), (1e300, float), (1e-170, float), (1e25, np.float32), (1e-25, np.float32)]
)
def test_columns_whose_squares_are_no_floats_are_standardised_like_others(scale, dtype):
    plain = np.random.default_rng(0).normal(size=(100, 2))
    space, table = space_of((plain * [1, scale]).astype(dtype))
    expected = (plain - plain.mean(axis=0)) / plain.std(axis=0)
    assert np.allclose(space.to_search(table), expected, atol=1e-5)
    assert np.allclose(space.deviation / [1, scale], plain.std(axis=0))


@pytest.mark.parametrize("scale", [1e160, 1e300, 1e-300])
def test_a_column_of_any_scale_is_explained(scale):
    rows = np.random.default_rng(0).normal(size=(200, 2)) * [1, scale]

    def positive(x):
        return np.column_stack([x[:, 1] > 0, x[:, 1] <= 0]) * 0.8 + 0.1

    e = CounterfactualExplainer(positive).fit(rows).explain(rows[:10])
    assert e.found.all()
    assert (positive(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()
