"""What is printed is what is returned, on the grid of its column; typed back it has the class it claims."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.cli.show import as_lines
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.report import as_html, as_text

CHANGE = re.compile(r"^ *(?:\d+(?: \(\d+\))?  .*?  [>\d]+ %  )?(\S.*?) +(\S+)  -> +(\S+)(?:  only for .*)?$")
CELLS = re.compile(r'<td>([^<]*)</td><td>([^<]*)</td><td class="after">([^<]*)</td>')


def models():
    yield "forest", lambda: RandomForestClassifier(50, random_state=0)
    yield "logistic", lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    yield "xgboost", xgboost


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=50, max_depth=4, random_state=0)


def data(load, rows=60):
    frame = load(as_frame=True)
    train, test, labels, _ = train_test_split(
        frame.data, frame.target, test_size=rows, random_state=0, stratify=frame.target
    )
    return train, test, labels


def typed(row, changes):
    """The row with the texts of changes (name, before, after) typed into its cells."""
    row = row.astype(float)
    for name, before, after in changes:
        assert row.loc[row.index[0], name] == float(before)
        row[name] = float(after)
    return row


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize(("name", "make"), list(models()))
def test_the_printed_values_typed_into_the_model_have_the_class_they_claim(load, name, make):
    train, test, labels = data(load)
    model = make().fit(train, labels)
    config = SearchConfig(max_changes=20)  # so many are printed in full
    e = CounterfactualExplainer(model, search=config).fit(train).explain(test)
    assert e.found.all()
    for i in range(len(e)):
        texts = (as_text(e[i], 300), "\n".join(as_lines(e[i])[1:]))
        printed = [[m.groups() for m in map(CHANGE.match, text.splitlines()) if m] for text in texts]
        printed.append(CELLS.findall(as_html(e[i])))
        for changes in printed:
            assert len(changes) == e.n_changes[i]
            row = typed(test.iloc[[i]], changes)
            assert model.predict(row)[0] == e.counterfactual_class[i]
            pd.testing.assert_frame_equal(row, e.counterfactual.iloc[[i]], check_exact=True)


def decimals(value):
    text = f"{value:.17f}" if "e" in repr(float(value)) else repr(float(value))
    return len(text.rstrip("0").partition(".")[2])


def steps_and_noise(n=300):
    """Columns of 0, 1 and 3 decimals, a rounded one with a few exceptions, and one of computed numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=n) for name in "abcde"})
    frame["a"], frame["b"], frame["c"] = (100 * frame.a).round(0), (10 * frame.b).round(1), frame.c.round(3)
    frame["d"] = frame.d.round(2)
    frame.loc[:1, "d"] = [0.123456789, 0.2345678901]
    return frame, (frame.a / 100 + frame.b / 10 + frame.c + frame.d + frame.e > 0).astype(int)


@pytest.mark.parametrize(("name", "make"), list(models()))
def test_changed_values_have_no_more_decimals_than_the_training_data(name, make):
    frame, labels = steps_and_noise()
    model = make().fit(frame, labels)
    e = CounterfactualExplainer(model).fit(frame).explain(frame[:30])
    assert e.found.all(), name
    most = {"a": 0, "b": 1, "c": 3, "d": 2}
    for change in e.changes():
        if change.feature in most:
            assert decimals(change.after) <= most[change.feature], change
        else:
            assert len(repr(change.after)) < 12, change  # of a column of computed numbers: short, if not on a grid
    assert (model.predict(e.counterfactual) == e.counterfactual_class).all()


def test_values_that_did_not_change_keep_all_their_digits():
    frame, labels = steps_and_noise()
    model = RandomForestClassifier(20, random_state=0).fit(frame, labels)
    e = CounterfactualExplainer(model, features=Features(immutable="d")).fit(frame).explain(frame[:2])
    assert e.counterfactual.d.tolist() == [0.123456789, 0.2345678901]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_narrow_floats_are_read_in_their_own_dtype(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).round(2).astype(dtype)
    model = LogisticRegression().fit(x, x.sum(axis=1) > 0)
    e = CounterfactualExplainer(model).fit(x).explain(x[:20])
    assert e.counterfactual.dtype == dtype
    assert max(decimals(change.after) for change in e.changes()) <= 2
    assert (model.predict(e.counterfactual) == e.counterfactual_class).all()


