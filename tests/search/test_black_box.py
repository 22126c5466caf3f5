"""Models that only predict: trees by the path, networks as plain functions by differences."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig


def cost(e):
    delta = e.counterfactual - e.original
    return 0.01 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)


def loss_a(golden, **settings):
    return SearchConfig(
        method="fista", beta=0.01, c_init=10.0, c_steps=3, max_iterations=150, theta=0, fallback=False, **settings
    )


def test_network_as_a_function_agrees_with_its_adapter_on_loss_a(golden):
    layers = [(weight.astype(float), bias.astype(float)) for weight, bias in golden.layers]
    x, train = golden.x[:8].astype(float), golden.x_train.astype(float)
    search = loss_a(golden)
    functions = networks.in_torch(layers).double(), lambda rows: networks.forward(layers, rows)
    exact, rough = (
        CounterfactualExplainer(model, features=golden.features, search=search).fit(train).explain(x)
        for model in functions
    )
    assert exact.meta["adapter"] == "torch"
    assert rough.meta["adapter"] == "callable"
    assert exact.status.tolist() == rough.status.tolist()
    found = exact.status == "found"
    assert found.any()
    assert np.allclose(cost(exact)[found], cost(rough)[found], rtol=0.03)


def test_differences_predict_two_rows_per_feature_and_one_more_per_step(golden):
    sizes = []

    def model(x):
        sizes.append(len(x))
        return networks.forward(golden.layers, x)

    steps = 20
    search = SearchConfig(
        method="fista", beta=0.01, c_init=100.0, c_steps=1, max_iterations=steps, theta=0, fallback=False
    )
    explainer = CounterfactualExplainer(model, features=golden.features, search=search).fit(golden.x_train)
    sizes.clear()
    e = explainer.explain(golden.x[4])
    per_step = 2 * 30 + 1
    assert sizes.count(per_step) == steps
    fingerprint = len(explainer.fitted_.fingerprint.rows)
    copies = len(explainer.fitted_.guide.floors.copies.steps)
    # the row itself, the last iterate, what is returned, the copies that measure its stability, and the rows that show
    # whether the model is still the same
    assert sum(sizes) - steps * per_step <= 3 + copies + fingerprint
    assert sum(sizes) == e.meta["n_predicted_rows"]
    assert len(sizes) == e.meta["n_predict_calls"]


def tree_models():
    from sklearn.ensemble import RandomForestClassifier
    from xgboost import XGBClassifier

    return {
        "forest": lambda: RandomForestClassifier(40, random_state=0),
        "xgboost": lambda: XGBClassifier(n_estimators=40, n_jobs=1),
    }


@pytest.mark.parametrize("kind", ["forest", "xgboost"])
@pytest.mark.parametrize("name", ["breast_cancer", "wine", pytest.param("digits", marks=pytest.mark.slow)])
def test_default_settings_explain_every_row_of_a_tree_model(name, kind):
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    model = tree_models()[kind]().fit(x, y)
    explainer = CounterfactualExplainer(model).fit(x)
    e = explainer.explain(x)
    assert set(e.status) == {"found"}
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    assert (e.counterfactual_class != e.original_class).all()
    assert (e.counterfactual >= x.min(axis=0)).all()
    assert (e.counterfactual <= x.max(axis=0)).all()
    for row in x[::40]:
        meta = explainer.explain(row).meta
        assert meta["n_predict_calls"] - meta["n_polish_calls"] <= 4
        assert meta["n_predict_calls"] <= 100


def test_loss_e_on_a_forest_predicts_in_a_few_batches_not_once_per_step(forest, cancer):
    search = SearchConfig(method="fista", beta=0.01, c_init=0, theta=50.0, max_iterations=300)
    e = CounterfactualExplainer(forest, search=search).fit(cancer[0][:450]).explain(cancer[0][450:460])
    assert e.meta["n_predict_calls"] <= 8
    assert (e.status == "found").any()


def test_identical_rows_of_a_batch_are_predicted_once():
    seen = []

    def model(x):
        seen.append(x)
        p = (x.sum(axis=1) > 5).astype(float)
        return np.stack([1 - p, p], axis=1)

    train = np.random.default_rng(0).integers(0, 8, size=(80, 3)).astype(float)
    explainer = CounterfactualExplainer(model, features=Features(integer=(0, 1, 2))).fit(train)
    seen.clear()
    e = explainer.explain(train[:30])
    assert set(e.status) == {"found"}
    searched = seen[1:-2]  # the first call and that of what is returned hold the user's own rows; the last their copies
    assert all(len(np.unique(batch, axis=0)) == len(batch) for batch in searched)
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)
