"""Categorical distances: the reference's numbers on Adult, and what must hold on any table."""

from __future__ import annotations

import csv
import gzip
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfproto_plugin.distances import ABDM, MVDM, Mix, bin_context, cfproto_distances
from cfproto_plugin.distances.abdm import divergence
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.plugins import Registry

GOLDEN = Path(__file__).parents[1] / "golden" / "adult_distances.npz"
CATEGORICAL = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")
NUMERIC = ("age", "capital-gain", "capital-loss", "hours-per-week")
EMPTY = np.zeros((6, 0), int)


@pytest.fixture(scope="module")
def adult():
    """Codes, numbers of categories, numeric columns and labels of Adult's complete training rows."""
    with gzip.open(Path(os.environ["CFPROTO_DATA"]) / "adult.csv.gz", "rt", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["split"] == "train" and "?" not in r.values()]
    coded = [np.unique([row[name] for row in rows], return_inverse=True) for name in CATEGORICAL]
    numeric = np.array([[float(row[name]) for name in NUMERIC] for row in rows])
    codes = np.stack([code for _, code in coded], axis=1)
    return codes, [len(found) for found, _ in coded], numeric, np.array([row["income"] for row in rows])


@pytest.fixture(scope="module")
def golden():
    return np.load(GOLDEN)


@pytest.mark.data
@pytest.mark.parametrize(("distance", "name"), [(ABDM(), "abdm"), (MVDM(), "mvdm")])
def test_adult_distances_are_those_of_the_reference(adult, golden, distance, name):
    codes, n_categories, numeric, labels = adult
    assert len(codes) == 30162
    found = distance(codes, n_categories, bin_context(numeric), labels)
    for column, matrix in zip(CATEGORICAL, found, strict=True):
        assert np.abs(matrix - golden[f"{name}_{column}"]).max() < 1e-6, column


@pytest.mark.data
def test_adult_bins_are_those_of_the_reference(adult):
    assert [len(np.unique(column)) for column in bin_context(adult[2]).T] == [4, 2, 2, 3]


# By hand


def test_mvdm_is_the_difference_of_class_frequencies_by_hand():
    codes = np.array([0, 0, 0, 0, 1, 1])[:, None]
    labels = np.array(["no", "no", "no", "yes", "yes", "yes"])  # 3/4 and 1/4 against 0 and 1
    (matrix,) = MVDM()(codes, [2], EMPTY, labels)
    assert np.array_equal(matrix, [[0, 1.5], [1.5, 0]])
    (squared,) = MVDM(alpha=2)(codes, [2], EMPTY, labels)
    assert np.allclose(squared, [[0, 2 * 0.75**2], [2 * 0.75**2, 0]])


def test_abdm_is_the_symmetric_divergence_by_hand():
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 0], [1, 0], [1, 1]])  # (1/2, 1/2) against (3/4, 1/4)
    matrix, _ = ABDM()(codes, [2, 2], EMPTY, np.zeros(6))
    expected = 0.25 * (np.log(3 / 4) - np.log(1 / 2)) - 0.25 * (np.log(1 / 4) - np.log(1 / 2))
    assert np.allclose(matrix, [[0, expected], [expected, 0]], rtol=1e-9)


def test_abdm_of_disjoint_distributions_is_bounded_by_the_epsilon():
    codes = np.array([[0, 0], [1, 1]])
    matrix, _ = ABDM()(codes, [2, 2], np.zeros((2, 0)), np.zeros(2))
    assert matrix[0, 1] == pytest.approx(-2 * np.log(1e-12), rel=1e-9)


def test_abdm_adds_up_the_other_columns_and_the_context():
    rng = np.random.default_rng(0)
    codes, context = rng.integers(0, 3, (60, 2)), rng.integers(0, 4, (60, 2))
    together = ABDM()(codes, [3, 3], context, np.zeros(60))[0]
    parts = [ABDM()(codes, [3, 3], context[:, :0], np.zeros(60))[0]]
    parts += [ABDM()(codes[:, :1], [3], context[:, [i]], np.zeros(60))[0] for i in range(2)]
    assert np.allclose(together, sum(parts), rtol=1e-9)


