"""Small networks that learn what a model calls its training rows."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin.search.opinion import Opinion


@pytest.fixture(scope="module")
def learnt(digits):
    labels = networks.forward(digits.classifier, digits.x[:1500]).argmax(axis=1)
    return labels, Opinion.learn(digits.x[:1500], labels, 10, seed=0)


def test_it_says_mostly_what_the_model_says_also_of_rows_that_it_has_not_seen(digits, learnt):
    _, opinion = learnt
    proba, _ = opinion.vjp(digits.x[1500:])
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert (proba.argmax(axis=1) == networks.forward(digits.classifier, digits.x[1500:]).argmax(axis=1)).mean() > 0.9


def test_its_pullback_is_the_derivative(digits, learnt):
    x, (_, opinion) = digits.x[1500:1504].astype(float), learnt
    cotangent, eps = np.random.default_rng(0).normal(size=(4, 10)), 1e-5
    slope = opinion.vjp(x)[1](cotangent)
    for column in (20, 36):
        step = eps * np.eye(64)[column]
        change = (opinion.vjp(x + step)[0] - opinion.vjp(x - step)[0]) / (2 * eps)
        np.testing.assert_allclose(slope[:, column], (change * cotangent).sum(axis=1), rtol=1e-4, atol=1e-7)


def test_the_same_seed_gives_the_same_network_and_another_another(digits, learnt):
    labels, opinion = learnt
    few, rows = labels[:200], digits.x[:200]
    one, again, other = (Opinion.learn(rows, few, 10, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.allclose(one.enter, other.enter)
    assert all(part.dtype == np.float32 for part in opinion)


@pytest.mark.parametrize(("unit", "offset"), [(0.001, 0.0), (1.0, 100.0), (1e22, 0.0)])
def test_units_and_offsets_of_the_images_do_not_matter(digits, learnt, unit, offset):
    labels, opinion = learnt
    rows = (unit * digits.x + offset).astype(np.float32)
    other = Opinion.learn(rows[:1500], labels, 10, seed=0)
    assert all(np.isfinite(part).all() for part in other)
    np.testing.assert_allclose(other.vjp(rows[1500:])[0], opinion.vjp(digits.x[1500:])[0], atol=0.02)


def test_images_that_are_all_the_same_teach_nothing():
    opinion = Opinion.learn(np.full((20, 4), 3.0, dtype=np.float32), np.arange(20) % 2, 2, seed=0)
    assert np.isfinite(opinion.vjp(np.full((1, 4), 3.0))[0]).all()
