"""The XGBoost adapter: the model's own probabilities, objectives, frames, missing values and splits."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from cfproto_adapters.xgboost_adapter import cfproto_adapters, xgboost_adapter
from cfproto_adapters.xgboost_parts.in_place import in_place
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_iris

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.errors import InputError, ModelError, NotFittedError
from cfproto_plugin.helpers import tree_probabilities
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.testing import check_adapter

X, Y = load_breast_cancer(return_X_y=True)
NAMES = [f"column {i}" for i in range(30)]
IRIS, SPECIES = load_iris(return_X_y=True)
FAST = {"n_estimators": 12, "n_jobs": 1}


def thresholds(adapter):
    return Adapted.of(adapter, "xgboost").thresholds


def classifier(x=X, y=Y, **options):
    return xgb.XGBClassifier(**(FAST | options)).fit(x, y)


def booster(objective, x=X, y=Y, rounds=8, **options):
    parameters = {"objective": objective, "nthread": 1, "max_depth": 3} | options
    return xgb.train(parameters, xgb.DMatrix(x, y), num_boost_round=rounds)


@pytest.fixture(scope="module")
def model():
    return classifier()


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def named(frame):
    return classifier(frame)


@pytest.fixture(scope="module")
def stopped():
    options = {"n_estimators": 60, "learning_rate": 0.9, "early_stopping_rounds": 5, "max_depth": 4, "n_jobs": 1}
    return xgb.XGBClassifier(**options).fit(X[:250], Y[:250], eval_set=[(X[250:], Y[250:])], verbose=False)


@pytest.fixture(scope="module")
def colours():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"colour": pd.Categorical(rng.choice(list("abcd"), 400)), "size": rng.normal(size=400)})
    return rows, (rows["colour"].isin(["a", "c"]) ^ (rows["size"] > 0)).astype(int)


@pytest.fixture(scope="module")
def categorical(colours):
    return classifier(*colours, enable_categorical=True)


# Probabilities


@pytest.mark.parametrize("options", [{}, {"booster": "dart"}, {"booster": "gblinear"}, {"objective": "reg:logistic"}])
def test_binary_probabilities_are_those_of_predict_proba_bit_for_bit(options):
    fitted = classifier(**options)
    adapter = xgboost_adapter(fitted)
    check_adapter(adapter, X[:20])
    assert np.array_equal(adapter.predict(X), fitted.predict_proba(X))
    assert np.array_equal(adapter.predict(X).argmax(1), fitted.predict(X))


@pytest.mark.parametrize("options", [{}, {"objective": "multi:softmax"}, {"multi_strategy": "multi_output_tree"}])
def test_multiclass_probabilities_are_those_of_predict_proba_bit_for_bit(options):
    fitted = classifier(IRIS, SPECIES, **options)
    adapter = xgboost_adapter(fitted)
    check_adapter(adapter, IRIS[::10])
    assert np.array_equal(adapter.predict(IRIS), fitted.predict_proba(IRIS))
    assert np.array_equal(adapter.predict(IRIS).argmax(1), fitted.predict(IRIS))


def test_random_forest_classifier_has_its_own_probabilities():
    fitted = xgb.XGBRFClassifier(n_estimators=10, n_jobs=1).fit(X, Y)
    assert np.array_equal(xgboost_adapter(fitted).predict(X), fitted.predict_proba(X))


def test_logitraw_margins_become_probabilities_whose_class_is_that_of_the_model():
    fitted = classifier(objective="binary:logitraw", n_estimators=3)
    margins = fitted.predict(X, output_margin=True)
    assert ((margins > 0) & (margins < 0.5)).any(), "the data must hold rows where 0 and 0.5 decide differently"
    adapter = xgboost_adapter(fitted)
    check_adapter(adapter, X[:20])
    assert np.array_equal(adapter.predict(X).argmax(1), fitted.predict(X))


def test_logitraw_booster_gives_the_logistic_function_of_its_margins():
    native = booster("binary:logitraw")
    margins = native.predict(xgb.DMatrix(X)).astype(float)
    assert np.allclose(xgboost_adapter(native).predict(X)[:, 1], 1 / (1 + np.exp(-margins)), atol=1e-12)


def test_hinge_gives_certainties_as_predict_proba_does():
    fitted = classifier(objective="binary:hinge")
    adapter = xgboost_adapter(fitted)
    check_adapter(adapter, X[:20])
    assert set(np.unique(adapter.predict(X))) == {0.0, 1.0}
    assert np.array_equal(adapter.predict(X).argmax(1), fitted.predict(X))


def test_booster_with_labels_as_output_gives_the_softmax_of_its_margins():
    labels = booster("multi:softmax", IRIS, SPECIES, num_class=3)
    probabilities = booster("multi:softprob", IRIS, SPECIES, num_class=3)
    got = xgboost_adapter(labels).predict(IRIS)
    assert np.allclose(got, probabilities.predict(xgb.DMatrix(IRIS)), atol=1e-6)
    assert np.array_equal(got.argmax(1), labels.predict(xgb.DMatrix(IRIS)))


def test_booster_of_a_classifier_gives_the_same_as_the_classifier(model):
    assert np.array_equal(xgboost_adapter(model.get_booster()).predict(X), model.predict_proba(X))


def test_early_stopping_uses_the_trees_up_to_the_best_iteration(stopped):
    native = stopped.get_booster()
    everything = native.inplace_predict(X)
    assert stopped.best_iteration + 1 < native.num_boosted_rounds()
    for given in (stopped, native):
        got = xgboost_adapter(given).predict(X)
        assert np.array_equal(got, stopped.predict_proba(X))
        assert not np.array_equal(got[:, 1], everything)
    assert np.array_equal(xgboost_adapter(native, iteration_range=(0, 0)).predict(X)[:, 1], everything)


@pytest.mark.parametrize("missing", [np.nan, -1.0])
def test_missing_values_go_where_the_model_sends_them(missing):
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, missing, X)
    fitted = classifier(holes, missing=missing)
    assert np.array_equal(xgboost_adapter(fitted).predict(holes), fitted.predict_proba(holes))
    filled = np.where(holes == missing, 0.0, holes) if missing == missing else np.nan_to_num(holes)  # noqa: PLR0124 NaN
    assert not np.array_equal(xgboost_adapter(fitted).predict(filled), fitted.predict_proba(holes))


# Rows


def test_images_are_flattened(model):
    images = X.reshape(len(X), 5, 6)
    assert np.array_equal(xgboost_adapter(model).predict(images), model.predict_proba(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_predicted_alike_with_and_without_the_short_way(model, dtype, order, monkeypatch):
    rows = np.asarray(X, dtype=dtype, order=order)
    short = xgboost_adapter(model).predict(rows)
    plain = xgboost_adapter(model)
    with monkeypatch.context() as patch:
        patch.setattr(xgb.core, "_LIB", None)
        assert in_place(model.get_booster(), (0, 0), np.nan, margin=False) is None
    plain._in_place = None
    np.testing.assert_array_equal(plain.predict(rows), short)


def test_no_rows_give_no_rows(model):
    assert xgboost_adapter(model).predict(X[:0].reshape(0, 5, 6)).shape == (0, 2)
    assert xgboost_adapter(classifier(IRIS, SPECIES)).predict(IRIS[:0]).shape == (0, 3)


def test_array_works_for_a_model_trained_with_names(named):
    adapter = xgboost_adapter(named)
    assert adapter.accepts_frames
    assert np.array_equal(adapter.predict(X), named.predict_proba(named_frame(X)))


def named_frame(x):
    return pd.DataFrame(x, columns=NAMES)


def test_model_trained_without_names_asks_for_arrays(model, frame):
    adapter = xgboost_adapter(model)
    assert not adapter.accepts_frames
    assert np.array_equal(adapter.predict(frame), model.predict_proba(X))


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_frame_columns_in_another_order_are_put_right_by_name(named, frame, dtype):
    shuffled = frame.astype(dtype)[NAMES[::-1]]
    assert np.array_equal(xgboost_adapter(named).predict(shuffled), named.predict_proba(frame))


def test_integer_and_boolean_columns_are_numbers():
    rows = pd.DataFrame({"n": [1, 2, 3, 4] * 20, "yes": [True, False] * 40, "v": np.linspace(0, 1, 80)})
    fitted = classifier(rows, (rows["n"] > 2).to_numpy().astype(int))
    assert np.array_equal(xgboost_adapter(fitted).predict(rows), fitted.predict_proba(rows))


@pytest.mark.parametrize("columns", [range(30), pd.MultiIndex.from_product([["a", "b"], range(15)])])
def test_column_labels_that_are_not_strings_are_matched(columns):
    rows = pd.DataFrame(X, columns=columns)
    fitted = classifier(rows)
    assert np.array_equal(xgboost_adapter(fitted).predict(rows.iloc[:, ::-1]), fitted.predict_proba(rows))


def test_categorical_frame_is_passed_through_in_any_order(categorical, colours):
    rows, _ = colours
    adapter = xgboost_adapter(categorical)
    assert adapter.accepts_frames
    assert np.array_equal(adapter.predict(rows), categorical.predict_proba(rows))
    assert np.array_equal(adapter.predict(rows[["size", "colour"]]), categorical.predict_proba(rows))


def test_fit_on_text_says_to_make_it_a_category_as_in_training(categorical, colours):
    rows = colours[0].astype({"colour": object})
    expected = r"convert columns of text as in training: X\.astype\(\{'colour': 'category'\}\)"
    with pytest.raises(ModelError, match=expected):
        CounterfactualExplainer(categorical).fit(rows)
    CounterfactualExplainer(categorical).fit(colours[0])


def test_fit_on_numbers_stored_as_text_says_to_make_them_numbers(named, frame):
    texts = frame.astype({NAMES[0]: str})
    with pytest.raises(
        ModelError, match=f"Column '{NAMES[0]}' holds text that reads as numbers: .*to_numeric"
    ) as raised:
        CounterfactualExplainer(named).fit(texts)
    assert "category, convert" not in str(raised.value)


def test_categorical_frame_with_missing_values_works(categorical, colours):
    rows = colours[0].copy()
    rows.loc[0, "colour"] = None
    rows.loc[1, "size"] = np.nan
    assert np.array_equal(xgboost_adapter(categorical).predict(rows), categorical.predict_proba(rows))


def test_numbers_in_place_of_categories_are_refused_in_a_frame(categorical, colours):
    rows = colours[0].assign(colour=colours[0]["colour"].cat.codes)
    with pytest.raises(ModelError, match="data type doesn't match the one used in the training dataset"):
        xgboost_adapter(categorical).predict(rows)


def test_unknown_category_is_an_error_without_a_stack_trace(categorical, colours):
    rows = colours[0].assign(colour=pd.Categorical(["z"] * 400))
    with pytest.raises(ModelError, match=r"these rows: Found a category not in the training set.*`z`$") as caught:
        xgboost_adapter(categorical).predict(rows)
    assert "Stack trace" not in str(caught.value)


def test_wrong_number_of_columns_names_both_numbers(model):
    with pytest.raises(ModelError, match=r"\(569, 7\).* trained with 30 columns"):
        xgboost_adapter(model).predict(X[:, :7])
    with pytest.raises(ModelError, match=r"\(30,\).* trained with 30 columns"):
        xgboost_adapter(model).predict(X[0])


def test_frame_with_other_columns_names_them(named, model, frame):
    with pytest.raises(InputError, match="no column 'column 3'"):
        xgboost_adapter(named).predict(frame.rename(columns={"column 3": "age"}))
    with pytest.raises(InputError, match="has a column 'age'"):
        xgboost_adapter(named).predict(frame.assign(age=1.0))
    with pytest.raises(ModelError, match=r"has 29 columns; the XGBoost model was trained with 30"):
        xgboost_adapter(model).predict(frame.iloc[:, 1:])


def test_several_threads_get_the_same_answers(model):
    linear = classifier(booster="gblinear")
    for fitted in (model, linear):
        expected = fitted.predict_proba(X)
        with ThreadPoolExecutor(4) as pool:
            got = pool.map(xgboost_adapter(fitted).predict, [X] * 16)
            assert all(np.array_equal(expected, y) for y in got)


def test_adapter_can_be_pickled(model):
    again = pickle.loads(pickle.dumps(xgboost_adapter(model)))  # noqa: S301 our own bytes
    assert np.array_equal(again.predict(X), model.predict_proba(X))


def test_unpickled_adapter_takes_the_short_way_with_its_own_booster(model):
    again = pickle.loads(pickle.dumps(xgboost_adapter(model)))  # noqa: S301 our own
    assert again._in_place is not None
    np.testing.assert_array_equal(again._in_place(X[:9]), model.get_booster().inplace_predict(X[:9]))


def test_predicting_leaves_the_model_as_it_was(model):
    before = model.get_booster().save_config(), model.get_params()
    adapter = xgboost_adapter(model)
    adapter.predict(X)
    thresholds(adapter)
    assert (model.get_booster().save_config(), model.get_params()) == before


# Classes and splits


def test_classifier_has_classes_and_booster_has_none():
    fitted = classifier(IRIS, SPECIES)
    assert xgboost_adapter(fitted).classes.tolist() == [0, 1, 2]
    assert not hasattr(xgboost_adapter(fitted.get_booster()), "classes")


def splits_by_pandas(native, columns):
    """The same splits from XGBoost's own table, as {column: values}."""
    table = native.trees_to_dataframe()
    table = table[(table["Feature"] != "Leaf") & table["Category"].isna()]
    names = native.feature_names or [f"f{i}" for i in range(columns)]
    return [sorted(set(table[table["Feature"] == name]["Split"])) for name in names]


