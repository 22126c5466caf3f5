"""A probability as the target: the interval that the probability of a class has to lie in."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError

X, Y = load_wine(return_X_y=True, as_frame=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])[Y]
TWO = np.where(Y == 1, "approved", "rejected")
MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.05)),
    "forest": lambda: RandomForestClassifier(30, max_depth=5, random_state=0),
    "threshold": lambda: FixedThresholdClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(C=0.05)), threshold=0.8
    ),
}


def inside(model, e, label, low, high):
    """Whether the model's own probabilities of the answers lie in the interval."""
    column = list(model.classes_).index(label)
    proba = model.predict_proba(e.counterfactual[e.found])[:, column]
    return ((proba >= low) & (proba <= high)).all()


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize(("low", "high"), [(0.6, 0.8), (0.3, 0.4), (0.05, 0.2)])
def test_the_probability_of_an_answer_lies_in_the_interval(kind, low, high):
    model = MODELS[kind]().fit(X, TWO)
    rows = X[::12]
    e = CounterfactualExplainer(model).fit(X).explain(rows, target={"approved": (low, high)})
    assert e.found.all(), e.message
    assert inside(model, e, "approved", low, high)
    assert (e.counterfactual_class == model.predict(e.counterfactual)).all()
    own = model.predict_proba(rows)[:, 0]
    there = (own >= low) & (own <= high)
    assert np.array_equal(e.n_changes == 0, there)
    assert "approved with probability" in e.message[~there][0]


def test_a_narrow_interval_that_the_path_jumps_over_is_found():
    model = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=1000)).fit(X, TWO)
    e = CounterfactualExplainer(model).fit(X).explain(X[::12], target={"approved": (0.7, 0.7005)})
    assert e.found.all()
    assert inside(model, e, "approved", 0.7, 0.7005)
    every = Features(decimals=None)  # few numbers of two decimals have such a probability
    unpolished = CounterfactualExplainer(model, features=every, search=SearchConfig.close(polish=False)).fit(X)
    e = unpolished.explain(X[::12], target={"approved": (0.7, 0.7005)})
    assert (e.status == "found").all()
    assert inside(model, e, "approved", 0.7, 0.7005)


def test_any_of_several_classes_will_do():
    model = MODELS["logistic"]().fit(X, NAMES)
    e = CounterfactualExplainer(model).fit(X).explain(X[::12], target={"barolo": (0.5, 0.6), "barbera": (0.4, 0.5)})
    proba = model.predict_proba(e.counterfactual)
    barbera, barolo = proba[:, 0], proba[:, 1]
    assert e.found.all()
    assert (((barolo >= 0.5) & (barolo <= 0.6)) | ((barbera >= 0.4) & (barbera <= 0.5))).all()


@pytest.mark.parametrize("form", ["list", "array", "series"])
def test_every_row_can_have_its_own_interval(form):
    model = MODELS["logistic"]().fit(X, TWO)
    rows = X[:6]
    each = [{"approved": (0.1 * i, 0.1 * i + 0.1)} for i in range(2, 8)]
    series = pd.Series(each, index=rows.index)[::-1]
    target = {"list": each, "array": np.array(each, dtype=object), "series": series}[form]
    e = CounterfactualExplainer(model).fit(X).explain(rows, target=target, n=2)
    assert e.found[::2].all()
    proba = model.predict_proba(e.counterfactual[e.found])[:, 0]
    low = 0.1 * (e.row[e.found] + 2)
    assert ((proba >= low) & (proba <= low + 0.1)).all()


def test_a_row_alone_gets_the_answer_it_gets_in_a_batch():
    model = MODELS["forest"]().fit(X, TWO)
    explainer = CounterfactualExplainer(model).fit(X)
    e = explainer.explain(X[::20], target={"approved": (0.55, 0.65)})
    for i in range(len(e)):
        alone = explainer.explain(X[::20][i : i + 1], target={"approved": (0.55, 0.65)})
        assert alone.counterfactual.equals(e.counterfactual[i : i + 1])


