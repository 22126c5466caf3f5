"""What an adapter can do is found out once; its methods get rows of their own, in batches it can take."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, SearchConfig, adapt
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import softmax
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Tree, TreeEnsemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
WEIGHTS = RNG.normal(size=(3, 2))


class Linear:
    """A predict-only adapter."""

    def predict(self, x):
        return softmax(np.asarray(x) @ WEIGHTS)


class Everything(Linear):
    """An adapter with every optional member."""

    accepts_frames = True
    feature_names = ("a", "b", "c")
    max_rows = 7
    classes = np.array(["no", "yes"])

    def __init__(self):
        self.seen = []

    def predict(self, x):
        self.seen.append(len(x))
        return super().predict(x)

    def quick(self, x):
        return self.predict(x).astype(np.float32)

    def labels(self, x):
        return self.predict(x).argmin(axis=1)

    def vjp(self, x):
        y = self.predict(x)
        return y, lambda g: (y * (g - (g * y).sum(axis=1, keepdims=True))) @ WEIGHTS.T

    def thresholds(self):
        return [np.zeros(1)] * 3


class Proxy:
    """Forwards whatever it does not have itself."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)


class InPlace(Linear):
    """A model that scales its rows where they are."""

    def predict(self, x):
        x *= 2.0
        return super().predict(x)

    def vjp(self, x):
        return self.predict(x), lambda g: np.zeros((len(g), 3))


# What there is


def test_adapter_with_nothing_but_predict_has_nothing_else():
    known = Adapted.of(Linear())
    assert (known.vjp, known.labels, known.trees, known.thresholds) == (None, None, None, None)
    assert (known.accepts_frames, known.feature_names, known.max_rows) == (False, None, None)
    assert known.classes(2).tolist() == [0, 1]
    np.testing.assert_array_equal(known.quick(X), known.predict(X))


@pytest.mark.parametrize("wrap", [lambda adapter: adapter, Proxy], ids=["itself", "proxy"])
def test_every_member_is_found_also_behind_a_proxy(wrap):
    known = Adapted.of(wrap(Everything()))
    assert (known.accepts_frames, known.feature_names, known.max_rows) == (True, ("a", "b", "c"), 7)
    assert known.classes(2).tolist() == ["no", "yes"]
    assert known.quick(X).dtype == np.float32
    assert len(known.thresholds) == 3
    np.testing.assert_array_equal(known.labels(X), Linear().predict(X).argmin(axis=1))
    y, pull = known.vjp(X)
    np.testing.assert_array_equal(y, Linear().predict(X))
    assert pull(y).shape == X.shape


def test_proxy_can_be_explained_like_what_it_stands_for():
    search = SearchConfig(method="fista", max_iterations=20)
    found = [
        CounterfactualExplainer(a, search=search).fit(X).explain(X[:3]) for a in (Everything(), Proxy(Everything()))
    ]
    np.testing.assert_array_equal(found[0].counterfactual, found[1].counterfactual)
    assert set(found[1].counterfactual_class) <= {"no", "yes"}


def test_thresholds_are_made_from_trees():
    stump = Tree(
        np.array([1, -1, -1]),
        np.array([0.5, 0, 0]),
        np.array([1, 0, 0]),
        np.array([2, 0, 0]),
        np.zeros(3, bool),
        np.eye(3, 2),
    )

    class Stump(Linear):
        def trees(self):
            return TreeEnsemble((stump,), np.zeros(2), 3, "identity", equal_left=True, dtype="float64")

    assert [t.tolist() for t in Adapted.of(Stump()).thresholds] == [[], [0.5], []]


def test_what_is_adapted_already_stays_as_it_is():
    known = Adapted.of(Linear())
    assert Adapted.of(known) is known


def test_what_an_adapter_can_do_survives_pickling():
    known = pickle.loads(pickle.dumps(Adapted.of(Everything())))  # noqa: S301 our own
    np.testing.assert_array_equal(known.predict(X), Linear().predict(X))


def test_wrong_number_of_classes_is_refused():
    with pytest.raises(ModelError, match=r"classes of the adapter 'Everything' has 2 labels.*expected 3 different"):
        Adapted.of(Everything()).classes(3)


# Batches


@pytest.mark.parametrize("method", ["predict", "quick", "labels"])
def test_no_batch_is_larger_than_the_model_takes(method):
    adapter = Everything()
    found = getattr(Adapted.of(adapter), method)(X)
    assert adapter.seen == [7] * 8 + [4]
    adapter.max_rows = None
    np.testing.assert_array_equal(found, getattr(Adapted.of(adapter), method)(X))


