"""The reference implementation's numbers come out again."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig

LOSSES = {"A": {"c_steps": 5}, "B": {"c_steps": 5, "theta": 20.0, "k": 2}, "C": {"theta": 20.0, "k": 2}}


def cost(x, counterfactual):
    delta = counterfactual - x
    return 0.01 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)


def explained(golden, model, loss):
    settings = {"beta": 0.01, "max_iterations": 500, **LOSSES[loss]}
    search = SearchConfig.reference(loss, experiment="breast_cancer", **settings)
    explainer = CounterfactualExplainer(model, features=golden.features, search=search).fit(golden.x_train)
    return explainer, explainer.explain(golden.x)


@pytest.mark.parametrize(
    "build", [networks.in_torch, pytest.param(networks.in_keras, marks=pytest.mark.slow), networks.in_sklearn]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_golden_counterfactuals_are_reproduced(golden, loss, build):
    _, e = explained(golden, build(golden.layers), loss)
    expected = golden.arrays[f"cf_{loss}"]
    assert e.counterfactual.dtype == np.float32
    assert np.array_equal(e.status == "found", ~np.isnan(expected[:, 0]))
    found = e.status == "found"
    error = np.abs(cost(golden.x, e.counterfactual)[found] / cost(golden.x, expected)[found] - 1)
    allowed_misses = 1 if loss == "C" else 0
    assert (error > 0.005).sum() <= allowed_misses, error


def test_golden_prototypes_are_reproduced(golden):
    explainer, e = explained(golden, networks.in_torch(golden.layers), "B")
    provider = explainer.fitted_.guide.provider
    points, classes = provider.nearest(golden.x, np.arange(2) != e.original_class[:, None])
    assert np.array_equal(points[:, 0], golden.arrays["proto_B"])
    assert np.array_equal(classes[:, 0], golden.arrays["proto_class_B"])
    assert np.array_equal(e.prototype_class, golden.arrays["proto_class_B"])


def test_network_of_the_golden_file_predicts_what_it_should(golden):
    assert np.allclose(networks.forward(golden.layers, golden.x), golden.arrays["proba"], atol=1e-6)
