"""The model's own probabilities, columns by name, splits where the predictions change, and what is refused."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from cfproto_plugin import CounterfactualExplainer, adapt
from cfproto_plugin.errors import InputError, ModelError, NotFittedError
from cfproto_plugin.helpers import tree_probabilities
from sklearn.datasets import load_breast_cancer, load_wine

from cfproto_lightgbm import LightGBMAdapter
from cfproto_lightgbm.adapter import load_booster

X, Y = load_breast_cancer(return_X_y=True)
WINE, KINDS = load_wine(return_X_y=True)
FAST = {"n_estimators": 10, "n_jobs": 1, "verbose": -1}


def classifier(x=X, y=Y, **options):
    return lgb.LGBMClassifier(**(FAST | options)).fit(x, y)


def booster(objective="binary", x=X, y=Y, rounds=8, **options):
    parameters = {"objective": objective, "num_threads": 1, "verbose": -1} | options
    return lgb.train(parameters, lgb.Dataset(x, y), rounds)


@pytest.fixture(scope="module")
def mixed():
    """Colours, a size and a count: the class needs the colour and the size together."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "the colour": pd.Categorical(rng.choice(list("abcd"), 600)),
            "size": rng.normal(size=600),
            "count": rng.integers(0, 9, 600),
        }
    )
    return rows, np.where(rows["the colour"].isin(["a", "c"]) ^ (rows["size"] > 0), "yes", "no")


@pytest.fixture(scope="module")
def mixed_model(mixed):
    return classifier(*mixed, n_estimators=30, min_child_samples=2)


# Probabilities


@pytest.mark.parametrize("options", [{}, {"boosting_type": "dart"}, {"objective": "cross_entropy"}])
def test_binary_probabilities_are_those_of_predict_proba_bit_for_bit(options):
    model = classifier(**options)
    assert np.array_equal(LightGBMAdapter(model).predict(X), model.predict_proba(X))


def test_multiclass_probabilities_are_those_of_predict_proba_bit_for_bit():
    model = classifier(WINE, KINDS)
    assert np.array_equal(LightGBMAdapter(model).predict(WINE), model.predict_proba(WINE))


def test_one_against_all_probabilities_are_divided_by_their_sum_and_keep_the_class():
    model = classifier(WINE, KINDS, objective="multiclassova")
    raw, y = model.predict_proba(WINE), LightGBMAdapter(model).predict(WINE)
    assert np.abs(raw.sum(axis=1) - 1).max() > 1e-3
    assert np.allclose(y, raw / raw.sum(axis=1, keepdims=True), rtol=1e-12)
    assert np.array_equal(y.argmax(axis=1), model.predict(WINE))


def test_lambda_becomes_the_probability_of_its_margin():
    native = booster("cross_entropy_lambda")
    margin = native.predict(X, raw_score=True)
    assert np.allclose(LightGBMAdapter(native).predict(X)[:, 1], 1 / (1 + np.exp(-margin)), rtol=1e-12)


def test_model_that_stopped_early_uses_the_trees_up_to_its_best_iteration():
    stopped = booster(rounds=20)
    stopped.best_iteration = 6  # what lightgbm.early_stopping sets; keep_training_booster=True keeps the later trees
    adapter = LightGBMAdapter(stopped)
    assert stopped.num_trees() == 20
    assert np.array_equal(adapter.predict(X)[:, 1], stopped.predict(X, num_iteration=6))
    best = stopped.dump_model(num_iteration=6)
    assert sum(map(len, adapter.thresholds())) == len({*splits(best)})


def test_classes_are_the_labels_of_a_classifier_and_numbers_of_a_booster(mixed_model):
    assert LightGBMAdapter(mixed_model).classes.tolist() == ["no", "yes"]
    assert LightGBMAdapter(booster()).classes.tolist() == [0, 1]
    assert LightGBMAdapter(booster("multiclass", WINE, KINDS, num_class=3)).classes.tolist() == [0, 1, 2]


def test_several_threads_get_the_same_answers():
    model = classifier()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(LightGBMAdapter(model).predict, [X] * 8)
        assert all(np.array_equal(model.predict_proba(X), y) for y in found)


