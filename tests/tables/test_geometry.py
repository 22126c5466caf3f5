"""What changed, what a column can hold, and what the bounds leave: one definition for all parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.beam import _one_more
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.geometry import Grid, changed, clip, count_changed
from cfproto_plugin.tables.held import Held

CELL = st.sampled_from([np.nan, 0.0, -0.0, 1.0, 2.5, -3.0])
ROW = st.lists(CELL, min_size=4, max_size=4).map(np.array)


def truth(a, b):
    return not (a == b or (np.isnan(a) and np.isnan(b)))


@given(ROW, ROW)
def test_a_cell_changed_unless_both_are_equal_or_both_are_missing(x, original):
    expected = [truth(a, b) for a, b in zip(x, original, strict=True)]
    assert changed(x, original).tolist() == expected
    assert count_changed(x, original) == sum(expected)


def model(x):
    p = (np.nan_to_num(x) @ [1.0, 2.0, -1.0, 0.5] > 0.4).astype(float)
    return np.stack([1 - p, p], axis=1)


TRAIN = np.random.default_rng(0).normal(size=(80, 4))
TRAIN[::9, 1] = np.nan
EXPLAINER = CounterfactualExplainer(model, search=SearchConfig(few_changes=0.7, max_changes=2)).fit(TRAIN)


@given(st.lists(ROW, min_size=1, max_size=5), st.lists(ROW, min_size=5, max_size=5))
def test_cost_limit_rules_beam_and_result_agree_on_what_changed(originals, points):
    """Each counts the changes of the same points in its own way."""
    original, x = np.array(originals), np.array(points[: len(originals)])
    expected = np.array([[truth(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(x, original, strict=True)])
    fitted = EXPLAINER.fitted_
    n, row = len(x), np.arange(len(x))
    task = Task(fitted.space.rows(original), np.ones((n, 2), dtype=bool), row, 0 * row, fitted.space, fitted.config)
    judge = Judge(task, SearchModel(fitted.classifier, fitted.space))
    price = judge.cost(x, row) - judge.distance(x, row)
    assert np.allclose(price, 0.7 * expected.sum(axis=1))
    assert judge.is_permitted(x, row).tolist() == (expected.sum(axis=1) <= 2).tolist()
    frozen = fitted.space.with_rules(Features(immutable=range(4)), TRAIN)
    assert frozen.broken(x, frozen.rows(original)).tolist() == expected.any(axis=1).tolist()
    for before, after, cells in zip(original, x, expected, strict=True):
        made = _one_more(before[None], after[:, None], before)
        assert len(made) == cells.sum(), "the beam may change every cell that differs, missing ones too"


def test_the_result_counts_the_changes_that_the_limit_counted():
    rows = TRAIN[np.isnan(TRAIN[:, 1])]
    e = EXPLAINER.explain(rows)
    assert e.found.any()
    assert (e.n_changes[e.found] <= 2).all()
    assert e.n_changes[e.found].tolist() == count_changed(e.counterfactual, rows)[e.found].tolist()


def test_values_snap_to_multiples_of_the_step_and_to_the_width_of_the_column():
    grid = Grid(np.array([0.5, 0.0, 0.0]), (Held(np.dtype(np.float32), np.array([False, True, False]), rounds=True),))
    x = np.array([[0.7, 0.1, 0.1], [0.8, 0.2, 0.2]])
    assert grid.snap(x).tolist() == [[0.5, float(np.float32(0.1)), 0.1], [1.0, float(np.float32(0.2)), 0.2]]
    assert grid.misses(grid.snap(x)).tolist() == [[False] * 3] * 2
    assert grid.misses(x)[:, 0].tolist() == [True, True]


@pytest.mark.parametrize(("x", "expected"), [(0.7, 0.5), (-3.0, 0.5), (9.0, 2.0)])
def test_values_snap_inside_the_bounds(x, expected):
    grid = Grid(np.array([0.5]))
    low, high, original = np.array([0.3]), np.array([2.2]), np.array([1.1])
    assert grid.snap_inside(np.array([x]), low, high, original).tolist() == [expected]


def test_the_original_stays_where_no_multiple_of_the_step_lies_inside():
    grid = Grid(np.array([5.0]))
    found = grid.snap_inside(np.array([3.0]), np.array([1.0]), np.array([4.0]), np.array([2.2]))
    assert found.tolist() == [2.2]


def test_a_missing_bound_does_not_bind():
    found = clip(np.array([5.0, -5.0]), np.array([np.nan, 0.0]), np.array([3.0, np.nan]))
    assert found.tolist() == [3.0, 0.0]
