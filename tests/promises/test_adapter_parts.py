"""A part of a third-party adapter that fails is named, and costs no answers where the model itself can be asked."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cfproto_plugin import AdapterSpec, CounterfactualExplainer, SearchConfig, hookimpl, register, unregister
from cfproto_plugin.errors import ModelError
from cfproto_plugin.protocols import Tree, TreeEnsemble

X = np.random.default_rng(0).normal(size=(60, 3))


class Base:
    def predict(self, x):
        p = 1 / (1 + np.exp(-3 * x.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)


class QuickRaises(Base):
    def quick(self, x):
        raise ZeroDivisionError("no table")


class QuickIsShort(Base):
    def quick(self, x):
        return self.predict(x)[:-1]


class ScoresRaise(Base):
    def labels(self, x):
        return self.predict(x).argmax(axis=1)

    def scores(self, x):
        raise ZeroDivisionError("no table")


class Text(Base):
    def predict(self, x):
        return super().predict(x).astype(str)


def other(**members):
    """An adapter with other members."""
    return type("Odd", (Base,), members)()


def raises(*_):
    raise ZeroDivisionError("no table")


def gradient(change):
    """The method `vjp` with a pullback that is changed."""

    def vjp(self, x):
        y = self.predict(x)
        slope = 3 * y[:, 0] * y[:, 1]
        return y, lambda c: change(np.repeat((slope * (c[:, 1] - c[:, 0]))[:, None], x.shape[1], axis=1))

    return vjp


def tree(**arrays):
    """The method `trees` of a model with one split, and other arrays."""
    column, left, right = np.array([[0, -1, -1], [1, -1, -1], [2, -1, -1]])
    made = Tree(column, np.zeros(3), left, right, np.zeros(3, dtype=bool), np.eye(3, 2))
    return lambda _self: TreeEnsemble((made._replace(**arrays),), np.zeros(2), 3, "identity", True, "float64")


def with_labels(**members):
    return other(labels=lambda self, x: self.predict(x).argmax(axis=1), **members)


LEFT_OUT = {
    "quick raises": (QuickRaises(), "quick of the adapter 'QuickRaises', asked about training rows, raised ZeroDiv"),
    "quick is short": (QuickIsShort(), r"quick .* of shape \(3, 2\) for 4 rows; expected numbers of shape \(4, 2\)"),
    "quick is text": (other(quick=lambda s, x: s.predict(x).astype(str)), "quick .* returned <U32 .* expected numbers"),
    "quick is NaN": (
        other(quick=lambda s, x: s.predict(x) * np.nan),
        r"quick .* returned \[nan nan\]; expected finite",
    ),
    "quick is another": (
        other(quick=lambda s, x: s.predict(x)[:, ::-1]),
        "quick .* training data; expected .* as predict",
    ),
    "scores raise": (
        ScoresRaise(),
        "scores of the adapter 'ScoresRaise', asked .*, raised ZeroDivisionError: no table",
    ),
    "scores are none": (with_labels(scores=lambda s, x: None), r"scores .* returned object of shape \(\)"),
    "scores are NaN": (with_labels(scores=lambda s, x: s.predict(x) * np.nan), r"scores .* returned \[nan nan\]"),
    "thresholds raise": (
        other(thresholds=raises),
        "thresholds of the adapter 'Odd' raised ZeroDivisionError: no table",
    ),
    "thresholds is 5": (other(thresholds=lambda s: 5), "thresholds .* returned 5; expected a list of arrays"),
    "thresholds are text": (
        other(thresholds=lambda s: ["a"] * 3),
        r"thresholds .* returned \['a', 'a', 'a'\]; expected",
    ),
    "thresholds are tables": (other(thresholds=lambda s: [np.eye(2)] * 3), r"an array of shape \(2, 2\) for column 0"),
    "thresholds are numbers": (other(thresholds=lambda s: [1, 2, 3]), r"an array of shape \(\) for column 0"),
    "thresholds are NaN": (other(thresholds=lambda s: [[np.nan]] * 3), r"returned \[nan\] for column 0"),
    "thresholds are unsorted": (other(thresholds=lambda s: [[1, 0]] * 3), r"returned \[1. 0.\] for column 0"),
    "thresholds are few": (other(thresholds=lambda s: [[0.0]]), "has 1 columns; expected the 3 of the training data"),
    "trees raise": (
        other(trees=raises),
        "trees of the adapter 'Odd' raised ZeroDivisionError: no table; expected a Tree",
    ),
    "trees are a list": (other(trees=lambda s: [1]), "trees .* returned list; expected a TreeEnsemble or None"),
    "a tree is short": (
        other(trees=tree(threshold=np.zeros(1))),
        "trees .* cannot be read .*expected trees with one ent",
    ),
    "a tree is text": (other(trees=tree(threshold=np.array(["a"] * 3))), "trees .* cannot be read"),
    "vjp is 5": (other(vjp=lambda s, x: 5), "vjp .* returned 5; expected the output and a function"),
    "vjp raises": (other(vjp=raises), "vjp .* raised ZeroDivisionError: no table"),
    "vjp has another output": (other(vjp=lambda s, x: (s.predict(x)[:1], x)), "vjp .* returned"),
    "vjp has turned columns": (
        other(vjp=lambda s, x: (s.predict(x)[:, ::-1], lambda c: x)),
        "expected .*as predict returns",
    ),
    "pullback raises": (other(vjp=gradient(raises)), "vjp .* raised ZeroDivisionError: no table"),
    "pullback is narrow": (other(vjp=gradient(lambda g: g[:, :2])), r"of shape \(4, 2\) for rows of shape \(4, 3\)"),
    "pullback is of one row": (other(vjp=gradient(lambda g: g[:1])), r"of shape \(1, 3\) for rows of shape \(4, 3\)"),
    "pullback is None": (other(vjp=gradient(lambda g: None)), r"pullback that returned object of shape \(\)"),
    "pullback is text": (other(vjp=gradient(lambda g: g.astype(str))), "pullback that returned <U"),
    "pullback is NaN": (
        other(vjp=gradient(lambda g: g * np.nan)),
        r"pullback that returned \[nan nan nan\]; expected fin",
    ),
}


@pytest.mark.parametrize(("adapter", "why"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_part_that_fails_is_named_and_left_out(adapter, why, caplog):
    e = CounterfactualExplainer(object(), adapter=adapter).fit(X).explain(X[:4])
    assert e.found.all()
    (said,) = [record.getMessage() for record in caplog.records]
    assert re.search(why, said)
    assert said.endswith("It is left out: the search can do without.")


def test_parts_that_work_are_not_left_out(caplog):
    parts = {
        "vjp": gradient(lambda g: g),
        "quick": lambda s, x: s.predict(x),
        "thresholds": lambda s: [[0.0, np.inf]] * 3,
    }
    adapter = with_labels(scores=lambda s, x: s.predict(x), **parts)
    fitted = CounterfactualExplainer(object(), adapter=adapter).fit(X).fitted_
    known = fitted.classifier
    assert known.has_quick
    assert None not in (known.vjp, known.scores, fitted.guide.splits)
    assert not caplog.records


REFUSED = {
    "classes are one text": ({"classes": "ab"}, "classes of the adapter 'Odd' is 'ab'; expected 2 different labels"),
    "classes is 5": ({"classes": 5}, "is 5; expected 2 different labels"),
    "classes are a table": ({"classes": [[0, 1], [1, 2]]}, "expected 2 different labels"),
    "classes are ragged": ({"classes": [[0, 1], [1]]}, "expected 2 different labels"),
    "classes are few": ({"classes": ["a"]}, r"has 1 labels, \['a'\]; expected 2 different labels"),
    "classes are a method": ({"classes": lambda s: [0, 1]}, "bound method.*; expected 2 different labels"),
    "classes raise": (
        {"classes": property(raises)},
        "classes .* raised ZeroDivisionError: no table; expected 2 different",
    ),
    "labels raise": (
        {"labels": raises},
        r"labels .* raised ZeroDivisionError: no table; expected \(60,\) whole numbers",
    ),
    "labels are names": ({"labels": ["a", "b"]}, r"labels .* is \['a', 'b'\]; expected a method.*are `classes`"),
    "feature_names is 5": ({"feature_names": 5}, "feature_names of the adapter 'Odd' is 5; expected the names"),
    "feature_names are one text": ({"feature_names": "abc"}, "feature_names .* is 'abc'; expected the names"),
    "feature_names raise": ({"feature_names": property(raises)}, "feature_names .* raised ZeroDivisionError: no table"),
    **{
        f"{name} is {size!r}": (
            {name: size},
            f"{name} of the adapter 'Odd' is {size!r}; expected a whole number above 0",
        )
        for name in ("max_rows", "fixed_rows")
        for size in (0, "many", True, 2.5)
    },
}


@pytest.mark.parametrize(("members", "why"), REFUSED.values(), ids=REFUSED)
def test_what_the_search_cannot_do_without_is_refused_at_fit(members, why):
    with pytest.raises(ModelError, match=why):
        CounterfactualExplainer(object(), adapter=other(**members)).fit(X)


def test_the_plugin_of_an_adapter_is_named():
    class Model:
        pass

    class Acme:
        @hookimpl
        def cfproto_adapters(self):
            return [AdapterSpec("acme", claims=("acme:Model",), factory=lambda model, **_: other(max_rows="many"))]

    register(Acme(), "acme_models")
    try:
        with pytest.raises(ModelError, match=r"max_rows of adapter 'acme' of plugin acme_models .* is 'many'") as error:
            CounterfactualExplainer(Model(), adapter="acme").fit(X)
        assert error.value.plugin == "acme_models"
    finally:
        unregister("acme_models")


def test_a_pullback_that_fails_at_some_points_only_costs_these_their_gradient():
    """NaN far from the data, and an error for large batches: such points count as flat."""

    def vjp(self, x):
        y, pull = gradient(lambda g: np.where(np.abs(x).max(axis=1, keepdims=True) > 1.5, np.nan, g))(self, x)
        return y, raises if len(x) > 4 else pull

    search = SearchConfig(method="fista", max_iterations=30)
    e = CounterfactualExplainer(object(), adapter=other(vjp=vjp), search=search).fit(X).explain(X[:8])
    assert e.found.all()


def test_probabilities_that_are_no_numbers_are_refused_in_words():
    with pytest.raises(ModelError, match=r"returned <U32, such as .*expected \(60, k\) probabilities"):
        CounterfactualExplainer(object(), adapter=Text()).fit(X)