def test_decimals_can_be_given_by_column_or_for_all_and_switched_off():
    frame, labels = steps_and_noise()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, labels)
    explainer = CounterfactualExplainer(model).fit(frame)
    by_column = explainer.explain(frame[:10], features=Features(decimals={"a": -1, "e": 1}))
    after = {name: [c.after for c in by_column.changes() if c.feature == name] for name in "ae"}
    assert all(value % 10 == 0 for value in after["a"])
    assert all(decimals(value) <= 1 for value in after["e"])
    for_all = explainer.explain(frame[:10], features=Features(decimals=1))
    assert max(decimals(change.after) for change in for_all.changes()) <= 1
    off = explainer.explain(frame[:10], features=Features(decimals=None))
    assert max(decimals(change.after) for change in off.changes() if change.feature == "a") > 3


def test_a_declared_range_is_kept_where_the_grid_of_the_data_has_no_number_in_it():
    frame, labels = steps_and_noise()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, labels)
    ranges = {"a": (10.25, 10.75), "b": (-0.34, 0.77)}
    e = CounterfactualExplainer(model, features=Features(ranges=ranges)).fit(frame).explain(frame[:10])
    assert e.found.all()
    assert e.counterfactual.a.between(10.25, 10.75).all()
    assert e.counterfactual.b.between(-0.34, 0.77).all()
    for change in e.changes():
        assert change.feature != "b" or decimals(change.after) <= 1


@pytest.mark.parametrize("threshold", [0.35, 0.3, 0.30000001192092896])
@pytest.mark.parametrize("up", [True, False])
def test_the_number_next_to_a_split_is_reached_on_either_side(threshold, up):
    """Two leaves on both sides of a split: the answer is the first number of the grid on the other side."""
    tree = pytest.importorskip("sklearn.tree").DecisionTreeClassifier
    x = np.arange(-50, 51)[:, None] / 10
    model = tree(max_depth=1).fit(x, x[:, 0] > 0.32)
    model.tree_.threshold[0] = threshold
    row = x[:1] if up else x[-1:]
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).explain(row)
    below = x[model.predict(x) == 0].max()
    above = x[model.predict(x) == 1].min()
    assert e.counterfactual[0, 0] == (above if up else below)


def test_columns_of_many_digits_get_short_numbers_at_hardly_more_cost():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 5))
    model = RandomForestClassifier(30, random_state=0).fit(x, x[:, 0] + x[:, 1] ** 2 > 0.5)
    short, full = (
        CounterfactualExplainer(model, features=Features(decimals=d), search=SearchConfig.close())
        .fit(x)
        .explain(x[:40])
        for d in ("auto", None)
    )
    assert np.mean([len(repr(c.after)) for c in short.changes()]) < 7
    assert np.mean([len(repr(c.after)) for c in full.changes()]) > 15
    assert (short.distance <= 1.0101 * full.distance).mean() > 0.9
    assert (model.predict(short.counterfactual) == short.counterfactual_class).all()


def test_the_papers_iteration_and_images_keep_all_digits():
    frame, labels = steps_and_noise()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, labels)
    e = CounterfactualExplainer(model, search=SearchConfig(method="fista", theta=100.0)).fit(frame).explain(frame[:5])
    assert max(decimals(change.after) for change in e.changes()) > 6


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"decimals": "many"}, "decimals is 'many'; expected 'auto', None, a whole number"),
        ({"decimals": 1.5}, "decimals is 1.5; expected"),
        ({"decimals": {"a": "two"}}, "decimals is {'a': 'two'}; expected"),
        ({"decimals": {"a": 99}}, "expected 'auto', None, a whole number from -15 to 15"),
        ({"decimals": {"nn": 1}}, "decimals names column 'nn', which is not there"),
        ({"decimals": {"a": 1}, "step": {"a": 5}}, "decimals and step both name column 'a'"),
        ({"decimals": {"b": 1}, "categorical": "b"}, "decimals needs numbers; 'b' holds others"),
    ],
)
def test_decimals_that_cannot_be_are_refused(given, words):
    frame, labels = steps_and_noise()
    model = RandomForestClassifier(5, random_state=0).fit(frame, labels)
    with pytest.raises(ConfigError, match=re.escape(words)):
        CounterfactualExplainer(model, features=Features(**given)).fit(frame)
