"""A time budget holds, and every row still has an answer when it is spent."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.helpers.nearest import shortlist
from cfproto_plugin.prototypes.kdtree import KDTreePrototypes
from cfproto_plugin.search.plan import FEW_CHANGES_WITHOUT_SPLITS
from cfproto_plugin.testing import check_adapter

X, Y = load_breast_cancer(return_X_y=True)
TRAIN, ROWS = X[:400], X[400:460]
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(TRAIN, Y[:400])
NO_TIME = 1e-9


class Watch:
    """A clock that only models move: a row takes them `seconds`."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


class Slow:
    """The logistic model, which takes its time; the size of every call is kept."""

    def __init__(self, watch, seconds=1e-3):
        self.watch, self.seconds, self.sizes = watch, seconds, []

    def __call__(self, x):
        self.sizes.append(len(x))
        self.watch.now += self.seconds * len(x)
        return MODEL.predict_proba(x)


class SlowNetwork:
    """A linear classifier or encoder with gradients, which takes its time for both."""

    def __init__(self, watch, seconds=1e-3, *, scores=True):
        rng = np.random.default_rng(0)
        self.watch, self.seconds, self.scores, self.gradients = watch, seconds, scores, 0
        self.weights = rng.normal(size=(30, 2 if scores else 4)) / X.std(axis=0)[:, None]
        self.centre = TRAIN.mean(axis=0)

    def predict(self, x):
        self.watch.now += self.seconds * len(x)
        y = (x - self.centre) @ self.weights
        return np.exp(y - np.logaddexp.reduce(y, axis=1, keepdims=True)) if self.scores else y

    def vjp(self, x):
        y = self.predict(x)
        self.gradients += len(x)

        def pullback(g):
            score = y * (g - (g * y).sum(axis=1, keepdims=True)) if self.scores else g
            return score @ self.weights.T

        return y, pullback


def other_class(e, rows):
    """Whether the model itself gives every answer another class than its row."""
    return (MODEL.predict(e.counterfactual) != MODEL.predict(rows)).all()


def test_every_row_has_its_nearest_training_row_when_the_budget_is_spent_at_once():
    e = CounterfactualExplainer(MODEL).fit(TRAIN).explain(ROWS, time_budget=NO_TIME)
    assert (e.status == "fallback").all()
    assert other_class(e, ROWS)
    train, own = TRAIN[:, None], MODEL.predict(TRAIN)
    for row, found in zip(ROWS, e.counterfactual, strict=True):
        delta = (train[own != MODEL.predict(row[None])[0]][:, 0] - row) / TRAIN.std(axis=0)
        distance = 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)
        cost = distance + FEW_CHANGES_WITHOUT_SPLITS * (delta != 0).sum(axis=1)
        nearest = TRAIN[own != MODEL.predict(row[None])[0]][cost.argmin()]
        np.testing.assert_allclose(found, nearest, rtol=1e-9)
    assert "nearest training row" in e.message[0]
    assert "time budget" in e.message[0]


def test_a_budget_that_is_spent_at_once_is_overrun_by_one_call(monkeypatch):
    model = Slow(Watch(monkeypatch))
    explainer = CounterfactualExplainer(model).fit(TRAIN)
    model.sizes.clear()
    e = explainer.explain(ROWS, time_budget=NO_TIME)
    assert len(model.sizes) == 2  # of the rows themselves, and the last one
    assert e.found.all()


def test_meta_says_what_became_of_the_budget(monkeypatch):
    explainer = CounterfactualExplainer(Slow(Watch(monkeypatch))).fit(TRAIN)
    assert explainer.explain(ROWS[:2]).meta["budget"] == {"seconds": None, "spent": False, "overrun": 0.0}
    assert explainer.explain(ROWS[:2], time_budget=1e6).meta["budget"] == {
        "seconds": 1e6,
        "spent": False,
        "overrun": 0.0,
    }
    budget = explainer.explain(ROWS, time_budget=0.5).meta["budget"]
    assert (budget["seconds"], budget["spent"]) == (0.5, True)
    assert 0 < budget["overrun"] < 0.5