def test_rules_hold_beside_an_interval_and_what_cannot_be_reached_is_said():
    model = MODELS["logistic"]().fit(X, TWO)
    explainer = CounterfactualExplainer(model, features=Features(vary="ash")).fit(X)
    e = explainer.explain(X[::12], target={"approved": (0.55, 0.65)})
    assert {change.feature for change in e.changes()} == {"ash"}
    assert inside(model, e, "approved", 0.55, 0.65)
    missed = [text for text, found in zip(e.message, e.found, strict=True) if not found]
    assert missed
    assert all("had class approved with a probability from 0.55 to 0.65" in text for text in missed), missed


def test_fista_and_time_budgets_keep_the_interval():
    model = MODELS["logistic"]().fit(X, TWO)
    for options in ({"method": "fista", "max_iterations": 200}, {}):
        explainer = CounterfactualExplainer(model, search=SearchConfig(**options)).fit(X)
        e = explainer.explain(X[::25], target={"approved": (0.6, 0.7)}, time_budget=None if options else 1e-4)
        assert e.found.any()
        assert inside(model, e, "approved", 0.6, 0.7)


def test_the_ends_belong_to_the_interval_of_a_model_without_noise():
    x = np.arange(20.0)[:, None]

    def model(rows):
        p = np.where(rows[:, 0] < 7, 0.25, np.where(rows[:, 0] < 14, 0.5, 0.75))
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(model).fit(x).explain(np.array([[2.0], [9.0]]), target={1: (0.5, 0.6)})
    assert e.found.tolist() == [True, True]
    assert e.n_changes.tolist() == [1, 0]
    assert model(e.counterfactual)[:, 1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            {"approved": (0.9, 0.7)},
            r"target\['approved'\] is \(0.9, 0.7\); expected \(low, high\), the lower one first",
        ),
        ({"approved": (0.5, 1.2)}, r"probabilities from 0 to 1"),
        ({"approved": (-0.1, 0.2)}, r"probabilities from 0 to 1"),
        ({"approved": (np.nan, 0.2)}, r"probabilities from 0 to 1"),
        ({"approved": ("a", "b")}, r"probabilities from 0 to 1"),
        ({"approved": 0.7}, r"target\['approved'\] is 0.7; expected \(low, high\), such as \(0.7, 1\)"),
        ({"approved": (0.7,)}, r"expected \(low, high\)"),
        ({"approvd": (0.7, 0.9)}, r"'approvd' is not a class of the model. Did you mean 'approved'"),
        ({}, r"target is \{\}; expected a dict of label to \(low, high\)"),
        ([{"approved": (0.7, 0.9)}], r"target has 1 dicts for 2 rows"),
        ([{"approved": (0.7, 0.9)}, "approved"], r"target of row 1 is 'approved'; expected a dict"),
        ([{"approved": (0.7, 0.9)}, {"approved": 2}], r"target\['approved'\] of row 1 is 2"),
    ],
)
def test_intervals_that_make_no_sense_are_refused(target, message):
    explainer = CounterfactualExplainer(MODELS["logistic"]().fit(X, TWO)).fit(X)
    with pytest.raises(InputError, match=message):
        explainer.explain(X[:2], target=target)


@pytest.mark.parametrize("model", [RidgeClassifier(), SVC()])
def test_scores_are_no_probabilities(model):
    explainer = CounterfactualExplainer(make_pipeline(StandardScaler(), model).fit(X, TWO)).fit(X)
    with pytest.raises(InputError, match=r"has none: they are made from its scores. Calibrate it"):
        explainer.explain(X[:2], target={"approved": (0.7, 0.9)})
    with pytest.raises(ConfigError, match=r"min_proba is 0.6; leave out one of the two"):
        CounterfactualExplainer(MODELS["logistic"]().fit(X, TWO), search=SearchConfig(min_proba=0.6)).fit(X).explain(
            X[:2], target={"approved": (0.7, 0.9)}
        )
