"""All six losses of the paper with encoders and autoencoders of both frameworks, on scikit-learn's 8x8 digits."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.plugins.claims import adapt

BUILDS = {"torch": networks.in_torch, "keras": networks.in_keras}


def explained(digits, build, loss, x, **settings):
    explainer = CounterfactualExplainer(
        build(digits.classifier),
        encoder=build(digits.encoder, softmax=False),
        autoencoder=build(digits.autoencoder, softmax=False),
        search=SearchConfig.paper(loss, **settings),
    )
    return explainer.fit(digits.x[:1500]).explain(x)


@pytest.mark.parametrize("framework", ["torch", pytest.param("keras", marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", "ABCDEF")
def test_every_loss_finds_counterfactuals_with_either_framework(digits, loss, framework):
    x = digits.x[1500:1506]
    settings = {"c_steps": 6} if loss in "ABCD" else {}
    e = explained(digits, BUILDS[framework], loss, x, max_iterations=150, **settings)
    found = e.status == "found"
    assert found.sum() >= 4, e.message
    again = networks.forward(digits.classifier, e.counterfactual[found]).argmax(axis=1)
    assert np.array_equal(again, e.counterfactual_class[found].astype(int))
    assert (again != e.original_class[found]).all()
    assert (e.prototype_class[found] == None).all() == (loss in "AB")  # noqa: E711


@pytest.mark.parametrize("loss", "ABCDEF")
def test_same_weights_in_both_frameworks_give_the_same_counterfactuals(digits, loss):
    x = digits.x[1500:1505]
    settings = {"learning_rate": 1e-3, "beta": 1e-3, "c_steps": 1, "max_iterations": 100}
    if loss in "ABCD":
        settings["c_init"] = 10.0
    torch, keras = (explained(digits, build, loss, x, **settings) for build in BUILDS.values())
    assert torch.status.tolist() == keras.status.tolist()
    assert (torch.status == "found").any()
    assert np.allclose(torch.counterfactual, keras.counterfactual, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("part", ["classifier", "encoder", "autoencoder"])
def test_same_weights_in_both_frameworks_give_the_same_pullbacks(digits, part):
    x = digits.x[:20]
    role = "classifier" if part == "classifier" else "transform"
    layers = getattr(digits, part)
    outputs, pulled = [], []
    for build in BUILDS.values():
        y, pullback = adapt(build(layers, softmax=part == "classifier"), role=role).vjp(x)
        outputs.append(y)
        pulled.append(pullback(np.random.default_rng(0).standard_normal(y.shape).astype(np.float32)))
    assert np.abs(outputs[0] - outputs[1]).max() < 1e-5
    assert np.abs(pulled[0] - pulled[1]).max() < 1e-5


def test_default_settings_with_an_encoder_find_every_row(digits):
    explainer = CounterfactualExplainer(
        networks.in_torch(digits.classifier), encoder=networks.in_torch(digits.encoder, softmax=False)
    ).fit(digits.x[:1500])
    e = explainer.explain(digits.x[1500:1510])
    assert e.meta["method"] == "path"
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(networks.forward(digits.classifier, e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_pca_is_an_encoder_and_a_predict_only_encoder_works_too(digits):
    from sklearn.decomposition import PCA

    pca = PCA(8, random_state=0).fit(digits.x[:1500])
    model = networks.in_torch(digits.classifier)
    search = SearchConfig.paper("E", theta=20, beta=0.01, max_iterations=60)
    train, x = digits.x[:300], digits.x[1500:1503]
    exact = CounterfactualExplainer(model, encoder=pca, search=search).fit(train).explain(x)
    rough = CounterfactualExplainer(model, encoder=pca.transform, search=search).fit(train).explain(x)
    assert (exact.status == "found").any()
    assert exact.status.tolist() == rough.status.tolist()
    assert np.allclose(exact.counterfactual, rough.counterfactual, atol=1e-2, equal_nan=True)
