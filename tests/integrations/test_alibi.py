"""alibi's calls and the form of its result: what comes back, what is refused and what is ignored with a warning."""

from __future__ import annotations

import inspect
import json
import logging
import subprocess
import sys

import networks
import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

from cfproto_plugin.errors import ConfigError, FileError, InputError, ModelError, NotFittedError
from cfproto_plugin.integrations.alibi import (
    CounterFactualProto,
    CounterfactualProto,
    Explanation,
    ohe_to_ord,
    ord_to_ohe,
)
from cfproto_plugin.integrations.alibi.prototypes import ClassTrees, TrustOptions

X, Y = load_wine(return_X_y=True)
X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
RANGE = (X.min(axis=0), X.max(axis=0))
SETTINGS = {"beta": 0.01, "feature_range": RANGE, "max_iterations": 100, "c_init": 1.0, "c_steps": 3}
LOGISTIC = LogisticRegression(C=0.5).fit(X, Y)
WEIGHTS = [(LOGISTIC.coef_.T.astype(np.float32), LOGISTIC.intercept_.astype(np.float32))]
TREES = {"use_kdtree": True, "theta": 2.0}
CONSTRUCTOR = (
    "predict shape kappa beta feature_range gamma ae_model enc_model theta cat_vars ohe use_kdtree learning_rate_init "
    "max_iterations c_init c_steps eps clip update_num_grad write_dir sess"
)
FIT = "train_data trustscore_kwargs d_type w disc_perc standardize_cat_vars smooth center update_feature_range"
EXPLAIN = "X Y target_class k k_type threshold verbose print_every log_every"


def predict(x):
    return networks.forward(WEIGHTS, x)


def made(model=predict, **settings):
    return CounterfactualProto(model, (1, 13), **SETTINGS | settings)


def fitted(model=predict, **settings):
    return made(model, **settings).fit(X)


def distance(x, counterfactual):
    delta = counterfactual - x
    return 0.01 * np.abs(delta).sum() + np.square(delta).sum()


# The form of the calls and of the result


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (CounterfactualProto, CONSTRUCTOR),
        (CounterfactualProto(predict, (1, 13)).fit, FIT),
        (CounterfactualProto(predict, (1, 13)).explain, EXPLAIN),
    ],
)
def test_arguments_are_those_of_the_original_in_its_order(call, names):
    assert list(inspect.signature(call).parameters) == names.split()


def test_an_explanation_has_the_entries_of_the_original_as_items_and_attributes():
    cf = made(**TREES)
    assert cf.fit(X) is cf
    explanation = cf.explain(X[[0]])
    assert list(explanation.data) == ["cf", "all", "orig_class", "orig_proba", "id_proto"]
    assert set(explanation.cf) == {"X", "class", "proba", "grads_graph", "grads_num"}
    assert explanation.cf is explanation.data["cf"] is explanation["cf"]
    assert explanation.cf["X"].shape == explanation.cf["grads_graph"].shape == explanation.cf["grads_num"].shape
    assert explanation.cf["X"].dtype == np.float32
    assert explanation.cf["proba"].shape == explanation.orig_proba.shape == (1, 3)
    assert explanation.orig_class == predict(X[[0]]).argmax()
    assert explanation.cf["class"] == predict(explanation.cf["X"]).argmax() != explanation.orig_class
    assert np.allclose(explanation.cf["proba"], predict(explanation.cf["X"]), atol=1e-6)
    assert explanation.id_proto == 1
    assert {"name", "type", "explanations", "params", "version"} == set(explanation.meta)
    assert explanation.meta["name"] == explanation.name == "CounterfactualProto"
    params = explanation.meta["params"]
    assert params["theta"] == 2.0
    assert params["d_type"] == "abdm"
    assert not params["is_model"]
    assert params["enc_or_kdtree"]
    with pytest.raises(AttributeError, match="'cfs'; it has cf, all"):
        _ = explanation.cfs
    assert {"cf", "id_proto", "to_json"} <= set(dir(explanation))


def test_all_holds_the_counterfactuals_of_every_c_each_nearer_than_the_last():
    explanation = fitted(c_steps=4).explain(X[[70]])
    assert list(explanation.all) == [0, 1, 2, 3]
    way = [distance(X[70], x) for step in explanation.all.values() for x in step]
    assert len(way) > 1
    assert way == sorted(way, reverse=True)
    assert way[-1] == distance(X[70], explanation.cf["X"])
    for step in explanation.all.values():
        assert all(predict(x).argmax() != explanation.orig_class for x in step)