def test_abdm_does_not_mind_what_the_bins_are_called():
    rng = np.random.default_rng(0)
    codes, context = rng.integers(0, 3, (60, 1)), rng.integers(0, 4, (60, 1))
    named = np.array([-7.5, 0.0, 3.0, 1000.0])[context]
    assert np.allclose(ABDM()(codes, [3], context, np.zeros(60)), ABDM()(codes, [3], named, np.zeros(60)))


def test_mix_is_the_weighted_mean_of_both_scaled_to_their_largest_distance():
    rng = np.random.default_rng(1)
    table = rng.integers(0, 3, (50, 2)), [3, 3], rng.integers(0, 4, (50, 1)), rng.integers(0, 2, 50)
    abdm, mvdm = (np.stack(metric(*table)) for metric in (ABDM(), MVDM()))
    assert np.allclose(Mix(weight=0.25)(*table), 0.25 * abdm / abdm.max() + 0.75 * mvdm / mvdm.max())
    assert np.allclose(Mix()(*table), Mix(weight=0.5)(*table))
    assert np.allclose(Mix(weight=1)(*table), abdm / abdm.max())


def test_mix_without_any_difference_is_zero():
    found = Mix()(np.array([[0], [1]]), [2], np.zeros((2, 0)), np.zeros(2))
    assert np.array_equal(found, [np.zeros((2, 2))])


# Any table

DISTANCES = pytest.mark.parametrize("distance", [ABDM(), MVDM(), Mix()], ids=["abdm", "mvdm", "abdm-mvdm"])


@st.composite
def tables(draw):
    n, n_categories = draw(st.integers(1, 30)), draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.stack([rng.integers(0, k, n) for k in n_categories], axis=1)
    return codes, n_categories, rng.integers(0, 4, (n, draw(st.integers(0, 2)))), rng.integers(0, 3, n)


@DISTANCES
@given(tables())
@settings(max_examples=60, deadline=None)
def test_distances_are_symmetric_finite_not_negative_and_zero_on_the_diagonal(distance, table):
    matrices = distance(*table)
    assert [matrix.shape for matrix in matrices] == [(k, k) for k in table[1]]
    for matrix in matrices:
        assert np.array_equal(matrix, matrix.T)
        assert not np.diagonal(matrix).any()
        assert (matrix >= 0).all()
        assert np.isfinite(matrix).all()


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_distances_follow_the_categories_when_these_are_renumbered(table, random):
    codes, n_categories, context, labels = table
    order = list(range(n_categories[0]))
    random.shuffle(order)
    renumbered = codes.copy()
    renumbered[:, 0] = np.argsort(order)[codes[:, 0]]
    for distance in (ABDM(), MVDM()):
        before = distance(codes, n_categories, context, labels)[0]
        after = distance(renumbered, n_categories, context, labels)[0]
        assert np.allclose(before[np.ix_(order, order)], after, atol=1e-9)


@DISTANCES
def test_categories_with_identical_distributions_have_distance_zero(distance):
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1], [2, 1]])
    first = distance(codes, [3, 2], EMPTY, np.array([0, 1, 0, 1, 1, 1]))[0]
    assert first[0, 1] == pytest.approx(0, abs=1e-12)
    assert first[0, 2] > 0.1


def test_nearly_identical_distributions_never_have_a_negative_divergence():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(7)) + 1e-9 * rng.random((40, 7))
    assert (divergence(p) >= 0).all()


@DISTANCES
def test_category_without_rows_has_frequencies_zero(distance):
    codes = np.array([[0, 0], [0, 1], [2, 1], [2, 1]])
    first = distance(codes, [3, 2], np.zeros((4, 0)), np.array([0, 1, 1, 1]))[0]
    assert np.isfinite(first).all()
    assert first[1, 0] > 0
    if isinstance(distance, MVDM):
        assert np.array_equal(first[1], [1, 0, 1])
    if isinstance(distance, ABDM):  # -sum_k p_k (ln eps - ln(p_k + eps))
        assert first[1] == pytest.approx([np.log(0.5) - np.log(1e-12), 0, -np.log(1e-12)], rel=1e-9)


