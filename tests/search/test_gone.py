"""A model that answers nothing more ends the search; what it confirmed before is kept."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.errors import ModelGoneError


class Leaving:
    """A model of two columns that answers `left` more calls, and counts how often it is asked after that."""

    def __init__(self):
        self.left, self.asked = np.inf, 0

    def __call__(self, x):
        if self.left <= 0:
            self.asked += 1
            raise ModelGoneError("the service is down")
        self.left -= 1
        score = np.clip(np.floor(4 * np.asarray(x, dtype=float).sum(axis=1)) / 8 + 0.5, 0.02, 0.98)
        return np.column_stack([1 - score, score])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2)).round(3)


def test_rows_whose_search_has_ended_keep_their_answers_and_the_others_are_errors():
    model, given = Leaving(), rows(1500, seed=1)
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(rows(200))
    whole = explainer.explain(given)
    model.left = explainer.explain(given[:1024]).meta["n_predict_calls"]  # those of the first portion
    found = explainer.explain(given)
    assert found.found[:1024].all()
    assert set(found.status[1024:]) == {"error"}
    assert set(found.message[1024:]) == {"the service is down"}
    np.testing.assert_array_equal(found.counterfactual[:1024], whole.counterfactual[:1024])
    assert np.isnan(found.counterfactual[1024:]).all()
    assert model.asked == 1
    assert found.meta["model_gone"] == "the service is down"
    assert "model_gone" not in whole.meta


@pytest.mark.parametrize("search", [SearchConfig(), SearchConfig.close(), SearchConfig(method="fista")])
@pytest.mark.parametrize(("budget", "n"), [(None, 1), (60, 1), (None, 3)])
def test_the_search_ends_wherever_the_model_leaves_and_asks_it_once_more_at_most(search, budget, n):
    model = Leaving()
    explainer = CounterfactualExplainer(model, search=search).fit(rows(200))
    given = rows(5, seed=1)
    before = explainer.explain(given, n=n).meta["n_predict_calls"]
    for calls in (1, 2, 3, 5, 9, 17, 33, 65):
        if calls >= before:
            break
        model.left, model.asked = calls, 0
        found = explainer.explain(given, n=n, time_budget=budget)
        assert model.asked == 1
        assert set(found.status) <= {"found", "fallback", "error"}
        assert found.found.all() or "error" in found.status
        model.left = np.inf
        kept = np.asarray(found.counterfactual)[found.found]
        assert (explainer.model(kept).argmax(axis=1) == found.counterfactual_class[found.found]).all()


def test_a_model_that_is_gone_at_the_first_question_or_at_fit_is_an_error_of_the_call():
    model = Leaving()
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(rows(200))
    model.left = 0
    with pytest.raises(ModelGoneError, match="the service is down"):
        explainer.explain(rows(3))
    assert model.asked == 1
    model.left = 1000
    calls = 1000 - explainer.fit(rows(200)).model.left
    for left in range(0, calls, 3):
        model.left = left
        with pytest.raises(ModelGoneError, match="the service is down"):
            explainer.fit(rows(200))