def test_a_row_without_a_counterfactual_has_none_as_in_the_original(caplog):
    with caplog.at_level(logging.WARNING):
        explanation = fitted(c_init=0.0, c_steps=1).explain(X[[0]])
    assert explanation.cf is None
    assert explanation.all == []
    assert explanation.id_proto is None
    assert explanation.orig_class == 0
    assert "no counterfactual found for row 0" in caplog.text
    assert json.loads(explanation.to_json())["data"]["cf"] is None


def test_json_holds_both_parts_and_is_read_back():
    explanation = fitted(**TREES).explain(X[[0, 70]], target_class=[1])
    text = explanation.to_json()
    back = Explanation.from_json(text)
    assert json.loads(text)["data"].keys() == explanation.data.keys()
    assert np.allclose(back.cf["X"][0], explanation.cf["X"][0])
    assert back.cf["X"][1] == [None] * 13  # row 70 is of class 1 already
    assert back.meta["params"]["shape"] == [1, 13]
    with pytest.raises(InputError, match="keys meta and data"):
        Explanation.from_json("[]")


def test_several_rows_are_explained_at_once_with_the_answers_of_each_alone():
    cf = fitted(networks.in_torch(WEIGHTS), **TREES)
    rows = [0, 70, 150]
    together = cf.explain(X[rows], target_class=[1, 2])
    assert together.cf["X"].shape == (3, 13)
    assert together.orig_class.tolist() == [0, 1, 2]
    assert together.id_proto.tolist() == [1, 1, 2]
    assert len(together) == len(together.all) == 3
    for number, one in enumerate(together):
        alone = cf.explain(X[rows[number]], target_class=[1, 2])
        assert (alone.cf is None) == (one.cf is None)
        if one.cf is None:
            assert np.isnan(together.cf["X"][number]).all()
            assert together.cf["class"][number] == -1
        else:
            assert np.allclose(alone.cf["X"], one.cf["X"], atol=1e-4)
            assert np.array_equal(together.cf["X"][[number]], one.cf["X"])
            assert alone.cf["class"] == one.cf["class"] == together.cf["class"][number]
    with pytest.raises(IndexError, match="expected 0 to 2"):
        _ = together[3]


def test_networks_and_functions_lead_to_the_same_counterfactual():
    by_gradient = fitted(networks.in_torch(WEIGHTS)).explain(X[[70]])
    by_differences = fitted(predict).explain(X[[70]])
    assert by_gradient.meta["params"]["is_model"]
    assert np.allclose(by_gradient.cf["X"], by_differences.cf["X"], atol=1e-3)
    assert not by_gradient.cf["grads_num"].any()


def test_gradients_at_the_counterfactual_are_those_of_the_loss_without_l1():
    inside = fitted(predict, kappa=0.0, **TREES).explain(X[[70]])
    x, prototype = inside.cf["X"], X[predict(X).argmax(axis=1) == inside.id_proto]
    prototype = prototype[np.linalg.norm(prototype - X[70], axis=1).argmin()]
    assert np.allclose(inside.cf["grads_graph"], 2 * (x - X[70]) + 2 * 2.0 * (x - prototype), atol=1e-4)


def test_the_old_name_is_there_and_float64_rows_are_searched_in_float32():
    assert CounterFactualProto is CounterfactualProto
    explanation = fitted().explain(X[[70]].astype(np.float64))
    assert explanation.cf["X"].dtype == np.float32
    assert np.array_equal(explanation.cf["X"], fitted().explain(X[[70]]).cf["X"])


# What the arguments do


def test_without_prototypes_no_fit_is_needed_and_with_them_it_is():
    assert made().explain(X[[70]]).cf is not None
    with pytest.raises(NotFittedError, match="call fit"):
        made(**TREES).explain(X[[70]])


def test_labels_that_are_given_stand_for_those_of_the_model():
    explanation = fitted().explain(X[[0]], Y=np.array([[0, 1, 0]]))
    assert explanation.orig_class == 1
    assert explanation.cf["class"] == 0
    assert np.array_equal(explanation.cf["X"], X[[0]])
    with pytest.raises(InputError, match=r"one-hot labels of shape \(1, 3\)"):
        fitted().explain(X[[0]], Y=[1])


