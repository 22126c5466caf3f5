"""The live what-if in notebooks: a question of the browser is a row that the user's own model answers."""

import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.errors import InputError, MissingPackageError

pytestmark = pytest.mark.needs("anywidget")


def credit(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["cook", "nurse", "pilot"], n),
            "age": rng.integers(18, 80, n),
            "income": (3000 + 500 * rng.normal(size=n)).round(1),
            "member": rng.random(n) < 0.5,
        }
    )
    frame.loc[::9, "income"] = math.nan
    return frame


@pytest.fixture(scope="module")
def fitted():
    frame = credit()
    labels = np.where((frame.income.fillna(2500) > 3000) | (frame.job == "pilot"), "granted", "denied")
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingClassifier(random_state=0)).fit(frame, labels)
    return model, CounterfactualExplainer(model).fit(frame), frame


def ask(widget, number=7, **values):
    """Send the values as they are in the row, but for these features; a choice by its text."""
    sent = []
    for control in widget.controls:
        value = values.get(control["name"], control["before"])
        sent.append(control["choices"].index(value) if isinstance(value, str) else value)
    widget.asked = {"number": number, "values": sent}
    return widget.result


def test_it_begins_at_the_counterfactual_and_offers_the_changed_features(fitted):
    _, explainer, frame = fitted
    e = explainer.explain(frame[:8], target="granted")
    at = int(np.flatnonzero(e.n_changes)[0])
    widget = e.what_if(at)
    assert {control["name"] for control in widget.controls} == {change.feature for change in e[at].changes()}
    assert widget.about["to"] == "granted"
    assert widget.result["label"] == "granted"
    assert widget.result["proba"] == pytest.approx(e.new_class_proba[1][at])
    assert widget.about["before"] == pytest.approx(e.new_class_proba[0][at])


def test_a_question_is_answered_by_the_model_itself(fitted):
    model, explainer, frame = fitted
    row = frame[frame.job == "cook"][:1]
    widget = explainer.explain(row).what_if(features="all")
    assert {control["name"] for control in widget.controls} == set(frame.columns)
    new = list(model.classes_).index(widget.about["to"])
    for values in ({"income": 4100.5}, {"job": "pilot"}, {"age": 20, "member": "True"}, {"income": 2000.0, "age": 70}):
        answer = ask(widget, **values)
        changed = row.copy()
        for name, value in values.items():
            changed[name] = value == "True" if name == "member" else value
        assert answer["error"] == ""
        assert answer["number"] == 7
        assert answer["label"] == model.predict(changed)[0]
        assert answer["proba"] == pytest.approx(model.predict_proba(changed)[0, new])
        assert answer["other"] == (answer["label"] != model.predict(row)[0])


def test_ranges_and_choices_are_those_of_the_training_data(fitted):
    _, explainer, frame = fitted
    controls = {control["name"]: control for control in explainer.what_if(frame[3:4], features="all").controls}
    assert (controls["age"]["low"], controls["age"]["high"], controls["age"]["whole"]) == (18, frame.age.max(), True)
    assert controls["income"]["step"] == 50
    assert 0 <= frame.income.max() - controls["income"]["high"] < 50
    assert 0 <= controls["income"]["low"] - frame.income.min() < 50
    assert not controls["income"]["whole"]
    assert controls["job"]["choices"] == ["cook", "nurse", "pilot"]
    assert controls["member"]["choices"] == ["False", "True"]


def test_a_missing_number_stays_missing_until_it_is_moved(fitted):
    model, explainer, frame = fitted
    row = frame[9:10]
    assert row.income.isna().all()
    widget = explainer.explain(row).what_if(features=["income"])
    control = next(control for control in widget.controls if control["name"] == "income")
    assert control["before"] is None
    assert ask(widget)["label"] == model.predict(row)[0]
    assert ask(widget, income=3300.0)["label"] == model.predict(row.assign(income=3300.0))[0]


def test_rows_of_another_kind_of_frame_and_of_arrays_are_asked_too(fitted):
    model, explainer, frame = fitted
    row = frame[2:3]
    widget = explainer.explain(pl.from_pandas(row)).what_if(features="all")
    assert ask(widget, income=3999.0)["label"] == model.predict(row.assign(income=3999.0))[0]
    x = frame[["age", "income"]].fillna(0).to_numpy()
    forest = RandomForestClassifier(10, random_state=0).fit(x, x[:, 1] > 3000)
    widget = CounterfactualExplainer(forest).fit(x).what_if(x[0], features="all")
    moved = np.array([[30.0, 2500.0]])
    assert ask(widget, x0=30, x1=2500.0)["label"] == str(forest.predict(moved)[0])


def test_integers_that_no_browser_holds_come_back_exactly():
    big = 2**53 + 1
    frame = pd.DataFrame({"id": np.arange(200) + big, "x": np.linspace(-1, 1, 200)})
    seen = []

    def says(rows):
        seen.append(rows["id"].iloc[0])
        p = 1 / (1 + np.exp(-5 * rows["x"].to_numpy()))
        return np.column_stack([1 - p, p])

    widget = CounterfactualExplainer(says).fit(frame).what_if(frame[:1], features="all")
    seen.clear()
    values = {control["name"]: control["before"] for control in widget.controls}
    assert ask(widget, **{**values, "id": float(values["id"])})["error"] == ""
    assert big in seen


