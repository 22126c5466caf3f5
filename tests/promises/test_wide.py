"""Tables of hundreds of columns: the promises hold, and the work does not grow with the square of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, SearchConfig

COLUMNS = 400
X, Y = make_classification(330, COLUMNS, n_informative=20, n_redundant=0, random_state=0)
TRAIN, ROWS = X[:320], X[320:]
MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "sgd": lambda: make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    "forest": lambda: RandomForestClassifier(20, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_single_change_of_a_wide_row_can_be_left_out_by_predict(name):
    model = MODELS[name]().fit(TRAIN, Y[:320])
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(TRAIN).explain(ROWS)
    assert e.found.all()
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    line, column = np.nonzero(e.counterfactual != e.original)
    rows = e.counterfactual[line].copy()
    rows[np.arange(len(rows)), column] = e.original[line, column]
    assert np.array_equal(model.predict(rows), e.original_class[line])


def test_a_wide_linear_model_is_asked_in_few_calls():
    model = MODELS["logistic"]().fit(TRAIN, Y[:320])
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(TRAIN).explain(ROWS)
    assert (e.n_changes > 20).any()
    assert e.meta["n_predict_calls"] < 150
