"""One number per category: the reference's numbers on Adult, and what must hold for any distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.tables.embedding import classical, embed, plane, separated

CATEGORICAL = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")


@pytest.fixture(scope="module")
def golden():
    with np.load(Path(__file__).parents[1] / "golden" / "adult_distances.npz") as file:
        return {name: file[name] for name in file}


@pytest.fixture(scope="module")
def adult(golden):
    """The embedded columns by metric and name."""
    metrics = {m: embed([golden[f"{m}_{name}"] for name in CATEGORICAL]) for m in ("abdm", "mvdm")}
    return {m: dict(zip(CATEGORICAL, columns, strict=True)) for m, columns in metrics.items()}


def line(*points):
    """The distances of points on a line."""
    return np.abs(np.subtract.outer(points, points)).astype(float)


def stress(points, distances):
    return ((cdist(points, points) - distances) ** 2).sum()


# Adult


@pytest.mark.parametrize("name", CATEGORICAL)
@pytest.mark.parametrize("metric", ["abdm", "mvdm"])
def test_adult_embeddings_are_those_of_the_reference_up_to_sign(adult, golden, metric, name):
    found, expected = adult[metric][name], golden[f"{metric}_embedding_{name}"]
    assert min(np.abs(found - expected).max(), np.abs(found + expected).max()) < 1e-3


def test_preschool_and_doctorate_are_the_ends_of_education(adult, golden):
    names = golden["categories_education"]
    values = adult["abdm"]["education"]
    assert {names[values.argmin()], names[values.argmax()]} == {"Preschool", "Doctorate"}


def test_one_factor_keeps_narrow_columns_narrow(adult):
    widths = {name: np.ptp(values) for name, values in adult["abdm"].items()}
    assert max(widths.values()) == pytest.approx(2)
    assert widths["race"] < 0.05
    assert all(values.max() == pytest.approx(-values.min()) for values in adult["abdm"].values())


# By hand


def test_points_on_a_line_keep_their_distances():
    (values,) = embed([line(0, 1, 3, 10)])
    assert np.allclose(np.abs(np.subtract.outer(values, values)), line(0, 1, 3, 10) / 5, atol=5e-3)


def test_numbers_are_distances_from_the_point_with_the_largest_norm():
    points = np.array([[0, 0], [0, 1], [1, 0], [9, 4]], float)  # the last is farthest from the centre
    (values,) = embed([cdist(points, points)])
    radii = np.linalg.norm(points - points[3], axis=1)
    expected = 2 * (radii - radii.min()) / np.ptp(radii) - 1
    assert np.allclose(values, expected, atol=1e-3)


def test_two_categories_are_as_far_apart_as_their_distance_says():
    narrow, wide = embed([line(0, 1), line(0, 4)], span=(0, 8))
    assert np.ptp(narrow) == pytest.approx(2)
    assert sorted(wide) == pytest.approx([0, 8])
    assert narrow.mean() == pytest.approx(4)


def test_one_category_is_in_the_middle_of_the_span():
    one, _ = embed([np.zeros((1, 1)), line(0, 1)], span=(1, 3))
    assert one == pytest.approx([2])
    assert embed([np.zeros((1, 1))], span=(1, 3))[0] == pytest.approx([2])


def test_no_columns_give_no_columns():
    assert embed([]) == []
    assert embed([], scaling="standard") == []


def test_standard_scaling_has_mean_zero_and_unit_deviation_over_the_rows():
    counts = [np.array([70, 20, 10]), np.array([5, 95])]
    columns = embed([line(0, 5, 9), line(0, 2)], scaling="standard", counts=counts)
    rows = [np.repeat(values, count) for values, count in zip(columns, counts, strict=True)]
    assert [column.mean() for column in rows] == pytest.approx([0, 0], abs=1e-12)
    assert rows[0].std() == pytest.approx(1)
    assert np.ptp(columns[1]) / np.ptp(columns[0]) == pytest.approx(2 / 9, rel=5e-3)


def test_standard_scaling_without_counts_weighs_categories_equally():
    (values,) = embed([line(0, 5, 9)], scaling="standard")
    assert values.mean() == pytest.approx(0, abs=1e-12)
    assert values.std() == pytest.approx(1)


def test_standard_scaling_of_rows_that_are_all_alike_stays_finite():
    (values,) = embed([line(0, 3)], scaling="standard", counts=[np.array([10, 0])])
    assert sorted(np.abs(values)) == pytest.approx([0, 1])


# Ties


def test_categories_that_the_distance_cannot_tell_apart_stay_distinct_in_their_order():
    tied, _ = embed([np.zeros((4, 4)), line(0, 1)])
    assert np.all(np.diff(tied) > 0)
    assert np.ptp(tied) < 1e-3  # the metric says they are one: changing between them is nearly free
    assert len(np.unique(tied.astype(np.float32))) == 4


def test_if_nothing_can_be_told_apart_the_categories_are_spaced_evenly():
    (values,) = embed([np.zeros((5, 5))], span=(0, 1))
    assert values == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_two_categories_without_rows_stay_distinct():
    (values,) = embed([line(0, 2, 2, 7)])
    assert values[1] != values[2]
    assert abs(values[1] - values[2]) < 1e-2


def test_separated_moves_only_what_is_too_close():
    found = separated(np.array([1.0, 0.0, 1.0, 1.05, 3.0]), 0.1)
    assert found == pytest.approx([1.0, 0.0, 1.1, 1.2, 3.0])


# Properties


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10_000), st.floats(1e-150, 1e150))
def test_any_distances_give_distinct_finite_numbers_within_the_span(n, seed, size):
    matrix = np.random.default_rng(seed).integers(0, 4, (n, n)) * size
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    (values,) = embed([matrix], span=(-3, 2))
    assert len(np.unique(values.astype(np.float32))) == n
    assert values.min() == pytest.approx(-3)
    assert values.max() == pytest.approx(2)
    assert values.min() >= -3
    assert values.max() <= 2


def test_the_same_distances_give_the_same_numbers_whatever_the_global_seed(golden):
    from joblib import parallel_config

    matrix = golden["abdm_relationship"].copy()
    before = matrix.copy()
    (first,) = embed([matrix])
    np.random.seed(3)  # noqa: NPY002 it must not matter
    with parallel_config(backend="threading", n_jobs=2):
        (second,) = embed([matrix])
    assert np.array_equal(first, second)
    assert np.array_equal(matrix, before)


def test_classical_scaling_reproduces_distances_of_the_plane():
    points = np.random.default_rng(0).normal(size=(60, 2))
    found = classical(cdist(points, points))
    assert np.allclose(cdist(found, found), cdist(points, points))


def test_many_categories_are_fitted_better_than_by_classical_scaling_alone():
    p = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 120)
    distances = cdist(p, p, "cityblock")
    start, found = classical(distances), plane(distances)
    assert stress(found, distances) < 0.52 * stress(start, distances)  # 0.576 after one iteration


@pytest.mark.parametrize("n", [3, 60])
def test_categories_that_are_all_equally_far_apart_get_distinct_numbers(n):
    (values,) = embed([1 - np.eye(n)])  # every eigenvalue of classical scaling but one is the same
    assert len(np.unique(values.astype(np.float32))) == n


def test_many_categories_in_two_groups_stay_in_two_groups():
    group = np.arange(80) % 2
    (values,) = embed([(group[:, None] != group).astype(float)])
    assert len(np.unique(values.astype(np.float32))) == 80
    assert np.ptp(values[group == 0]) < 0.05
    assert np.ptp(values[group == 1]) < 0.05
    assert np.ptp(values) == pytest.approx(2)


def test_a_thousand_categories_stay_apart():
    p = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 1000)
    (values,) = embed([cdist(p, p, "cityblock")])
    assert len(np.unique(values.astype(np.float32))) == 1000


# Bad input


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0, np.nan], [np.nan, 0]], r"column 1 are not all finite: d\(0, 1\) is nan"),
        ([[0, np.inf], [np.inf, 0]], r"column 1 are not all finite: d\(0, 1\) is inf"),
        ([[0, -1], [-1, 0]], r"column 1 are partly negative: d\(0, 1\) is -1"),
        ([[0, 1], [2, 0]], r"column 1 are not symmetric: d\(0, 1\) is 1, d\(1, 0\) is 2"),
        ([[0, 1], [1, 3]], r"column 1 are not 0 on the diagonal: d\(1, 1\) is 3"),
        ([[0, 1, 2], [1, 0, 2]], r"column 1 have shape \(2, 3\)"),
        (np.zeros((0, 0)), r"column 1 have shape \(0, 0\)"),
        ([0, 1], r"column 1 have shape \(2,\)"),
    ],
)
def test_what_is_not_a_distance_matrix_is_an_error_that_names_column_and_cell(matrix, words):
    with pytest.raises(InputError, match=words):
        embed([line(0, 1), np.array(matrix, float)])


def test_rounding_is_no_asymmetry():
    matrix = line(0, 1, 4)
    matrix[0, 1] += 1e-9
    assert len(embed([matrix])[0]) == 3


@pytest.mark.parametrize("span", [(1, 1), (2, -2), (0, np.inf), (np.nan, 1)])
def test_a_span_that_is_none_is_an_error(span):
    with pytest.raises(ConfigError, match="span is"):
        embed([line(0, 1)], span=span)


def test_an_unknown_scaling_is_an_error():
    with pytest.raises(ConfigError, match="'minmax' or 'standard'"):
        embed([line(0, 1)], scaling="robust")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([], "0 columns; expected 1"),
        ([[1, 2, 3]], r"column 0 have shape \(3,\); expected \(2,\)"),
        ([[0, 0]], "not all of them 0"),
        ([[1, -1]], "numbers from 0"),
        ([[1, np.nan]], "numbers from 0"),
    ],
)
def test_counts_that_do_not_fit_are_an_error(counts, words):
    with pytest.raises(InputError, match=words):
        embed([line(0, 1)], scaling="standard", counts=counts)