@pytest.mark.parametrize("seconds", [1e-3, 1e-2])
def test_calls_of_a_slow_model_are_short(monkeypatch, seconds):
    watch = Watch(monkeypatch)
    model = Slow(watch, seconds)
    explainer = CounterfactualExplainer(model).fit(TRAIN)
    watch.now, model.sizes = 0.0, []
    e = explainer.explain(ROWS, time_budget=2.0)
    first, *calls, last = model.sizes
    assert first == len(ROWS) + len(explainer.fitted_.fingerprint.rows)
    assert max(calls) * seconds <= 0.5  # a quarter of what is left
    assert watch.now <= 2.0 + (max(calls) + last) * seconds
    assert e.found.all()
    assert other_class(e, ROWS)


def test_what_was_found_in_time_is_kept(monkeypatch):
    explainer = CounterfactualExplainer(Slow(Watch(monkeypatch)), search=SearchConfig.close()).fit(TRAIN)
    e = explainer.explain(ROWS, time_budget=2.0)
    assert {"found", "fallback"} == set(e.status)
    assert np.nanmean(e.distance[e.status == "found"]) < np.nanmean(e.distance[e.status == "fallback"])


def test_without_a_budget_calls_are_as_large_as_ever(monkeypatch):
    slow, free = Slow(Watch(monkeypatch), seconds=1.0), Slow(Watch(monkeypatch), seconds=0.0)
    for model in (slow, free):
        CounterfactualExplainer(model).fit(TRAIN).explain(ROWS)
    assert slow.sizes == free.sizes


def test_slow_prototypes_are_sought_in_pieces(monkeypatch):
    watch, asked = Watch(monkeypatch), []

    class SlowPrototypes(KDTreePrototypes):
        def nearest(self, z0, allowed):
            asked.append(len(z0))
            watch.now += 0.05 * len(z0)
            return super().nearest(z0, allowed)

    explainer = CounterfactualExplainer(MODEL, prototypes=SlowPrototypes(per_class=8)).fit(TRAIN)
    watch.now = 0.0
    e = explainer.explain(ROWS, time_budget=1.0)
    assert len(asked) > 1
    assert sum(asked) < len(ROWS)
    assert watch.now < 1.0 + 0.05 * max(asked)
    assert (e.status[: sum(asked[:-1])] == "found").all()
    assert e.found.all()
    assert other_class(e, ROWS)


def test_pieces_give_the_answers_of_the_whole():
    explainer = CounterfactualExplainer(MODEL).fit(TRAIN)
    whole, pieces = explainer.explain(ROWS, n=2), explainer.explain(ROWS, n=2, time_budget=1e6)
    np.testing.assert_allclose(pieces.counterfactual, whole.counterfactual, rtol=1e-9)
    assert pieces.status.tolist() == whole.status.tolist()


@pytest.mark.parametrize("method", ["path", "latent", "fista", "momentum", "differences"])
def test_every_method_ends_in_time(monkeypatch, method):
    watch = Watch(monkeypatch)
    encoder = SlowNetwork(watch, scores=False) if method == "latent" else None
    search = {
        "fista": SearchConfig(method="fista", c_init=1.0),
        "momentum": SearchConfig(method="fista", c_init=1.0, momentum=True),
        "differences": SearchConfig(method="fista", c_init=1.0),
    }.get(method)
    model = Slow(watch, 1e-4) if method == "differences" else SlowNetwork(watch)
    explainer = CounterfactualExplainer(model, encoder=encoder, search=search).fit(TRAIN)
    watch.now = 0.0
    e = explainer.explain(ROWS, time_budget=2.0)
    assert e.meta["budget"]["spent"]
    assert watch.now < 4.0
    assert e.found.all()


