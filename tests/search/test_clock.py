"""Deadline, progress, and the time of every row."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import numpy as np
import pytest

from cfproto_plugin.search import clock as clock_module
from cfproto_plugin.search.clock import Clock, Done, reporting


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
        tick(Done(0.25, 4, 1, 2))
        tick(Done(1.0, 4, 4, 4))
    assert "explaining" in capsys.readouterr().err


@pytest.mark.parametrize("n", [0, 4])
def test_work_for_no_rows_takes_no_time(n):
    clock = Clock(n)
    with clock.shared(np.array([], dtype=int)):
        pass
    assert not clock.seconds.any()


def test_what_is_done_is_a_fraction_that_counts_rows():
    done = Done(0.5, rows=40, done=20, found=38)
    assert done == 0.5
    assert (done.rows, done.done, done.found) == (40, 20, 38)
    assert str(done) == "40 rows, 38 found, 20 done"
    assert str(Done(1, 1, 1, 0)) == "1 row, 0 found, 1 done"


def test_the_bar_shows_rows_found_and_done(capsys):
    with reporting(progress=True, description="explaining") as tick:
        tick(Done(0.5, 1200, 600, 1100))
    assert "explaining 1,200 rows, 1,100 found, 600 done" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO, False), (Terminal, True), (lambda: None, False)])
def test_the_bar_of_long_work_is_for_terminals_and_not_for_pipes(monkeypatch, stream, shown):
    monkeypatch.setattr(clock_module, "_DELAY", 0)
    err = stream()
    monkeypatch.setattr("sys.stderr", err)
    with reporting(None, "explaining") as tick:
        tick(Done(0.5, 4, 2, 3))
    assert (err is not None and "3 found" in err.getvalue()) == shown


def test_short_work_shows_no_bar_on_a_terminal(monkeypatch):
    err = Terminal()
    monkeypatch.setattr("sys.stderr", err)
    with reporting(None, "explaining") as tick:
        tick(Done(1.0, 4, 4, 4))
    assert "found" not in err.getvalue()


def test_a_notebook_without_ipywidgets_shows_a_bar_and_warns_of_nothing():
    program = """
import sys, types, warnings
warnings.simplefilter("error")
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell, display=None, version_info=(9,))
sys.modules["ipywidgets"] = None
from cfproto_plugin.search import clock
clock._DELAY = 0
with clock.reporting(None, "explaining") as tick:
    tick(clock.Done(0.5, 4, 2, 3))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "4 rows, 3 found, 2 done" in ran.stderr
    assert "Warning" not in ran.stderr
