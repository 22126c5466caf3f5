"""The benchmark of answers: what they are scored by, what is stored of them, and where a peer lies beside our front."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from cfproto_plugin import CounterfactualExplainer

FOLDERS = tuple(str(Path(__file__).parents[2] / "benchmarks" / name) for name in ("answers", "peers"))
NAMES = ("ask", "fronts", "ours", "picture", "score", "store", "tables", "targets", "method")


@pytest.fixture(autouse=True)
def bench(monkeypatch):
    """The scripts as modules, the way `python benchmarks/answers/judge.py` finds them."""
    for folder in reversed(FOLDERS):
        monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield type("Bench", (), {name: importlib.import_module(name) for name in NAMES})
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(FOLDERS):
            del sys.modules[name]


@pytest.fixture
def judged(bench):
    """Two clouds of points in thirds of a unit, a small forest, and four rows of either cloud."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    x = np.round((rng.normal(size=(120, 3)) + 4 * y[:, None]) * 3) / 3 * [1, 10, 100]
    model = RandomForestClassifier(10, random_state=0).fit(x, y)
    return bench.tables.Judged("clouds", "forest", model, x, y, np.concatenate([x[:4], x[-4:]]))


def other(judged, rows=8):
    """The first training row of the other class, as the answer to every row."""
    found = [judged.train[judged.given != own][0] for own in judged.own[:rows]]
    return [row.tolist() for row in found]


def test_printed_rows_have_the_digits_that_numpy_shows(bench):
    x = np.array([[1 / 3, 2.0, 0.01], [123456.789, 5.0, 0.25]])
    assert bench.score.printed(x)[0].tolist() == [0.33333333, 2.0, 0.01]
    assert np.allclose(bench.score.printed(x), x, rtol=1e-7)


def test_the_distance_is_measured_in_standard_deviations(bench, judged):
    scores = bench.score.Scorer(judged)(other(judged, 2))
    delta = np.abs(np.array(other(judged, 2)) - judged.rows[:2]) / judged.train.std(axis=0)
    assert scores["en"] == pytest.approx(0.1 * delta.sum(axis=1) + np.square(delta).sum(axis=1))
    assert scores["l0"] == (delta > 0).sum(axis=1).tolist()


def test_a_missing_answer_and_one_of_the_old_class_have_no_scores(bench, judged):
    cells = [None, judged.rows[1].tolist(), *other(judged)[2:]]
    scores = bench.score.Scorer(judged)(cells)
    assert scores["valid"] == [False, False] + [True] * 6
    assert all(scores[name][:2] == [None, None] and None not in scores[name][2:] for name in bench.score.FIELDS)


def test_survival_is_the_share_of_refits_that_give_the_claimed_class(bench, judged):
    class Always:
        def __init__(self, label):
            self.label = label

        def predict(self, x):
            return np.full(len(x), self.label)

    judged.__dict__["refits"] = [Always(1), Always(1), Always(0), Always(1)]
    survival = bench.score.Scorer(judged)(other(judged))["survival"]
    assert survival == [0.75 if own == 0 else 0.25 for own in judged.own]


def test_refits_differ_from_each_other_and_are_the_same_every_time(bench, judged):
    again = bench.tables.Judged(judged.data, judged.kind, judged.model, judged.train, judged.labels, judged.rows)
    first, second = ([model.predict_proba(judged.train) for model in each.refits] for each in (judged, again))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])


def test_a_point_far_from_its_class_is_an_outlier_and_its_centre_is_not(bench, judged):
    scorer = bench.score.Scorer(judged)
    centre = np.median(judged.train[judged.given == 1], axis=0)
    points = scorer.standardised(np.stack([centre, centre + 20 * judged.scale]))
    assert scorer.outliers(points, np.array([1, 1])).tolist() == [0, 1]


def test_typicality_is_what_the_library_reports(bench, judged):
    e = CounterfactualExplainer(judged.model).fit(judged.train).explain(judged.rows, progress=False)
    scores = bench.score.Scorer(judged)(e.counterfactual.tolist())
    assert scores["typicality"] == pytest.approx(e.typicality)


def test_a_value_that_is_not_printed_in_full_is_not_typed_back(bench, judged):
    class Exact:
        """Class 1 for exactly the cells of the answer."""

        def predict(self, x):
            return (x[:, 0] == 1 / 3).astype(int)

    judged = bench.tables.Judged("d", "k", Exact(), judged.train, judged.labels, np.zeros((2, 3)))
    judged.__dict__["refits"] = [Exact()]
    assert bench.score.Scorer(judged)([[1 / 3, 0, 0]])["typed"] == [0.0]


def test_our_answers_are_typed_back_from_changes_and_from_the_frame(bench, judged):
    record = bench.ours.answered(judged, "", {})
    assert record["typed"] == {"changes": [True] * 8, "frame": [True] * 8}
    assert all(cells is not None for cells in record["cells"])


