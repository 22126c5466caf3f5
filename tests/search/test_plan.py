"""The plan: method and weights for the models at hand, and settings that it would ignore."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.search.plan import Situation, make_plan

TABLE = Situation(gradients=False, autoencoder=False, latent=False, table=True)
NETWORK = replace(TABLE, gradients=True)
IMAGE = replace(NETWORK, table=False)
ENCODER = replace(IMAGE, latent=True)


def test_tables_follow_the_path_from_the_row_and_are_polished():
    plan = make_plan(SearchConfig(), TABLE)
    assert (plan.method, plan.c_init, plan.gamma, plan.path_theta, plan.polish) == ("path", 0, 0, 0, True)
    assert (plan.typicality, plan.stability, plan.confidence) == ((0.1, False), (0.7, False), (0.01, False))


def test_a_change_is_dearer_where_the_model_has_no_splits():
    assert make_plan(SearchConfig(), TABLE).few_changes == 2.5
    assert make_plan(SearchConfig(), replace(TABLE, splits=True)).few_changes == 0.5
    assert make_plan(SearchConfig(few_changes=0), TABLE).few_changes == 0


def test_strict_makes_wishes_of_rules_and_rules_of_wishes():
    plan = make_plan(SearchConfig(min_typicality=0.3, strict=False), TABLE)
    assert (plan.typicality, plan.stability) == ((0.3, False), (0.7, False))
    plan = make_plan(SearchConfig(min_stability=0, strict=True), TABLE)
    assert (plan.typicality, plan.stability, plan.confidence) == ((0.1, True), (0, False), (0.01, True))


def test_theta_is_that_of_the_objective_with_and_without_polish():
    for polish in (True, False):
        assert make_plan(SearchConfig(polish=polish, theta=0.3), TABLE).path_theta == 0.3
        assert make_plan(SearchConfig(polish=polish), TABLE).path_theta == 0
    assert make_plan(SearchConfig(polish=False), ENCODER).path_theta == 0


def test_beta_is_1_on_the_path_of_an_encoder_and_the_papers_elsewhere():
    assert make_plan(SearchConfig(), ENCODER).beta == 1
    assert make_plan(SearchConfig(beta=0.3), ENCODER).beta == 0.3
    for settings, situation in (({}, TABLE), ({}, IMAGE), ({"method": "fista"}, ENCODER)):
        assert make_plan(SearchConfig(**settings), situation).beta == 0.1


def test_a_floor_that_the_user_gave_is_a_rule_and_zero_is_none():
    plan = make_plan(SearchConfig(min_typicality=0.3, min_stability=0), TABLE)
    assert (plan.typicality, plan.stability) == ((0.3, True), (0, False))


def test_images_encoders_and_the_iteration_have_no_floors_and_no_price_of_changes():
    for settings, situation in (({}, IMAGE), ({"min_confidence": 0}, ENCODER), ({"method": "fista"}, TABLE)):
        plan = make_plan(SearchConfig(**settings), situation)
        assert (plan.few_changes, plan.typicality.least, plan.stability.least, plan.confidence.least) == (0, 0, 0, 0)


def test_the_path_of_an_encoder_wishes_for_confidence_unless_the_user_says_otherwise():
    assert make_plan(SearchConfig(), ENCODER).confidence == (0.05, False)
    assert make_plan(SearchConfig(strict=True), ENCODER).confidence == (0.05, True)
    assert make_plan(SearchConfig(min_confidence=0.2), ENCODER).confidence == (0.2, True)
    for search in (SearchConfig(min_confidence=0), SearchConfig(method="fista"), SearchConfig.paper("E")):
        assert make_plan(search, ENCODER).confidence == (0, False)
    assert make_plan(SearchConfig.close(), replace(ENCODER, gradients=True)).confidence == (0, False)


def test_second_opinions_are_asked_about_images_on_the_path_of_an_encoder_with_a_wish_for_confidence():
    assert make_plan(SearchConfig(), ENCODER).opinions == 2
    assert make_plan(SearchConfig(opinions=1), replace(ENCODER, large=True)).opinions == 1
    for settings in ({"opinions": 0}, {"min_confidence": 0}, {"method": "fista"}, {"theta": 1.0}):
        assert make_plan(SearchConfig(**settings), ENCODER).opinions == 0
    for change in ({"table": True}, {"gradients": False}, {"large": True}, {"decides": True}, {"autoencoder": True}):
        assert make_plan(SearchConfig(), replace(ENCODER, **change)).opinions == 0
    assert make_plan(SearchConfig(), TABLE).opinions == make_plan(SearchConfig(), IMAGE).opinions == 0


def test_images_and_encoders_are_not_polished():
    assert not make_plan(SearchConfig(), IMAGE).polish
    assert not make_plan(SearchConfig(), ENCODER).polish
    assert make_plan(SearchConfig(polish=True), IMAGE).polish


@pytest.mark.parametrize(
    ("settings", "situation", "expected"),
    [
        ({"method": "fista"}, TABLE, (0, 1, 0, 100)),
        ({"method": "fista"}, NETWORK, (1, 5, 0, 100)),
        ({"c_init": 3.0, "c_steps": 2}, TABLE, (3, 2, 0, 100)),
        ({"method": "fista", "theta": 0}, NETWORK, (1, 5, 0, 0)),
        ({"method": "fista"}, ENCODER, (1, 5, 0, 200)),
        ({}, replace(ENCODER, autoencoder=True), (1, 5, 100, 100)),
        ({"gamma": 2.0}, replace(ENCODER, autoencoder=True), (1, 5, 2, 100)),
    ],
)
def test_weights_of_the_iteration(settings, situation, expected):
    plan = make_plan(SearchConfig(**settings), situation)
    assert plan.method == "fista"
    assert (plan.c_init, plan.c_steps, plan.gamma, plan.theta) == expected


@pytest.mark.parametrize(
    ("settings", "situation", "message"),
    [
        ({"gamma": 1.0}, TABLE, "gamma is 1 but there is no autoencoder"),
        ({"method": "path", "c_init": 1.0}, TABLE, "method='path' needs prototypes"),
        ({"method": "fista", "theta": 0}, TABLE, "c_init and theta are both 0"),
        ({"polish": True}, ENCODER, "polish is True, but polishing cannot weigh the distance of codes"),
        ({"min_stability": 0.5}, IMAGE, "min_stability is 0.5, but it is made for tables"),
        ({"opinions": 2}, TABLE, "opinions is 2, but they are made for images on the path of an encoder"),
        ({"opinions": 1, "min_confidence": 0}, ENCODER, "opinions is 1, but they are made for images"),
        ({"min_typicality": 0.5}, ENCODER, "min_typicality is 0.5, but it is made for tables"),
        ({"momentum": True}, TABLE, "momentum is True, but method='path' does not use it. Pass method='fista'"),
        ({"max_iterations": 100}, ENCODER, "max_iterations is 100"),
        ({"learning_rate": 0.1}, NETWORK, "learning_rate is 0.1"),
        ({"clip": 1.0}, TABLE, "clip is 1.0"),
        ({"c_steps": 3}, TABLE, "c_steps is 3"),
        ({"eps": np.full(4, 0.1)}, TABLE, "eps is array.*no gradient is taken by differences"),
        ({"eps": 0.1}, ENCODER, "eps is 0.1, but no gradient is taken by differences"),
        ({"method": "fista", "eps": 0.1}, NETWORK, "eps is 0.1, but no gradient is taken by differences"),
        ({"method": "fista", "c_steps": 3}, TABLE, "c_steps is 3, but L_pred is off"),
    ],
)
def test_settings_that_contradict_each_other_or_would_be_ignored_are_refused(settings, situation, message):
    with pytest.raises(ConfigError, match=message):
        make_plan(SearchConfig(**settings), situation)


def test_an_encoder_that_only_predicts_needs_eps_on_its_path():
    assert make_plan(SearchConfig(eps=0.1), replace(ENCODER, differences=True)).method == "path"
    assert make_plan(SearchConfig(method="fista", c_init=1.0, eps=0.1), TABLE).c_init == 1


def test_meta_reports_the_settings_that_ran():
    x = np.random.default_rng(0).normal(size=(40, 3))

    def model(x):
        p = 1 / (1 + np.exp(-4 * x[:, 0]))
        return np.stack([1 - p, p], axis=1)

    meta = CounterfactualExplainer(model).fit(x).explain(x[0]).meta
    config = meta["config"]
    assert meta["method"] == config["method"] == "path"
    assert {name: config[name] for name in ("theta", "gamma", "c_init", "c_steps", "k", "polish")} == {
        "theta": 0.0,
        "gamma": 0.0,
        "c_init": 0.0,
        "c_steps": 1,
        "k": 1,
        "polish": True,
    }


def test_a_number_of_neighbours_beside_a_provider_that_was_made_already_is_refused():
    from cfproto_plugin.prototypes import KDTreePrototypes

    x = np.random.default_rng(0).normal(size=(40, 3))
    explainer = CounterfactualExplainer(lambda x: x[:, :2], prototypes=KDTreePrototypes(), search=SearchConfig(k=3))
    with pytest.raises(ConfigError, match="k is 3, but prototypes is a KDTreePrototypes that was made already"):
        explainer.fit(x)