@pytest.mark.parametrize(
    "options",
    [{}, {"booster": "dart"}, {"tree_method": "exact", "gamma": 2.0, "max_depth": 8}, {"num_parallel_tree": 3}],
)
def test_thresholds_are_all_splits_of_all_trees(options):
    adapter = xgboost_adapter(fitted := classifier(**options))
    expected = splits_by_pandas(fitted.get_booster(), 30)
    found = thresholds(adapter)
    assert sum(map(len, expected)) > 15
    assert all(f.dtype == np.float64 for f in found)
    assert all(np.allclose(f, e, rtol=1e-6, atol=0) for f, e in zip(found, expected, strict=True))


def test_thresholds_are_exactly_where_the_prediction_changes():
    fitted = classifier(X[:, :1], n_estimators=3)
    adapter = xgboost_adapter(fitted)
    (splits,) = thresholds(adapter)
    at = splits.astype(np.float32)[:, None]
    below = np.nextafter(at, np.float32(-np.inf))
    assert np.array_equal(at[:, 0].astype(np.float64), splits)
    assert (adapter.predict(at) != adapter.predict(below)).any(axis=1).all()
    between = ((splits[1:] + splits[:-1]) / 2)[:, None]
    assert np.array_equal(adapter.predict(at[:-1]), adapter.predict(between))


