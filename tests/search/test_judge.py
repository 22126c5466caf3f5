"""The margin, and what is asked of a point."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.search.judge import elastic_net, margin_of, margin_of_two

EPS = 4 * np.finfo(np.float64).eps


def test_elastic_net_is_beta_l1_plus_l2():
    assert elastic_net(np.array([[1.0, -2.0], [0.0, 0.5]]), 0.1).tolist() == pytest.approx([5.3, 0.3])


def test_margin_is_the_best_allowed_class_minus_the_best_other():
    proba = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    allowed = np.array([[False, True, True], [False, True, True]])
    assert margin_of(proba, allowed, 0.0, None) == pytest.approx([-0.2, 0.3])
    assert margin_of(proba, allowed, 0.1, None) == pytest.approx([-0.3, 0.2])


def test_two_classes_give_the_same_margin_by_the_short_way():
    proba = np.random.default_rng(0).dirichlet([1, 1], 20)
    allowed = np.arange(2) == np.random.default_rng(1).integers(0, 2, 20)[:, None]
    three = np.concatenate([proba, np.full((20, 1), -1.0)], axis=1)
    wide = np.concatenate([allowed, np.zeros((20, 1), dtype=bool)], axis=1)
    side = np.where(allowed[:, 0], 1, -1)
    for least in (0.1, 0.0):
        assert np.allclose(margin_of_two(proba, side, least), margin_of(three, wide, least, None))
        assert np.array_equal(margin_of_two(proba, side, least), margin_of(proba, allowed, least, None))


def test_a_tie_is_won_by_the_first_largest_column():
    tie = np.array([[0.5, 0.5]])
    assert margin_of(tie, np.array([[True, False]]), 0.0, None)[0] > 0
    assert not margin_of(tie, np.array([[False, True]]), 0.0, None)[0] > 0
    assert (margin_of_two(tie.repeat(2, axis=0), np.array([1, -1]), 0.0) > 0).tolist() == [True, False]
    three = np.array([[0.2, 0.4, 0.4]])
    assert margin_of(three, np.array([[True, True, False]]), 0.0, None)[0] > 0
    assert not margin_of(three, np.array([[True, False, True]]), 0.0, None)[0] > 0


def test_a_lead_within_the_noise_is_no_other_class():
    allowed = np.array([[False, True]])
    proba = np.array([[0.5 - EPS, 0.5 + EPS]])
    assert margin_of(proba, allowed, 0.0, None)[0] > 0
    assert margin_of(proba, allowed, 0.0, None, noise=EPS)[0] > 0
    assert margin_of(proba, allowed, 0.0, None, noise=3 * EPS)[0] < 0
    assert margin_of(np.array([[0.5, 0.5]]), ~allowed, 0.0, None, noise=EPS)[0] < 0


def test_min_proba_is_reached_or_the_margin_is_negative():
    allowed = np.array([[False, True]] * 3)
    proba = np.array([[0.21, 0.79], [0.2, 0.8], [0.1, 0.9]])
    assert (margin_of(proba, allowed, 0.0, np.full(proba.shape[1], 0.8)) > 0).tolist() == [False, True, True]


@pytest.mark.parametrize("k", [2, 3])
def test_where_every_class_is_allowed_the_margin_is_that_of_the_largest(k):
    proba = np.eye(k)[:1] * 0.4 + 0.6 / k
    assert margin_of(proba, np.ones((1, k), dtype=bool), 0.0, None) == pytest.approx(proba.max(axis=1))