def test_a_one_hot_group_is_one_list():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 3, 200)
    x = np.column_stack([np.eye(3)[colour], rng.normal(size=200)])
    forest = RandomForestClassifier(20, random_state=0).fit(x, colour == 2)
    explainer = CounterfactualExplainer(forest, features=Features(one_hot={"colour": (0, 1, 2)})).fit(x)
    row = x[colour == 0][:1]
    widget = explainer.explain(row).what_if(features="all")
    group = next(control for control in widget.controls if control["name"] == "colour")
    assert group["choices"] == ["x0", "x1", "x2"]
    assert group["before"] == 0
    assert ask(widget, colour="x2")["label"] == str(forest.predict(np.array([[0, 0, 1, row[0, 3]]]))[0])


@pytest.mark.parametrize("values", [["x"], [99], [True], [], "no", [math.inf], None])
def test_a_question_that_makes_no_row_is_answered_with_an_error(fitted, values):
    _, explainer, frame = fitted
    widget = explainer.explain(frame[:1]).what_if(features=["job"])
    widget.asked = {"number": 3, "values": values}
    assert widget.result["number"] == 3
    assert "expected" in widget.result["error"]


def test_an_error_of_the_model_is_shown_and_the_next_question_answered():
    x = np.random.default_rng(0).normal(size=(200, 2))
    asked = []

    def fails_above_one(rows):
        asked.append(len(rows))
        if len(asked) > 1000:
            raise RuntimeError("out of credit")
        p = 1 / (1 + np.exp(-4 * rows[:, 0]))
        return np.column_stack([1 - p, p])

    widget = CounterfactualExplainer(fails_above_one).fit(x).what_if(x[0], features="all")
    asked.extend([0] * 1000)
    assert "out of credit" in ask(widget, x0=0.5)["error"]
    asked.clear()
    assert ask(widget, number=8, x0=0.5)["error"] == ""


@pytest.mark.parametrize(
    "values", [["missing", None, "x"], ["x 00:00:00", "x", "y"], ["'missing'", "missing", None], [None, math.nan, "x"]]
)
def test_values_that_read_alike_stay_apart(values):
    rng = np.random.default_rng(2)
    cells = np.array(values, dtype=object)[rng.integers(0, 3, 300)]
    frame = pd.DataFrame({"t": pd.Series(cells, dtype=object), "u": rng.normal(size=300)})

    def model(rows):
        first = np.array([cell is None if values[0] is None else cell == values[0] for cell in rows.t])
        q = 1 / (1 + np.exp(1.5 - 3 * first - 0.3 * rows.u.to_numpy(float)))
        return np.column_stack([1 - q, q])

    e = CounterfactualExplainer(model, features=Features(immutable=["u"])).fit(frame).explain(frame[:40])
    for at in np.flatnonzero(e.n_changes):
        widget = e.what_if(int(at))
        (control,) = widget.controls
        assert len(set(control["choices"])) == 3
        for side, proba in (("before", e.original_proba), ("after", e.counterfactual_proba)):
            widget.asked = {"number": 1, "values": [control[side]]}
            place = list(e.classes).index(e.counterfactual_class[at])
            assert widget.result["proba"] == pytest.approx(proba[at, place])


def test_what_cannot_be_shown_says_why(fitted):
    _, explainer, frame = fitted
    e = explainer.explain(frame[:3])
    with pytest.raises(InputError, match=r"features names 'wage'; expected 'all' or names among 'job', 'age'"):
        e.what_if(features=["wage"])
    with pytest.raises(InputError, match="features is 3; expected 'all' or a list of names"):
        e.what_if(features=3)
    with pytest.raises(InputError, match="which are 2 lines; expected the number of one"):
        e.what_if(slice(0, 2))
    with pytest.raises(InputError, match=r"x has 3 rows; expected one"):
        explainer.what_if(frame[:3])
    with pytest.raises(InputError, match="with_explainer"):
        Explanation.from_json(e.to_json()).what_if()
    images = np.random.default_rng(0).random((40, 4, 4))
    pictures = CounterfactualExplainer(lambda x: np.column_stack([x.mean((1, 2)), 1 - x.mean((1, 2))])).fit(images)
    with pytest.raises(InputError, match="an image has no features"):
        pictures.what_if(images[0])


def test_without_anywidget_the_command_that_installs_it_is_named(fitted, monkeypatch):
    from cfproto_plugin.integrations.notebook import widget

    _, explainer, frame = fitted
    monkeypatch.setitem(sys.modules, "anywidget", None)
    widget._widget_class.cache_clear()
    with pytest.raises(MissingPackageError, match=r"pip install 'cfproto-plugin\[notebook\]'"):
        explainer.what_if(frame[:1])


def test_dates_have_a_range_of_days_and_come_back_as_dates():
    rng = np.random.default_rng(3)
    days = rng.integers(0, 2000, 200)
    frame = pd.DataFrame({"since": pd.Timestamp("2018-03-01 12:00") + pd.to_timedelta(days, unit="D")})
    frame["income"] = rng.integers(1000, 5000, 200)

    def predict(rows):
        late = (pd.to_datetime(rows["since"]) > pd.Timestamp("2020-06-01")).to_numpy(dtype=float)
        return np.column_stack([late, 1 - late])

    row = frame[frame.since > "2021-01-01"][:1]
    widget = CounterfactualExplainer(predict).fit(frame).explain(row).what_if(features="all")
    control = next(control for control in widget.controls if control["name"] == "since")
    assert control["kind"] == "date"
    first = (frame.since.min() - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    assert control["low"] == math.floor(first)
    assert widget.result["label"] == "1"
    assert ask(widget)["label"] == "0"
    early = (pd.Timestamp("2019-01-01") - pd.Timestamp("1970-01-01")).days
    assert ask(widget, since=early)["label"] == "1"
    assert "expected a number of days" in ask(widget, since=True)["error"]
