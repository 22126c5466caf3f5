"""What an explanation can still ask: the model, the training rows, and the way to a prototype."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.errors import ConfigError, InputError, ModelError
from cfproto_plugin.helpers.kinds import library_of, take, to_pandas


def credit(n=300, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": random.normal(3000, 800, n).round(0).astype(int),
            "job": random.choice(["clerk", "farmer", "nurse"], n),
            "age": random.integers(18, 80, n),
        }
    )


def granted(frame):
    return (frame["income"] + 600 * (frame["job"] == "nurse") + 10 * frame["age"] > 3700).astype(int)


@pytest.fixture(scope="module")
def pipeline():
    frame = credit()
    steps = make_column_transformer((StandardScaler(), ["income", "age"]), (OneHotEncoder(), ["job"]))
    return make_pipeline(steps, LogisticRegression(C=10)).fit(frame, granted(frame))


@pytest.fixture(scope="module")
def explainer(pipeline):
    return CounterfactualExplainer(pipeline).fit(credit())


@pytest.fixture(scope="module")
def denied(pipeline):
    frame = credit(60, seed=1)
    return frame[pipeline.predict(frame) == 0].head(6)


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    return x, forest, CounterfactualExplainer(forest).fit(x)


KINDS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_says_of_further_rows_what_it_says_itself(explainer, pipeline, denied, kind):
    e = explainer.explain(denied)
    rows = KINDS[kind](denied.reset_index(drop=True))
    np.testing.assert_allclose(e.source.probabilities(rows), pipeline.predict_proba(denied), atol=1e-12)
    assert (e.source.labels(rows) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_all_changes_together_are_the_counterfactual_and_none_the_original(explainer, denied, kind):
    rows = KINDS[kind](denied.reset_index(drop=True))
    e = explainer.explain(rows, n=2)
    lines = np.flatnonzero(e.found)
    original, counterfactual = take(e.original, lines), take(e.counterfactual, lines)
    shape = (len(lines), 3)
    for taken, proba in ((np.ones(shape, bool), e.counterfactual_proba), (np.zeros(shape, bool), e.original_proba)):
        mixed = e.source.mixed(original, counterfactual, np.arange(len(lines)), taken)
        np.testing.assert_array_equal(mixed.proba, proba[lines])
        assert mixed.raised is None


def test_columns_in_another_order_are_the_same_columns(explainer, denied):
    e = explainer.explain(denied[["job", "age", "income"]])
    np.testing.assert_array_equal(e.source.probabilities(denied), e.original_proba)
    assert list(e.source.training().rows.columns) == ["job", "age", "income"]
    taken = np.zeros((1, 3), dtype=bool)
    taken[0, 0] = True  # the job
    changed = denied.head(1).assign(job="nurse")
    mixed = e.source.mixed(denied.head(1)[["job", "age", "income"]], changed, np.array([0]), taken)
    np.testing.assert_array_equal(mixed.proba, e.source.probabilities(changed))


def test_training_rows_come_with_their_classes_and_small_classes_stay_whole():
    frame = credit(5000)
    e = CounterfactualExplainer(_one_in_a_hundred).fit(frame[["age", "income"]])
    e = e.explain(frame[["age", "income"]].head(1))
    rows, labels = e.source.training(400)
    assert 300 < len(rows) <= 400
    assert (labels == 1).sum() == min((frame["age"] == 18).sum(), 100 + 200 * (frame["age"] == 18).mean() // 1)
    assert ((rows["age"] == 18) == (labels == 1)).all()


def _one_in_a_hundred(x):
    p = np.where(np.asarray(x)[:, 0] < 18.5, 0.9, 0.1)
    return np.stack([1 - p, p], axis=1)


def test_the_path_leads_from_the_row_to_a_row_of_the_class(explainer, denied):
    e = explainer.explain(denied)
    path = e.source.toward_prototype(denied.iloc[[2]], 1, points=9)
    assert list(path.t) == list(np.linspace(0, 1, 9))
    pd.testing.assert_frame_equal(path.rows.iloc[[0]], denied.iloc[[2]])
    assert path.label == 1
    assert e.source.labels(path.rows)[[0, -1]].tolist() == [0, 1]
    assert path.rows.dtypes.equals(denied.dtypes)


def test_the_path_keeps_the_rules_of_the_call(explainer, denied):
    e = explainer.explain(denied, features=Features(immutable=("job",)))
    path = e.source.toward_prototype(denied.iloc[[2]], 1)
    assert (path.rows["job"] == denied["job"].iloc[2]).all()


def test_the_path_without_a_class_leads_to_another_one(cancer):
    x, forest, explainer = cancer
    path = explainer.explain(x[0]).source.toward_prototype(x[:1])
    assert path.label != forest.predict(x[:1])[0]
    assert forest.predict(path.rows[-1:])[0] == path.label


def test_slices_and_copies_keep_the_source_and_files_and_pickles_do_not(explainer, denied):
    e = explainer.explain(denied)
    for kept in (e[1], e[:2], next(iter(e)), copy.copy(e), copy.deepcopy(e)):
        assert kept.source is e.source
    for lost in (pickle.loads(pickle.dumps(e)), Explanation.from_json(e.to_json())):  # noqa: S301 our own
        with pytest.raises(InputError, match=r"with_explainer\(explainer\)"):
            lost.contributions()
        back = lost.with_explainer(explainer)
        np.testing.assert_array_equal(back.source.probabilities(denied), e.original_proba)
    assert len(pickle.dumps(e)) < 30_000


def test_an_explainer_of_another_model_is_refused(explainer, denied, cancer):
    e = Explanation.from_json(explainer.explain(denied).to_json())
    with pytest.raises(InputError, match="columns"):
        e.with_explainer(cancer[2])
    frame = credit()
    other = make_pipeline(make_column_transformer((StandardScaler(), ["income", "age"])), LogisticRegression())
    other = CounterfactualExplainer(other.fit(frame, granted(frame))).fit(frame)
    with pytest.raises(InputError, match=r"row \d: the model of this explainer gives"):
        e.with_explainer(other)
    named = make_pipeline(make_column_transformer((StandardScaler(), ["income", "age"])), LogisticRegression())
    named = CounterfactualExplainer(named.fit(frame, granted(frame).map({0: "no", 1: "yes"}))).fit(frame)
    with pytest.raises(InputError, match=r"the classes \['no', 'yes'\]"):
        e.with_explainer(named)
    with pytest.raises(InputError, match="explainer is dict"):
        e.with_explainer({})


def test_rules_of_the_call_are_given_again_to_an_explanation_that_was_read(explainer, denied):
    rules = Features(immutable=("income",))
    e = explainer.explain(denied, features=rules)
    read = Explanation.from_json(e.to_json())
    with pytest.raises(InputError, match=r"with_explainer\(explainer, features=\.\.\.\)"):
        read.with_explainer(explainer)
    back = read.with_explainer(explainer, features=rules)
    assert back.actions() == e.actions()
    path = back.source.toward_prototype(denied.iloc[[2]], 1)
    assert (path.rows["income"] == denied["income"].iloc[2]).all()
    with pytest.raises(ConfigError, match="weights is settled by fit"):
        read.with_explainer(explainer, features=Features(weights={"age": 3.0}))


def test_json_cannot_bring_a_source():
    text = '{"format": "cfproto-explanation/1", "_source": 1}'
    with pytest.raises(InputError, match="damaged"):
        Explanation.from_json(text)


def test_a_row_that_cannot_be_predicted_is_named(explainer, denied):
    rows = denied.assign(job=["clerk", "clerk", "pilot", "clerk", "clerk", "clerk"])
    with pytest.raises(InputError, match=r"row 2.*pilot"):
        explainer.explain(denied).source.probabilities(rows)


def test_a_model_that_was_fitted_again_is_noticed(denied):
    frame = credit()[["income", "age"]]
    model = LogisticRegression().fit(frame, granted(credit()))
    e = CounterfactualExplainer(model).fit(frame).explain(denied[["income", "age"]])
    model.fit(frame, frame["age"] > 50)
    with pytest.raises(ModelError, match="changed after"):
        e.source.probabilities(denied[["income", "age"]])


ASKED_AGAIN = {
    "contributions": lambda e: e.contributions(),
    "to_shap": lambda e: e.to_shap(),
    "actions": lambda e: e.actions(),
    "path": lambda e: e.source.toward_prototype(e.original.iloc[[0]]),
}


@pytest.fixture(scope="module")
def fitted_again():
    """An explanation with several changes in a line, whose model was fitted again afterwards."""
    x = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc"))
    model = LogisticRegression().fit(x, x.sum(axis=1) > 0)
    rules = Features(ranges=dict.fromkeys("abc", (-1.0, 1.0)))
    rows = x[(x < -0.4).all(axis=1)]
    e = CounterfactualExplainer(model, features=rules).fit(x).explain(rows.clip(-1, 1))
    assert e.n_changes.max() > 1
    model.fit(x, x["c"] < 0)
    return e


@pytest.mark.parametrize("asked", ASKED_AGAIN)
def test_nothing_mixes_the_explained_model_with_one_that_was_fitted_again(fitted_again, asked):
    with pytest.raises(ModelError, match="changed after"):
        ASKED_AGAIN[asked](fitted_again)


def test_a_report_of_a_model_that_was_fitted_again_leaves_out_what_it_would_ask(fitted_again):
    assert "are left out: the model changed after explainer.fit" in fitted_again.to_html()


def test_several_threads_get_the_same_answers(explainer, denied):
    source = explainer.explain(denied).source
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: source.probabilities(denied), range(8)))
    assert all((each == found[0]).all() for each in found)


def test_one_hot_groups_stand_at_their_columns():
    x = np.random.default_rng(0).normal(size=(200, 5))
    x[:, 1:4] = np.eye(3)[np.random.default_rng(1).integers(0, 3, 200)]
    model = LogisticRegression().fit(x, x[:, 0] + x[:, 1] > 0.5)
    e = CounterfactualExplainer(model, features=Features(one_hot={"colour": (1, 2, 3)})).fit(x).explain(x[0])
    assert e.source.groups == {"colour": (1, 2, 3)}
    frame = pd.DataFrame(x, columns=list("abcde"))
    features = Features(one_hot={"colour": ("b", "c", "d")})
    model = LogisticRegression().fit(frame, x[:, 0] + x[:, 1] > 0.5)
    e = CounterfactualExplainer(model, features=features).fit(frame).explain(frame[list("dcbae")].head(1))
    assert e.source.groups == {"colour": (2, 1, 0)}


def test_training_rows_are_a_pandas_frame_whatever_they_came_as(denied, pipeline):
    frame = pl.from_pandas(credit())
    explainer = CounterfactualExplainer(lambda x: pipeline.predict_proba(to_pandas(x))).fit(frame)
    e = explainer.explain(pl.from_pandas(denied))
    assert library_of(e.source.training().rows) == "pandas"
