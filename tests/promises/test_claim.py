"""What is returned as found has the class it claims, by the user's own model, alone or in a batch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.search.noise import Noise, noise_of

X, Y = load_breast_cancer(return_X_y=True)


def assert_true(e, predicted):
    assert np.array_equal(predicted, e.counterfactual_class[e.found])


@pytest.mark.parametrize("trained_in", [np.float32, np.float64])
def test_float32_rows_are_judged_by_the_model_in_float32(trained_in):
    x, y = load_digits(return_X_y=True)
    single = x.astype(np.float32)
    model = make_pipeline(StandardScaler(), SGDClassifier(random_state=0)).fit(single, y)
    e = CounterfactualExplainer(model).fit(x.astype(trained_in)).explain(single[:100])
    assert e.found.all()
    assert_true(e, model.predict(e.counterfactual))


class InPlace:
    """A function that writes to what it is given."""

    def __init__(self, model, mean):
        self.model, self.mean = model, mean

    def __call__(self, x):
        x -= self.mean
        return self.model.predict_proba(x)


@pytest.mark.parametrize("kind", ["linear", "forest", "function"])
def test_a_model_that_works_in_place_changes_nothing_and_is_answered(kind):
    last = RandomForestClassifier(10, random_state=0) if kind == "forest" else LogisticRegression(max_iter=1000)
    model = make_pipeline(StandardScaler(copy=False), last).fit(X.copy(), Y)
    reference = model.predict
    if kind == "function":
        mean = X.mean(axis=0)
        inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X - mean, Y)
        model, reference = InPlace(inner, mean), lambda x: inner.predict(x - mean)
    train, rows = X.copy(), X[:20].copy()
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert np.array_equal(train, X)
    assert np.array_equal(rows, X[:20])
    assert e.found.all()
    assert_true(e, reference(e.counterfactual.copy()))


def torch_network(widths, seed, dtype=None):
    import torch

    torch.manual_seed(seed)
    dtype = dtype or torch.float32
    layers = []
    for a, b in pairwise(widths):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).to(dtype)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.tensor(X, dtype=dtype), torch.tensor(Y)
    for _ in range(15):
        for batch in torch.randperm(len(x)).split(32):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()
    return model


@pytest.mark.needs("torch")
@pytest.mark.parametrize("steepness", [1.0, 1e3])
@pytest.mark.parametrize(("widths", "seed"), [((30, 32, 2), 0), ((30, 2), 106), ((30, 64, 16, 2), 2)])
def test_answers_of_a_network_on_unscaled_columns_keep_their_class_alone_and_in_any_batch(widths, seed, steepness):
    import torch

    model = torch_network(widths, seed)
    with torch.no_grad():
        model[-1].weight *= steepness
        model[-1].bias *= steepness
    e = CounterfactualExplainer(model).fit(X.astype(np.float32)).explain(X[:300].astype(np.float32))
    found = torch.from_numpy(e.counterfactual[e.found])
    assert e.found.all()
    with torch.no_grad():
        for size in (1, 7, 300):
            assert_true(e, np.concatenate([model(part).argmax(dim=1) for part in found.split(size)]))


def test_the_noise_of_a_model_is_what_its_answers_vary_by_near_the_boundary():
    train = np.linspace(-2, 2, 40)[:, None]

    def own(x):
        p = 1 / (1 + np.exp(-50 * x[:, 0])) + (1e-4 if len(x) == 1 else 0.0) * (np.abs(x[:, 0]) < 0.05)
        return np.stack([1 - p, p], axis=1)

    def between(a, b, t):
        return a + t[:, None] * (b - a)

    noise = noise_of(own, train, own(train), between)
    assert 1e-4 < noise.own < 1e-2
    assert not noise.random


def test_a_forest_has_no_noise_and_a_linear_model_some():
    forest = RandomForestClassifier(10, random_state=0).fit(X, Y)
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert CounterfactualExplainer(forest).fit(X).fitted_.noise_of(X.dtype) == Noise()
    assert CounterfactualExplainer(forest.predict_proba).fit(X).fitted_.noise_of(X.dtype) == Noise()
    assert 0 < CounterfactualExplainer(linear).fit(X).fitted_.noise_of(X.dtype).own < 1e-10


def test_a_model_that_fails_between_its_training_rows_is_fitted_all_the_same():
    model = LogisticRegression(max_iter=5000).fit(X, Y)

    def picky(x):
        if not np.isin(x[:, 0], X[:, 0]).all():
            raise ValueError("only known values")
        return model.predict_proba(x)

    assert CounterfactualExplainer(picky).fit(X).fitted_ is not None
