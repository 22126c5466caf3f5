"""A model that was fitted again after `explainer.fit` is noticed, and nothing else is taken for it."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, adapt
from cfproto_plugin.errors import ModelError

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :8]
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
HALF = slice(0, 280)
SKLEARN = {
    "forest": RandomForestClassifier(20, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
    "linear": LogisticRegression(max_iter=5000),
    "neighbours": KNeighborsClassifier(),
    "perceptron": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=200, random_state=0, tol=0.1)),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "pipeline of trees": make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
    "search": GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}),
    "votes": make_pipeline(StandardScaler(), SVC()),
}


def explainer_of(model):
    return CounterfactualExplainer(model).fit(X[HALF])


def assert_noticed(explainer, rows=X[300:303]):
    with pytest.raises(ModelError, match=r"model changed after explainer\.fit.*explainer\.fit again"):
        explainer.explain(rows)


@pytest.mark.parametrize("name", SKLEARN)
def test_a_scikit_learn_model_fitted_again_is_noticed(name):
    model = copy.deepcopy(SKLEARN[name]).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    assert explainer.explain(X[300:303]).found.all()
    model.fit(X[280:], 1 - Y[280:])
    assert_noticed(explainer)
    assert explainer.fit(X[HALF]).explain(X[300:303]).found.all()


@pytest.mark.parametrize("name", SKLEARN)
def test_a_scikit_learn_model_fitted_again_with_other_names_of_the_classes_is_noticed(name):
    model = copy.deepcopy(SKLEARN[name]).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    model.fit(X[HALF], np.array(["no", "yes"])[Y[HALF]])
    assert_noticed(explainer)
    assert set(explainer.fit(X[HALF]).explain(X[300:303]).counterfactual_class) <= {"no", "yes"}


def test_an_object_with_predict_proba_whose_classes_are_renamed_is_noticed():
    class Model:
        def __init__(self):
            self.inner = RandomForestClassifier(5, random_state=0).fit(X[HALF], Y[HALF])
            self.classes_ = ["no", "yes"]

        def predict_proba(self, x):
            return self.inner.predict_proba(x)

    model = Model()
    explainer = explainer_of(model)
    model.classes_ = ["good", "bad"]
    assert_noticed(explainer)


def test_classes_renamed_in_place_are_noticed():
    model = RandomForestClassifier(5, random_state=0).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    model.classes_[:] = 5, 6
    assert_noticed(explainer)


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize("kind", ["classifier", "booster"])
def test_an_xgboost_model_fitted_again_is_noticed(kind):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3).fit(X[HALF], Y[HALF])
    if kind == "classifier":
        explainer = explainer_of(model)
        model.fit(X[280:], 1 - Y[280:])
    else:
        explainer = explainer_of(model.get_booster())
        model.get_booster().update(xgboost.DMatrix(X, 1 - Y), 10)
    assert_noticed(explainer)


def test_a_function_whose_model_was_fitted_again_is_noticed():
    model = RandomForestClassifier(10, random_state=0).fit(X[HALF], Y[HALF])
    explainer = explainer_of(lambda x: model.predict_proba(x) + 0.0)
    model.fit(X[280:], 1 - Y[280:])
    assert_noticed(explainer)


def test_an_adapter_that_was_passed_in_is_watched_too():
    model = LogisticRegression(max_iter=5000).fit(X[HALF], Y[HALF])
    explainer = explainer_of(adapt(model))
    model.coef_ = -model.coef_
    assert_noticed(explainer)


@pytest.mark.needs("torch")
def test_one_step_of_training_changes_a_torch_module():
    import torch

    torch.manual_seed(1)
    x = SCALED.astype(np.float32)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2, bias=False))
    explainer = CounterfactualExplainer(model).fit(x)
    explainer.explain(x[:3])
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(Y)).backward()
    optimiser.step()
    assert_noticed(explainer, x[:3])


@pytest.mark.needs("keras")
def test_new_weights_change_a_keras_model():
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2)])
    explainer = CounterfactualExplainer(model).fit(SCALED)
    explainer.explain(SCALED[:3])
    model.set_weights([1.01 * weight for weight in model.get_weights()])
    assert_noticed(explainer, SCALED[:3])


def test_a_threshold_moved_after_fit_is_noticed_although_the_probabilities_stay():
    class Strict(LogisticRegression):
        threshold = 0.5

        def predict(self, x):
            return self.classes_[(self.predict_proba(x)[:, 1] > self.threshold).astype(int)]

    model = Strict(max_iter=5000).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    model.threshold = 0.999
    assert_noticed(explainer)


def other_seed(model):
    model.set_params(random_state=1).fit(X[HALF], Y[HALF])


def fewer_rows(model):
    rows = np.random.default_rng(0).permutation(280)[:252]
    model.fit(X[rows], Y[rows])


EXACT = {  # models that give every training row its own class, whatever the seed
    "forest without bootstrap": RandomForestClassifier(50, bootstrap=False, random_state=0),
    "extra trees": ExtraTreesClassifier(50, random_state=0),
    "tree": DecisionTreeClassifier(max_features=3, random_state=0),
}
REFITTED = EXACT | {
    "forest": RandomForestClassifier(50, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=10, subsample=0.7, random_state=0),
}


@pytest.mark.parametrize("change", [other_seed, fewer_rows])
@pytest.mark.parametrize("name", REFITTED)
def test_another_seed_and_fewer_rows_are_noticed_although_training_rows_keep_their_answers(name, change):
    model = copy.deepcopy(REFITTED[name]).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    before = model.predict_proba(X[HALF])
    change(model)
    assert name not in EXACT or change is fewer_rows or np.array_equal(model.predict_proba(X[HALF]), before)
    assert_noticed(explainer)


def test_a_forest_replaced_by_extra_trees_is_noticed():
    inner = [RandomForestClassifier(50, bootstrap=False, random_state=0).fit(X[HALF], Y[HALF])]
    explainer = explainer_of(lambda x: inner[0].predict_proba(x) + 0.0)
    explainer.explain(X[300:303])
    inner[0] = ExtraTreesClassifier(50, random_state=0).fit(X[HALF], Y[HALF])
    assert_noticed(explainer)


@pytest.mark.needs("xgboost")
def test_an_xgboost_model_with_another_seed_is_noticed():
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=20, subsample=0.7, random_state=0).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    other_seed(model)
    assert_noticed(explainer)


def test_another_strength_of_regularisation_is_noticed():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    model.set_params(logisticregression__C=0.9).fit(X[HALF], Y[HALF])
    assert_noticed(explainer)


@pytest.mark.parametrize("threshold", [0.45, 0.48, 0.52, 0.55])
@pytest.mark.parametrize("base", [LogisticRegression, RandomForestClassifier])
def test_a_threshold_moved_by_little_is_noticed(base, threshold):
    class Strict(base):
        threshold = 0.5

        def predict(self, x):
            return self.classes_[(self.predict_proba(x)[:, 1] > self.threshold).astype(int)]

    model = Strict(**({"max_iter": 5000} if base is LogisticRegression else {"random_state": 0})).fit(X[HALF], Y[HALF])
    explainer = explainer_of(model)
    assert explainer.explain(X[300:303]).found.all()
    model.threshold = threshold
    assert_noticed(explainer)


UNCHANGED = SKLEARN | {
    "neighbours by brute force": KNeighborsClassifier(1, algorithm="brute"),
    "neighbours by distance": KNeighborsClassifier(weights="distance", algorithm="brute"),
    "extra trees": ExtraTreesClassifier(20, random_state=0),
    "missing values": HistGradientBoostingClassifier(max_iter=10),
    "no probabilities": Perceptron(),
    "process": make_pipeline(StandardScaler(), GaussianProcessClassifier()),
    "vectors with probabilities": CalibratedClassifierCV(LinearSVC()),
    "discriminants": LinearDiscriminantAnalysis(),
    "voting": VotingClassifier(
        [("a", LogisticRegression(max_iter=5000)), ("b", DecisionTreeClassifier())], voting="soft"
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("name", UNCHANGED)
def test_a_model_that_stayed_the_same_is_never_taken_for_another(name, dtype):
    table = (10 * X).round().astype(dtype)
    model = copy.deepcopy(UNCHANGED[name]).fit(table[HALF], Y[HALF])
    explainer = CounterfactualExplainer(model).fit(table[HALF])
    for rows in (table[300], table[300:302], table[300:340], table[300:303].astype(float)):
        explainer.explain(rows)


def test_points_at_the_boundary_keep_the_dtypes_of_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"whole": X[:, 2].round().astype("int16"), "half": X[:, 0].astype("float32")})
    frame["word"] = np.where(X[:, 3] > np.median(X[:, 3]), "large", "small")
    frame["truth"] = X[:, 4] > np.median(X[:, 4])
    frame.loc[::9, "half"] = np.nan
    encoder = make_column_transformer((OneHotEncoder(), ["word", "truth"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=10)).fit(frame[HALF], Y[HALF])
    explainer = CounterfactualExplainer(model).fit(frame[HALF])
    rows = explainer.fitted_.fingerprint.rows
    assert rows.dtypes.equals(frame.dtypes)
    assert len(rows) > 8
    for some in (frame[300:301], frame[300:330], frame.iloc[300]):
        assert explainer.explain(some).found.any()


@pytest.mark.parametrize("name", SKLEARN)
def test_a_copy_of_an_explainer_sees_no_change(name):
    explainer = explainer_of(copy.deepcopy(SKLEARN[name]).fit(X[HALF], Y[HALF]))
    again = pickle.loads(pickle.dumps(explainer))  # noqa: S301
    assert np.array_equal(again.explain(X[300:302]).counterfactual, explainer.explain(X[300:302]).counterfactual)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, int])
@pytest.mark.parametrize("name", ["forest", "linear", "pipeline of trees", "perceptron"])
def test_rows_of_another_dtype_are_no_change_of_the_model(name, dtype):
    model = copy.deepcopy(SKLEARN[name]).fit(X[HALF], Y[HALF])
    CounterfactualExplainer(model).fit(X[HALF]).explain(X[300:303].astype(dtype))
    CounterfactualExplainer(model).fit(X[HALF].astype(np.float32)).explain(X[300:303].astype(dtype))


def test_the_rows_of_the_fingerprint_ride_along_in_the_first_call():
    model = LogisticRegression(max_iter=5000).fit(X[HALF], Y[HALF])
    sizes = []

    def function(x):
        sizes.append(len(x))
        return model.predict_proba(x)

    explainer = CounterfactualExplainer(function).fit(X[HALF])
    sizes.clear()
    meta = explainer.explain(X[300:303]).meta
    assert sizes[0] == 3 + len(explainer.fitted_.fingerprint.rows)
    assert (meta["n_predict_calls"], meta["n_predicted_rows"]) == (len(sizes), sum(sizes))


def test_a_model_that_answers_at_random_is_named_at_fit_and_not_taken_for_another(caplog):
    model, rng = LogisticRegression(max_iter=5000).fit(X[HALF], Y[HALF]), np.random.default_rng(0)

    def function(x):
        p = np.clip(model.predict_proba(x)[:, 1] + 0.05 * rng.normal(size=len(x)), 0, 1)
        return np.stack([1 - p, p], axis=1)

    with caplog.at_level(logging.WARNING):
        explainer = CounterfactualExplainer(function).fit(X[HALF])
    assert [r for r in caplog.records if "different answers to the same rows twice" in r.getMessage()]
    e = explainer.explain(X[300:303])
    alone = model.predict(e.counterfactual[e.found])
    assert e.found.any()
    assert np.array_equal(alone, e.counterfactual_class[e.found])
