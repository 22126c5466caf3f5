"""The occurrence distance, by its formula."""

import numpy as np

from cfproto_lightgbm import OccurrenceDistance

CODES = np.array([[0, 0], [0, 1], [0, 0], [1, 1], [1, 0], [2, 1]])


def test_distance_is_the_product_of_the_logarithms_of_the_smoothed_frequencies():
    first, second = OccurrenceDistance()(CODES, [4, 2], np.zeros((6, 0)), np.zeros(6, int))
    p = np.array([4, 3, 2, 1]) / 10
    assert np.allclose(first[0, 1], np.log(p[0]) * np.log(p[1]))
    assert np.allclose(first[2, 3], np.log(p[2]) * np.log(p[3]))
    assert np.allclose(second, [[0, np.log(0.5) ** 2], [np.log(0.5) ** 2, 0]])


def test_matrices_are_symmetric_with_zero_diagonal_and_rare_categories_are_farther():
    first, _ = OccurrenceDistance()(CODES, [4, 2], np.zeros((6, 0)), np.zeros(6, int))
    assert np.array_equal(first, first.T)
    assert not np.diagonal(first).any()
    assert first[0, 1] < first[0, 2] < first[0, 3] < first[1, 3]