def test_a_training_row_that_keeps_the_rules_is_found_among_many_that_do_not():
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (300, 3)), rng.uniform(0.6, 1, (300, 3))])
    row = train[:1].copy()
    train[599, 2] = row[0, 2]  # the only one of the other class with this value

    def model(x):
        """Class 1 in the training rows, lost by most once the last column is fixed."""
        p = np.where((x[:, 0] > 0.5) & ((x[:, 2] > 0.5) | (x == train[599]).all(axis=1)), 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    rules = Features(immutable=(2,))
    e = CounterfactualExplainer(model, features=rules).fit(train).explain(row, time_budget=NO_TIME)
    np.testing.assert_allclose(e.counterfactual[0], train[599], rtol=1e-12)
    assert e.counterfactual[0, 2] == row[0, 2]


def test_rules_hold_when_the_time_is_spent():
    rules = Features(
        immutable=(0, 1), increasing=(2,), ranges={3: (200.0, 1500.0)}, relations=(lambda x: x[:, 0] <= x[:, 20],)
    )
    e = CounterfactualExplainer(MODEL, features=rules).fit(TRAIN).explain(ROWS, time_budget=NO_TIME)
    good, cf = e.found, np.asarray(e.counterfactual)
    assert good.mean() > 0.8
    assert (cf[good][:, :2] == ROWS[good][:, :2]).all()
    assert (cf[good][:, 2] >= ROWS[good][:, 2]).all()
    assert ((cf[good][:, 3] >= 200) & (cf[good][:, 3] <= 1500)).all()
    assert (cf[good][:, 0] <= cf[good][:, 20]).all()
    assert (MODEL.predict(cf[good]) != MODEL.predict(ROWS[good])).all()


def test_no_search_for_further_answers_begins_when_the_time_is_spent():
    e = CounterfactualExplainer(MODEL).fit(TRAIN).explain(ROWS[:5], n=3, time_budget=NO_TIME)
    assert e.found.tolist() == [True, False, False] * 5
    assert all("time budget ran out" in message for message in e.message[~e.found])
    one = CounterfactualExplainer(MODEL).fit(TRAIN).explain(ROWS[:5], time_budget=NO_TIME)
    assert e.meta["n_predict_calls"] == one.meta["n_predict_calls"]


def test_without_fallback_the_message_says_that_the_time_ran_out():
    search = SearchConfig(fallback=False)
    e = CounterfactualExplainer(MODEL, search=search).fit(TRAIN).explain(ROWS[:3], time_budget=NO_TIME)
    assert e.status.tolist() == ["not_found"] * 3
    assert "time budget" in e.message[0]


@pytest.mark.parametrize(("width", "count"), [(50, 7), (1000, 3), (5000, 16), (5001, 16), (7, 7), (7, 9)])
def test_the_shortlist_holds_the_smallest(width, count):
    distance = np.random.default_rng(0).random((20, width))
    found = np.sort(np.take_along_axis(distance, shortlist(distance, count), axis=1), axis=1)
    assert np.array_equal(found, np.sort(distance, axis=1)[:, :count])


class OfThirtyTwo:
    """A model that was exported for batches of 32 rows."""

    fixed_rows = 32
    classes = ("benign", "malignant")

    def __init__(self):
        self.weights = np.random.default_rng(1).normal(size=(30, 2)) / X.std(axis=0)[:, None]

    def predict(self, x):
        assert len(x) == 32
        y = (x - TRAIN.mean(axis=0)) @ self.weights
        return np.exp(y - np.logaddexp.reduce(y, axis=1, keepdims=True))

    def vjp(self, x):
        y = self.predict(x)
        return y, lambda g: (y * (g - (g * y).sum(axis=1, keepdims=True))) @ self.weights.T


def test_a_model_of_a_fixed_batch_size_is_explained():
    e = CounterfactualExplainer(OfThirtyTwo()).fit(TRAIN).explain(ROWS[:7])
    assert e.found.all()
    alone = CounterfactualExplainer(OfThirtyTwo()).fit(TRAIN).explain(ROWS[:1])
    np.testing.assert_allclose(alone.distance, e.distance[:1], rtol=1e-3)


def test_a_model_of_a_fixed_batch_size_passes_the_conformance_kit():
    check_adapter(OfThirtyTwo(), ROWS[:5])
