"""What went wrong is blamed on what it was, and the message says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, ModelError, did_you_mean
from cfproto_plugin.explanation import Explanation

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.integers(18, 80, 120), "income": RNG.normal(50, 10, 120).round(1)})
Y = (FRAME["age"] + FRAME["income"] > 95).astype(int)
HOLES = FRAME.copy()
HOLES.loc[13, "income"] = np.nan
TREES = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(HOLES, Y)
LINEAR = LogisticRegression(max_iter=1000).fit(FRAME, Y)


def misspelt(x):
    return x["incme"]


# A function that fails at `fit`


@pytest.mark.parametrize("data", [FRAME, HOLES], ids=["complete", "with NaN"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (TREES.predict, r"the function returned shape \(\d+,\) for \d+ rows; expected"),
        (lambda x: TREES.predict_proba(x)[:, 1], r"return the two columns \(1 - p, p\)"),
        (misspelt, r"the model raised KeyError: 'incme' for the training rows"),
    ],
    ids=["labels", "one column", "raises"],
)
def test_a_function_that_fails_for_all_rows_is_not_blamed_on_missing_values(function, message, data):
    with pytest.raises(ModelError, match=message) as caught:
        CounterfactualExplainer(function).fit(data)
    assert "missing values (" not in str(caught.value)
    assert not isinstance(caught.value, InputError)
    if function is misspelt:
        assert isinstance(caught.value.__cause__, KeyError)


def test_missing_values_are_blamed_where_rows_without_them_are_answered_and_the_cause_is_quoted():
    with pytest.raises(
        InputError, match=r"row 13 .* NaN in column 'income'.*\(ValueError: Input X contains NaN\)"
    ) as e:
        CounterfactualExplainer(LINEAR).fit(HOLES)
    assert (e.value.row, e.value.column) == (13, "income")
    assert isinstance(e.value.__cause__, ValueError)


def test_a_function_that_fails_where_every_row_lacks_a_value_is_quoted():
    with pytest.raises(ModelError, match="the model raised KeyError: 'incme' for the training rows"):
        CounterfactualExplainer(misspelt).fit(HOLES.assign(age=np.where(HOLES["income"] > 0, np.nan, 40)))


# A model that was fitted again


def three_classes():
    y = np.digitize(FRAME["income"], [45, 55])
    model = LogisticRegression(max_iter=2000).fit(FRAME.to_numpy(), y)
    return model, CounterfactualExplainer(lambda x: model.predict_proba(x) + 0.0).fit(FRAME.to_numpy())


@pytest.mark.parametrize("change", ["fewer classes", "fewer columns"])
def test_a_model_that_no_longer_fits_the_explainer_says_to_fit_it_again(change):
    model, explainer = three_classes()
    data = FRAME.to_numpy()
    if change == "fewer classes":
        model.fit(data, Y)
    else:
        model.fit(data[:, :1], np.digitize(FRAME["income"], [45, 55]))
    with pytest.raises(ModelError, match=r"fitted again since explainer\.fit, call explainer\.fit again") as caught:
        explainer.explain(data[:2])
    assert "Labels are not enough" not in str(caught.value)


def test_what_a_model_said_at_fit_comes_before_what_it_says_now():
    model, explainer = three_classes()
    model.intercept_ = model.intercept_ + np.array([5.0, 0.0, 0.0])
    with pytest.raises(ModelError, match=r"it said \[.*\].* at fit, and .*says \[.*\].*Call explainer\.fit again"):
        explainer.explain(FRAME.to_numpy()[:2])


# Targets, rules and rows


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_with_a_label_per_row_that_repeats_is_refused_and_an_array_is_taken(kind):
    _, explainer = three_classes()
    rows, labels = FRAME.to_numpy()[:5], [1, 2, 0, 1, 2]
    with pytest.raises(InputError, match=r"repeated labels and one item per row.*pass np\.array\(target\)"):
        explainer.explain(rows, target=kind(labels))
    assert explainer.explain(rows, target=np.array(labels)).counterfactual_class.tolist() == labels
    assert explainer.explain(rows[:3], target=[1, 2, 0]).found.all()  # a set that happens to have as many labels
    assert explainer.explain(rows[:3], target=[1, 1]).found.all()
    assert explainer.explain(rows[:1], target=[1]).found.all()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"ranges": {"job": ("a", "b")}},
            "Ranges are numbers or dates such as '2026-01-31': use allowed for categories",
        ),
        ({"ranges": {"income": (5, 1)}}, r"ranges\['income'\] is \(5, 1\).*The lowest is above the highest"),
        ({"increasing": "age", "decreasing": ("income", "age")}, "both name column 'age'.*immutable"),
    ],
)
def test_a_rule_that_cannot_be_says_why(rules, message):
    with pytest.raises(ConfigError, match=message):
        Features(**rules)


def test_rules_that_fit_settled_say_what_to_do():
    explainer = CounterfactualExplainer(LINEAR).fit(FRAME)
    with pytest.raises(ConfigError, match=r"it was \{\}\. Leave it out of the rules of this call, or fit another"):
        explainer.explain(FRAME[:1], features=Features(weights={"age": 2.0}))


def test_a_missing_column_is_looked_for_among_those_that_are_too_many():
    explainer = CounterfactualExplainer(LINEAR).fit(FRAME)
    with pytest.raises(InputError, match=r"x has no column 'age'.*If 'Age' is meant, rename it to 'age'\."):
        explainer.explain(FRAME[:2].rename(columns={"age": "Age"}))
    with pytest.raises(InputError, match="a column 'id' that the training data did not have; leave it out"):
        explainer.explain(FRAME[:2].assign(id=1))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("forty", r"correct the cell, or name the column in Features\(categorical=\.\.\.\)"),
        (np.inf, "expected a finite number: replace it, or leave the row out"),
    ],
)
def test_a_cell_that_cannot_be_read_says_what_to_do(cell, message):
    rows = FRAME[:3].astype(object)
    rows.loc[1, "age"] = cell
    e = CounterfactualExplainer(LINEAR).fit(FRAME).explain(rows)
    with pytest.raises(InputError, match=message):
        e.raise_for_status()
    assert e.to_frame()["message"].tolist() == e.message.tolist()


def test_the_columns_that_labels_may_name_are_numbered():
    class Off:
        def predict(self, x):
            return LINEAR.predict_proba(pd.DataFrame(x, columns=FRAME.columns))

        def labels(self, x):
            return np.full(len(x), 2)

    with pytest.raises(ModelError, match=r"columns of the probabilities from 0 to 1$"):
        CounterfactualExplainer(LINEAR, adapter=Off()).fit(FRAME.to_numpy())


def test_a_file_name_in_place_of_json_is_recognised(tmp_path):
    for name in ("e.json", tmp_path / "e.json"):
        with pytest.raises(InputError, match=r"e\.json.* looks like the name of a file: pass its text"):
            Explanation.from_json(name)
    with pytest.raises(InputError) as caught:
        Explanation.from_json("no json")
    assert "file" not in str(caught.value)


@pytest.mark.parametrize("rules", [Features(), Features(immutable="age")], ids=["no rules", "rules"])
def test_only_rules_that_were_declared_are_spoken_of(rules):
    e = CounterfactualExplainer(LINEAR, features=rules).fit(FRAME).explain(FRAME[:3], time_budget=1e-9)
    said = [message for message in e.message if "the nearest training row" in message]
    assert said
    assert all(("moved inside the rules" in message) == bool(rules.immutable) for message in said)


# A model that raises at every point of the search


def test_a_model_that_raises_at_every_new_point_is_named_with_what_it_raised():
    rows = RNG.normal(size=(200, 3))
    known = {row.tobytes() for row in rows}

    def customers(x):
        if any(row.tobytes() not in known for row in x):
            raise ValueError("unknown customer")
        return np.column_stack([x[:, 0] > 0, x[:, 0] <= 0]) * 0.8 + 0.1

    search = SearchConfig(fallback=False, theta=1.0)
    e = CounterfactualExplainer(customers, features=Features(vary=[0]), search=search).fit(rows).explain(rows[:6])
    assert set(e.status) == {"not_found"}
    assert all("it raised ValueError: unknown customer" in message for message in e.message)


def test_an_unknown_category_that_the_model_takes_is_spoken_of():
    jobs = pd.DataFrame({"job": RNG.choice(["cook", "nurse"], 120), "income": FRAME["income"]})
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(jobs, jobs["income"] > 50)
    e = CounterfactualExplainer(model).fit(jobs).explain(jobs[:2].assign(job=["pilot", "cook"]))
    assert "column 'job' is 'pilot', which no training row has" in e.message[0]
    assert "no training row has" not in e.message[1]


def test_rules_that_leave_nothing_to_change_are_named_and_no_others():
    rules = Features(immutable="age", ranges={"income": (50, 50)})
    row = FRAME[:1].assign(income=50.0)
    e = CounterfactualExplainer(LINEAR, features=rules).fit(FRAME).explain(row)
    assert e.status[0] == "infeasible"
    assert "immutable and ranges" in e.message[0]
    assert "increasing" not in e.message[0]


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("incom", ["income", "age"], "'income'"),
        ("Mean Radius", ["mean_radius"], "'mean_radius'"),
        ("colour", ["color", "size"], "'color'"),
        ("sex", ["set", "age"], None),
        ("education", ["occupation", "relation"], None),
        ("immutable", ["variable"], None),
    ],
)
def test_only_a_name_that_is_close_is_suggested(name, known, meant):
    assert did_you_mean(name, known) == (f" Did you mean {meant}?" if meant else "")
