"""Deadline, progress, and the time of every row."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cfproto_plugin.search.clock import Clock, reporting


def test_the_deadline_passes_once_and_for_all():
    assert not Clock(1).is_over()
    assert Clock(1, deadline=time.perf_counter() - 1).is_over()


def test_progress_of_a_piece_is_a_part_of_the_whole():
    seen = []
    clock = Clock(1, tick=seen.append)
    clock.begin(0.5, 1.0)
    clock.report(0.0)
    clock.report(0.5)
    clock.report(1.0)
    assert seen == [0.5, 0.75, 1.0]


def test_the_time_of_a_piece_of_work_is_shared_among_its_rows():
    clock = Clock(3)
    with clock.shared(np.array([0, 2])):
        pass
    assert clock.seconds[0] == clock.seconds[2] > 0
    assert clock.seconds[1] == 0


def test_a_callable_gets_the_fraction_and_false_shows_nothing(capsys):
    seen = []
    with reporting(seen.append, "explaining") as tick:
        tick(0.3)
    with reporting(progress=False, description="explaining") as tick:
        tick(0.3)
    assert seen == [0.3]
    assert capsys.readouterr().err == ""


def test_true_shows_a_bar(capsys):
    with reporting(progress=True, description="explaining") as tick:
        tick(0.25)
        tick(1.0)
    assert "explaining" in capsys.readouterr().err


@pytest.mark.parametrize("n", [0, 4])
def test_work_for_no_rows_takes_no_time(n):
    clock = Clock(n)
    with clock.shared(np.array([], dtype=int)):
        pass
    assert not clock.seconds.any()