def test_adapter_can_be_pickled(mixed, mixed_model):
    for model, rows in ((mixed_model, mixed[0]), (booster(), X)):
        adapter = LightGBMAdapter(model)
        again = pickle.loads(pickle.dumps(adapter))
        assert np.array_equal(again.predict(rows), adapter.predict(rows))


# Columns


def test_frames_are_taken_by_name(mixed, mixed_model):
    rows, _ = mixed
    expected = mixed_model.predict_proba(rows)
    adapter = LightGBMAdapter(mixed_model)
    assert adapter.accepts_frames
    assert np.array_equal(adapter.predict(rows), expected)
    assert np.array_equal(adapter.predict(rows[["count", "size", "the colour"]]), expected)


def test_numeric_frame_gives_what_its_array_gives_without_warning_about_names():
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(30)])
    adapter = LightGBMAdapter(classifier(frame))
    assert np.array_equal(adapter.predict(frame), adapter.predict(X))
    assert np.array_equal(adapter.predict(frame[frame.columns[::-1]]), adapter.predict(X))


def test_model_trained_on_an_array_takes_the_columns_of_a_frame_as_they_come():
    adapter = LightGBMAdapter(classifier())
    assert not adapter.accepts_frames
    assert np.array_equal(adapter.predict(pd.DataFrame(X)), adapter.predict(X))


def test_wrong_columns_are_named(mixed, mixed_model):
    rows, _ = mixed
    adapter = LightGBMAdapter(mixed_model)
    with pytest.raises(InputError, match=r"no column 'size'"):
        adapter.predict(rows.rename(columns={"size": "width"}))
    with pytest.raises(InputError, match="a column 'more' that"):
        adapter.predict(rows.assign(more=1))
    with pytest.raises(ModelError, match=r"rows have shape \(2, 5\); the LightGBM model was trained with 3"):
        adapter.predict(np.ones((2, 5)))
    with pytest.raises(ModelError, match=r"categorical_feature do not match.*astype\({name: 'category'}\)"):
        adapter.predict(rows.astype({"the colour": str}))


def test_images_are_flattened():
    adapter = LightGBMAdapter(classifier())
    assert np.array_equal(adapter.predict(X.reshape(-1, 5, 6)), adapter.predict(X))


# Splits


def splits(dump):
    """Column and value of every numeric split, by recursion over LightGBM's own dump."""

    def walk(node):
        if "split_feature" in node:
            if node["decision_type"] == "<=":
                yield node["split_feature"], node["threshold"]
            yield from walk(node["left_child"])
            yield from walk(node["right_child"])

    for tree in dump["tree_info"]:
        yield from walk(tree["tree_structure"])


def test_thresholds_are_all_numeric_splits_of_all_trees():
    for native in (booster(), booster("multiclass", WINE, KINDS, num_class=3)):
        found = LightGBMAdapter(native).thresholds()
        expected = sorted({*splits(native.dump_model())})
        assert [(column, value) for column, values in enumerate(found) for value in values] == expected
        assert len(expected) > 15


def test_thresholds_are_exactly_where_the_prediction_changes():
    adapter = LightGBMAdapter(booster(x=X[:, :1], rounds=3))
    (at,) = adapter.thresholds()
    above = np.nextafter(at, np.inf)
    assert (adapter.predict(at[:, None]) != adapter.predict(above[:, None])).any(axis=1).all()
    assert np.array_equal(adapter.predict(above[:-1, None]), adapter.predict(at[1:, None]))


def test_category_has_no_threshold(mixed_model):
    colour, size, count = LightGBMAdapter(mixed_model).thresholds()
    assert len(colour) == 0
    assert len(size) > 0
    assert len(count) > 0


def test_zero_that_counts_as_missing_has_a_threshold_on_either_side():
    x = np.repeat([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0], 100)[:, None]
    native = booster(x=x, y=(x[:, 0] == 0) | (x[:, 0] < -1), rounds=1, zero_as_missing=True)
    ((_, split),) = splits(native.dump_model())
    assert round(split, 9) == -1.5, "zero joins the far side without a split of its own"
    adapter = LightGBMAdapter(native)
    left, zero, right = adapter.predict(np.array([[-1.1e-35], [0.0], [1.1e-35]]))[:, 1]
    assert zero > left == right
    assert np.allclose(adapter.thresholds(), [[-1.5, -1e-35, 1e-35]], rtol=1e-7, atol=0)