def test_target_class_binds_prototype_and_counterfactual():
    cf = fitted(networks.in_torch(WEIGHTS), **TREES)
    for target in (1, 2):
        explanation = cf.explain(X[[0]], target_class=[target])
        assert explanation.id_proto == explanation.cf["class"] == target


def test_a_target_that_is_the_class_of_the_row_has_no_counterfactual():
    explanation = fitted(**TREES).explain(X[[0]], target_class=[0])
    assert explanation.cf is None
    assert explanation.id_proto == 0


@pytest.mark.parametrize("target", [[7], [], "1", [0.5], [-1], [None]])
def test_a_target_that_is_no_class_is_refused(target):
    with pytest.raises(InputError, match=r"target_class is .* numbers from 0 to 2"):
        fitted(**TREES).explain(X[[0]], target_class=target)


def test_a_target_without_training_rows_is_refused_where_prototypes_lead():
    few = X[predict(X).argmax(axis=1) < 2]
    with pytest.raises(InputError, match=r"no training row: there is no prototype. There are those of \[0, 1\]"):
        made(**TREES).fit(few).explain(X[[0]], target_class=[2])


def test_kappa_asks_for_a_lead_of_the_new_class():
    proba = fitted(networks.in_torch(WEIGHTS), kappa=0.2).explain(X[[70]]).cf["proba"][0]
    assert proba.max() - proba[1] >= 0.2


def test_a_threshold_asks_for_counterfactuals_nearer_to_their_class():
    cf = fitted(networks.in_torch(WEIGHTS), **TREES)
    labels = predict(X).argmax(axis=1)

    def trust(explanation):
        near = [np.linalg.norm(X[labels == label] - explanation.cf["X"], axis=1).min() for label in range(3)]
        return near[explanation.orig_class] / near[int(explanation.cf["class"])]

    free, bound = (cf.explain(X[[0]], k=3, threshold=threshold) for threshold in (0.0, 1.2))
    assert trust(free) < 1.2 <= trust(bound)
    assert distance(X[0], bound.cf["X"]) > distance(X[0], free.cf["X"])


@pytest.mark.parametrize("kind", ["distance_knn", "probability_knn"])
def test_filtered_training_rows_are_no_prototypes(kind):
    rows, labels = np.concatenate([X, X[[0]] + 0.05]), np.append(predict(X).argmax(axis=1), 1)
    for options, is_outlier in ({}, True), ({"alpha": 0.1, "filter_type": kind, "k_filter": 5}, False):
        found = ClassTrees(rows, labels, TrustOptions.of(options)).prototypes(X[[0]], None, "mean")
        assert found.classes.tolist() == [0, 1, 2]
        assert np.array_equal(found.points[0, 1], rows[-1]) == is_outlier


def test_rows_outside_the_range_come_back_inside_it():
    explanation = fitted(networks.in_torch(WEIGHTS), feature_range=(-1.0, 1.0)).explain(X[[70]])
    assert np.abs(X[70]).max() > 1
    assert np.abs(explanation.cf["X"]).max() <= 1


@pytest.mark.parametrize("shape", [(13,), (1, 13)])
def test_a_range_of_arrays_binds_every_feature(shape):
    low, high = (X[70] - 0.1).reshape(shape), (X[70] + 0.3).reshape(shape)
    explanation = fitted(networks.in_torch(WEIGHTS), feature_range=(low, high), c_init=100.0).explain(X[[70]])
    assert (explanation.cf["X"] >= low).all()
    assert (explanation.cf["X"] <= high).all()


def test_steps_of_differences_may_be_arrays():
    eps = (np.full((1, 3), 0.01), np.full((1, 13), 0.01))
    assert fitted(eps=eps).explain(X[[70]]).cf is not None
    with pytest.raises(ConfigError, match=r"eps\[1\] has 3 numbers for 13 features"):
        fitted(eps=(0.1, np.full(3, 0.1))).explain(X[[70]])


def test_verbose_prints_the_losses(capsys):
    fitted(c_init=10.0, c_steps=1).explain(X[[70]], verbose=True, print_every=50)
    printed = capsys.readouterr().out
    assert printed.count("iteration") == 2
    assert "loss without L1" in printed


def test_another_predictor_can_take_the_place_of_the_first():
    cf = fitted(**TREES)
    cf.reset_predictor(lambda x: np.roll(predict(x), 1, axis=1))
    assert cf.explain(X[[0]]).orig_class == 1


