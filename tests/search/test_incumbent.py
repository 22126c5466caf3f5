"""Keeping the best, and the state that methods may only read."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.search.candidates import candidates, cheapest, firsts, join, traces
from cfproto_plugin.search.incumbent import Incumbents


def offered(row, cost, **more):
    row, cost = np.array(row), np.array(cost, dtype=float)
    table = np.column_stack([row, cost])
    return candidates(row, table, cost, np.ones(len(row)), traces(len(row), "path", prototype=row), **more)


def test_the_cheapest_valid_point_of_every_line_is_kept():
    incumbents = Incumbents(3, np.zeros((3, 2)))
    incumbents.offer(offered([2, 0, 2, 0], [5, 3, 4, 1], valid=np.array([True, True, True, False])))
    assert incumbents.cost.tolist() == [3, np.inf, 4]
    assert incumbents.table[[0, 2]].tolist() == [[0, 3], [2, 4]]
    assert incumbents.trace["prototype"].tolist() == [0, -1, 2]
    assert incumbents.found().tolist() == [True, False, True]


def test_a_point_that_is_not_cheaper_changes_nothing():
    incumbents = Incumbents(1, np.zeros((1, 2)))
    incumbents.offer(offered([0], [2]))
    incumbents.offer(offered([0, 0], [2, 7]))
    assert incumbents.table.tolist() == [[0, 2]]


def test_methods_see_the_costs_follow_every_offer_and_cannot_write_them():
    incumbents = Incumbents(2, np.zeros((2, 2)))
    best = incumbents.best
    incumbents.offer(offered([1], [4]))
    assert best.tolist() == [np.inf, 4]
    with pytest.raises(ValueError, match="read-only"):
        best[0] = 0


def test_cheapest_is_the_first_of_equals():
    assert cheapest(np.array([1, 0, 1]), np.array([2.0, 3.0, 2.0]), np.array([9.0, 9.0])).tolist() == [1, 0]
    assert cheapest(np.array([1]), np.array([9.0]), np.array([9.0, 9.0])).tolist() == []


def test_firsts_are_where_values_begin():
    assert firsts(np.array([3, 3, 5, 8, 8])).tolist() == [0, 2, 3]
    assert firsts(np.array([], dtype=int)).tolist() == []


def test_parts_are_joined_in_order():
    both = join([offered([0], [1]), offered([2, 1], [3, 2])])
    assert both.row.tolist() == [0, 2, 1]
    assert both.take(both.cost > 1).row.tolist() == [2, 1]
