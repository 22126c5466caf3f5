from __future__ import annotations

import numpy as np

from cfproto_plugin.search.refine.versions import UNKNOWN, Versions

ORIGINAL = np.zeros((2, 5))
HERE = np.array([[1.0, 2, 3, 4, 0], [0, 0, 7, 0, 0]])


def versions(price=None, polished=(True, True)):
    price = np.full(HERE.shape, UNKNOWN) if price is None else price
    return Versions.of(HERE, ORIGINAL, np.array(polished), price)


def all_tables(made):
    return made.tables(np.arange(len(made.point)))


def test_without_prices_there_are_the_points_and_each_change_alone():
    made = versions()
    assert made.point.tolist() == [0, 1, 0, 0, 0, 0]  # the only change of the second point stays
    assert np.array_equal(all_tables(made)[:2], HERE)
    assert np.array_equal(all_tables(made)[2:], np.where(np.eye(5)[:4], 0, HERE[0]))


def test_an_unpolished_point_keeps_its_changes():
    assert versions(polished=(False, True)).point.tolist() == [0, 1]


def test_sets_grow_by_price_and_leave_one_change():
    price = np.array([[3.0, 1.0, 2.0, 4.0, UNKNOWN], [1.0] * 5])
    sets = all_tables(versions(price))[6:]
    assert sets.tolist() == [[1, 0, 0, 4, 0], [0, 0, 0, 4, 0]]


def test_of_equal_costs_the_fewest_changes_are_best():
    price = np.array([[3.0, 1.0, 2.0, 4.0, UNKNOWN], [1.0] * 5])
    made = versions(price)
    cost = np.array([9.0, 9, 5, np.inf, 5, np.inf, 5 * (1 + 1e-15), np.inf])
    assert made.best(cost).tolist() == [6]
    cost[6] = 5.1
    assert made.best(cost).tolist() == [2]
    cost[2:] = np.inf
    assert not len(made.best(cost))


def test_a_price_is_the_margin_lost_by_what_is_saved():
    made = versions()
    margin, cost = np.array([1.0, 1, 0.5, 0.25, 1, -1]), np.array([8.0, 8, 6, 7, 8, np.inf])
    assert made.prices(margin, cost).tolist() == [[0.25, 0.75, 0, UNKNOWN, UNKNOWN], [UNKNOWN] * 5]