def test_an_answer_of_many_digits_is_not_typed_back_from_the_frame(bench, judged):
    class Exact:
        """Class 1 for exactly one number."""

        def predict(self, x):
            return (x[:, 0] == 1 / 3).astype(int)

    e = CounterfactualExplainer(judged.model).fit(judged.train).explain(judged.rows[:2], progress=False)
    label = np.array([1, 1], dtype=object)
    e = replace(e, counterfactual=np.full((2, 3), 1 / 3), counterfactual_class=label)
    assert bench.ours.typed_back(Exact(), e) == {"changes": [True, True], "frame": [False, False]}


def test_scores_are_kept_until_the_answers_change(bench, judged, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.store, "OURS", tmp_path)
    monkeypatch.setattr(bench.store, "PEER_ANSWERS", tmp_path / "peers")
    made = []
    for cells in ([None], [None], other(judged)[:1]):
        bench.store.write_ours(judged, {"default": {"cells": cells}})
        bench.store.kept("clouds", "forest", lambda: made.append(1) or {"lines": [], "fronts": []})
    assert len(made) == 2


def test_answers_of_peers_are_stored_as_changed_cells_and_read_back_whole(bench, judged, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.store, "PEER_ANSWERS", tmp_path)
    cells = [None, *other(judged)[1:]]
    bench.store.write_peer(judged, "nice", {"NICE none": {"cells": cells}})
    assert bench.store.read_peer(judged, "nice")["NICE none"]["cells"] == cells


def test_stored_answers_to_another_model_are_refused(bench, judged, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.store, "PEER_ANSWERS", tmp_path)
    bench.store.write_peer(judged, "nice", {})
    model = RandomForestClassifier(10, random_state=0).fit(judged.train, 1 - judged.labels)
    changed = bench.tables.Judged("clouds", "forest", model, judged.train, judged.labels, judged.rows)
    with pytest.raises(RuntimeError, match="another model"):
        bench.store.read_peer(changed, "nice")


def test_a_row_on_which_a_peer_raises_has_no_answer_and_keeps_the_error(bench, judged):
    def prepare(case):
        def explain(row):
            if np.array_equal(row, case.rows[1]):
                raise ValueError("no way")
            return row

        return explain

    found = bench.ask.asked(bench.method.Method("x", prepare), judged, 2, 5)
    assert found["cells"][0] is not None
    assert found["cells"][1] is None
    assert found["errors"] == [None, "ValueError: no way"]


def score(distance, survival, rows=40):
    """Scores that vary from row to row in the same way for every tool."""
    wave = 1 + 0.1 * np.sin(np.arange(rows))
    return {"valid": [True] * rows, "en": (distance * wave).tolist(), "survival": (survival * wave).tolist()}


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (score(2, 0.9), "peer"),  # better than both of our settings at their distances
        (score(4, 0.5), "ours"),  # farther than our near setting, and worse
        (score(1, 0.5), "even"),  # the same as one of ours
        (score(20, 0.9), "peer"),  # better than any of ours at any distance
        (score(0.5, 0.1), "peer"),  # nearer than any of ours
    ],
)
def test_a_peer_is_judged_by_our_best_at_its_distance_and_our_nearest_at_its_quality(bench, peer, expected):
    ours = {"near": score(1, 0.5), "far": score(10, 0.8)}
    assert bench.fronts.verdict(peer, ours, "survival")["verdict"] == expected


def test_a_verdict_is_of_the_rows_that_the_peer_solved(bench):
    peer = score(2, 0.9)
    peer["valid"][:30], peer["en"][:30], peer["survival"][:30] = [False] * 30, [None] * 30, [None] * 30
    assert bench.fronts.verdict(peer, {"near": score(1, 0.5)}, "survival")["rows"] == 10


def test_the_front_leaves_out_settings_that_another_one_beats(bench):
    points = {"ours, a": [1, 0.2], "ours, b": [2, 0.1], "ours, c": [3, 0.9], "NICE none": [1, 1.0]}
    assert bench.picture.front_of(points, more_is_better=True) == [[1, 0.2], [3, 0.9]]
    assert bench.picture.front_of(points, more_is_better=False) == [[1, 0.2], [2, 0.1]]


def test_targets_say_which_cases_miss_them(bench):
    line = {"model": "forest", "tool": "ours, default", "columns": 9, "typed": 1.0, "changed": 3, "survival": 0.5}
    lines = [
        line | {"data": "sonar", "outliers": 0.1, "distance / NICE": 1.3, "both": 60},
        line | {"data": "a", "outliers": 0.2, "distance / NICE": 9, "both": 4},
    ]
    found = {(each["what"], each["data"]): each["met"] for each in bench.targets.judged(lines)}
    assert found["outliers of the claimed class, %", "sonar"]
    assert not found["outliers of the claimed class, %", "a"]
    assert not found["distance / NICE proximity's", "sonar"]
    assert not found["refitted models that agree, %", "sonar"]
    assert ("distance / NICE proximity's", "a") not in found