def test_thresholds_are_those_of_the_trees_up_to_the_best_iteration(stopped):
    best = stopped.get_booster()[: stopped.best_iteration + 1]
    found = thresholds(xgboost_adapter(stopped))
    assert [len(f) for f in found] == [len(e) for e in splits_by_pandas(best, 30)]
    every = thresholds(xgboost_adapter(stopped, iteration_range=(0, 0)))
    assert sum(map(len, found)) < sum(map(len, every))


def test_thresholds_of_multiclass_models_cover_all_classes():
    fitted = classifier(IRIS, SPECIES)
    found = thresholds(xgboost_adapter(fitted))
    assert [len(f) for f in found] == [len(e) for e in splits_by_pandas(fitted.get_booster(), 4)]


def test_categorical_split_has_no_threshold(categorical):
    colour, size = thresholds(xgboost_adapter(categorical))
    assert len(colour) == 0
    assert len(size) > 0


def test_model_without_splits_has_no_thresholds():
    assert [len(t) for t in thresholds(xgboost_adapter(classifier(np.ones_like(X[:, :2]))))] == [0, 0]


def test_linear_booster_is_predict_only():
    found = Adapted.of(xgboost_adapter(classifier(booster="gblinear")), "xgboost")
    assert (found.trees, found.thresholds, found.vjp) == (None, None, None)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"booster": "dart", "rate_drop": 0.3},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"base_score": 0.3},
        {"missing": -1.0},
        {"objective": "reg:logistic"},
        {"objective": "binary:logitraw"},
        {"objective": "multi:softprob"},
        {"objective": "multi:softmax"},
        {"objective": "multi:softprob", "booster": "dart", "rate_drop": 0.3, "base_score": 0.2},
    ],
)
def test_the_trees_give_the_probabilities_of_the_model(options):
    rows, y = (IRIS, SPECIES) if "multi" in options.get("objective", "") else (X, Y)
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(rows.shape) < 0.1, options.get("missing", np.nan), rows)
    adapter = xgboost_adapter(classifier(rows, y, **options))
    moved = rows[rng.integers(len(rows), size=300)]
    columns = [j for j, values in enumerate(thresholds(adapter)) if len(values)]
    for row, j in zip(moved, rng.choice(columns, size=300), strict=True):
        row[j] = rng.choice(thresholds(adapter)[j])
    for typed in (rows, moved, rows.astype(np.float32), moved.astype(np.float32)):
        typed.flags.writeable = False
        assert np.abs(tree_probabilities(adapter.trees(), typed) - adapter.predict(typed)).max() < 1e-6
    assert adapter.thresholds() is None