def test_pullbacks_of_batches_are_one_pullback():
    adapter, cotangent = Everything(), RNG.normal(size=(60, 2))
    y, pull = Adapted.of(adapter).vjp(X)
    assert adapter.seen == [7] * 8 + [4]
    whole, pull_whole = adapter.vjp(X)
    np.testing.assert_allclose(y, whole, rtol=1e-12)
    np.testing.assert_allclose(pull(cotangent), pull_whole(cotangent), rtol=1e-12)


def test_frames_are_split_by_rows():
    import pandas as pd

    adapter = Everything()
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(Adapted.of(adapter).predict(frame), Linear().predict(X))
    assert adapter.seen == [7] * 8 + [4]


@pytest.mark.parametrize("limit", [0, -1, 2.5, "7"])
def test_batch_size_that_makes_no_sense_is_refused(limit):
    adapter = Everything()
    adapter.max_rows = limit
    with pytest.raises(
        ModelError, match=r"max_rows of the adapter 'Everything' is .*; expected a whole number above 0"
    ):
        Adapted.of(adapter)


def test_search_respects_the_largest_batch():
    adapter = Everything()
    assert set(CounterfactualExplainer(adapter).fit(X).explain(X[:5]).status) == {"found"}
    assert max(adapter.seen) == 7


# Rows of their own


def test_model_that_works_in_place_harms_nobody():
    known, rows = Adapted.of(InPlace()), X.copy()
    known.predict(rows)
    known.quick(rows)
    known.vjp(rows)
    np.testing.assert_array_equal(rows, X)


def test_model_that_works_in_place_is_explained_like_one_that_does_not():
    careful = CounterfactualExplainer(lambda x: Linear().predict(2.0 * x)).fit(X).explain(X[:5])
    in_place = CounterfactualExplainer(lambda x: InPlace().predict(x)).fit(X).explain(X[:5])
    np.testing.assert_array_equal(careful.counterfactual, in_place.counterfactual)
    np.testing.assert_array_equal(in_place.original, X[:5])


# Any adapter as model, encoder and autoencoder


@pytest.fixture(scope="module")
def classifier():
    return LogisticRegression().fit(X, X[:, 0] > 0)


def test_adapter_serves_as_the_model(classifier):
    direct = CounterfactualExplainer(classifier).fit(X).explain(X[:4])
    passed = CounterfactualExplainer(adapt(classifier)).fit(X).explain(X[:4])
    np.testing.assert_array_equal(direct.counterfactual, passed.counterfactual)
    assert passed.meta["adapter"] == direct.meta["adapter"] == "sklearn"


class Halves:
    """A predict-only encoder."""

    def predict(self, x):
        return x[:, :2] / 2


class Itself:
    """A predict-only autoencoder."""

    def predict(self, x):
        return x * 1.0


@pytest.mark.parametrize(
    "wrap", [lambda model: model, lambda model: adapt(model, role="transform")], ids=["model", "adapter"]
)
@pytest.mark.parametrize(
    "encoder", [PCA(2).fit(X), Halves(), lambda x: x[:, :2]], ids=["PCA", "predict-only", "function"]
)
def test_adapter_serves_as_the_encoder(classifier, wrap, encoder):
    found = CounterfactualExplainer(classifier, encoder=wrap(encoder)).fit(X).explain(X[:4])
    assert set(found.status) <= {"found", "fallback"}


@pytest.mark.parametrize(
    "wrap", [lambda model: model, lambda model: adapt(model, role="transform")], ids=["model", "adapter"]
)
def test_adapter_serves_as_the_autoencoder(classifier, wrap):
    search = SearchConfig(max_iterations=20, c_steps=2)
    found = CounterfactualExplainer(classifier, autoencoder=wrap(Itself()), search=search).fit(X).explain(X[:4])
    assert set(found.status) <= {"found", "fallback"}


def test_encoder_with_a_largest_batch_gets_no_larger_one(classifier):
    class Small(Halves):
        max_rows = 5
        largest = 0

        def predict(self, x):
            Small.largest = max(Small.largest, len(x))
            return super().predict(x)

    CounterfactualExplainer(classifier, encoder=Small()).fit(X).explain(X[:4])
    assert Small.largest == 5
