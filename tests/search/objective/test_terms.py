from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin.plugins.claims import adapt
from cfproto_plugin.search.objective.gradients import WithDifferences, differences
from cfproto_plugin.search.objective.terms import Distance, LatentDistance, Prediction, Reconstruction, Sum

RNG = np.random.default_rng(3)
CLASSIFIER = [(RNG.normal(size=(6, 5)), RNG.normal(size=5)), (RNG.normal(size=(5, 3)), RNG.normal(size=3))]
ENCODER = [(RNG.normal(size=(6, 4)), RNG.normal(size=4)), (RNG.normal(size=(4, 2)), RNG.normal(size=2))]
AUTOENCODER = [(RNG.normal(size=(6, 3)), RNG.normal(size=3)), (RNG.normal(size=(3, 6)), RNG.normal(size=6))]
Z = RNG.normal(size=(7, 6))
ALLOWED = np.arange(3) != networks.forward(CLASSIFIER, Z).argmax(axis=1)[:, None]


def torch_adapter(layers, role="transform"):
    model = networks.in_torch(layers, softmax=role == "classifier").double()
    return adapt(model, role=role)


def terms():
    classifier = torch_adapter(CLASSIFIER, "classifier")
    return {
        "distance": Distance(np.ones((7, 6)), 2.5),
        "prediction": Prediction(classifier.vjp, np.linspace(1, 5, 7), ALLOWED, 0.2),
        "latent": LatentDistance(torch_adapter(ENCODER), np.ones((7, 2)), (6,), 3.0),
        "reconstruction": Reconstruction(torch_adapter(AUTOENCODER), (6,), 0.7),
    }


@pytest.mark.parametrize("name", ["distance", "prediction", "latent", "reconstruction", "sum"])
def test_gradient_of_every_term_agrees_with_differences_of_its_value(name):
    term = Sum(list(terms().values())) if name == "sum" else terms()[name]
    gradient = term(Z).gradient
    h = 1e-6
    for k in range(Z.shape[1]):
        step = np.zeros_like(Z)
        step[:, k] = h
        slope = (term(Z + step).value() - term(Z - step).value()) / (2 * h)
        assert np.allclose(gradient[:, k], slope, atol=1e-5)


def test_values_are_those_of_the_papers_formulas():
    found = {name: term(Z) for name, term in terms().items()}
    proba = networks.forward(CLASSIFIER, Z)
    original = proba.argmax(axis=1)
    rest = np.where(ALLOWED, proba, -1).max(axis=1)
    gap = np.maximum(proba[np.arange(7), original] - rest, -0.2)
    assert np.allclose(found["prediction"].value(), np.linspace(1, 5, 7) * gap)
    assert np.allclose(found["prediction"].proba, proba)
    code = networks.forward(ENCODER, Z, softmax=False)
    assert np.allclose(found["latent"].value(), 3.0 * np.square(code - 1).sum(axis=1))
    copy = networks.forward(AUTOENCODER, Z, softmax=False)
    assert np.allclose(found["reconstruction"].value(), 0.7 * np.square(Z - copy).sum(axis=1))
    assert np.allclose(found["distance"].value(), 2.5 * np.square(Z - 1).sum(axis=1))


def test_prediction_has_no_gradient_once_the_lead_exceeds_kappa():
    reached = ~ALLOWED
    term = Prediction(torch_adapter(CLASSIFIER, "classifier").vjp, np.ones(7), reached, 0.0)
    assert not term(Z).gradient.any()
    assert np.array_equal(term(Z).value(), np.zeros(7))


def test_differences_ask_for_two_points_per_feature_and_the_row_itself_in_one_call():
    batches = []

    def predict(points, row):
        batches.append((len(points), np.bincount(row).tolist()))
        return networks.forward(CLASSIFIER, points)

    y, pullback = differences(predict, np.full(6, 1e-5))(Z)
    assert batches == [(7 * 13, [13] * 7)]
    assert np.allclose(y, networks.forward(CLASSIFIER, Z))
    cotangent = RNG.normal(size=y.shape)
    _, exact = torch_adapter(CLASSIFIER, "classifier").vjp(Z)
    assert np.allclose(pullback(cotangent), exact(cotangent), atol=1e-6)


def test_eps_may_differ_per_feature():
    seen = []

    def predict(points, _row):
        seen.append(points)
        return points[:, :2]

    eps = np.arange(1, 7) / 10
    differences(predict, eps)(np.zeros((1, 6)))
    assert np.allclose(np.abs(seen[0]).max(axis=0), eps)


def test_predict_only_encoder_gets_a_gradient_of_any_output_shape():
    class Encoder:
        def predict(self, x):
            return np.stack([x.sum(axis=(1, 2)), (x**2).sum(axis=(1, 2))], axis=1)[:, :, None]

    x = RNG.normal(size=(2, 3, 2))
    y, pullback = WithDifferences(Encoder(), np.asarray(1e-5)).vjp(x)
    assert y.shape == (2, 2, 1)
    pulled = pullback(np.array([[[1.0], [0.0]], [[0.0], [1.0]]]))
    assert np.allclose(pulled[0], 1)
    assert np.allclose(pulled[1], 2 * x[1], atol=1e-6)