# Encoders


def encode(x):
    return 2 * x[:, :4]


def prototypes(k, k_type):
    """Those of every class for row 0."""
    found = []
    for label in range(3):
        codes = encode(X[predict(X).argmax(axis=1) == label])
        near = codes[np.argsort(np.linalg.norm(codes - encode(X[[0]]), axis=1))][: k or len(codes)]
        found.append(near[-1] if k_type == "point" else near.mean(axis=0))
    return found


@pytest.mark.parametrize(("k", "k_type"), [(None, "mean"), (5, "mean"), (5, "point")])
def test_an_encoder_that_is_a_function_leads_to_its_prototypes(k, k_type):
    cf = fitted(networks.in_torch(WEIGHTS), enc_model=encode, theta=0.5, c_init=100.0)
    explanation = cf.explain(X[[0]], k=k, k_type=k_type)
    z = explanation.cf["X"][0]
    distances = [np.linalg.norm(encode(X[[0]])[0] - point) for point in prototypes(k, k_type)]
    assert explanation.id_proto == (1 if distances[1] < distances[2] else 2)
    expected = 2 * (z - X[0])
    expected[:4] += 2 * 0.5 * 2 * (encode(z[None])[0] - prototypes(k, k_type)[explanation.id_proto])
    assert np.allclose(explanation.cf["grads_graph"], expected, atol=0.02)


def test_a_threshold_with_an_encoder_compares_distances_to_prototypes():
    cf = fitted(networks.in_torch(WEIGHTS), enc_model=encode, theta=0.5, c_init=100.0)

    def trust(explanation):
        far = [np.linalg.norm(encode(explanation.cf["X"])[0] - point) for point in prototypes(5, "mean")]
        return far[0] / far[int(explanation.cf["class"])]

    free = cf.explain(X[[0]], k=5)
    bound = cf.explain(X[[0]], k=5, threshold=1.3 * trust(free))
    assert trust(bound) >= 1.3 * trust(free)


# Categories


@pytest.fixture(scope="module")
def mixed():
    """600 rows of a category of 4, a number, a category of 3 and a number, and a model of their one-hot encoding."""
    rng = np.random.default_rng(1)
    first = rng.choice(4, 600, p=[0.4, 0.3, 0.2, 0.1])
    second = (first + rng.choice(3, 600, p=[0.6, 0.3, 0.1])) % 3
    rows = np.c_[first, rng.normal(size=600) + first / 2, second, rng.normal(size=600)].astype(np.float32)
    weights = np.array([0, 1.2, 0, 0.8, 1, 0, 0, -1, -0.5], dtype=np.float32)

    def of_one_hot(x):
        p = 1 / (1 + np.exp(0.6 - x @ weights))
        return np.stack([1 - p, p], axis=1)

    return rows, of_one_hot


CODES, HOT = {0: 4, 2: 3}, {0: 4, 5: 3}


def test_codes_and_one_hot_columns_are_converted_into_each_other(mixed):
    rows, _ = mixed
    hot, cat_vars = ord_to_ohe(rows, CODES)
    assert cat_vars == HOT
    assert hot.shape == (600, 9)
    assert (hot[:, :4].sum(axis=1) == 1).all()
    back, cat_vars = ohe_to_ord(hot, HOT)
    assert np.array_equal(back, rows)
    assert cat_vars == CODES


@pytest.mark.parametrize("d_type", ["abdm", "mvdm", "abdm-mvdm"])
def test_ordinal_and_one_hot_tables_have_the_same_counterfactuals(mixed, d_type):
    rows, of_one_hot = mixed
    settings = {**SETTINGS, "feature_range": (-3.0, 3.0), "eps": (0.1, 0.1), **TREES}
    weight = {"w": 0.7} if d_type == "abdm-mvdm" else {}
    codes = CounterfactualProto(lambda x: of_one_hot(ord_to_ohe(x, CODES)[0]), (1, 4), cat_vars=CODES, **settings)
    hot = CounterfactualProto(of_one_hot, (1, 9), cat_vars=HOT, ohe=True, **settings)
    first = codes.fit(rows, d_type=d_type, **weight).explain(rows[:6])
    second = hot.fit(ord_to_ohe(rows, CODES)[0], d_type=d_type, **weight).explain(ord_to_ohe(rows[:6], CODES)[0])
    assert codes.d_abs.keys() == hot.d_abs.keys() == {0, 2}
    found = first.cf["class"] >= 0
    assert found.sum() >= 4
    assert np.array_equal(second.cf["class"] >= 0, found)
    x = second.cf["X"][found]
    assert set(np.unique(x[:, [0, 1, 2, 3, 5, 6, 7]])) <= {0, 1}
    assert np.allclose(ohe_to_ord(x, HOT)[0], first.cf["X"][found], atol=1e-3)
    assert (of_one_hot(x).argmax(axis=1) != second.orig_class[found]).all()


