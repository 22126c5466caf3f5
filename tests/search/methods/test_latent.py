"""The path in the space of an encoder."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.objective.curvature import curvature_of
from cfproto_plugin.search.objective.terms import Distance, Evaluation


def cost(e):
    delta = e.counterfactual - e.original
    return 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)


def explainer_of(digits, **settings):
    return CounterfactualExplainer(
        networks.in_torch(digits.classifier), encoder=networks.in_torch(digits.encoder, softmax=False), **settings
    ).fit(digits.x[:1500])


def linear(x):
    """Class 1 iff x0 + x1 > 1."""
    p = 1 / (1 + np.exp(-4 * (x.sum(axis=1) - 1)))
    return np.stack([1 - p, p], axis=1)


class Identity:
    def predict(self, x):
        return x

    def vjp(self, x):
        return x, lambda cotangent: cotangent


@pytest.mark.parametrize("theta", [0.0, 0.4])
def test_with_the_identity_as_encoder_it_is_the_path_in_closed_form(theta):
    """The same points and the same J: theta weighs the same prototype in both."""
    train = np.array([[0.0, 0.0], [2.0, 3.0]])
    features = Features(scale=None, decimals=None)
    plain = CounterfactualExplainer(linear, features=features, search=SearchConfig.close(polish=False, theta=theta))
    search = SearchConfig(beta=0.1, theta=theta or None, min_confidence=0)
    latent = CounterfactualExplainer(linear, encoder=Identity(), features=features, search=search)
    x = np.array([[0.1, -0.2], [0.0, 0.3]])
    found, expected = (one.fit(train).explain(x) for one in (latent, plain))
    assert found.status.tolist() == expected.status.tolist() == ["found", "found"]
    assert found.meta["method"] == "path"
    assert np.allclose(found.counterfactual, expected.counterfactual, atol=0.1)
    assert np.allclose(found.objective, expected.objective, rtol=0.2)
    assert (linear(found.counterfactual)[:, 1] > 0.5).all()


def test_a_theta_that_was_given_weighs_the_distance_of_codes_in_what_is_minimised(digits):
    explainer = explainer_of(digits, search=SearchConfig(theta=2.0))
    x = digits.x[1500:1516]
    e = explainer.explain(x)
    at = np.flatnonzero(e.status == "found")
    assert len(at) >= 4
    codes = networks.forward(digits.encoder, e.counterfactual[at], softmax=False)
    allowed = np.eye(10, dtype=bool)[e.prototype_class[at].astype(int)]
    goal = explainer.fitted_.guide.provider.nearest(x[at], allowed)[0][:, 0]
    proto = np.square(codes - goal).sum(axis=1)
    assert (2 * proto).mean() > 0.05
    np.testing.assert_allclose(e.objective[at], e.distance[at] + 2 * proto, rtol=1e-4)


def test_by_default_it_changes_fewer_columns_than_with_the_papers_beta(digits):
    x = digits.x[1500:1530]
    default, paper = (explainer_of(digits, search=search).explain(x) for search in (None, SearchConfig(beta=0.1)))
    assert (default.meta["config"]["beta"], default.meta["config"]["k"]) == (1, 20)
    both = (default.status == "found") & (paper.status == "found")
    assert both.sum() >= 20
    assert default.n_changes[both].mean() < 0.8 * paper.n_changes[both].mean()
    assert cost(default)[both].mean() < 1.25 * cost(paper)[both].mean()


def test_curvature_is_the_largest_eigenvalue_of_every_point():
    weights = np.array([[1.0, 5.0, 2.0], [0.5, 0.1, 3.0]])
    point = np.random.default_rng(0).normal(size=(2, 3))

    def term(z):
        return Evaluation(lambda: (weights * (z - point) ** 2).sum(axis=1), 2 * weights * (z - point))

    np.testing.assert_allclose(curvature_of(term, np.zeros((2, 3))), [10, 6], rtol=0.05)
    np.testing.assert_allclose(curvature_of(Distance(point, 3.0), point + 1), 6, rtol=1e-6)


def test_a_scaled_encoder_gives_the_same_counterfactuals(digits):
    """theta counts in units of the encoder's own curvature."""
    (weight, bias), *others = digits.encoder[::-1]
    tenfold = [*others[::-1], (10 * weight, 10 * bias)]
    model, x = networks.in_torch(digits.classifier), digits.x[1500:1510]
    one, ten = (
        CounterfactualExplainer(model, encoder=networks.in_torch(layers, softmax=False)).fit(digits.x[:1500]).explain(x)
        for layers in (digits.encoder, tenfold)
    )
    assert one.status.tolist() == ten.status.tolist()
    assert np.allclose(one.counterfactual, ten.counterfactual, atol=1e-2)


