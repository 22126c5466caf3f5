"""The package as its users meet it: nothing of it is imported, names and models are enough."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError
from sklearn.datasets import load_breast_cancer, load_wine

X, Y = load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def applicants():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 800),
            "income": rng.lognormal(3, 0.5, 800),
            "housing": pd.Categorical(rng.choice(["own", "rent", "free", "boat"], 800, p=[0.5, 0.3, 0.19, 0.01])),
            "purpose": pd.Categorical(rng.choice(["car", "house", "travel"], 800)),
        }
    )
    good = (rows["income"] > 20) & (rows["housing"] != "rent") | (rows["age"] > 60)
    return rows, np.where(good, "good", "bad")


def test_native_booster_is_explained():
    booster = lgb.train({"objective": "binary", "num_threads": 1, "verbose": -1}, lgb.Dataset(X, Y), 20)
    e = CounterfactualExplainer(booster).fit(X[50:]).explain(X[:10])
    assert e.meta["adapter"] == "lightgbm"
    assert (e.status == "found").all()
    assert np.array_equal(booster.predict(e.counterfactual) > 0.5, e.counterfactual_class == 1)
    assert (e.counterfactual_class != e.original_class).all()


def test_multiclass_classifier_reaches_the_target():
    wine, kinds = load_wine(return_X_y=True, as_frame=True)
    labels = np.array(["barolo", "grignolino", "barbera"])[kinds]
    model = lgb.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(wine, labels)
    e = CounterfactualExplainer(model).fit(wine).explain(wine[:8], target="barbera")
    assert e.meta["adapter"] == "lightgbm"
    assert (model.predict(e.counterfactual) == "barbera").all()


@pytest.mark.parametrize("prototypes", ["auto", "medoid"])
@pytest.mark.parametrize("distance", ["abdm", "occurrence"])
def test_provider_and_distance_are_named_on_a_table_with_categories(applicants, prototypes, distance):
    rows, labels = applicants
    model = lgb.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1).fit(rows, labels)
    rules = Features(immutable=("purpose",), increasing=("age",))
    explainer = CounterfactualExplainer(model, prototypes=prototypes, distance=distance, features=rules).fit(rows)
    some = rows[model.predict(rows) == "bad"][:20]
    e = explainer.explain(some)
    assert set(e.status) <= {"found", "fallback"}
    assert (model.predict(e.counterfactual) == "good").all()
    assert (e.counterfactual["purpose"] == some["purpose"]).all()
    assert (e.counterfactual["age"] >= some["age"]).all()


def test_answers_are_proved_to_be_the_best_by_the_trees_of_the_adapter():
    model = lgb.LGBMClassifier(n_estimators=40, max_depth=4, n_jobs=1, verbose=-1).fit(X, Y)
    search = SearchConfig.close(certify="optimal")
    e = CounterfactualExplainer(model, search=search, features=Features(decimals=None)).fit(X).explain(X[:6])
    assert (e.gap == 0).all()
    assert (model.predict(e.counterfactual) == e.counterfactual_class).all()
    found = CounterfactualExplainer(model, search=SearchConfig.close(), features=Features(decimals=None)).fit(X)
    assert (e.objective <= found.explain(X[:6]).objective * (1 + 1e-9)).all()
    assert found.certificate(X[:6]).lower_bound == pytest.approx(e.objective, rel=2e-5)


def test_proofs_about_splits_by_category_are_refused_with_the_reason(applicants):
    rows, labels = applicants
    model = lgb.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(rows, labels)
    with pytest.raises(ConfigError, match=r"Splits by category.* are known of XGBoost alone"):
        CounterfactualExplainer(model, search=SearchConfig(certify="bound")).fit(rows)
    with pytest.raises(ConfigError, match="certificate needs the trees of the model"):
        CounterfactualExplainer(model).fit(rows).certificate(rows[:1])
