from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.methods.path import path_points


def test_path_point_minimises_the_objective_as_written():
    rng = np.random.default_rng(0)
    z0, proto = rng.normal(size=(1, 5)), rng.normal(size=(1, 1, 5)) * 2
    lower, upper = z0 - 0.8, z0 + 0.8
    beta = 0.7
    for theta in (0.2, 1.0, 8.0):

        def objective(parts, theta=theta):
            delta = parts[:5] - parts[5:]  # L1 as a smooth function of two non-negative halves
            return beta * parts.sum() + np.square(delta).sum() + theta * np.square(z0[0] + delta - proto[0, 0]).sum()

        best = minimize(objective, np.full(10, 0.1), bounds=[(0, 0.8)] * 10, tol=1e-14)
        expected = z0[0] + best.x[:5] - best.x[5:]
        t = np.array([[[theta / (1 + theta)]]])
        assert np.allclose(path_points(z0, proto, t, lower, upper, beta)[0, 0, 0], expected, atol=1e-4)


def test_path_runs_from_the_row_to_the_prototype_and_its_cost_grows():
    rng = np.random.default_rng(1)
    z0, proto = rng.normal(size=(2, 4)), rng.normal(size=(2, 3, 4))
    t = np.broadcast_to(np.linspace(0, 1, 30), (2, 3, 30))
    z = path_points(z0, proto, t, z0 - 9, z0 + 9, 0.1)
    assert np.array_equal(z[:, :, 0], np.broadcast_to(z0[:, None], z[:, :, 0].shape))
    assert np.allclose(z[:, :, -1], proto)
    delta = z - z0[:, None, None]
    cost = 0.1 * np.abs(delta).sum(axis=-1) + np.square(delta).sum(axis=-1)
    assert (np.diff(cost, axis=-1) >= 0).all()


def test_path_finds_the_boundary_of_a_linear_model_to_its_resolution():
    """Class 1 iff x0 + x1 > 1; the row at the origin, one prototype at (2, 2): the crossing is at (0.5, 0.5)."""

    def model(x):
        p = 1 / (1 + np.exp(-4 * (x.sum(axis=1) - 1)))
        return np.stack([1 - p, p], axis=1)

    train = np.array([[0.0, 0.0], [2.0, 2.0]])
    search = SearchConfig.close(beta=0.0, polish=False)
    explainer = CounterfactualExplainer(model, features=Features(scale=None, decimals=None), search=search).fit(train)
    e = explainer.explain([0.0, 0.0])
    assert e.status.tolist() == ["found"]
    assert 1 < e.counterfactual.sum() < 1 + 4 / 256 + 1e-9
    assert e.meta["n_predict_calls"] - e.meta["n_polish_calls"] == 4
    assert e.meta["method"] == "path"


@pytest.mark.parametrize("theta", [0.5, 4.0])
def test_path_begins_at_a_theta_that_was_asked_for(theta):
    """Class 1 begins a quarter of the way to the prototype: before theta = 0.5, whose minimiser is a third of it."""

    def model(x):
        p = 1 / (1 + np.exp(-4 * (x.sum(axis=1) - 1)))
        return np.stack([1 - p, p], axis=1)

    search = SearchConfig.close(beta=0.0, polish=False, theta=theta)
    explainer = CounterfactualExplainer(model, features=Features(scale=None, decimals=None), search=search)
    e = explainer.fit(np.array([[0.0, 0.0], [2.0, 2.0]])).explain([0.0, 0.0])
    assert e.counterfactual[0] == pytest.approx(2 * theta / (1 + theta))


def test_bounds_hold_inside_the_formula_and_another_prototype_is_taken():
    def model(x):
        p = (x.max(axis=1) > 1).astype(float)
        return np.stack([1 - p, p], axis=1)

    train = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
    features = Features(scale=None, immutable=(0,))
    e = CounterfactualExplainer(model, features=features).fit(train).explain([0.0, 0.0])
    assert e.status.tolist() == ["found"]
    assert e.counterfactual[0, 0] == 0.0
    assert e.counterfactual[0, 1] > 1


def test_all_target_classes_compete_and_the_nearest_counterfactual_wins():
    def model(x):
        score = np.stack([-np.abs(x[:, 0]), -np.abs(x[:, 0] - 3), -np.abs(x[:, 0] + 2)], axis=1)
        exp = np.exp(score)
        return exp / exp.sum(axis=1, keepdims=True)

    train = np.array([[0.0], [3.0], [-2.0]])
    explainer = CounterfactualExplainer(model, features=Features(scale=None)).fit(train)
    assert explainer.explain([[0.0]]).counterfactual_class.tolist() == [2]
    assert explainer.explain([[0.0]], target=1).counterfactual_class.tolist() == [1]


def test_functions_are_asked_about_every_second_point_of_a_path_first():
    """Where the class changes once on every path, the answers are those of asking about all points."""
    rng = np.random.default_rng(3)
    train = rng.normal(size=(80, 5))
    asked = []

    def model(x):
        asked.append(len(x))
        p = 1 / (1 + np.exp(-3 * (x @ [1.0, -1.0, 0.5, 0.0, 2.0])))
        return np.stack([1 - p, p], axis=1)

    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(train)
    fitted = explainer.fitted_
    assert fitted.tuning.halved
    found = []
    for halved in (True, False):
        explainer.fitted_ = replace(fitted, tuning=replace(fitted.tuning, halved=halved))
        asked.clear()
        found.append((explainer.explain(train[:6]).counterfactual, sum(asked)))
    assert found[0][0].tolist() == found[1][0].tolist()
    assert found[0][1] < found[1][1]


def test_a_line_whose_second_points_all_keep_the_class_is_asked_about_the_others():
    """Class 1 is a thin shell that only the odd points of the path, 1/8 and 3/8 of the way, can hit."""
    train = np.array([[0.0], [-0.1], [8.0]])

    def model(x):
        p = np.where(np.abs(x[:, 0] - 3) < 0.5, 0.9, np.where(x[:, 0] >= 7.99, 0.9, 0.1))
        return np.stack([1 - p, p], axis=1)

    explainer = CounterfactualExplainer(
        model, features=Features(scale=None, ranges={0: (-1, 7.5)}), search=SearchConfig.close(fallback=False)
    ).fit(train)
    e = explainer.explain(train[:1])
    assert e.status.tolist() == ["found"]
    assert 2.5 < e.counterfactual[0, 0] < 3.5
