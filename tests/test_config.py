from __future__ import annotations

import pytest

from cfproto_plugin import Features, SearchConfig
from cfproto_plugin.errors import ConfigError

TERMS = {
    "A": (1, 0, 0),
    "B": (1, 100, 0),
    "C": (1, 0, 200),
    "D": (1, 100, 100),
    "E": (0, 0, 200),
    "F": (0, 100, 100),
}


@pytest.mark.parametrize("loss", TERMS)
def test_paper_losses_have_the_papers_terms_and_constants(loss):
    config = SearchConfig.paper(loss)
    assert (config.c_init, config.gamma, config.theta) == TERMS[loss]
    assert (config.beta, config.kappa, config.learning_rate, config.max_iterations) == (0.1, 0, 0.01, 1000)
    assert config.k == (None if loss in "AB" else 5), "only L_proto uses k"
    assert config.c_steps == (1 if loss in "EF" else 10)
    assert (config.method, config.momentum, config.fallback) == ("fista", True, False)


def test_paper_settings_can_be_overridden():
    config = SearchConfig.paper("C", theta=20, momentum=False, max_iterations=7)
    assert (config.theta, config.momentum, config.max_iterations, config.c_init) == (20, False, 7, 1)


@pytest.mark.parametrize(("loss", "same"), [("A", "A"), ("B", "C"), ("C", "E")])
def test_the_breast_cancer_letters_are_the_losses_of_that_experiment(loss, same):
    config = SearchConfig.paper(loss, experiment="breast_cancer")
    changed = {} if loss == "A" else {"theta": 100, "k": 1}
    assert config == SearchConfig.paper(same, **changed)


@pytest.mark.parametrize("loss", TERMS)
def test_the_reference_runs_the_papers_losses_without_momentum(loss):
    assert SearchConfig.reference(loss) == SearchConfig.paper(loss, momentum=False)
    assert SearchConfig.reference(loss, momentum=True, k=2) == SearchConfig.paper(loss, k=2)


def test_the_reference_has_the_letters_of_both_experiments():
    config = SearchConfig.reference("B", experiment="breast_cancer", theta=20)
    assert (config.theta, config.k, config.momentum, config.c_init) == (20, 1, False, 1)


@pytest.mark.parametrize("make", [SearchConfig.paper, SearchConfig.reference])
def test_letters_and_experiments_that_do_not_exist_are_named(make):
    with pytest.raises(ConfigError, match=r"loss is 'D'; expected one of A, B, C, .* 'breast_cancer'"):
        make("D", experiment="breast_cancer")
    with pytest.raises(ConfigError, match=r"experiment is 'minst'; expected one of mnist, .* Did you mean 'mnist'"):
        make("A", experiment="minst")
    with pytest.raises(ConfigError, match="experiment is 3"):
        make("A", experiment=3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "pth"}, "Did you mean 'path'"),
        ({"beta": -1}, "beta is -1"),
        ({"theta": float("nan")}, "theta is nan"),
        ({"c_init": "1"}, "c_init is '1'"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"c_steps": 1.5}, "c_steps is 1.5"),
        ({"k": 0}, "k is 0"),
        ({"k_type": "median"}, "k_type is 'median'"),
        ({"eps": [1e-3, 0]}, "eps is"),
        ({"min_proba": 1.2}, "min_proba is 1.2"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_the_value(settings, message):
    with pytest.raises(ConfigError, match=message):
        SearchConfig(**settings)


def test_unknown_loss_and_field_are_named():
    with pytest.raises(ConfigError, match="loss is 'G'"):
        SearchConfig.paper("G")
    with pytest.raises(ConfigError, match="Did you mean 'theta'"):
        SearchConfig.paper("A", tehta=3)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"ranges": {"age": (9, 1)}}, r"ranges\['age'\]"),
        ({"scale": "robust"}, "scale is 'robust'"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, message):
    with pytest.raises(ConfigError, match=message):
        Features(**rules)
