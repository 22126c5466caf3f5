"""Rows in portions."""

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer

X, Y = load_breast_cancer(return_X_y=True)


def test_portions_give_the_answers_of_one_search_and_report_on_all_rows():
    explainer = CounterfactualExplainer(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y)).fit(X[:200])
    whole = explainer.explain(X[200:211])
    fitted, seen = explainer.fitted_, []
    explainer.fitted_ = replace(fitted, tuning=replace(fitted.tuning, lines=4))
    parts = explainer.explain(X[200:211], progress=seen.append)
    np.testing.assert_array_equal(parts.counterfactual, whole.counterfactual)
    np.testing.assert_array_equal(parts.message, whole.message)
    assert seen == sorted(seen)
    assert (float(seen[-1]), seen[-1].rows, seen[-1].found) == (1.0, 11, 11)
    assert (parts.seconds > 0).all()
