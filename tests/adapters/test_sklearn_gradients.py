"""Models computed here give their own outputs, and exact gradients."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from cfproto_adapters.sklearn_adapter import sklearn_adapter
from sklearn import ensemble
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn_models import (
    GRADIENT,
    central_differences,
    fitted,
    model_of,
    perturbed,
    table,
)

from cfproto_plugin.testing import check_adapter


@pytest.mark.parametrize(
    "name", [n for n in GRADIENT if n not in {"linear svc", "ridge", "perceptron", "sgd hinge", "robust, svd"}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_models_computed_here_give_their_own_probabilities(name, classes):
    model, x = model_of(name, classes), perturbed(classes)
    assert np.abs(sklearn_adapter(model).predict(x) - model.predict_proba(x)).max() < 1e-12


@pytest.mark.parametrize("name", GRADIENT)
@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_exact(name, classes):
    adapter, x = sklearn_adapter(model_of(name, classes)), perturbed(classes, 20)
    y, pullback = adapter.vjp(x)
    cotangent = np.random.default_rng(2).normal(size=y.shape)
    expected = central_differences(adapter.predict, x, cotangent)
    assert np.abs(pullback(cotangent) - expected).max() < 1e-6 * max(1, np.abs(expected).max())
    assert np.abs(expected).max() > 1e-3


def test_single_precision_networks_stay_in_single_precision():
    x, y = table(3)
    single = MLPClassifier((12, 9), max_iter=30, tol=1.0, random_state=0).fit(x.astype(np.float32), y)
    for model, dtype in ((single, np.float32), (model_of("mlp relu", 3), np.float64)):
        adapter = sklearn_adapter(model)
        p, pullback = adapter.vjp(x[:5].astype(np.float32))
        assert p.dtype == adapter.predict(x[:5].astype(np.float32)).dtype == dtype
        assert pullback(np.ones_like(p)).dtype == np.float32
        assert sklearn_adapter(model).vjp(x[:5])[0].dtype == np.float64


def test_images_are_flattened_and_gradients_get_their_shape_back():
    x = perturbed(2, 6)
    images = x.reshape(6, 2, 2, 2)
    for name in ("mlp tanh", "forest", "svc"):
        adapter = sklearn_adapter(model_of(name, 2))
        assert np.array_equal(adapter.predict(images), adapter.predict(x))
    adapter = sklearn_adapter(model_of("mlp tanh", 2))
    g = np.ones((6, 2)) * [1, 2]
    assert np.array_equal(adapter.vjp(images)[1](g), adapter.vjp(x)[1](g).reshape(images.shape))


@functools.cache
def autoencoder():
    x, _ = table(2)
    return MLPRegressor(
        hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=50, tol=1.0, random_state=0
    ).fit(x, x)


ENCODERS = {
    "pca": PCA(3),
    "whitened pca": PCA(3, whiten=True),
    "svd": TruncatedSVD(3),
    "scaler": StandardScaler(),
    "chain": make_pipeline(RobustScaler(), PCA(4), MaxAbsScaler()),
    "best features": SelectKBest(k=3),
    "sparse": OneHotEncoder(handle_unknown="ignore"),
    "frames": make_pipeline(StandardScaler(), PolynomialFeatures(2)).set_output(transform="pandas"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_give_what_transform_gives(name):
    model = fitted(ENCODERS[name], 2)
    x = table(2)[0][:20]
    adapter = sklearn_adapter(model, role="transform")
    check_adapter(adapter, x, role="transform", atol=1e-4)
    expected = model.transform(x)
    expected = expected.toarray() if name == "sparse" else np.asarray(expected)
    assert np.abs(adapter.predict(x) - expected).max() < 1e-12
    assert not hasattr(adapter, "classes")
    assert hasattr(adapter, "vjp") == (name not in {"best features", "sparse", "frames"})


@pytest.mark.parametrize("name", ["pca", "whitened pca", "svd", "scaler", "chain", "autoencoder"])
def test_gradients_of_encoders_and_autoencoders_are_exact(name):
    model = autoencoder() if name == "autoencoder" else fitted(ENCODERS[name], 2)
    adapter, x = sklearn_adapter(model, role="transform"), perturbed(2, 10)
    y, pullback = adapter.vjp(x)
    cotangent = np.random.default_rng(2).normal(size=y.shape)
    assert np.abs(pullback(cotangent) - central_differences(adapter.predict, x, cotangent)).max() < 1e-6


def test_autoencoders_return_images_as_images():
    x = perturbed(2, 6)
    images = x.reshape(6, 2, 4)
    adapter = sklearn_adapter(autoencoder(), role="transform")
    assert np.array_equal(adapter.predict(images).reshape(6, 8), adapter.predict(x))
    y, pullback = adapter.vjp(images)
    assert y.shape == pullback(y).shape == images.shape
    other = ensemble.ExtraTreesRegressor(3, random_state=0).fit(x, x)
    assert sklearn_adapter(other, role="transform").predict(images).shape == images.shape