def test_it_is_as_close_to_the_rows_as_loss_e_in_far_fewer_steps(digits):
    x = digits.x[1500:1530]
    path = explainer_of(digits).explain(x)
    e = explainer_of(digits, search=SearchConfig.paper("E", max_iterations=500)).explain(x)
    both = (path.status == "found") & (e.status == "found")
    assert both.sum() >= 20
    assert np.median(cost(path)[both]) < 1.2 * np.median(cost(e)[both])
    assert path.n_steps[both].mean() < 150


def test_rules_hold_on_what_it_finds(digits):
    fixed = tuple(range(8, 20))
    rules = Features(immutable=fixed, ranges=dict.fromkeys(range(20, 64), (0.0, 0.9)))
    e = explainer_of(digits, features=rules).explain(digits.x[1500:1512])
    good = np.isin(e.status, ("found", "fallback"))
    assert good.sum() >= 8
    assert np.array_equal(e.counterfactual[good][:, fixed], e.original[good][:, fixed])
    assert e.counterfactual[good][:, 20:].max() <= 0.9
    again = networks.forward(digits.classifier, e.counterfactual[good]).argmax(axis=1)
    assert np.array_equal(again, e.counterfactual_class[good].astype(int))


def test_by_default_the_classifier_is_as_sure_as_wished_for_or_the_message_says_how_sure_it_is(digits):
    x = digits.x[1500:1540]
    explainer = explainer_of(digits)
    e = explainer.explain(x)
    nearest = explainer_of(digits, search=SearchConfig(min_confidence=0)).explain(x)
    at, label = np.flatnonzero(e.status == "found"), e.counterfactual_class
    assert len(at) >= 30
    proba = e.counterfactual_proba[at, label[at].astype(int)]
    reached = proba >= np.array(e.meta["confidence"])[label[at].astype(int)]
    assert reached.mean() > 0.5
    assert all(
        ("the best that was found has probability" in e.message[i]) != ok for i, ok in zip(at, reached, strict=True)
    )
    assert nearest.meta["confidence"] is None
    assert cost(nearest)[at].mean() < cost(e)[at].mean()


def test_where_no_path_is_as_sure_as_wished_for_the_surest_point_is_the_answer(digits):
    """The share asks for 0.99 of every class, which few paths reach."""
    x = digits.x[1500:1520]
    wish = SearchConfig(min_confidence=1, strict=False)
    e, nearest = (explainer_of(digits, search=search).explain(x) for search in (wish, SearchConfig(min_confidence=0)))
    missed = np.array(["the best that was found has probability" in message for message in e.message])
    missed &= (e.status == "found") & (nearest.status == "found")
    assert missed.sum() > 4
    surer = (e.margin - nearest.margin)[missed]
    assert surer.min() > -0.02
    assert surer.mean() > 0.1
    alone = explainer_of(digits, search=wish).explain(x[np.flatnonzero(missed)[0]])
    np.testing.assert_allclose(cost(alone), cost(e)[missed][:1], rtol=1e-3)


def test_a_confidence_that_was_given_is_a_rule_with_an_encoder(digits):
    x = digits.x[1500:1512]
    e = explainer_of(digits, search=SearchConfig(min_confidence=0.1)).explain(x)
    label = e.counterfactual_class[e.found].astype(int)
    assert e.found.any()
    assert (e.counterfactual_proba[e.found].max(axis=1) >= np.array(e.meta["confidence"])[label]).all()


