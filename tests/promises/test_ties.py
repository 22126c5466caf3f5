"""Ties are decided as the model itself decides them, so that no change is returned that `predict` does not need."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, SearchConfig

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :8].round(1)
TRAIN, ROWS = slice(0, 420), slice(420, 460)


def voting():
    parts = [(f"t{i}", DecisionTreeClassifier(max_depth=2, random_state=i, max_features=2)) for i in range(4)]
    return VotingClassifier(parts, voting="soft")


MODELS = {
    "forest of 4": lambda: RandomForestClassifier(4, random_state=0),
    "forest of 10": lambda: RandomForestClassifier(10, random_state=0),
    "forest of 20": lambda: RandomForestClassifier(20, max_depth=3, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(6, random_state=0),
    "boosted stumps": lambda: AdaBoostClassifier(n_estimators=6, random_state=0),
    "neighbours": lambda: KNeighborsClassifier(4),
    "neighbours after scaling": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(6)),
    "votes": voting,
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}


def left_out(e):
    """Every answer with one change taken back: rows, and the line that each belongs to."""
    changed = (e.counterfactual != e.original) & e.found[:, None]
    line, column = np.nonzero(changed)
    rows = e.counterfactual[line].copy()
    rows[np.arange(len(rows)), column] = e.original[line, column]
    return rows, line


def assert_minimal(model, e):
    assert np.array_equal(model.predict(e.counterfactual[e.found]), e.counterfactual_class[e.found])
    rows, line = left_out(e)
    assert np.array_equal(model.predict(rows), e.original_class[line])


@pytest.mark.parametrize("as_function", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_no_single_change_can_be_left_out_by_predict(name, as_function):
    model = MODELS[name]().fit(X[TRAIN], Y[TRAIN])
    explained = model.predict_proba if as_function else model
    e = CounterfactualExplainer(explained, search=SearchConfig.close()).fit(X[TRAIN]).explain(X[ROWS])
    assert e.found.all()
    assert_minimal(model, e)


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize("objective", ["binary:logistic", "binary:hinge"])
def test_no_single_change_can_be_left_out_by_predict_of_xgboost(objective):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=4, max_depth=2, objective=objective).fit(X[TRAIN], Y[TRAIN])
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(X[TRAIN]).explain(X[ROWS])
    assert e.found.all()
    assert_minimal(model, e)


def test_an_answer_that_exists_only_at_a_tie_is_found():
    """Two trees of two that disagree: the tie is the only way to class 0, which wins it."""
    x = np.arange(40.0)[:, None]

    def model(rows):
        p = np.where(rows[:, 0] < 20, 0.5, 1.0)
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).explain(x[30:35])
    assert e.found.all()
    assert (e.counterfactual_class == 0).all()
    assert (e.margin == 0).all()


def test_a_tie_that_the_model_gives_to_another_class_is_no_answer():
    x = np.arange(40.0)[:, None]

    def model(rows):
        p = np.where(rows[:, 0] < 10, 0.1, np.where(rows[:, 0] < 30, 0.5, 0.9))
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).explain(x[:3])
    assert e.found.all()
    assert (e.counterfactual[:, 0] >= 29.9).all()


def test_min_proba_is_reached_exactly():
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X[TRAIN], Y[TRAIN])
    e = CounterfactualExplainer(model, search=SearchConfig.close(min_proba=0.7)).fit(X[TRAIN]).explain(X[ROWS])
    assert e.found.all()
    p = model.predict_proba(e.counterfactual)
    assert (p[np.arange(len(p)), e.counterfactual_class.astype(int)] >= 0.7).all()


def test_a_change_whose_cost_rounds_away_is_taken_back_too():
    table = X.copy()
    table[::50, 0] = table[::37, 4] = 1e18  # written where a value is missing: every other change costs nothing
    model = RandomForestClassifier(20, random_state=0).fit(table[TRAIN], Y[TRAIN])
    assert_minimal(
        model, CounterfactualExplainer(model, search=SearchConfig.close()).fit(table[TRAIN]).explain(table[1:150:3])
    )


def test_an_answer_may_be_a_change_that_costs_nothing():
    rng = np.random.default_rng(3)
    rng.integers(0, 2, (400, 10))
    table = np.round(rng.normal(size=(400, 6)) * 2) / 2
    model = RandomForestClassifier(4, random_state=0).fit(table, table.sum(axis=1) > 0)
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(table).explain(table)
    assert_minimal(model, e)
    assert (e.n_changes[e.found] > 0).all()