def test_the_trees_are_those_up_to_the_best_iteration(stopped):
    adapter = xgboost_adapter(stopped)
    assert len(adapter.trees().trees) == stopped.best_iteration + 1
    assert np.abs(tree_probabilities(adapter.trees(), X) - stopped.predict_proba(X)).max() < 1e-6


def test_what_is_no_sum_of_trees_has_thresholds_only():
    hinge = classifier(objective="binary:hinge")
    vectors = classifier(IRIS, SPECIES, multi_strategy="multi_output_tree")
    for fitted in (hinge, vectors):
        adapter = xgboost_adapter(fitted)
        assert adapter.trees() is None
        assert sum(map(len, adapter.thresholds()))


def test_trees_that_do_not_give_what_the_model_gives_are_not_told(model, monkeypatch):
    adapter = xgboost_adapter(model)
    monkeypatch.setattr(adapter, "_base", lambda: np.array([1.0]))
    assert adapter.trees() is None
    assert sum(map(len, thresholds(adapter)))


# Models that are refused


def test_unfitted_models_are_not_fitted_errors():
    for unfitted in (xgb.XGBClassifier(), xgb.Booster()):
        with pytest.raises(NotFittedError, match=f"{type(unfitted).__name__} is not trained"):
            xgboost_adapter(unfitted)


