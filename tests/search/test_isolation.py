"""Nobody can write into what an explainer learned, and the answers of a row differ from each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, PluginError, UnknownNameError
from cfproto_plugin.prototypes import EncoderPrototypes, KDTreePrototypes

X = np.random.default_rng(0).normal(size=(300, 4))
MODEL = LogisticRegression().fit(X, (X[:, 0] + X[:, 1] > 0).astype(int))


class Vandal(KDTreePrototypes):
    """Writes into whatever it is given."""

    def fit(self, z, labels):
        super().fit(z.copy(), labels.copy())
        z[:], labels[:] = 0, 0
        return self

    def nearest(self, z0, allowed):
        found = super().nearest(z0.copy(), allowed.copy())
        z0[:], allowed[:] = 0, True
        return found


@pytest.mark.parametrize("features", [Features(), Features(scale=None)])
def test_a_provider_that_writes_into_its_arguments_changes_no_answer(features):
    plain, vandal = (
        CounterfactualExplainer(MODEL, prototypes=provider, features=features).fit(X).explain(X[:10])
        for provider in (KDTreePrototypes(), Vandal())
    )
    np.testing.assert_array_equal(plain.counterfactual, vandal.counterfactual)
    np.testing.assert_array_equal(plain.distance, vandal.distance)


class InPlace:
    """An encoder that works in place and takes ten rows at most."""

    max_rows = 10

    def __init__(self):
        self.largest = 0

    def predict(self, x):
        self.largest = max(self.largest, len(x))
        code = x[:, :2].copy()
        x[:] = 0
        return code


def test_an_encoder_inside_a_provider_gets_rows_of_its_own_and_no_more_than_it_takes():
    encoder = InPlace()
    provider = EncoderPrototypes(k=3, encoder=encoder)
    explainer = CounterfactualExplainer(MODEL, prototypes=provider, features=Features(scale=None)).fit(X)
    e = explainer.explain(X[:3])
    assert encoder.largest == 10
    np.testing.assert_array_equal(explainer.fitted_.guide.train, X)
    delta = np.abs(e.counterfactual - X[:3])
    np.testing.assert_allclose(e.distance, (delta + delta**2).sum(axis=1))


def test_a_provider_that_cannot_be_copied_is_refused():
    provider = KDTreePrototypes()
    provider.lock = threading.Lock()
    with pytest.raises(PluginError, match=r"KDTreePrototypes cannot be copied before it is fitted .* __deepcopy__"):
        CounterfactualExplainer(MODEL, prototypes=provider).fit(X)


def test_minus_zero_is_no_second_answer():
    e = CounterfactualExplainer(MODEL, features=Features(integer=[0, 1])).fit(X).explain(X[:40], n=3)
    for row in range(40):
        lines = [tuple(line) for line in e.counterfactual[e.found & (e.row == row)].tolist()]
        assert len(set(lines)) == len(lines)  # -0.0 == 0.0


def test_a_row_in_the_target_that_breaks_a_rule_is_searched_and_stays_in_the_target():
    rows = X[MODEL.predict(X) == 1][:3].copy()
    rows[0, 2] = 50
    e = CounterfactualExplainer(MODEL, features=Features(ranges={2: (-1, 1)})).fit(X).explain(rows, target=1)
    assert e.found.all()
    assert (np.abs(e.counterfactual[:, 2]) <= 1).all()
    assert MODEL.predict(e.counterfactual).tolist() == [1, 1, 1]


def test_a_row_that_breaks_a_rule_may_stay_in_any_class_if_all_are_allowed():
    rows = X[:10].copy()
    rows[:, 2] = 50
    rules = Features(ranges={2: (-1, 1)})
    e = CounterfactualExplainer(MODEL, features=rules, search=SearchConfig.close()).fit(X).explain(rows, target=[0, 1])
    assert e.found.all()
    assert e.counterfactual_class.tolist() == MODEL.predict(e.counterfactual).tolist()
    assert (e.n_changes == 1).all(), "only the column that broke the rule"


def test_a_row_in_the_target_has_the_margin_that_kappa_asks_for():
    rows = X[MODEL.predict(X) == 1][:20]
    e = CounterfactualExplainer(MODEL, search=SearchConfig(kappa=0.5)).fit(X).explain(rows, target=1)
    assert (e.margin[e.found] > 0.5).all()


def test_kappa_beside_a_decision_of_the_models_own_is_refused():
    class Decides:
        predict = staticmethod(MODEL.predict_proba)

        def labels(self, x):
            return (MODEL.predict_proba(x)[:, 1] > 0.3).astype(int)

    with pytest.raises(ConfigError, match=r"kappa is 0\.5, but the model decides by a rule of its own"):
        CounterfactualExplainer(Decides(), search=SearchConfig(kappa=0.5)).fit(X)


def test_the_mean_of_a_class_needs_an_encoder():
    with pytest.raises(ConfigError, match="k is 'all', the mean of a whole class, which needs an encoder"):
        CounterfactualExplainer(MODEL, search=SearchConfig(k="all")).fit(X)


def test_a_misspelt_distance_is_an_error_without_categories_too():
    with pytest.raises(UnknownNameError, match="Did you mean 'abdm'"):
        CounterfactualExplainer(MODEL, distance="abdmm").fit(X)


def test_meta_does_not_report_a_k_that_did_not_run():
    e = CounterfactualExplainer(MODEL, prototypes=KDTreePrototypes(k=7)).fit(X).explain(X[:1])
    assert e.meta["config"]["k"] is None