def test_a_target_is_reached_and_several_answers_differ(digits):
    explainer, x = explainer_of(digits), digits.x[1500:1504]
    e = explainer.explain(x, target=3)
    assert set(e.status) <= {"found", "fallback"}
    assert (e.counterfactual_class == 3).all()
    several = explainer.explain(x[:1], n=3)
    assert len({row.tobytes() for row in several.counterfactual}) == 3


def test_a_batch_gives_the_answers_of_its_rows(digits):
    explainer, x = explainer_of(digits), digits.x[1500:1508]
    together, alone = explainer.explain(x), [explainer.explain(row) for row in x]
    assert together.status.tolist() == [e.status[0] for e in alone]
    assert together.counterfactual_class.tolist() == [e.counterfactual_class[0] for e in alone]
    np.testing.assert_allclose(cost(together), [cost(e)[0] for e in alone], rtol=1e-3)


def test_a_theta_that_was_asked_for_is_where_the_path_begins(digits):
    x = digits.x[1500:1510]
    near, far = (explainer_of(digits, search=SearchConfig(theta=theta)).explain(x) for theta in (None, 1e4))
    assert cost(far).mean() > cost(near).mean()


@pytest.mark.parametrize("factor", [0.0, 1e-9])
def test_an_encoder_that_hardly_answers_leaves_the_paths_to_training_rows(digits, factor):
    encoder = networks.in_torch([(factor * weight, factor * bias) for weight, bias in digits.encoder], softmax=False)
    model, x = networks.in_torch(digits.classifier), digits.x[1500:1505]
    e = CounterfactualExplainer(model, encoder=encoder).fit(digits.x[:300]).explain(x)
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(networks.forward(digits.classifier, e.counterfactual).argmax(axis=1), e.counterfactual_class)


@pytest.mark.parametrize("target", [np.array([9, 0, 1]), 9, {9: (0.5, 0.9)}])
def test_a_class_of_no_training_row_costs_only_the_rows_that_ask_for_it(digits, target):
    *others, (weight, bias) = digits.classifier
    model = networks.in_torch([*others, (weight, bias - 1e3 * (np.arange(10) == 9))])
    encoder = networks.in_torch(digits.encoder, softmax=False)
    e = CounterfactualExplainer(model, encoder=encoder).fit(digits.x[:300]).explain(digits.x[1500:1503], target=target)
    assert e.status[0] == "not_found"
    assert "no training row" in e.message[0] or isinstance(target, dict)
    if isinstance(target, np.ndarray):
        assert e.found[1:].all()


def test_where_no_path_in_codes_leads_the_way_to_a_training_row_goes_as_far_as_the_wish(digits):
    """The encoder knows too little: nearly all rows end on the way to a training row."""
    rng = np.random.default_rng(0)
    encoder = networks.in_torch([(0.1 * rng.normal(size=(64, 8)), np.zeros(8))], softmax=False)
    explainer = CounterfactualExplainer(networks.in_torch(digits.classifier), encoder=encoder).fit(digits.x[:1500])
    e = explainer.explain(digits.x[1500:1520])
    fallback = e.status == "fallback"
    label = e.counterfactual_class[fallback].astype(int)
    assert fallback.sum() > 4
    assert (e.counterfactual_proba[fallback].max(axis=1) >= np.array(e.meta["confidence"])[label]).all()
    assert "; the best that was found" not in "".join(e.message[fallback])


def test_a_time_budget_ends_it(digits):
    e = explainer_of(digits).explain(digits.x[1500:1560], time_budget=1e-6)
    assert "time budget" in e.message[-1]


def test_an_encoder_that_only_predicts_gives_nearly_the_same(digits):
    from sklearn.decomposition import PCA

    pca = PCA(8, random_state=0).fit(digits.x[:1500])
    model, x = networks.in_torch(digits.classifier), digits.x[1500:1506]
    exact, rough = (
        CounterfactualExplainer(model, encoder=encoder).fit(digits.x[:300]).explain(x)
        for encoder in (pca, pca.transform)
    )
    assert (exact.status == "found").any()
    assert exact.status.tolist() == rough.status.tolist()
    assert np.allclose(exact.counterfactual, rough.counterfactual, atol=2e-2)
