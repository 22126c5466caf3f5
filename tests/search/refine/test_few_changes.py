"""The price of a change on a model with gradients: as good as trying every set of columns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.refine.linear import nearest_step

COLUMNS = 12


@pytest.mark.parametrize("price", [0.05, 0.2, 1.0])
def test_no_set_of_columns_is_better_by_one_per_cent(price):
    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x[:, :COLUMNS])
    train, rows = x[:400], x[400:420]
    model = LogisticRegression().fit(train, y[:400])
    search = SearchConfig.close(few_changes=price)
    explainer = CounterfactualExplainer(model, search=search, features=Features(decimals=None)).fit(train)
    e = explainer.explain(rows)
    space = explainer.fitted_.space
    sets = np.array(list(product([False, True], repeat=COLUMNS)))[1:]
    for row, found in zip(rows, e.objective, strict=True):
        score = model.decision_function(row[None])[0]
        slope = np.where(sets, -np.sign(score) * model.coef_[0] * space.factor, 0)
        low, high = (
            np.where(sets, (bound - row) / space.factor, 0)
            for bound in (np.minimum(train.min(axis=0), row), np.maximum(train.max(axis=0), row))
        )
        least = np.full(len(sets), abs(score))
        delta = nearest_step(slope, least, low, high, 0.1)
        reaches = (slope * delta).sum(axis=1) >= least - 1e-9
        cost = 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1) + price * (delta != 0).sum(axis=1)
        assert found <= 1.01 * cost[reaches].min()


def test_networks_and_linear_models_change_few_columns_where_each_has_a_price():
    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    model = LogisticRegression().fit(x[:400], y[:400])
    free, priced = (
        CounterfactualExplainer(model, search=SearchConfig.close(few_changes=price)).fit(x[:400]).explain(x[400:430])
        for price in (0.0, 0.2)
    )
    assert free.n_changes.mean() > 20
    assert priced.n_changes.mean() < 12
