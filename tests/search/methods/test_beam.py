"""Limits on the number of changes that no path meets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.methods import fallback
from cfproto_plugin.search.tuning import Tuning


def hard(x):
    """Class 1 only if x2 and x5 are both high and no other column is: no way towards a typical row ends there."""
    other = np.delete(x, [2, 5], axis=1)
    p = np.where((x[:, 2] > 0.9) & (x[:, 5] > 0.9) & (other < 0.5).all(axis=1), 0.9, 0.1)
    typical = (x > 0.8).all(axis=1)
    p = np.where(typical, 0.9, p)
    return np.stack([1 - p, p], axis=1)


def test_two_changes_are_found_where_no_path_has_so_few():
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (60, 8)), rng.uniform(0.85, 1, (60, 8))])
    x = rng.uniform(0, 0.4, (5, 8))
    search = SearchConfig(max_changes=2)
    e = CounterfactualExplainer(hard, features=Features(scale=None), search=search).fit(train).explain(x)
    assert e.status.tolist() == ["fallback"] * 5
    changed = e.counterfactual != x
    assert changed[:, [2, 5]].all()
    assert (changed.sum(axis=1) == 2).all()
    assert (hard(e.counterfactual)[:, 1] > 0.5).all()
    assert "one by one" in e.message[0]


def test_without_it_these_rows_have_no_answer(monkeypatch):
    monkeypatch.setattr(fallback, "search_beam", lambda *_: ())
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (60, 8)), rng.uniform(0.85, 1, (60, 8))])
    search = SearchConfig(max_changes=2)
    explainer = CounterfactualExplainer(hard, features=Features(scale=None), search=search).fit(train)
    assert explainer.explain(rng.uniform(0, 0.4, (5, 8))).status.tolist() == ["not_found"] * 5


def test_five_changes_are_enough_for_every_row_of_breast_cancer(forest, cancer):
    train, x = cancer[0][:450], cancer[0][450:480]
    e = CounterfactualExplainer(forest, search=SearchConfig.close(max_changes=5)).fit(train).explain(x)
    assert set(e.status) <= {"found", "fallback"}
    assert ((e.counterfactual != x).sum(axis=1) <= 5).all()
    assert np.array_equal(forest.predict(e.counterfactual), e.counterfactual_class)
    row, column = np.nonzero(e.counterfactual != x)
    back = e.counterfactual[row]
    back[np.arange(len(back)), column] = x[row, column]
    assert (forest.predict_proba(back)[np.arange(len(back)), e.counterfactual_class[row]] <= 0.5 + 1e-12).all()


def test_a_table_too_wide_for_the_beam_is_left_alone():
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (60, 8)), rng.uniform(0.85, 1, (60, 8))])
    search = SearchConfig(max_changes=2)
    explainer = CounterfactualExplainer(hard, features=Features(scale=None), search=search).fit(train)
    explainer.fitted_ = replace(explainer.fitted_, tuning=Tuning(cells=100))  # of 8 columns: one value each
    assert explainer.explain(rng.uniform(0, 0.4, 8)).status.tolist() == ["not_found"]


def test_a_missing_value_can_be_the_one_change():
    """Class 1 iff column 1 exceeds 0.9, which is missing in the row: NaN is not the same as changed."""

    def model(x):
        p = np.where(np.nan_to_num(x[:, 1]) > 0.9, 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (60, 5)), rng.uniform(0.92, 1, (60, 5))])
    train[::7, 1] = np.nan
    row = np.array([[0.2, np.nan, 0.1, 0.3, 0.2]])
    search = SearchConfig(max_changes=1, polish=0)
    e = CounterfactualExplainer(model, search=search).fit(train).explain(row)
    assert e.found.tolist() == [True]
    assert [change.feature for change in e.changes()] == ["x1"]


def test_categories_and_rules_are_kept():
    frame = pd.DataFrame(
        {
            "colour": ["red", "green", "blue", "green"] * 30,
            "size": np.tile([1, 2, 3, 8], 30),
            "age": np.tile([20.0, 30.0, 40.0, 70.0], 30),
        }
    )

    def model(x):
        good = (x["colour"].astype(str) == "blue") & (x["size"] > 5) & (x["age"] < 65)
        p = np.where(good | ((x["size"] > 5) & (x["age"] > 65)), 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    rules = Features(immutable=("age",), allowed={"colour": ("blue", "red")})
    explainer = CounterfactualExplainer(model, features=rules, search=SearchConfig(max_changes=2)).fit(frame)
    e = explainer.explain(frame[:1])
    assert e.status.tolist() == ["fallback"]
    assert e.counterfactual.iloc[0]["colour"] == "blue"
    assert e.counterfactual.iloc[0]["age"] == 20.0
    assert e.counterfactual.iloc[0]["size"] > 5


def test_a_wide_table_gets_fewer_values_where_the_changes_are_not_limited():
    rng = np.random.default_rng(0)
    train = rng.uniform(0, 1, (40, 600))
    sizes = []

    def model(x):
        """Class 1 in training rows only, by a column that may not change."""
        sizes.append(len(x))
        p = np.where(x[:, 0] > 0.5, 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    explainer = CounterfactualExplainer(model, features=Features(immutable=(0,))).fit(train)
    sizes.clear()
    e = explainer.explain(train[train[:, 0] < 0.5][:1])
    assert e.status.tolist() == ["not_found"]
    assert sum(sizes) < 20_000


def _cases():
    """Models and rows for which one column is often enough, and the path leads through many."""
    from sklearn.datasets import load_breast_cancer, load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    for load, model in (
        (load_wine, RandomForestClassifier(30, random_state=0)),
        (load_breast_cancer, LogisticRegression(max_iter=500)),
    ):
        x, y = load(return_X_y=True)
        x = StandardScaler().fit_transform(x)
        yield model.fit(x[20:], y[20:]), x[20:], x[:20]


def test_few_changes_one_column_wherever_a_value_of_the_training_rows_is_enough():
    for model, train, rows in _cases():
        e = CounterfactualExplainer(model, search=SearchConfig.few(), features=Features(decimals=None)).fit(train)
        found = e.explain(rows, progress=False)
        for row, changes, cost in zip(rows, found.n_changes, found.objective, strict=True):
            tried = np.repeat(row[None], train.size, axis=0)
            column = np.tile(np.arange(train.shape[1]), len(train))
            tried[np.arange(len(tried)), column] = train.ravel()
            step = np.abs(train.ravel() - row[column]) / train.std(axis=0)[column]
            other = model.predict(tried) != model.predict(row[None])
            if other.any() and changes > 1:
                assert cost <= 12 + (0.1 * step + step**2)[other].min() + 1e-6


def test_few_changes_no_more_columns_than_the_default_and_close():
    for model, train, rows in _cases():
        changes = [
            CounterfactualExplainer(model, search=search).fit(train).explain(rows, progress=False).n_changes
            for search in (SearchConfig.few(), SearchConfig(), SearchConfig.close())
        ]
        assert (changes[0] <= changes[1]).all()
        assert (changes[0] <= changes[2]).all()


def test_default_answers_of_functions_are_seldom_dearer_than_one_change():
    """Half of them were, before shorter lists were looked for at their price of a column."""
    x = np.random.default_rng(0).normal(size=(400, 4))
    model = HistGradientBoostingClassifier(random_state=0).fit(x, x[:, 0] + x[:, 1] + 0.5 * x[:, 2] > 0.5).predict_proba
    rows = x[model(x)[:, 1] < 0.5][:40]
    default, one = (
        CounterfactualExplainer(model, search=search).fit(x).explain(rows)
        for search in (SearchConfig(), SearchConfig(max_changes=1))
    )
    assert default.found.all()
    assert (default.objective <= 1.05 * one.objective).mean() > 0.8
