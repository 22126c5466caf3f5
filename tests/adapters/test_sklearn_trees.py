"""Trees and forests: the same bits as predict_proba when walked, the trees as arrays, and where the splits are."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from cfproto_adapters.sklearn_adapter import sklearn_adapter
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn_models import COLUMNS, TREES, labels, model_of, perturbed, table, thresholds

from cfproto_plugin.helpers import tree_probabilities
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.testing import check_adapter

FOREST = RandomForestClassifier(30, random_state=0)
MODELS = [
    FOREST,
    RandomForestClassifier(30, max_leaf_nodes=6, class_weight="balanced", random_state=0),
    RandomForestClassifier(30, max_depth=2, criterion="entropy", ccp_alpha=0.01, random_state=0),
    ExtraTreesClassifier(30, min_samples_leaf=3, random_state=0),
    DecisionTreeClassifier(min_samples_leaf=4, random_state=0),
    ExtraTreeClassifier(max_depth=4, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=7, random_state=0),
    GridSearchCV(FOREST, {"n_estimators": [3, 5]}, cv=2),
    make_pipeline(StandardScaler(), FOREST),
    make_pipeline("passthrough", FOREST),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.int64])
def test_walking_gives_the_bits_of_predict_proba(model, classes, dtype):
    x, y = table(classes)
    model = clone(model).fit(x, np.array(["a", "b", "c"])[y])
    for rows in (x, perturbed(classes), perturbed(classes, 1), np.asfortranarray(x)):
        rows = rows.astype(dtype)  # noqa: PLW2901
        adapter = sklearn_adapter(model)
        assert np.array_equal(adapter.predict(rows), model.predict_proba(rows))
        assert np.array_equal(adapter.quick(rows), model.predict_proba(rows))


def test_the_search_walks_the_trees_and_does_not_ask_the_forest(monkeypatch):
    x, y = table(2)
    adapter = sklearn_adapter(clone(FOREST).fit(x, y))
    expected = adapter.predict(x)
    monkeypatch.setattr(RandomForestClassifier, "predict_proba", None)
    walk = getattr(adapter, "quick", adapter.predict)
    np.testing.assert_allclose(walk(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", [FOREST, DecisionTreeClassifier(random_state=0)])
@pytest.mark.parametrize("trained_on_missing", [True, False])
def test_missing_values_go_where_the_model_sends_them(model, trained_on_missing):
    x, y = table(3)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.2, np.nan, x)
    model = clone(model).fit(holes if trained_on_missing else x, y)
    adapter = sklearn_adapter(model)
    frame = pd.DataFrame(holes, columns=COLUMNS).convert_dtypes()
    for function in (adapter.predict, adapter.quick):
        assert np.array_equal(function(holes), model.predict_proba(holes))
        assert np.array_equal(function(frame), model.predict_proba(holes))
    assert all(np.isfinite(values).all() for values in thresholds(adapter))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e300])
def test_values_the_model_refuses_are_refused(bad):
    rows = perturbed(2, 3)
    rows[1, 1] = bad
    adapter = sklearn_adapter(model_of("forest", 2))
    for function in (adapter.predict, adapter.quick):
        with pytest.raises(ValueError, match=r"Input X contains infinity"):
            function(rows)


def test_a_forest_with_other_jobs_gives_the_same_classes():
    x, y = table(3)
    model = RandomForestClassifier(20, n_jobs=2, random_state=0).fit(x, y)
    assert np.array_equal(labels(sklearn_adapter(model), x), model.predict(x))
    assert np.allclose(sklearn_adapter(model).predict(x), model.predict_proba(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", TREES)
def test_thresholds_are_the_splits_of_all_trees(name):
    model = model_of(name, 3)
    adapter = sklearn_adapter(model)
    check_adapter(adapter, perturbed(3, 5))
    last = model[-1] if hasattr(model, "steps") else model
    expected = [set() for _ in range(8)]
    for tree in getattr(last, "estimators_", [last]):
        inner = tree.tree_
        for node in range(inner.node_count):
            if inner.children_left[node] != inner.children_right[node]:
                expected[inner.feature[node]].add(inner.threshold[node])
    assert [set(values.tolist()) for values in thresholds(adapter)] == expected
    assert all(values.dtype == np.float64 for values in thresholds(adapter))


def test_a_column_without_splits_has_an_empty_array_of_thresholds():
    x, y = table(2)
    only_first = x * ([1] + [0] * 7)
    found = thresholds(sklearn_adapter(DecisionTreeClassifier(max_depth=2).fit(only_first, y)))
    assert len(found[0])
    assert [len(values) for values in found[1:]] == [0] * 7


def test_crossing_a_threshold_changes_the_leaf_and_nothing_in_between_does():
    x, y = table(3)
    model = DecisionTreeClassifier(random_state=0).fit(x, y)
    found = thresholds(sklearn_adapter(model))
    tree = model.tree_
    row = x[0].copy()
    at_root, column = tree.threshold[0], tree.feature[0]
    below = np.float32(at_root)
    below = below if below <= at_root else np.nextafter(below, np.float32(-np.inf))
    left, right = row.copy(), row.copy()
    left[column], right[column] = below, np.nextafter(below, np.float32(np.inf))
    assert model.apply([left])[0] != model.apply([right])[0]
    for c, values in enumerate(found):
        edges = np.concatenate([[-9.0], values, [9.0]])
        for low, high in pairwise(edges):
            inside = np.tile(row, (5, 1))
            inside[:, c] = np.linspace(low, high, 7)[1:-1]
            assert len(set(model.apply(inside))) == 1


# The trees as arrays

SUMS = {
    "tree": DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
    "forest": FOREST,
    "extra trees": ExtraTreesClassifier(20, random_state=0),
    "bagged trees": BaggingClassifier(n_estimators=7, random_state=0),
    "ada boost": AdaBoostClassifier(n_estimators=15, random_state=0),
    "ada boost, deep": AdaBoostClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=15, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=15, random_state=0),
    "from zero": GradientBoostingClassifier(n_estimators=15, init="zero", random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=15, random_state=0),
    "stopped early": HistGradientBoostingClassifier(max_iter=60, early_stopping=True, random_state=0),
}
TAKES_MISSING = ("tree", "forest", "extra trees", "histogram boosting")


def at_thresholds(rows, splits):
    """The rows with, in turn, one of their columns exactly at a threshold, or a hair above or below it."""
    rows, rng = rows.copy(), np.random.default_rng(0)
    columns = [j for j, values in enumerate(splits) if len(values)]
    for i, row in enumerate(rows):
        j = columns[i % len(columns)]
        value = rng.choice(splits[j])
        row[j] = [value, np.nextafter(value, np.inf), np.nextafter(value, -np.inf)][i % 3]
    return rows


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", SUMS)
def test_the_trees_give_the_probabilities_of_the_model(name, classes):
    x, y = table(classes)
    model = clone(SUMS[name]).fit(x, np.array(["a", "b", "c"])[y])
    adapter = sklearn_adapter(model)
    for rows in (x, perturbed(classes), at_thresholds(perturbed(classes), thresholds(adapter))):
        for typed in (rows, rows.astype(np.float32)):
            expected = model.predict_proba(typed)
            assert np.abs(tree_probabilities(adapter.trees(), typed) - expected).max() < 1e-12
            assert np.abs(adapter.quick(typed) - expected).max() < 1e-12
            assert np.abs(adapter.quick(typed[:9]) - expected[:9]).max() < 1e-12


@pytest.mark.parametrize("trained_on_missing", [True, False])
@pytest.mark.parametrize("name", TAKES_MISSING)
def test_the_trees_send_missing_values_where_the_model_does(name, trained_on_missing):
    x, y = table(3)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.2, np.nan, x)
    model = clone(SUMS[name]).fit(holes if trained_on_missing else x, y)
    adapter = sklearn_adapter(model)
    for rows in (holes, holes.astype(np.float32)):
        assert np.abs(tree_probabilities(adapter.trees(), rows) - model.predict_proba(rows)).max() < 1e-12
        assert np.abs(adapter.quick(rows) - model.predict_proba(rows)).max() < 1e-12


def test_exponential_boosting_is_a_sum_of_trees_too():
    x, y = table(2)
    model = GradientBoostingClassifier(loss="exponential", n_estimators=10, random_state=0).fit(x, y)
    adapter = sklearn_adapter(model)
    assert np.abs(tree_probabilities(adapter.trees(), perturbed(2)) - model.predict_proba(perturbed(2))).max() < 1e-12


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=3, init=DummyClassifier()),
        HistGradientBoostingClassifier(max_iter=3, categorical_features=[0]),
        BaggingClassifier(max_features=0.5, n_estimators=3, random_state=0),
        AdaBoostClassifier(BaggingClassifier(n_estimators=2), n_estimators=2, random_state=0),
        make_pipeline(StandardScaler(), FOREST),
    ],
)
def test_what_is_no_sum_of_trees_on_these_columns_has_no_trees(model):
    x, y = table(2)
    found = Adapted.of(sklearn_adapter(clone(model).fit(np.abs(x).round(), y)), "sklearn")
    assert found.trees is None


def test_a_tie_of_gradient_boosting_goes_to_the_class_it_predicts():
    """scikit-learn gives a decision of 0 to the second class."""
    x, y = table(2)
    model = GradientBoostingClassifier(n_estimators=1, init="zero", max_depth=1).fit(np.zeros_like(x), y)
    model.estimators_[0, 0].tree_.value[:] = 0.0
    adapter = sklearn_adapter(model)
    assert (model.predict(x) == 1).all()
    assert (adapter.predict(x).argmax(axis=1) == 1).all()
    assert (adapter.quick(x).argmax(axis=1) == 1).all()


def test_an_unpickled_adapter_makes_its_trees_again():
    adapter = sklearn_adapter(model_of("forest", 3))
    bytes_before = pickle.dumps(adapter)
    adapter.quick(perturbed(3))
    again = pickle.loads(pickle.dumps(adapter))  # noqa: S301 our own bytes
    assert len(pickle.dumps(adapter)) == len(bytes_before)
    assert np.array_equal(again.quick(perturbed(3)), adapter.quick(perturbed(3)))
    assert len(again.trees().trees) == 20