def test_numbers_of_categories_lie_in_the_range_and_follow_the_arguments(mixed):
    rows, of_one_hot = mixed

    def numbers(span=(-3.0, 3.0), **options):
        model = CounterfactualProto(of_one_hot, (1, 9), cat_vars=HOT, ohe=True, feature_range=span)
        model.fit(ord_to_ohe(rows, CODES)[0], **options)
        return model

    plain = numbers()
    assert np.ptp(plain.d_abs[0]) == pytest.approx(6)
    assert 0 < np.ptp(plain.d_abs[2]) < 6
    assert plain.feature_range[1][[0, 2]] == pytest.approx([v.max() for v in plain.d_abs.values()])
    assert plain.feature_range[1][[1, 3]].tolist() == [3, 3]
    assert numbers(update_feature_range=False).feature_range[1].tolist() == [3] * 4
    assert numbers(center=False).d_abs[2].min() == pytest.approx(-3)
    standard = numbers(span=(-1e10, 1e10), standardize_cat_vars=True).d_abs[0]
    assert standard.mean() == pytest.approx(0, abs=1e-6)
    assert standard.std() == pytest.approx(1)
    assert np.ptp(numbers(smooth=0.5).d_abs[2]) > np.ptp(plain.d_abs[2])
    assert not np.allclose(numbers(disc_perc=[50]).d_abs[0], plain.d_abs[0])
    mixture = numbers(d_type="abdm-mvdm", w=1.0).d_abs
    assert mixture[0] == pytest.approx(plain.d_abs[0])
    wide = np.repeat([-3.0, -1.0, -3.0, -2.0], [4, 1, 3, 1])
    of_columns = numbers(span=(wide[None], -wide[None]))
    assert of_columns.feature_range[1][[1, 3]].tolist() == [1, 2]


def test_encoders_and_autoencoders_see_the_rows_of_a_table_with_categories(mixed):
    rows, of_one_hot = mixed
    hot = ord_to_ohe(rows, CODES)[0]
    seen = []

    def encode(x):
        seen.append(x.shape[1])
        return x @ np.linspace(-1, 1, 18, dtype=np.float32).reshape(9, 2)

    cf = CounterfactualProto(
        *(of_one_hot, (1, 9)),
        **{**SETTINGS, "feature_range": (-3.0, 3.0), "eps": (0.1, 0.1), "c_init": 10.0},
        enc_model=encode,
        ae_model=lambda x: 0.9 * x,
        theta=0.1,
        gamma=0.1,
        cat_vars=HOT,
        ohe=True,
    ).fit(hot)
    explanation = cf.explain(hot[:3])
    assert (explanation.cf["class"] >= 0).any()
    assert set(seen) == {9}


# What is refused, and what is ignored


@pytest.mark.parametrize(
    ("cat_vars", "said"),
    [
        ({}, "expected a dict"),
        ([0, 2], "expected a dict"),
        ({0: 0}, "how many categories"),
        ({"a": 3}, "number of a column"),
        ({4: 3}, "of rows with 4"),
    ],
)
def test_cat_vars_that_do_not_fit_are_refused(cat_vars, said):
    with pytest.raises(ConfigError, match=said):
        CounterfactualProto(predict, (1, 4), cat_vars=cat_vars)


def test_groups_of_columns_that_overlap_are_refused():
    with pytest.raises(ConfigError, match=r"another entry has too. With ohe=True a key is the first one-hot column"):
        CounterfactualProto(predict, (1, 9), cat_vars={0: 4, 2: 3}, ohe=True)