def test_linear_leaves_change_between_splits_so_there_are_no_thresholds():
    adapter = LightGBMAdapter(booster(linear_tree=True))
    assert adapter.thresholds() is None
    assert adapter.trees() is None
    assert np.array_equal(adapter.predict(X)[:, 1], booster(linear_tree=True).predict(X))


def test_model_without_splits_has_no_thresholds():
    adapter = LightGBMAdapter(booster(x=np.ones_like(X[:, :2])))
    assert [len(values) for values in adapter.thresholds()] == [0, 0]


# Trees


FOREST = {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}


@pytest.mark.parametrize(
    "options", [{}, {"boosting": "dart"}, FOREST, {"sigmoid": 3.0}, {"use_missing": False}], ids=str
)
@pytest.mark.parametrize("objective", ["binary", "cross_entropy", "cross_entropy_lambda", "multiclass"])
@pytest.mark.parametrize("holes", [False, True], ids=["no NaN", "trained with NaN"])
def test_trees_say_what_the_model_says(objective, options, holes):
    x, y = (WINE, KINDS) if objective == "multiclass" else (X, Y)
    with_holes = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)
    adapter = LightGBMAdapter(
        booster(objective, with_holes if holes else x, y, num_class=1 + 2 * (y.max() > 1), **options)
    )
    at_splits = np.stack([np.random.default_rng(1).choice(np.append(t, 0.0), 50) for t in adapter.thresholds()], axis=1)
    for rows in (x, with_holes, at_splits, -x, np.zeros_like(x[:1]), x.astype(np.float32)):
        found = tree_probabilities(adapter.trees(), rows)
        assert np.allclose(found, adapter.predict(rows), rtol=1e-9, atol=1e-12)


def test_what_is_no_sum_of_such_trees_has_none(mixed_model):
    for model in (
        mixed_model,  # splits by category
        booster("multiclassova", WINE, KINDS, num_class=3),  # a link of its own
        booster(zero_as_missing=True),  # numbers next to zero go where missing values go
        booster(linear_tree=True),
    ):
        assert LightGBMAdapter(model).trees() is None


# Files


def test_saved_booster_is_read_again(tmp_path):
    native = booster()
    native.save_model(tmp_path / "model.txt")
    assert np.array_equal(load_booster(tmp_path / "model.txt").predict(X), native.predict(X))


# What is refused


@pytest.mark.parametrize(
    ("refused", "objective"),
    [
        (lambda: lgb.LGBMRegressor(**FAST).fit(X, Y), "regression"),
        (lambda: lgb.LGBMRanker(**FAST).fit(X, Y, group=[len(X)]), "lambdarank"),
        (lambda: booster("poisson"), "poisson"),
        (lambda: booster(lambda preds, data: (preds - data.get_label(), np.ones_like(preds))), "custom"),
    ],
)
def test_model_without_classes_is_refused_with_its_objective(refused, objective):
    with pytest.raises(ModelError, match=f"objective '{objective}'.*expected one of binary, .*x -> probabilities"):
        CounterfactualExplainer(refused()).fit(X)


def test_untrained_models_are_refused():
    for model in (lgb.LGBMClassifier(), lgb.Booster(train_set=lgb.Dataset(X, Y, params={"verbose": -1}))):
        with pytest.raises(NotFittedError, match=f"{type(model).__name__} (is not trained|has no trees)"):
            LightGBMAdapter(model)


def test_single_class_and_encoder_role_are_refused():
    with pytest.raises(ModelError, match="single class"):
        LightGBMAdapter(classifier(X, np.zeros(len(X))))
    with pytest.raises(ModelError, match="'transform'"):
        LightGBMAdapter(classifier(), role="transform")


def test_option_that_it_does_not_know_is_refused_with_a_suggestion():
    assert adapt(booster(), num_threads=1).predict(X).shape == (569, 2)
    with pytest.raises(InputError, match=r"'lightgbm' of plugin lightgbm .* no option 'n_threads'.*'num_threads'"):
        adapt(booster(), n_threads=1)