@pytest.mark.parametrize(
    ("refused", "objective"),
    [
        (lambda: xgb.XGBRegressor(**FAST).fit(X, Y), "reg:squarederror"),
        (lambda: xgb.XGBRanker(**FAST).fit(X, Y, qid=np.zeros(len(X), int)), "rank:ndcg"),
        (lambda: booster("count:poisson"), "count:poisson"),
    ],
)
def test_model_without_classes_is_refused_with_its_objective(refused, objective):
    with pytest.raises(ModelError, match=rf"objective '{objective}'.*expected one of binary:logistic.*XGBClassifier"):
        xgboost_adapter(refused())


def test_multilabel_single_class_and_encoder_role_are_refused(model):
    with pytest.raises(ModelError, match="several labels at once"):
        xgboost_adapter(classifier(X, np.stack([Y, 1 - Y], axis=1)))
    with pytest.raises(ModelError, match="single class"):
        xgboost_adapter(classifier(X, np.zeros(len(X))))
    with pytest.raises(ModelError, match="'transform'"):
        xgboost_adapter(model, role="transform")


def test_claims_are_classes_of_imported_modules_and_come_before_scikit_learn():
    (spec,) = cfproto_adapters()
    claimed = [getattr(sys.modules[module], name) for module, name in (claim.split(":") for claim in spec.claims)]
    for cls in (xgb.XGBClassifier, xgb.XGBRFClassifier, xgb.XGBRegressor, xgb.XGBRanker):
        nearest = min(cls.__mro__.index(base) for base in claimed if base in cls.__mro__)
        assert nearest < cls.__mro__.index(BaseEstimator)
    assert xgb.Booster in claimed


def test_split_values_follow_the_columns_of_the_training_data():
    """The frame may have the model's columns in another order; the answers are the same."""
    frame = pd.DataFrame(X, columns=NAMES)
    model = classifier(frame)
    turned = frame[NAMES[::-1]]
    close = SearchConfig.close()  # the noise of the copies that measure stability follows the order of the columns
    explainer = CounterfactualExplainer(model, search=close).fit(turned)
    np.testing.assert_array_equal(
        explainer.fitted_.guide.splits.values, np.concatenate(thresholds(xgboost_adapter(model))[::-1])
    )
    expected = CounterfactualExplainer(model, search=close).fit(frame).explain(frame[:10]).counterfactual
    found = explainer.explain(turned[:10]).counterfactual
    pd.testing.assert_frame_equal(found[NAMES], expected, rtol=1e-6)