def test_rows_with_unknown_codes_are_refused(mixed):
    rows, of_one_hot = mixed
    cf = CounterfactualProto(of_one_hot, (1, 4), cat_vars={0: 3, 2: 3}, feature_range=(-1, 1))
    with pytest.raises(InputError, match="expected a code from 0 to 2"):
        cf.fit(rows)
    hot = CounterfactualProto(of_one_hot, (1, 9), cat_vars=HOT, ohe=True, feature_range=(-1, 1))
    with pytest.raises(InputError, match="one 1 and otherwise 0 in its 4 columns"):
        hot.fit(np.zeros((5, 9)))


def test_categories_need_a_range(mixed):
    rows, of_one_hot = mixed
    cf = CounterfactualProto(of_one_hot, (1, 9), cat_vars=HOT, ohe=True)
    with pytest.raises(ConfigError, match="give a range as wide"):
        cf.fit(ord_to_ohe(rows, CODES)[0])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sess", object(), "no TensorFlow session"),
        ("write_dir", "./cf", "TensorBoard"),
        ("update_num_grad", 5, "in every step"),
    ],
)
def test_what_has_no_effect_is_ignored_with_a_warning(name, value, said):
    with pytest.warns(UserWarning, match=f"{name} is ignored: .*{said}"):
        made(**{name: value})


def test_a_threshold_without_training_rows_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="threshold is ignored"):
        fitted().explain(X[[70]], threshold=1.0)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"beta": -1}, "beta is -1"),
        ({"theta": "a"}, "theta is 'a'"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"learning_rate_init": 0}, "learning_rate_init is 0"),
        ({"eps": 0.1}, "eps is 0.1; expected a tuple of two"),
        ({"eps": (0.1, 0)}, "two steps above 0"),
        ({"eps": ("a", 1)}, r"eps is \('a', 1\); expected two steps above 0"),
        ({"clip": (1, -1)}, "the lower first"),
        ({"feature_range": (1, -1)}, "the lower bound first"),
        ({"feature_range": (np.zeros(5), np.ones(5))}, r"shape \(1, 13\)"),
        ({"feature_range": 3}, "feature_range is 3; expected a tuple of two"),
        ({"shape": 13}, "shape is 13"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, said):
    with pytest.raises(ConfigError, match=said):
        CounterfactualProto(**{"predict": predict, "shape": (1, 13)} | setting)


def test_saving_and_loading_name_what_can_be_saved():
    for call in (fitted().save, CounterfactualProto.load):
        with pytest.raises(FileError, match=r"use CounterfactualExplainer of cfproto_plugin, which has save\(path\)"):
            call("explainer")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"X": X[:, :5]}, r"X has shape \(178, 5\); expected \(n, 13\)"),
        ({"X": X[:0]}, "at least one row"),
        ({"X": np.full((1, 13), np.nan)}, "row 0 of X holds a missing"),
        ({"X": [["a"] * 13]}, "not all numbers"),
        ({"X": X[[0]], "k": 0}, "k is 0"),
        ({"X": X[[0]], "k": 1000}, "the smallest class has"),
        ({"X": X[[0]], "k_type": "median"}, "expected 'mean' or 'point'"),
        ({"X": X[[0]], "threshold": -1}, "threshold is -1"),
        ({"X": X[[0]], "print_every": 0}, "print_every is 0"),
    ],
)
def test_questions_that_make_no_sense_are_refused(call, said):
    with pytest.raises(InputError, match=said):
        fitted(**TREES).explain(**call)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"d_type": "gower"}, "d_type is 'gower'"),
        ({"d_type": "abdm-mvdm"}, "w is None"),
        ({"smooth": 0}, "smooth is 0"),
        ({"trustscore_kwargs": {"alhpa": 1}}, "Did you mean 'alpha'"),
        ({"trustscore_kwargs": {"alpha": 1}}, "alpha is 1"),
        ({"trustscore_kwargs": {"filter_type": "knn"}}, "filter_type is 'knn'"),
        ({"trustscore_kwargs": {"dist_filter_type": "max"}}, "dist_filter_type is 'max'"),
    ],
)
def test_options_of_fit_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        made().fit(X, **options)


def test_a_function_with_one_column_is_told_what_to_return():
    with pytest.raises(ModelError, match=r"return the two columns \(1 - p, p\)"):
        fitted(lambda x: predict(x)[:, :1])


def test_nothing_heavy_is_imported_with_the_module():
    code = (
        "import sys, cfproto_plugin.integrations.alibi; "
        "print([name for name in ('torch', 'tensorflow', 'keras', 'alibi', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
