"""Boosting and models made of tree models: their probabilities, asked for and walked, and their splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cfproto_adapters.sklearn_adapter import sklearn_adapter
from cfproto_adapters.sklearn_parts.ensembles import inside, walking
from cfproto_adapters.sklearn_parts.splits import splits
from cfproto_adapters.sklearn_parts.trees import walked
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn_models import COLUMNS, labels, perturbed, table, thresholds

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.testing import check_adapter

ADA = AdaBoostClassifier(n_estimators=15, random_state=0)
BOOSTED = [
    ADA,
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=15, learning_rate=0.3, random_state=0),
    AdaBoostClassifier(ExtraTreeClassifier(max_depth=2), n_estimators=15, random_state=0),
    AdaBoostClassifier(DecisionTreeClassifier(), random_state=0),  # the first tree is perfect: it stays alone
    GridSearchCV(ADA, {"n_estimators": [3, 5]}, cv=2),
]
FOREST = RandomForestClassifier(8, random_state=0)
GRADIENT = GradientBoostingClassifier(n_estimators=6, random_state=0)
HISTOGRAM = HistGradientBoostingClassifier(max_iter=6, random_state=0)
VOTING = VotingClassifier([("f", FOREST), ("a", ADA), ("h", HISTOGRAM)], voting="soft", weights=[3, 2, 1])
MIXED = VotingClassifier([("f", FOREST), ("n", GaussianNB()), ("x", "drop")], voting="soft")
NESTED = VotingClassifier([("v", VOTING), ("p", make_pipeline(RobustScaler(), FOREST))], voting="soft")
STACKED = StackingClassifier([("f", FOREST), ("a", ADA)], LogisticRegression(), cv=2)
STACKED_ON_ROWS = StackingClassifier([("f", FOREST)], FOREST, cv=2, passthrough=True)
MADE_OF_MODELS = {
    "voting": VOTING,
    "voting of mixed models": MIXED,
    "nested voting": NESTED,
    "stacked": STACKED,
    "stacked on rows": STACKED_ON_ROWS,
    "calibrated forest": CalibratedClassifierCV(FOREST, cv=2),
    "calibrated boosting": CalibratedClassifierCV(ADA, cv=2, method="isotonic"),
    "calibrated together": CalibratedClassifierCV(GridSearchCV(FOREST, {}, cv=2), cv=2, ensemble=False),
    "one vs rest": OneVsRestClassifier(FOREST),
}


def fit(model, classes, frame=False):
    x, y = table(classes)
    return clone(model).fit(pd.DataFrame(x, columns=COLUMNS) if frame else x, np.array(["a", "b", "c"])[y])


@pytest.mark.parametrize("model", BOOSTED)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.int64])
def test_walked_boosting_gives_the_bits_of_predict_proba_and_the_classes_of_predict(model, classes, dtype):
    model = fit(model, classes)
    adapter = sklearn_adapter(model)
    walk = walked(getattr(model, "best_estimator_", model))
    for rows in (perturbed(classes), perturbed(classes, 1), np.asfortranarray(table(classes)[0])):
        rows = rows.astype(dtype)  # noqa: PLW2901
        assert np.array_equal(walk.predict_proba(rows), model.predict_proba(rows))
        assert np.array_equal(walk.decision_function(rows), model.decision_function(rows))
        assert np.array_equal(labels(adapter, rows), model.predict(rows))
        assert np.allclose(adapter.predict(rows), model.predict_proba(rows), rtol=0, atol=1e-8)


def test_boosting_of_ten_classes_keeps_its_bits():
    x, y = load_digits(return_X_y=True)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=20, random_state=0).fit(x, y)
    adapter = sklearn_adapter(model)
    assert np.array_equal(adapter.predict(x), model.predict_proba(x))
    assert np.abs(adapter.quick(x) - model.predict_proba(x)).max() < 1e-15


def test_a_tie_of_probabilities_goes_to_the_class_boosting_predicts():
    model = fit(AdaBoostClassifier(n_estimators=3, random_state=0), 2)
    model.estimator_weights_ = np.array([1.0, 1.0, 1e-20])
    rows = perturbed(2)
    tied = model.predict_proba(rows)[:, 0] == 0.5
    assert (model.predict(rows)[tied] == "b").any()
    adapter = sklearn_adapter(model)
    assert np.array_equal(labels(adapter, rows), model.predict(rows))
    assert np.array_equal(adapter.classes[adapter.quick(rows).argmax(axis=1)], model.predict(rows))


def test_a_forest_inside_a_vote_is_walked():
    model = fit(VOTING, 2)
    asked = []
    for part in model.estimators_:
        part.predict_proba = lambda x, own=part.predict_proba: asked.append(1) or own(x)
    adapter = sklearn_adapter(model)
    quick = adapter.quick(perturbed(2))
    assert not asked
    assert np.abs(quick - adapter.predict(perturbed(2))).max() < 1e-12
    assert len(asked) == 3


def test_boosting_of_other_models_is_left_to_predict_proba():
    model = fit(AdaBoostClassifier(GaussianNB(), n_estimators=5, random_state=0), 3)
    adapter = sklearn_adapter(model)
    assert walked(model) is None
    assert thresholds(adapter) is None
    assert np.array_equal(labels(adapter, perturbed(3)), model.predict(perturbed(3)))


def test_boosting_that_adds_up_logarithms_is_not_walked():
    model = fit(ADA, 2)
    model.algorithm = "SAMME.R"
    assert walked(model) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_values_boosting_refuses_are_refused(bad):
    rows = perturbed(2, 3)
    rows[1, 1] = bad
    with pytest.raises(ValueError, match=r"Input X contains"):
        sklearn_adapter(fit(ADA, 2)).predict(rows)


@pytest.mark.parametrize(("classes", "frame"), [(2, False), (3, True)])
@pytest.mark.parametrize("name", MADE_OF_MODELS)
def test_models_made_of_walked_models_keep_their_bits_and_classes(name, classes, frame):
    model = fit(MADE_OF_MODELS[name], classes, frame)
    adapter = sklearn_adapter(model)
    for rows in (perturbed(classes), perturbed(classes, 1)):
        native = pd.DataFrame(rows, columns=COLUMNS) if frame else rows
        assert np.array_equal(walking(model).predict_proba(native), model.predict_proba(native))
        assert np.array_equal(labels(adapter, rows), model.predict(native))
        for function in (adapter.predict, adapter.quick):
            assert np.allclose(function(rows), model.predict_proba(native), rtol=0, atol=1e-12)
    check_adapter(adapter, perturbed(classes, 6))
    assert not any("predict_proba" in vars(part) for part in inside(model))  # the model itself is left as it was


def test_a_stacked_model_without_probabilities_follows_its_final_estimator():
    model = fit(StackingClassifier([("f", FOREST)], SVC(), cv=2), 3)
    assert np.array_equal(labels(sklearn_adapter(model), perturbed(3)), model.predict(perturbed(3)))


@pytest.mark.parametrize("inner", [ADA, VOTING])
def test_a_moved_threshold_walks_what_is_inside(inner):
    model = FixedThresholdClassifier(clone(inner), threshold=0.4, pos_label="a")
    model = fit(model, 2)
    adapter = sklearn_adapter(model)
    assert np.array_equal(labels(adapter, perturbed(2)), model.predict(perturbed(2)))
    assert [t.tolist() for t in thresholds(adapter)] == [t.tolist() for t in splits(model.estimator_)]


SPLITTING = {
    "ada": ADA,
    "gradient": GRADIENT,
    "gradient from zero": clone(GRADIENT).set_params(init="zero"),
    "histogram": HISTOGRAM,
    "voting": VOTING,
    "nested voting": NESTED,
    "stacked": STACKED,
    "calibrated": CalibratedClassifierCV(FOREST, cv=2),
    "one vs rest": OneVsRestClassifier(FOREST),
    "standard forest": make_pipeline(StandardScaler(), FOREST),
    "uncentred boosting": make_pipeline(StandardScaler(with_mean=False), ADA),
    "min max histogram": make_pipeline(MinMaxScaler((-1, 3)), HISTOGRAM),
    "two scalers": make_pipeline(MaxAbsScaler(), "passthrough", RobustScaler(), GRADIENT),
    "clipped": make_pipeline(MinMaxScaler(clip=True), FOREST),
}
RAW = np.array([300.0, 1e-3, 7.0, 0.05, 2e4, 1.0, 40.0, 0.5])  # columns of unlike size, far from zero


def raw(x):
    return x * RAW / 10 + RAW


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", SPLITTING)
def test_predictions_change_just_across_thresholds_and_nowhere_else(name, classes):
    x, y = table(classes)
    model = clone(SPLITTING[name]).fit(raw(x), y)
    adapter = sklearn_adapter(model)
    check_adapter(adapter, raw(perturbed(classes, 4)))
    found = thresholds(adapter)
    assert sum(len(values) for values in found) > 4
    for column, values in enumerate(found):
        near = values.astype(np.float32)
        below, above = (np.nextafter(near, np.float32(side)).astype(np.float64) for side in (-np.inf, np.inf))
        inside = np.where(np.r_[below, np.inf] > np.r_[-np.inf, above])[0]  # the intervals that hold a float32
        rows = np.tile(raw(x[:1]), (2 * len(inside), 1))
        low, high = np.r_[raw(-9.0)[column] - 1, above][inside], np.r_[below, raw(9.0)[column] + 1][inside]
        rows[:, column] = np.r_[low, high]
        p = adapter.predict(rows)
        assert np.array_equal(p[: len(inside)], p[len(inside) :])


@pytest.mark.parametrize("name", ["gradient", "histogram", "ada"])
def test_thresholds_of_a_single_tree_are_its_splits(name):
    x, y = table(2)
    options = {"max_iter": 1, "max_leaf_nodes": 6} if name == "histogram" else {"n_estimators": 1}
    model = clone(SPLITTING[name]).set_params(**options).fit(x, y)
    found = thresholds(sklearn_adapter(model))
    for column, values in enumerate(found):
        for t in values:
            around = np.tile(x, (2, 1))
            around[: len(x), column], around[len(x) :, column] = t - 1e-6, t + 1e-6
            p = model.predict_proba(around)
            assert not np.array_equal(p[: len(x)], p[len(x) :])
    nodes = {"gradient": 7, "histogram": 5, "ada": 1}[name]
    assert sum(map(len, found)) == nodes


@pytest.mark.parametrize(
    "model",
    [
        MIXED,
        STACKED_ON_ROWS,
        clone(GRADIENT).set_params(init=GaussianNB()),
        make_pipeline(PolynomialFeatures(2), FOREST),
        make_pipeline(StandardScaler(), PolynomialFeatures(2), ADA),
        HistGradientBoostingClassifier(max_iter=3, categorical_features=[2]),
    ],
)
def test_models_that_depend_on_more_than_splits_of_their_columns_have_no_thresholds(model):
    x, y = table(2)
    adapter = sklearn_adapter(clone(model).fit(np.rint(np.abs(x)), y))
    assert thresholds(adapter) is None
    check_adapter(adapter, np.rint(np.abs(perturbed(2, 4))))


@pytest.mark.parametrize("change", ["absent", "other objects", "other fields"])
def test_histogram_boosting_that_hides_its_nodes_has_no_thresholds(change):
    model = fit(HISTOGRAM, 2)
    if change == "absent":
        found = {key: value for key, value in vars(model).items() if key != "_predictors"}
        model.__dict__ = found
    elif change == "other objects":
        model._predictors = [[object()]]
    else:
        for (tree,) in model._predictors:
            tree.nodes = np.zeros(3, dtype=[("feature", int), ("threshold", float)])
    assert splits(model) is None


def test_splits_between_missing_and_present_have_no_threshold():
    x, y = table(2)
    holes = np.where((y == 1)[:, None] & (np.arange(8) == 3), np.nan, x)
    for model in (HISTOGRAM, FOREST):
        adapter = sklearn_adapter(clone(model).fit(holes, y))
        assert np.array_equal(adapter.predict(holes).argmax(axis=1), y)
        assert all((np.abs(values) < 1e10).all() for values in thresholds(adapter))


def test_trees_without_splits_behind_a_scaler_have_empty_thresholds():
    x, y = table(2)
    found = thresholds(sklearn_adapter(make_pipeline(StandardScaler(), FOREST).fit(np.ones_like(x), y)))
    assert [len(values) for values in found] == [0] * 8


@pytest.mark.parametrize("name", ["histogram", "standard forest", "ada"])
def test_polishing_along_the_thresholds_comes_nearer_for_about_as_many_predictions(name):
    x, y = table(2)
    model = clone(SPLITTING[name]).fit(x, y)
    rows = x[::5]

    def measured(classifier):
        explainer = CounterfactualExplainer(classifier, search=SearchConfig.close()).fit(x)
        explainer.fitted_ = replace(explainer.fitted_, tuning=Tuning())  # models with splits have more starts
        e = explainer.explain(rows)
        delta = (e.counterfactual - rows) / x.std(axis=0)
        size = 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)
        return size.mean(), e.meta["n_predicted_rows"]

    (along, few), (freely, many) = measured(model), measured(sklearn_adapter(model).predict)
    assert along < freely
    assert few < 1.25 * many