@DISTANCES
def test_one_category_and_no_categorical_column_work(distance):
    assert np.array_equal(distance(np.zeros((6, 1), int), [1], EMPTY, np.zeros(6)), [[[0.0]]])
    assert distance(np.zeros((6, 0), int), [], EMPTY, np.zeros(6)) == []


@DISTANCES
def test_columns_of_a_thousand_categories_are_measured(distance):
    rng = np.random.default_rng(0)
    codes, context = rng.integers(0, 1000, (30_000, 3)), rng.integers(0, 4, (30_000, 3))
    matrices = distance(codes, [1000] * 3, context, rng.integers(0, 10, 30_000))
    assert [matrix.shape for matrix in matrices] == [(1000, 1000)] * 3


@DISTANCES
def test_distances_can_be_pickled(distance):
    table = np.array([[0, 0], [0, 1], [1, 1]]), [2, 2], np.zeros((3, 0)), np.array([0, 1, 1])
    assert np.array_equal(pickle.loads(pickle.dumps(distance))(*table), distance(*table))  # noqa: S301 our own bytes


# Bins


def test_bins_are_open_below_and_closed_above():
    bins = bin_context(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]))  # edges 1, 2, 3
    assert bins.ravel().tolist() == [0, 0, 1, 2, 3]


def test_equal_edges_merge_into_one():
    bins = bin_context(np.array([[0.0]] * 9 + [[5.0]]))  # 0 is all three percentiles
    assert bins.ravel().tolist() == [0] * 9 + [1]


def test_percentiles_can_be_chosen():
    assert bin_context(np.arange(5.0)[:, None], percentiles=(50,)).ravel().tolist() == [0, 0, 0, 1, 1]


def test_missing_numbers_are_a_bin_of_their_own():
    bins = bin_context(np.array([[0.0, np.nan], [1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]]))
    assert bins[3, 0] not in bins[:3, 0]
    assert len(set(bins[:, 1])) == 1


def test_table_without_numeric_columns_has_no_bins():
    assert bin_context(np.zeros((3, 0))).shape == (3, 0)


# The plugin


def test_plugin_offers_the_three_distances_with_their_options():
    specs = {spec.name: spec.factory for spec in cfproto_distances()}
    assert sorted(specs) == ["abdm", "abdm-mvdm", "mvdm"]
    assert specs["mvdm"](alpha=2).alpha == 2
    assert specs["abdm-mvdm"](weight=0.3).weight == 0.3


def test_plugin_can_be_registered_like_any_other():
    import cfproto_plugin.distances as plugin

    plugins = Registry()
    assert plugins.register(plugin, "distances").offers == {"distances": ["abdm", "mvdm", "abdm-mvdm"]}
    assert plugins.find("distances", "abdm")[1].factory is ABDM


def test_options_and_columns_that_make_no_sense_are_named():
    with pytest.raises(ConfigError, match=r"alpha of the distance 'mvdm' is 0"):
        MVDM(alpha=0)
    with pytest.raises(ConfigError, match=r"weight of the distance 'abdm-mvdm' is 1\.5"):
        Mix(weight=1.5)
    with pytest.raises(InputError, match=r"column 1 run from -1 to 0; expected 0 to 1"):
        ABDM()(np.array([[0, 0], [1, -1]]), [2, 2], np.zeros((2, 0)), np.zeros(2))
    with pytest.raises(InputError, match=r"column 0 run from 0 to 2; expected 0 to 1"):
        MVDM()(np.array([[0], [2]]), [2], np.zeros((2, 0)), np.zeros(2))
    with pytest.raises(InputError, match=r"shape \(2, 1\); expected \(n, 2\)"):
        MVDM()(np.array([[0], [1]]), [2, 2], np.zeros((2, 0)), np.zeros(2))
    with pytest.raises(InputError, match=r"codes have 2 rows, the columns to compare with 3"):
        MVDM()(np.array([[0], [1]]), [2], np.zeros((2, 0)), np.zeros(3))
