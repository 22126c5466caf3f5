"""A fitted explainer is pickled, sent to another process, and answers the same there."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cfproto_plugin import CounterfactualExplainer, Features

NAMES = ["radius", "texture", "perimeter", "area"]
RULES = Features(
    immutable=["texture"], ranges={"area": (0, 3000)}, increasing=["radius"], relations=["radius <= perimeter"]
)


def twice_as_wide(rows):
    return rows["perimeter"] >= 2 * rows["radius"]


def by_radius(x):
    p = 1 / (1 + np.exp(np.asarray(x)[:, 0] - 15))
    return np.stack([1 - p, p], axis=1)


def answers(explainer, rows):
    return explainer.explain(rows)


def assert_same(found, expected):
    np.testing.assert_array_equal(np.asarray(found.counterfactual), np.asarray(expected.counterfactual))
    assert found.status.tolist() == expected.status.tolist()
    assert found.counterfactual_class.tolist() == expected.counterfactual_class.tolist()


@pytest.fixture(scope="module")
def data(cancer):
    x, y = cancer
    return pd.DataFrame(x[:200, :4], columns=NAMES), y[:200]


MODELS = [
    RandomForestClassifier(10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), SVC()),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_fitted_explainer_of_scikit_learn_answers_the_same_after_a_pickle(model, data):
    frame, y = data
    explainer = CounterfactualExplainer(model.fit(frame, y), features=RULES).fit(frame)
    assert_same(pickle.loads(pickle.dumps(explainer)).explain(frame[:5]), explainer.explain(frame[:5]))  # noqa: S301


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize("booster", ["gbtree", "gblinear"])
def test_a_fitted_explainer_of_xgboost_answers_the_same_after_a_pickle(booster, data):
    from xgboost import XGBClassifier

    frame, y = data
    model = XGBClassifier(n_estimators=10, booster=booster).fit(frame, y)
    for each in (model, model.get_booster()):
        explainer = CounterfactualExplainer(each, features=RULES).fit(frame)
        assert_same(pickle.loads(pickle.dumps(explainer)).explain(frame[:5]), explainer.explain(frame[:5]))  # noqa: S301


@pytest.mark.needs("torch")
def test_a_fitted_explainer_of_torch_answers_the_same_after_a_pickle(data):
    import torch

    torch.manual_seed(0)
    x = StandardScaler().fit_transform(data[0])
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).double()
    with torch.no_grad():
        net[2].bias -= net(torch.tensor(x)).mean(0)
    explainer = CounterfactualExplainer(net).fit(x)
    assert_same(pickle.loads(pickle.dumps(explainer)).explain(x[:5]), explainer.explain(x[:5]))  # noqa: S301


def test_an_explainer_with_relations_answers_the_same_in_a_process_of_its_own(data):
    frame, y = data
    model = RandomForestClassifier(10, random_state=0).fit(frame, y)
    rules = Features(immutable=["texture"], relations=["radius <= perimeter", twice_as_wide])
    explainer = CounterfactualExplainer(model, features=rules).fit(frame)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(answers, explainer, frame[:3]).result()
    assert_same(found, explainer.explain(frame[:3]))


def test_a_function_as_model_is_pickled_by_its_name(data):
    x = data[0].to_numpy()
    explainer = CounterfactualExplainer(by_radius).fit(x)
    assert_same(pickle.loads(pickle.dumps(explainer)).explain(x[:3]), explainer.explain(x[:3]))  # noqa: S301


def with_lambda(data):
    frame, y = data
    model = RandomForestClassifier(5, random_state=0).fit(frame, y)
    rules = Features(relations=["radius <= perimeter", lambda rows: rows["area"] >= 0])
    return CounterfactualExplainer(model, features=rules).fit(frame)


def test_a_lambda_cannot_be_pickled_and_nothing_else_fails(data):
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(with_lambda(data))


@pytest.mark.needs("cloudpickle")
def test_copy_and_cloudpickle_take_a_lambda(data):
    import cloudpickle

    explainer, rows = with_lambda(data), data[0][:2]
    assert_same(copy.deepcopy(explainer).explain(rows), explainer.explain(rows))
    assert_same(pickle.loads(cloudpickle.dumps(explainer)).explain(rows), explainer.explain(rows))  # noqa: S301
