"""The report as a file: what is in it, what it costs, and that nothing in it is read as anything but text."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from hostile_texts import HOSTILE
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import InputError, WriteError
from cfproto_plugin.explanation import Change
from cfproto_plugin.report.ranking import direction
from cfproto_plugin.report.texts import as_data, hash_of

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(html):
    (text,) = DATA.findall(html)
    return json.loads(text)


class Counting:
    """A model as a function that counts the rows it is asked about."""

    def __init__(self, model):
        self.model, self.rows = model, 0

    def __call__(self, x):
        self.rows += len(x)
        return self.model.predict_proba(x)


@pytest.fixture(scope="module")
def wine():
    x, y = load_wine(return_X_y=True)
    model = Counting(RandomForestClassifier(20, random_state=0).fit(x, y))
    return model, CounterfactualExplainer(model, search=SearchConfig(max_changes=6)).fit(x), x


@pytest.fixture(scope="module")
def answers(wine):
    _, explainer, x = wine
    return explainer.explain(x[::20])


def masked(e, at, features, mask):
    row = e.original[[at]].copy()
    for bit, name in enumerate(features):
        if mask >> bit & 1:
            row[0, int(name[1:])] = e.counterfactual[at, int(name[1:])]
    return row


def test_every_combination_of_changes_is_stored_as_the_model_says(wine, answers):
    model, _, _ = wine
    lines = data_of(answers.to_html())["lines"]
    for at, line in enumerate(lines):
        stored, new = line["what_if"], int(line["to"])
        switches = {number: c["feature"] for number, c in zip(stored["switches"], line["changes"], strict=True)}
        features = [switches[number] for number in sorted(switches)]
        rows = np.concatenate([masked(answers, at, features, mask) for mask in range(2 ** len(features))])
        proba = model.model.predict_proba(rows)
        assert stored["kind"] == "subsets"
        assert np.allclose(stored["proba"], proba[:, new], atol=1e-6)
        assert stored["class"] == proba.argmax(axis=1).tolist()


def test_what_it_costs_is_what_it_says(wine, answers):
    model, _, _ = wine
    model.rows = 0
    html = answers.to_html()
    combinations = sum(2 ** int(k) - 2 for k in answers.n_changes)
    assert f"{combinations:,} rows predicted" in html
    check = len(answers.source.fitted.fingerprint.rows)  # whether it is still the model of fit
    assert check < model.rows <= combinations + check
    model.rows = 0
    assert "rows predicted)" not in answers.to_html(what_if=False)
    assert model.rows == 0
    answers.to_html(what_if=1)
    assert model.rows <= 2 ** int(answers.n_changes[0]) + check


def test_of_more_than_eight_changes_each_is_undone_by_itself():
    x, y = load_wine(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    model = LogisticRegression().fit(x, y)
    e = CounterfactualExplainer(model, search=SearchConfig.close(few_changes=0.0)).fit(x).explain(x[:4])
    at = int(np.flatnonzero(e.n_changes > 8)[0])
    line = data_of(e.to_html())["lines"][at]
    assert line["what_if"]["kind"] == "single"
    for number, change in zip(line["what_if"]["switches"], line["changes"], strict=True):
        row = e.counterfactual[[at]].copy()
        place = int(change["feature"][1:])
        row[0, place] = e.original[at, place]
        assert line["what_if"]["proba"][number] == pytest.approx(model.predict_proba(row)[0, int(line["to"])], abs=1e-6)


def test_the_columns_of_a_one_hot_group_have_one_switch():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 3, 200)
    x = np.column_stack([np.eye(3)[colour], rng.normal(size=200)])
    model = RandomForestClassifier(20, random_state=0).fit(x, colour == 2)
    explainer = CounterfactualExplainer(model, features=Features(one_hot={"colour": (0, 1, 2)})).fit(x)
    e = explainer.explain(x[colour == 0][:3])
    for at, line in enumerate(data_of(e.to_html())["lines"]):
        assert {change["feature"] for change in line["changes"]} == {"x0", "x2"}
        assert line["what_if"]["switches"] == [0, 0]
        before, after = (proba[at] for proba in e.new_class_proba)
        assert line["what_if"]["proba"] == pytest.approx([before, after], abs=1e-6)


def test_the_class_is_the_decision_of_a_model_with_a_threshold_of_its_own():
    x = np.random.default_rng(0).normal(size=(300, 3))
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(x, x.sum(axis=1) > 0)
    e = CounterfactualExplainer(model).fit(x).explain(x[model.predict(x) == 0][:3], target=True)
    assert (e.n_changes > 1).any()
    for line in data_of(e.to_html())["lines"]:
        stored = line["what_if"]
        assert stored["class"] == [int(proba >= 0.9) for proba in stored["proba"]]


def test_a_model_that_does_not_answer_some_combination_is_no_reason_to_have_no_report():
    x = np.random.default_rng(0).normal(size=(300, 2))
    known = []

    def picky(rows):
        if known and not all(any(np.array_equal(row, one) for one in known) for row in rows):
            raise ValueError("never seen <b>this</b>")
        p = 1 / (1 + np.exp(-3 * rows.sum(axis=1)))
        return np.column_stack([1 - p, p])

    e = (
        CounterfactualExplainer(picky, search=SearchConfig.close(few_changes=0.0))
        .fit(x)
        .explain(x[x.sum(axis=1) < -1][:2])
    )
    assert (e.n_changes == 2).all()
    known.extend([*e.original, *e.counterfactual, *e.source.fitted.fingerprint.rows])
    for line in data_of(e.to_html())["lines"]:
        assert line["what_if"]["kind"] == "none"
        assert "never seen <b>this</b>" in line["what_if"]["why"]


def test_a_limit_says_where_it_ends(answers):
    lines = data_of(answers.to_html(what_if=3))["lines"]
    assert [line["what_if"]["kind"] for line in lines] == ["subsets"] * 3 + ["none"] * (len(lines) - 3)
    assert "first 3 rows only" in lines[3]["what_if"]["why"]
    assert all(line["what_if"]["kind"] == "subsets" for line in data_of(answers.to_html(what_if=True))["lines"])


@pytest.mark.parametrize("what_if", [-1, 2.5, "all", None])
def test_another_limit_is_refused(answers, what_if):
    with pytest.raises(InputError, match=r"what_if is .*; expected True, False, or the largest number of lines"):
        answers.to_html(what_if=what_if)


@pytest.mark.parametrize("name", ["no such folder/r.html", ".", "a\0b"])
def test_a_report_that_cannot_be_written_says_why(answers, tmp_path, name):
    with pytest.raises(WriteError, match=r"cannot be written \(.+\); expected the name of a file in a folder that is"):
        answers.to_html(tmp_path / name, what_if=False)


def test_a_report_needs_a_name(answers):
    with pytest.raises(InputError, match=r"path is empty; expected the name of a file such as 'report.html'"):
        answers.to_html("")


def test_without_a_model_the_report_is_written_without_what_if(answers, tmp_path):
    path = Explanation.from_json(answers.to_json()).to_html(tmp_path / "r.html")
    html = path.read_text(encoding="utf-8")
    assert all(line["what_if"] is None for line in data_of(html)["lines"])
    assert "written without the model" in html


def test_to_html_returns_the_path_or_the_text(answers, tmp_path):
    path = answers.to_html(tmp_path / "r.html", title="Wines")
    assert path == tmp_path / "r.html"
    assert path.read_text(encoding="utf-8") == answers.to_html(title="Wines")
    assert "<title>Wines</title>" in answers.to_html(title="Wines")


def test_the_report_is_the_same_each_time(answers):
    assert answers.to_html() == answers.to_html()


def test_several_answers_of_a_row_are_called_answers(wine):
    _, explainer, x = wine
    e = explainer.explain(x[:2], n=2)
    data = data_of(e.to_html())
    assert data["noun"] == "answer"
    assert [line["name"] for line in data["lines"]] == [f"Row {row}, answer {k}" for row in (0, 1) for k in (1, 2)]
    assert [len(line["changes"]) for line in data["lines"]] == e.n_changes.tolist()


def test_images_have_pictures_and_no_switches():
    x = np.random.default_rng(0).random((60, 4, 4))
    explainer = CounterfactualExplainer(lambda x: np.column_stack([x.mean((1, 2)), 1 - x.mean((1, 2))])).fit(x)
    html = explainer.explain(x[:1]).to_html()
    assert "The pictures of a card" in html
    assert "The switches of a card" not in html
    line = data_of(html)["lines"][0]
    assert [caption.partition(":")[0] for caption, _ in line["figures"]] == ["original", "counterfactual", "difference"]
    assert line["what_if"] is None
    assert line["changes"] == []


def test_the_policy_allows_exactly_the_script_and_the_style_of_the_page(answers):
    html = answers.to_html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    (script,), (style,) = (re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL) for tag in ("script", "style"))

    def sha(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy.startswith("default-src 'none'; ")
    assert f"script-src {sha(script)};" in policy
    assert f"style-src {sha(style)};" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert hash_of(script) == sha(script)


def test_nothing_in_the_page_loads_from_outside(answers):
    html = answers.to_html()
    assert not re.search(r"https?:|url\(|@import|\bsrc=|<link|<iframe", DATA.sub("", html))
    for name in ("dom.js", "card.js", "switches.js", "cohort.js", "report.js"):
        script = files("cfproto_plugin.report").joinpath("assets", name).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|fetch\(", script
        )


@pytest.mark.parametrize("text", [*HOSTILE, "\x00\x1f", "\u2028", "&amp;"])
def test_data_cannot_end_its_element_and_comes_back_as_it_was(text):
    data = as_data({text: [text]})
    assert json.loads(data) == {text: [text]}
    assert data.isascii()
    assert not set(data) & set("<>&")
    assert data.isprintable()


def test_halves_of_surrogate_pairs_do_not_stop_a_report(answers, tmp_path):
    e = replace(answers, feature_names=tuple(f"half \ud800 {j}" for j in range(answers.original.shape[1])))
    path = e.to_html(tmp_path / "r.html", title="half \ud800")
    assert data_of(path.read_text(encoding="utf-8"))["columns"][0] == "half \ud800 0"


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (1, 2, "higher"),
        (2.5, -1.0, "lower"),
        (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC), "later"),
        (pd.Timestamp("2021-01-01"), pd.Timestamp("2020-01-01"), "earlier"),
        ("a", "b", "different"),
        (False, True, "different"),
        (None, 3.0, "filled in"),
        (3.0, float("nan"), "emptied"),
    ],
)
def test_the_direction_of_a_change_has_a_word(before, after, word):
    assert direction(Change(0, "x", before, after)) == word


def test_bad_rows_and_rows_without_an_answer_are_listed_with_their_reason(answers):
    status = np.array(["error", "not_found", *answers.status[2:]], dtype=object)
    message = np.array(["row 0 holds <b>", "no such point", *answers.message[2:]], dtype=object)
    original = np.array([None, *answers.original_class[1:].tolist()], dtype=object)
    new = np.array([None, None, *answers.counterfactual_class[2:].tolist()], dtype=object)
    e = replace(answers, status=status, message=message, original_class=original, counterfactual_class=new)
    html = e.to_html()
    first, second, *_ = data_of(html)["lines"]
    assert first["classes"] == "not explained"
    assert first["said"] == "This row was not explained: row 0 holds <b>."
    assert "no such point" in second["said"]
    assert second["to"] is second["after"] is second["what_if"] is None
    assert "“error”" in html
    assert "“infeasible”" not in html
