"""A setting that makes no sense is refused in words, as early as it can be; never by a traceback from inside."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig, adapt, register, unregister
from cfproto_plugin.errors import CfprotoError, ConfigError, InputError, ModelError, NoAdapterError, PluginError

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60), "age": RNG.integers(18, 80, 60)})
MODEL = LogisticRegression().fit(X, X.a + X.b > 0)

ODD = {
    "None": None,
    "text": "abc",
    "a number as text": "0.9",
    "empty text": "",
    "numbers": [1, 2],
    "names": ["a"],
    "nothing in a list": [],
    "dict": {"a": 1},
    "empty dict": {},
    "NaN": math.nan,
    "inf": math.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "numpy int": np.int64(2),
    "numpy float": np.float32(0.5),
    "array": np.arange(3.0),
    "array without a dimension": np.array(2),
    "True": True,
    "numpy True": np.True_,
    "function": abs,
    "class": int,
    "object": object(),
    "set": {"a"},
    "bytes": b"a",
    "complex": 1j,
    "frame": X,
    "series": pd.Series(["a"]),
    "date": dt.date(2020, 1, 1),
    "dict of text": {"a": "xyz"},
    "dict of None": {"a": None},
    "dict of NaN": {"a": math.nan},
    "dict of lists": {"a": [1, 2, 3]},
    "dict of texts": {"a": ("1", "2")},
    "dict of dicts": {"a": {"b": 1}},
    "dict of a huge number": {"a": 10**400},
    "list of None": [None],
    "list of lists": [["a"], ["b", "c"]],
    "mask": np.array([True, False, False]),
    "huge number": 10**400,
}
FEATURES = [field.name for field in dataclasses.fields(Features)]
SEARCH = [field.name for field in dataclasses.fields(SearchConfig)]
PARTS = ("model", "adapter", "encoder", "autoencoder", "prototypes", "distance", "features", "search", "seed")
CALL = ("target", "n", "features", "time_budget", "progress")


def explain_with(model=MODEL, **settings):
    return CounterfactualExplainer(model, **settings).fit(X).explain(X[:1])


@pytest.fixture(scope="module")
def explainer():
    return CounterfactualExplainer(MODEL).fit(X)


def refused_in_words(call):
    """The call works, or fails with an error of ours in few words; any other error fails the test."""
    told = "nothing to say"
    try:
        call()
    except CfprotoError as error:
        told = str(error).splitlines()[0]
    assert 10 < len(told) < 400


@pytest.mark.parametrize("name", FEATURES)
def test_every_rule_takes_or_refuses_any_value_in_words(name):
    for value in ODD.values():
        refused_in_words(lambda value=value: explain_with(features=Features(**{name: value})))


@pytest.mark.parametrize("name", SEARCH)
def test_every_setting_of_the_search_takes_or_refuses_any_value_in_words(name):
    for value in ODD.values():
        refused_in_words(lambda value=value: explain_with(search=SearchConfig(**{name: value})))


@pytest.mark.parametrize("name", PARTS)
def test_every_argument_of_the_explainer_takes_or_refuses_any_value_in_words(name):
    for value in ODD.values():
        refused_in_words(lambda value=value: explain_with(**{name: value}))


@pytest.mark.parametrize("name", CALL)
def test_every_argument_of_explain_takes_or_refuses_any_value_in_words(explainer, name):
    for value in ODD.values():
        refused_in_words(lambda value=value: explainer.explain(**{"x": X[:2], name: value}))


def test_adapt_register_unregister_and_paper_take_or_refuse_any_value_in_words():
    for value in ODD.values():
        refused_in_words(lambda value=value: adapt(value))
        refused_in_words(lambda value=value: adapt(MODEL, name=value))
        refused_in_words(lambda value=value: adapt(MODEL, role=value))
        refused_in_words(lambda value=value: adapt(MODEL, output=value))
        refused_in_words(lambda value=value: register(object(), value))
        refused_in_words(lambda value=value: register(value, "odd"))
        refused_in_words(lambda value=value: unregister(value))
        refused_in_words(lambda value=value: SearchConfig.paper(value))
        refused_in_words(lambda value=value: SearchConfig.reference("A", experiment=value))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": {"immutable": ("a",)}}, r"write features=Features\(\*\*\{'immutable': \('a',\)\}\)"),
        ({"features": {"imutable": ("a",)}}, "It has no 'imutable'. Did you mean 'immutable'?"),
        ({"features": {}}, "features is a dict"),
        ({"search": {"polish": 0}}, r"write search=SearchConfig\(\*\*\{'polish': 0\}\)"),
        ({"search": Features()}, r"expected SearchConfig\(...\): pass it as features="),
        ({"features": 3}, r"features is 3; expected Features\(...\)"),
        ({"seed": "x"}, "seed is 'x'; expected a whole number"),
        ({"seed": -1}, "seed is -1"),
        ({"prototypes": 3}, "prototypes is 3; expected a name such as 'kdtree'"),
        ({"distance": None}, "distance is None; expected a name such as 'abdm'"),
    ],
)
def test_the_constructor_refuses_what_can_be_seen_there(settings, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(MODEL, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": None}, "model is None; expected a trained model"),
        ({"model": LogisticRegression}, "LogisticRegression is a class; pass a trained model"),
        ({"model": MODEL, "encoder": LogisticRegression}, "LogisticRegression is a class"),
    ],
)
def test_what_cannot_be_a_model_is_refused_by_the_constructor(settings, message):
    with pytest.raises(ModelError, match=message):
        CounterfactualExplainer(**settings)


@pytest.mark.parametrize("model", ["model.json", Path("model.json")])
def test_the_path_of_a_model_is_refused_with_what_to_do(model):
    with pytest.raises(NoAdapterError, match="A model in a file is loaded first"):
        CounterfactualExplainer(model).fit(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time_budget": "1s"}, "time_budget is '1s'; expected a positive number of seconds"),
        ({"time_budget": math.nan}, "time_budget is nan"),
        ({"time_budget": True}, "time_budget is True"),
        ({"n": 2.0}, "n is 2.0; expected how many"),
        ({"n": True}, "n is True"),
        ({"n": 0}, "n is 0"),
        ({"progress": "yes"}, "progress is 'yes'; expected True, False"),
        ({"progress": lambda: None}, "cannot be called with one argument; expected a function that takes the fraction"),
        ({"progress": lambda done, total: None}, "cannot be called with one argument"),
        ({"features": {"immutable": "a"}}, "features is a dict"),
    ],
)
def test_explain_refuses_what_it_cannot_use(explainer, arguments, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(X[:2], **arguments)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"immutable": None}, "immutable is None; expected a column, or columns such as"),
        ({"immutable": {"a": True}}, "immutable is {'a': True}"),
        ({"ranges": [(0, 1)]}, r"ranges is \[\(0, 1\)\]; expected a dict such as \{'age': \(17, 90\)\}"),
        ({"ranges": {"a": (0, math.nan)}}, r"ranges\['a'\] is \(0, nan\); expected \(lowest, highest\)"),
        ({"ranges": {"a": (math.inf, math.inf)}}, r"ranges\['a'\] is \(inf, inf\)"),
        ({"weights": {"a": -1}}, r"weights\['a'\] is -1; expected a number from 1e-12 to 1e\+12"),
        ({"weights": {"a": 1e300}}, r"weights\['a'\] is 1e\+300.*name it in immutable"),
        ({"weights": {"a": 1e-300}}, r"weights\['a'\] is 1e-300"),
        ({"weights": {"a": math.nan}}, r"weights\['a'\] is nan"),
        ({"weights": {"a": 0}}, r"weights\['a'\] is 0"),
        ({"step": {"a": 0}}, r"step\['a'\] is 0; expected a number above 0"),
        ({"step": {"a": "x"}}, r"step\['a'\] is 'x'"),
        (
            {"allowed": {"a": "abc"}},
            r"allowed\['a'\] is 'abc'; expected a sequence of categories or numbers, such as \('abc',\)",
        ),
        ({"one_hot": {"a": ()}}, r"one_hot\['a'\] is empty"),
        ({"relations": 3}, "a relation is 3; expected a text such as 'a <= b'"),
    ],
)
def test_rules_that_cannot_be_are_refused_before_any_data_is_seen(rules, message):
    with pytest.raises(ConfigError, match=message):
        Features(**rules)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_proba": "0.9"}, "min_proba is '0.9'; expected a probability above 0"),
        ({"kappa": None}, "kappa is None; expected a number of at least 0$"),
        ({"theta": True}, "theta is True; expected a number of at least 0, or None"),
        ({"fallback": "no"}, "fallback is 'no'; expected True or False"),
        ({"eps": "1"}, "eps is '1'"),
        ({"eps": [0.1, math.inf]}, "eps is"),
        ({"k": np.arange(3)}, r"k is an array of shape \(3,\)"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        SearchConfig(**settings)


def test_a_text_is_one_column_and_one_relation():
    features = Features(immutable="age", categorical=np.str_("b"), increasing=2, relations="a <= b")
    assert (features.immutable, features.categorical, features.increasing) == (("age",), ("b",), (2,))
    assert features.relations == ("a <= b",)
    e = explain_with(features=Features(immutable="age"))
    assert e.found.all()
    assert (e.counterfactual["age"] == e.original["age"]).all()


def test_columns_may_come_from_anything_that_holds_them():
    for columns in (["a", "b"], {"a": 1, "b": 2}.keys(), X.columns[:2], np.array(["a", "b"]), (c for c in "ab")):
        assert Features(immutable=columns).immutable == ("a", "b")


def test_numbers_of_numpy_are_numbers():
    config = SearchConfig(beta=np.float64(0.1), theta=np.int64(2), max_changes=np.int32(2), fallback=np.True_)
    assert config == SearchConfig(beta=0.1, theta=2, max_changes=2)
    features = Features(weights={"a": np.float32(2)}, step={"b": np.int64(1)}, ranges={"a": np.array([-9.0, 9.0])})
    e = CounterfactualExplainer(MODEL, search=config, features=features, seed=np.int64(3)).fit(X, X.a)
    assert e.explain(X[:2], n=np.int64(1), time_budget=np.float32(60), progress=np.False_).found.all()


def test_what_is_changed_after_it_was_given_does_not_change_the_rules():
    columns, weights = ["a"], {"a": 2.0}
    features = Features(immutable=columns, weights=weights)
    columns.append("b")
    weights["b"] = 3.0
    assert (features.immutable, features.weights) == (("a",), {"a": 2.0})


def test_k_is_refused_where_no_prototype_is_used():
    with pytest.raises(ConfigError, match="k is 5, but theta is 0, so no prototype is used"):
        explain_with(search=SearchConfig(theta=0, c_init=1, k=5))


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("a =< b", "compares by '=<'. Did you mean '<='[?] There are: <=, >=, <, >, ==, !="),
        ("a => b", "compares by '=>'. Did you mean '>='"),
        ("a = b", "compares by '='. Did you mean '=='"),
        ("a <> b", "compares by '<>'. Did you mean '!='"),
        ("a ≤ b", "compares by '≤'. Did you mean '<='"),
        ("a <<< b", "compares by '<<<'. There are"),
        ("a < b and b < age", "give a relation for each of them"),
        ("a <= bb", "names column 'bb', which is not there"),
        ("a b", "names column 'a b', which is not there"),
    ],
)
def test_a_relation_with_a_typo_is_told_which_comparisons_there_are(relation, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(MODEL, features=Features(relations=relation)).fit(X)


def test_a_column_may_have_a_comparison_in_its_name():
    frame = X.rename(columns={"a": "a<=1", "b": "b=2"})
    model = LogisticRegression().fit(frame, X.a + X.b > 0)
    e = CounterfactualExplainer(model, features=Features(relations="a<=1 <= b=2")).fit(frame).explain(frame[:5])
    good = e.counterfactual[e.found]
    assert len(good)
    assert (good["a<=1"] <= good["b=2"]).all()


def no_such_column(rows):
    return rows.agee > 3


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (no_such_column, "relation 'no_such_column' raised AttributeError"),
        (lambda rows: ["yes"] * len(rows), "returned <U3"),
        (lambda rows: None, r"returned object of shape \(\)"),
        (lambda rows: rows.to_numpy() > 0, r"returned bool of shape \(4, 3\) for 4 rows"),
        (lambda rows: rows.a, "returned float64"),
    ],
)
def test_a_relation_that_fails_is_named_by_fit(relation, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(MODEL, features=Features(relations=[relation])).fit(X)


def test_a_relation_that_fails_later_is_named_by_explain():
    def picky(rows):
        if (rows.age > 200).any():
            raise KeyError("too old")
        return rows.age > 0

    old = X[:2].assign(age=300)
    with pytest.raises(ConfigError, match="relation 'picky' raised KeyError: 'too old'"):
        CounterfactualExplainer(MODEL, features=Features(relations=picky)).fit(X).explain(old)


def test_a_relation_that_writes_into_its_rows_harms_nobody():
    def greedy(rows):
        good = rows[:, 0] <= rows[:, 1]
        rows[:] = 0
        return good

    rows = X.to_numpy()
    model = LogisticRegression().fit(rows, X.a + X.b > 0)
    e = CounterfactualExplainer(model, features=Features(relations=greedy)).fit(rows).explain(rows[:5])
    good = e.counterfactual[e.found]
    assert len(good)
    assert (good[:, 0] <= good[:, 1]).all()
    assert (model.predict(good) == e.counterfactual_class[e.found]).all()


def test_a_relation_may_answer_with_missing_values_which_do_not_hold():
    e = explain_with(features=Features(relations=lambda rows: (rows.a <= rows.b).astype("boolean").mask(rows.a > 9)))
    assert e.found.all()


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (lambda *_: None, "returned None; expected a list of 1 matrices"),
        (lambda codes: codes, "raised TypeError"),
        (lambda *_: [np.zeros((2, 2))], r"returned shapes \[\(2, 2\)\]; expected \[\(3, 3\)\]"),
        (lambda *_: 1 / 0, "the distance <lambda> raised ZeroDivisionError"),
    ],
)
def test_a_distance_that_fails_is_named(distance, message):
    rows = X.to_numpy()
    rows[:, 2] %= 3
    model = LogisticRegression().fit(rows, X.a + X.b > 0)
    with pytest.raises(PluginError, match=message):
        CounterfactualExplainer(model, distance=distance, features=Features(categorical=2)).fit(rows)


class Provider:
    def __init__(self, fitted, answer):
        self.fitted, self.answer = fitted, answer

    def fit(self, z, labels):
        return self if self.fitted else None

    def nearest(self, z0, allowed):
        return self.answer


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (Provider(False, None), "fit of the prototypes Provider returned None; expected the provider itself"),
        (Provider(True, None), "the prototypes Provider returned NoneType"),
        (Provider(True, ("a", "b")), r"returned points <U1 of shape \(\)"),
        (Provider(True, (np.zeros((1, 0, 3)), np.zeros((1, 0), int))), "with m of at least 1"),
        (Provider(True, (np.zeros((1, 1, 3)), np.full((1, 1), 7))), "classes from 7 to 7; expected -1, for none, to 1"),
    ],
)
def test_a_provider_that_fails_is_named(provider, message):
    with pytest.raises(PluginError, match=message):
        explain_with(prototypes=provider)


def test_fit_takes_the_labels_that_scikit_learn_users_pass():
    assert CounterfactualExplainer(MODEL).fit(X, X.a > 0).explain(X[:2]).found.all()


def test_the_command_line_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "cfproto_plugin.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("cfproto, version")
