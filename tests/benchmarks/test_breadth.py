"""The comparison on many tables: what ranks mean, and what counts where a tool has no answer."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDERS = tuple(str(Path(__file__).parents[2] / "benchmarks" / name) for name in ("breadth", "answers", "peers"))
NAMES = ("ranks", "matrices", "collect", "measure", "verdicts", "claims", "asking", "method", "worker")


@pytest.fixture(autouse=True)
def bench(monkeypatch):
    """The scripts as modules, the way `python benchmarks/breadth/breadth.py` finds them."""
    for folder in reversed(FOLDERS):
        monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield type("Bench", (), {name: importlib.import_module(name) for name in NAMES})
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(FOLDERS):
            del sys.modules[name]


def test_a_row_without_an_answer_counts_as_the_worst_answer_of_any_tool(bench):
    values = {"a": [1.0, None, None], "b": [2.0, 5.0, None], "c": [3.0, 4.0, None]}
    assert bench.ranks.filled(values, more_is_better=False)[:, :2].tolist() == [[1, 5], [2, 5], [3, 4]]
    assert bench.ranks.filled(values, more_is_better=True)[0, :2].tolist() == [1, 4]


def test_equal_values_share_the_mean_of_their_ranks(bench):
    values = {"a": [2.0], "b": [1.0], "c": [1.0 + 1e-12]}
    assert bench.ranks.ranks(values, more_is_better=False).tolist() == [3, 1.5, 1.5]
    assert bench.ranks.ranks(values, more_is_better=True).tolist() == [1, 2.5, 2.5]


def test_a_tool_that_was_cut_off_is_compared_on_the_rows_it_was_asked(bench):
    values = {"whole": [2.0, 9.0, 9.0], "cut": [3.0], "late": [3.0, np.nan, np.nan], "other": [1.0, 1.0, 1.0]}
    assert bench.ranks.ranks(values, more_is_better=False).tolist() == [2, 3.5, 3.5, 1]


def test_without_a_cut_the_ranks_are_the_usual_ones(bench):
    from scipy.stats import rankdata

    table = np.random.default_rng(0).normal(size=(6, 20))
    values = {str(at): row.tolist() for at, row in enumerate(table)}
    assert bench.ranks.ranks(values, more_is_better=False).tolist() == rankdata(table.mean(axis=1)).tolist()


def test_the_critical_difference_is_that_of_the_tables_of_nemenyi(bench):
    """q = 2.343 for three tools and 2.728 for five (Demsar 2006, table 5)."""
    assert bench.ranks.critical_difference(3, 10) == pytest.approx(2.343 * np.sqrt(3 * 4 / 60), rel=1e-3)
    assert bench.ranks.critical_difference(5, 14) == pytest.approx(2.728 * np.sqrt(5 * 6 / 84), rel=1e-3)


def test_models_of_one_table_are_counted_as_one(bench):
    by_case = {(data, model): np.array([1.0, 2.0, 3.0]) for data in "abcd" for model in ("x", "y")}
    found = bench.ranks.averaged(by_case)
    assert found["ranks"] == [1, 2, 3]
    assert (found["tables"], found["cases"]) == (4, 8)
    assert found["difference"] == bench.ranks.critical_difference(3, 4)


def scores(values, times=None):
    """Scores of one tool; None where it has no answer."""
    found = dict.fromkeys(("en", "l1", "l0", "nn5", "im1", "survival"), values)
    found |= {"cpu": times or [], "fifty": times or []}
    return found | {"valid": [value is not None for value in values], "late": [], "errors": []}


def test_a_group_has_ranks_by_measure(bench):
    group = bench.collect.Group("g", ("near", "cut"))
    cells = {("t", "forest"): {"near": scores([1.0, 1.0, 9.0]), "cut": scores([2.0, 2.0])}}
    found = bench.collect.ranked(group, cells)
    assert found["measures"]["en"]["ranks"] == [1, 2]
    assert found["measures"]["survival"]["ranks"] == [2, 1]


def test_a_case_belongs_to_a_group_if_all_its_tools_were_asked(bench):
    group = bench.collect.Group("g", ("a", "b"), two_classes=True)
    case = {"data": "t", "model": "mlp", "classes": 2, "texts": 0}
    assert group.has(case, ("a", "b", "c"))
    assert not group.has(case, ("a", "c"))
    assert not group.has(case | {"classes": 3}, ("a", "b"))


def test_a_table_becomes_numbers_whatever_its_columns_are(bench, tmp_path, monkeypatch):
    import pandas as pd

    size = 180
    frame = pd.DataFrame(
        {
            "number": [None if at % 9 == 0 else at for at in range(size)],
            "text": [None if at % 7 == 0 else "b" if at % 2 else "a" for at in range(size)],
            "empty": [None] * size,
            "target": ["yes" if at % 3 else "no" for at in range(size)],
        }
    )
    frame.to_csv(tmp_path / "mine.csv.gz", index=False)
    monkeypatch.setattr(bench.matrices, "FOLDER", tmp_path)
    train, rows, labels, texts = bench.matrices.split("mine")
    assert (len(rows), texts) == (50, 1)
    assert not np.isnan(train).any()
    assert np.allclose(train.mean(axis=0), 0)
    assert set(labels) == {0, 1}
    assert len(np.unique(train[:, 1])) == 3  # two texts and missing


def line(values, **more):
    return {"valid": [value is not None for value in values], "en": values, "cpu": values, "survival": values} | more


def test_two_tools_are_compared_on_the_rows_that_both_solved(bench):
    ours, peer = line([1.0, 2.0, 3.0, 50.0]), line([2.0, None, 5.0])
    found = bench.claims.compared(ours, peer, "en")
    assert (found["n"], found["ours"], found["peer"]) == (2, 2.0, 3.5)
    assert found["difference"][0] == -1.5
    assert found["verdict"] == "ours"
    assert bench.claims.compared(ours, peer, "survival")["verdict"] == "peer"


def test_times_are_compared_by_their_ratio(bench):
    found = bench.claims.compared(line([1.0, 2.0]), line([4.0, 8.0]), "cpu")
    assert found["difference"] == pytest.approx([0.25, 0.25, 0.25])


def test_a_method_begins_no_row_after_its_time_is_up(bench):
    def busy(row):
        while busy.left:
            busy.left -= 1
        busy.left = 3_000_000
        return row

    busy.left = 3_000_000
    case = type("Case", (), {"rows": np.zeros((50, 2))})
    found = bench.asking.asked(bench.method.Method("slow", lambda case: busy), case, 50, 20, in_all=0.2)
    assert 0 < len(found["cells"]) < 50
    assert len(found["cpu"]) == len(found["cells"])


@pytest.mark.parametrize("alone", [None, 10])
def test_a_method_with_batches_is_asked_row_by_row_and_then_timed_in_one_call(bench, alone):
    class Case:
        rows = many = np.arange(100.0).reshape(50, 2)

    def doubled(rows):
        doubled.sizes.append(len(np.atleast_2d(rows)))
        return 2 * rows + (np.arange(len(rows)) == 7)[:, None] if rows.ndim > 1 else 2 * rows

    doubled.sizes = []
    method = bench.method.Method("quick", lambda case: doubled, batch=lambda case: doubled)
    found = bench.worker.cell(method, Case(), {"row_seconds": 20, "cell_seconds": 60, "alone": alone})
    assert doubled.sizes == [*[1] * (alone or 50), 2, 50]
    assert len(found["cells"]) == 50
    assert found["cells"][7] == [29, 31] if alone else [28, 30]
    assert found["same"] == (alone or 50) - 1
    assert bench.measure.in_fifty(found) == [found["batch_ms"]] * 50


def test_the_time_in_a_call_of_fifty_is_that_of_a_row_alone_for_a_tool_without_such_calls(bench):
    record = {"cells": [None, None], "cpu": [9.0, 2.0]}
    assert bench.measure.in_fifty(record) == [9.0, 2.0]
    assert bench.collect.value(bench.measure.in_fifty(record), "fifty") == 2.0  # the first is not counted


def test_the_default_is_set_beside_a_tool_on_the_rows_that_both_solved(bench):
    default, cut = scores([0.5, 0.7, 0.9]), scores([1.0, None])
    assert bench.collect.beside(default, cut) == [1, 0.5, 1.0]
    assert bench.collect.beside(default, scores([None])) is None


def test_a_verdict_has_a_line_for_a_row_alone_and_one_for_a_call_of_fifty(bench):
    kinds = ("xgboost", "mlp", "forest")
    lines = [
        {"data": "t", "model": kind, "method": name, "cpu": alone, "fifty": fifty}
        for kind in kinds
        for name, alone, fifty in (("ours, close", 9.0, 3.0), ("NICE proximity", 5.0, 5.0))
    ]
    found = [bench.verdicts._faster(lines, "ours, close", "NICE proximity", time) for time in ("cpu", "fifty")]
    assert [each["met"] for each in found] == [False, True]
    assert "3 against 5 ms; less in 3 of 3" in found[1]["measured"]
