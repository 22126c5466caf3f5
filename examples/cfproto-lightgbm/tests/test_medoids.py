"""Medoids are rows of their class in the middle of its groups."""

import numpy as np
import pytest

from cfproto_lightgbm import MedoidPrototypes

GROUPS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


@pytest.fixture(scope="module")
def points():
    """Class 0 in three groups, class 1 in one."""
    rng = np.random.default_rng(0)
    zero = (GROUPS[:, None] + rng.normal(size=(3, 60, 2))).reshape(-1, 2)
    return np.concatenate([zero, rng.normal(size=(40, 2)) - 20]), np.repeat([0, 1], [180, 40])


def test_medoids_are_training_rows_of_their_class_one_per_group(points):
    z, labels = points
    provider = MedoidPrototypes(per_class=3).fit(z, labels)
    for point, label in zip(provider.points_, provider.classes_, strict=True):
        assert (z[labels == label] == point).all(axis=1).any()
    found = provider.points_[provider.classes_ == 0]
    assert np.linalg.norm(GROUPS[:, None] - found, axis=2).min(axis=1).max() < 1


def test_one_medoid_has_the_least_sum_of_squared_distances(points):
    z, labels = points
    (point,) = MedoidPrototypes(per_class=1).fit(z, labels * 0).points_
    sums = ((z[:, None] - z) ** 2).sum(axis=(1, 2))
    assert np.array_equal(point, z[sums.argmin()])


def test_every_medoid_is_the_best_row_of_its_group_also_where_groups_are_not_clear():
    z = np.random.default_rng(1).normal(size=(300, 2))
    medoids = MedoidPrototypes(per_class=6).fit(z, np.zeros(300, dtype=int)).points_
    group = ((z[:, None] - medoids) ** 2).sum(axis=2).argmin(axis=1)
    for i, medoid in enumerate(medoids):
        members = z[group == i]
        sums = ((members[:, None] - members) ** 2).sum(axis=(1, 2))
        assert np.array_equal(medoid, members[sums.argmin()])


def test_nearest_comes_first_the_last_is_repeated_and_no_class_is_minus_one(points):
    provider = MedoidPrototypes(per_class=3).fit(*points)
    z0 = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    allowed = np.array([[True, True], [False, True], [False, False]])
    found, classes = provider.nearest(z0, allowed)
    assert found.shape == (3, 6, 2)
    distance = np.linalg.norm(found - z0[:, None], axis=2)
    assert (np.diff(distance[0]) >= 0).all()
    assert classes.tolist() == [[0, 0, 0, 1, 1, 1], [1] * 6, [-1] * 6]
    assert (found[1, 3:] == found[1, 2]).all()
    assert len(np.unique(found[1], axis=0)) == 3


def test_few_and_equal_rows_give_as_many_medoids_as_there_are_different_rows():
    z = np.array([[1.0], [1.0], [2.0], [5.0]])
    provider = MedoidPrototypes(per_class=8).fit(z, np.array([0, 0, 0, 1]))
    assert sorted(zip(provider.classes_.tolist(), provider.points_[:, 0].tolist(), strict=True)) == [
        (0, 1.0),
        (0, 2.0),
        (1, 5.0),
    ]


def test_same_seed_gives_the_same_medoids_and_shapes_are_kept(points):
    z, labels = points
    images = z.reshape(-1, 1, 2).astype(np.float32)
    a, b = (MedoidPrototypes(per_class=5, seed=3).fit(images, labels) for _ in range(2))
    found, _ = a.nearest(images[:4], np.ones((4, 2), dtype=bool))
    assert np.array_equal(a.points_, b.points_)
    assert found.shape == (4, 10, 1, 2)
    assert found.dtype == np.float32
