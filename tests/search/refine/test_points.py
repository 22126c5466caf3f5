"""Where polishing starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.candidates import candidates, traces
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.refine.points import starting_points
from cfproto_plugin.search.task import Task
from cfproto_plugin.search.tuning import Tuning

TRAIN = np.random.default_rng(0).normal(size=(60, 2))


def model(x):
    p = 1 / (1 + np.exp(-5 * x[:, 0]))
    return np.stack([1 - p, p], axis=1)


def judge_of(rows, tuning=None, ranges=None, **settings):
    rules = None if ranges is None else Features(ranges=ranges)
    fitted = CounterfactualExplainer(model, features=rules, search=SearchConfig(**settings)).fit(TRAIN).fitted_
    n = len(rows)
    allowed = np.tile([False, True], (n, 1))
    own = np.zeros(n, dtype=int)
    rows, tuning = fitted.space.rows(rows), tuning or fitted.tuning
    task = Task(rows, allowed, np.arange(n), own, fitted.space, fitted.config, tuning)
    return Judge(task, SearchModel(fitted.classifier, fitted.space))


def starts(judge, row, table, margin=np.nan):
    row, table = np.array(row), np.array(table, dtype=float)
    margins = np.full(len(row), margin)
    return candidates(row, table, judge.cost(table, row), margins, traces(len(row), "path"))


ROWS = np.array([[-1.0, 0.0], [-0.5, 0.5]])


def test_a_row_that_the_model_was_asked_about_is_not_predicted_again_as_a_start():
    judge = judge_of(ROWS)
    given = starts(judge, [0, 1], [[0.5, 0], [0.5, 0.5]], margin=0.8)
    asked = starting_points(judge, given, from_row=True)
    assert judge.model.predicted == len(ROWS)
    known = judge_of(ROWS)
    known.task = replace(known.task, proba=model(ROWS))
    points = starting_points(known, given, from_row=True)
    assert known.model.predicted == 0
    assert points.margin == pytest.approx(asked.margin)
    assert points.table.tolist() == asked.table.tolist()


def test_the_cheapest_starts_of_every_line_are_taken():
    judge = judge_of(ROWS, Tuning(starts=2, start_range=100.0))
    points = starting_points(judge, starts(judge, [1, 0, 0, 0], [[1, 0.5], [2, 0], [0.5, 0], [1, 0]]))
    assert points.row.tolist() == [0, 0, 1]
    assert points.table[:, 0].tolist() == [0.5, 1, 1]


def test_starts_far_beyond_the_nearest_are_left_out_unless_changes_are_limited():
    given = [0, 0], [[0.5, 0], [4, 0]]
    judge = judge_of(ROWS)
    assert len(starting_points(judge, starts(judge, *given)).row) == 1
    limited = judge_of(ROWS, max_changes=1)
    assert len(starting_points(limited, starts(limited, *given)).row) == 2


def test_what_was_not_predicted_is_and_an_invalid_start_has_no_cost():
    judge = judge_of(ROWS)
    points = starting_points(judge, starts(judge, [0, 1], [[0.5, 0], [-0.4, 0.5]]))
    assert np.isfinite(points.margin).all()
    assert np.isinf(points.cost).tolist() == [False, True]
    calls = judge.model.calls
    known = starting_points(judge, starts(judge, [0], [[0.5, 0]], margin=0.3))
    assert judge.model.calls == calls
    assert known.margin.tolist() == [0.3]


def test_starts_are_copied():
    judge = judge_of(ROWS)
    given = starts(judge, [0], [[0.5, 0]])
    points = starting_points(judge, given)
    points.table[:] = 9
    assert given.table.tolist() == [[0.5, 0]]


def test_starts_that_meet_the_wishes_come_before_cheaper_ones_that_do_not():
    judge = judge_of(ROWS, Tuning(starts=1))
    given = starts(judge, [0, 0], [[0.5, 0], [0.9, 0]])
    points = starting_points(judge, given._replace(shortfall=np.array([0.2, 0.0])))
    assert points.table[:, 0].tolist() == [0.9]


def test_the_row_itself_is_a_start_beside_those_of_its_line():
    judge = judge_of(ROWS)
    points = starting_points(judge, starts(judge, [1, 0], [[1, 0.5], [0.5, 0]]), from_row=True)
    assert points.row.tolist() == [0, 0, 1, 1]
    assert points.table[[1, 3]].tolist() == ROWS.tolist()
    assert points.goal[[1, 3]].tolist() == points.goal[[0, 2]].tolist()
    assert np.isinf(points.cost[[1, 3]]).all()
    assert (points.margin[[1, 3]] < 0).all()


def test_a_row_that_breaks_a_rule_is_no_start_even_if_it_has_the_class():
    judge = judge_of(np.array([[9.0, 0.0], [-0.5, 0.5]]), ranges={0: (-3, 3)})
    points = starting_points(judge, starts(judge, [0, 1], [[0.5, 0], [0.5, 0.5]]), from_row=True)
    assert points.row.tolist() == [0, 1, 1]
