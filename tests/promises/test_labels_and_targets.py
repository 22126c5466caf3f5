"""A class can be asked for by whatever a user holds it in, and a target that cannot be meant is refused in words."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Explanation
from cfproto_plugin.errors import InputError, ModelError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["a", "b"])
PLACE = (X.a > -0.5).astype(int).to_numpy() + (X.a > 0.5)  # 0, 1 or 2
ROWS = X[:6]


class Named:
    """A model of two or three classes with labels of any kind."""

    def __init__(self, labels):
        self.classes_ = labels
        self._model = LogisticRegression().fit(X.to_numpy(), np.minimum(PLACE, len(labels) - 1))

    def predict_proba(self, x):
        return self._model.predict_proba(np.asarray(x, dtype=float))


def explainer_of(labels):
    return CounterfactualExplainer(Named(labels)).fit(X)


@pytest.fixture(scope="module")
def animals():
    return explainer_of(np.array(["cat", "dog", "eel"]))


@pytest.mark.parametrize("labels", [np.array([False, True]), np.array([np.False_, np.True_], dtype=object)])
@pytest.mark.parametrize("target", [True, np.True_, [np.True_], np.array([True] * 6), np.array(True)])
def test_classes_that_are_booleans_can_be_targeted(labels, target):
    e = explainer_of(labels).explain(ROWS, target)
    assert e.found.all()
    assert list(e.counterfactual_class) == [True] * 6
    assert set(map(type, e.counterfactual_class.tolist())) <= {bool, np.bool_}
    assert set(e.original_class.tolist()) == {False, True}


@pytest.mark.parametrize("target", [[np.True_], np.array([True] * 6)])
def test_a_scikit_learn_model_trained_on_booleans_can_be_targeted(target):
    model = LogisticRegression().fit(X, X.a > 0)
    e = CounterfactualExplainer(model).fit(X).explain(ROWS, target)
    assert e.found.all()
    assert e.counterfactual_class.dtype == e.original_class.dtype == bool


@pytest.mark.parametrize(
    ("labels", "target"),
    [
        (np.array(["no", "yes"]), np.str_("yes")),
        (np.array([0, 1]), np.int8(1)),
        (np.array([0, 1]), 1.0),
        (np.array([0, 1], dtype=np.uint8), np.float64(1)),
        (np.array([0.1, 0.9], dtype=np.float32), 0.9),
        (np.array([0.1, 0.9]), np.float64(0.9)),
        (np.array(["no", 1], dtype=object), 1),
        (np.array([b"no", b"yes"]), b"yes"),
        (np.array([dt.date(2020, 1, 1), dt.date(2021, 1, 1)]), dt.date(2021, 1, 1)),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), np.datetime64("2021-01-01")),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]"), pd.Timestamp("2021-01-01")),
        (np.array([pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]), np.datetime64("2021-01-01")),
    ],
)
def test_a_class_of_any_kind_can_be_targeted(labels, target):
    e = explainer_of(labels).explain(ROWS, target)
    assert e.found.all()
    assert list(e.counterfactual_class == labels[1]) == [True] * 6
    assert e.original_class.dtype == e.counterfactual_class.dtype == labels.dtype


def test_classes_keep_their_type_where_some_rows_have_no_answer():
    for labels in (np.array([False, True]), np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]")):
        e = explainer_of(labels).explain(ROWS, labels[1], n=2)
        assert not e.found.all()
        found = e.counterfactual_class[e.found]
        assert set(map(type, found)) == {type(labels[0]) if labels.dtype.kind == "M" else bool}
        assert set(found) == {labels[1]}


@pytest.mark.parametrize(
    "target",
    [
        ["dog", "eel"],
        {"dog", "eel"},
        frozenset(["dog", "eel"]),
        {"dog": 1, "eel": 2}.keys(),
        {1: "dog", 2: "eel"}.values(),
        (name for name in ("dog", "eel")),
    ],
)
def test_several_labels_are_a_choice_for_every_row(animals, target):
    e = animals.explain(ROWS, target)
    assert e.found.all()
    cats = e.original_class == "cat"
    assert set(e.original_class) == {"cat", "dog", "eel"}
    assert set(e.counterfactual_class[cats]) <= {"dog", "eel"}
    assert e.counterfactual_class[~cats].tolist() == e.original_class[~cats].tolist()  # both are allowed: they stay


LABELS = ["dog", "eel", "dog", "eel", "dog", "eel"]


def per_row_targets():
    yield np.array(LABELS)
    yield np.array(LABELS, dtype=object)
    yield pd.Categorical(LABELS)
    yield pd.Index(LABELS)
    yield pd.Series(LABELS, index=ROWS.index, dtype="category")
    polars = pytest.importorskip("polars")
    yield polars.Series(LABELS)
    yield polars.Series(LABELS, dtype=polars.Categorical)
    yield pytest.importorskip("pyarrow").array(LABELS)


def test_an_array_of_any_kind_is_one_label_per_row(animals):
    for target in per_row_targets():
        assert list(animals.explain(ROWS, target).counterfactual_class) == LABELS


def test_a_series_is_matched_to_the_index_of_the_rows(animals):
    rows = ROWS.set_axis([30, 10, 50, 20, 60, 40])
    target = pd.Series(LABELS, index=rows.index)
    for given in (target, target.sort_index(), target[::-1]):
        e = animals.explain(rows, given)
        assert list(e.counterfactual_class) == LABELS
    assert list(animals.explain(rows.to_numpy(), target.sort_index()).counterfactual_class) == list(target.sort_index())


def test_a_series_with_the_same_repeated_index_is_taken_in_its_order(animals):
    rows = ROWS.set_axis(["x"] * 6)
    assert list(animals.explain(rows, pd.Series(LABELS, index=rows.index)).counterfactual_class) == LABELS


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (range(6), "0 is in the index of target and not in that of x. Give target the index of x"),
        ([30, 10, 50, 20, 60], "40 is in the index of x and not in that of target"),
        ([30, 10, 50, 20, 60, 40, 70], "70 is in the index of target and not in that of x"),
        ([30, 30, 50, 20, 60, 40], "the index of target has 30 twice"),
    ],
)
def test_a_series_whose_index_does_not_fit_is_refused(animals, index, message):
    rows = ROWS.set_axis([30, 10, 50, 20, 60, 40])
    target = pd.Series((LABELS + LABELS)[: len(index)], index=index)
    with pytest.raises(InputError, match=message):
        animals.explain(rows, target)


@pytest.mark.parametrize(
    ("labels", "target", "message"),
    [
        ([0, 1], "1", "target '1' is not a class of the model. '1' is str and the classes are int: write target=1."),
        ([0, 1], -1, r"target -1 is not a class of the model. Did you mean 1\? Its classes are: 0, 1"),
        (["0", "1"], 1, "1 is int and the classes are str: write target='1'"),
        ([False, True], "True", "'True' is str and the classes are bool: write target=True"),
        (["cat", "dog"], "dogg", "Did you mean 'dog'"),
        (["cat", "dog"], {"dog": 0.5}, r"target\['dog'\] is 0.5; expected \(low, high\)"),
        (["cat", "dog"], [], "target is empty"),
        (["cat", "dog"], [["dog"], ["cat"]], r"target holds \['dog'\]; expected a label"),
        (["cat", "dog"], [None], "target holds None; expected a class"),
        (["cat", "dog"], math.nan, "target holds nan"),
        (["cat", "dog"], np.array(["dog", None] * 3, dtype=object), "target of row 1 holds None"),
        (["cat", "dog"], pd.Categorical(["dog", None] * 3), "target of row 1 holds nan"),
        ([0, 1], np.array([1, math.nan] * 3), "target of row 1 holds nan"),
        (["cat", "dog"], np.array(["dog", "emu"] * 3), "target 'emu' of row 1 is not a class"),
        (["cat", "dog"], X, r"target has shape \(120, 2\) for 6 rows"),
        (["cat", "dog"], object(), "is not a class of the model"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused_in_words(labels, target, message):
    with pytest.raises(InputError, match=message):
        explainer_of(np.array(labels)).explain(ROWS, target)


def test_an_error_about_a_target_knows_its_row(animals):
    with pytest.raises(InputError) as caught:
        animals.explain(ROWS, np.array(["dog", "eel", "emu", "dog", "dog", "dog"]))
    assert caught.value.row == 2


@pytest.mark.parametrize("labels", [np.array([False, True]), np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]")])
def test_labels_come_back_from_json_as_they_were(labels):
    e = explainer_of(labels).explain(ROWS)
    back = Explanation.from_json(e.to_json())
    assert back.counterfactual_class.dtype == labels.dtype
    assert (back.counterfactual_class == e.counterfactual_class).all()


class Pairs:
    """A model whose labels are tuples, in a list or in an array of objects."""

    def __init__(self, classes):
        self.classes_ = classes

    def predict_proba(self, x):
        p = 1 / (1 + np.exp(-np.asarray(x)[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, x):
        decided = np.empty(len(x), dtype=object)
        for row, column in enumerate(self.predict_proba(x).argmax(axis=1)):
            decided[row] = self.classes_[column]
        return decided


def test_labels_that_are_tuples_are_taken_from_an_array_of_objects():
    classes = np.empty(2, dtype=object)
    classes[:] = [("cat", 1), ("dog", 2)]
    explainer = CounterfactualExplainer(Pairs(classes)).fit(X)
    for target in (("dog", 2), [("dog", 2)]):
        assert set(explainer.explain(ROWS, target).counterfactual_class) == {("dog", 2)}


def test_a_list_of_tuples_as_classes_is_refused_in_words():
    with pytest.raises(ModelError, match=r"classes_ are .*make the labels strings, or put them in an array of objects"):
        CounterfactualExplainer(Pairs([("cat", 1), ("dog", 2)])).fit(X)
