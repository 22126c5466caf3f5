"""Changes of a model with gradients that others can make up for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.search.plan import FEW_CHANGES_WITHOUT_SPLITS

X, Y = load_breast_cancer(return_X_y=True)
MODEL = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X[:400], Y[:400])


def explained(taken_back, search=None):
    explainer = CounterfactualExplainer(MODEL, search=search).fit(X[:400])
    explainer.fitted_ = replace(explainer.fitted_, tuning=replace(explainer.fitted_.tuning, taken_back=taken_back))
    return explainer.explain(X[400:420])


def test_changes_that_others_make_up_for_are_taken_back():
    before, after = explained(0), explained(4)
    assert before.found.all()
    assert after.found.all()
    assert after.n_changes.sum() < before.n_changes.sum()
    cost = [e.distance + FEW_CHANGES_WITHOUT_SPLITS * e.n_changes for e in (before, after)]
    assert cost[1].sum() < cost[0].sum()
    assert (cost[1] <= cost[0] + 1e-6).mean() >= 0.9
    assert (after.stability >= np.minimum(before.stability, 0.7)).all()


def test_where_changes_cost_nothing_none_is_taken_back():
    before, after = (explained(count, SearchConfig(few_changes=0)) for count in (0, 4))
    np.testing.assert_array_equal(before.counterfactual, after.counterfactual)
