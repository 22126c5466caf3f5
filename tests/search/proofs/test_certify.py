"""Bounds, gaps and proofs as users meet them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
FOREST = RandomForestClassifier(12, max_depth=4, random_state=0).fit(X, Y)


def explainer(search, features=None, model=FOREST, x=X):
    rules = Features(decimals=None) if features is None else features
    return CounterfactualExplainer(model, search=search, features=rules).fit(x)


@pytest.fixture(scope="module")
def proved() -> Explanation:
    return explainer(SearchConfig.close(certify="optimal")).explain(X[:6])


def test_a_proved_answer_has_gap_zero_says_so_and_is_confirmed_by_the_model(proved):
    assert (proved.gap == 0).all()
    assert all(
        "proved: no smaller change (by e.objective) that keeps the rules leads there" in message
        for message in proved.message
    )
    assert (FOREST.predict(proved.counterfactual) == proved.counterfactual_class).all()
    assert (proved.counterfactual_class != proved.original_class).all()
    assert (proved.lower_bound <= proved.objective).all()
    assert proved.lower_bound == pytest.approx(proved.objective, rel=2e-5)


def test_optimal_is_never_worse_than_the_search_alone_and_better_somewhere():
    searched = explainer(SearchConfig.close(polish=False)).explain(X[:6])
    proved = explainer(SearchConfig.close(polish=False, certify="optimal")).explain(X[:6])
    assert (proved.objective <= searched.objective * (1 + 1e-9)).all()
    better = proved.objective < searched.objective * 0.999
    assert better.any()
    assert all(
        "by a mixed-integer program, a smaller change than the search found" in message
        for message in proved.message[better]
    )
    assert all(how.method == "proof" for how in proved.how[better])
    assert np.isnan(searched.lower_bound).all()
    assert np.isnan(searched.gap).all()


def test_the_objective_is_the_distance_where_nothing_else_counts(proved):
    z = (proved.counterfactual - X[:6]) / X.std(axis=0)
    assert proved.objective == pytest.approx(0.1 * np.abs(z).sum(axis=1) + (z**2).sum(axis=1))
    assert proved.objective == pytest.approx(proved.distance)


def test_bound_keeps_the_answer_of_the_search_and_is_no_higher_than_the_optimum(proved):
    searched = explainer(SearchConfig.close()).explain(X[:6])
    e = explainer(SearchConfig.close(certify="bound")).explain(X[:6])
    assert np.array_equal(e.counterfactual, searched.counterfactual)
    assert (e.lower_bound <= proved.objective).all()
    assert (e.lower_bound > 0).all()
    open_gap = e.gap > 0
    assert e.gap[open_gap] == pytest.approx((1 - e.lower_bound / e.objective)[open_gap])


def test_frames_json_and_slices_have_bound_and_gap(proved):
    frame = proved.to_frame()
    assert frame["lower_bound"].tolist() == proved.lower_bound.tolist()
    assert frame["gap"].tolist() == [0.0] * 6
    assert frame["objective"].tolist() == proved.objective.tolist()
    again = Explanation.from_json(proved.to_json())
    assert np.array_equal(again.lower_bound, proved.lower_bound)
    assert np.array_equal(proved[2:4].gap, proved.gap[2:4])
    assert "gap" not in explainer(SearchConfig.close()).explain(X[:1]).to_frame()


def test_an_infeasible_row_is_proved_to_be_so():
    e = explainer(SearchConfig.close(certify="optimal"), Features(decimals=None, vary=(3,))).explain(X[:6], n=2)
    others = np.linspace(X[:, 3].min(), X[:, 3].max(), 5000)
    for i in range(6):
        rows = np.repeat(X[i : i + 1], len(others), axis=0)
        rows[:, 3] = others
        possible = (FOREST.predict(rows) != FOREST.predict(X[i : i + 1])).any()
        assert possible or e.status[2 * i] == e.status[2 * i + 1] == "infeasible"
    none = e.status == "infeasible"
    assert none.any()
    assert np.isposinf(e.lower_bound[none]).all()
    message, sentence = e[none].message[0], e[none].sentence(0)
    assert re.fullmatch(
        r"proved: no row that keeps vary and stays inside the ranges of the training rows has class \d( or \d)*; "
        r"relax vary or give wider ranges \(Features\(ranges=...\)\)",
        message,
    )
    assert re.match(r"The model says \d; it is proved that no row that keeps vary and stays inside", sentence)
    assert ":" not in sentence


def test_ranges_of_the_training_rows_that_forbid_the_class_are_named_and_wider_ones_admit_it():
    few = X[X[:, 2] < 0]
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X[:, [0, 2]] > 1).any(axis=1).astype(int))

    row = few[few[:, 0] < 0][:1]

    def message(features, search):
        return explainer(search, features, model, few).explain(row).message[0]

    within = "keeps vary and stays inside the ranges of the training rows"
    optimal, near = SearchConfig.close(certify="optimal"), SearchConfig.close()
    assert within in message(Features(vary=(2,)), optimal)
    searched = message(Features(vary=(2,)), near)
    assert searched.startswith("no point of the search that keeps the rules and the ranges of the training rows had")
    assert searched.endswith("relax vary or give wider ranges (Features(ranges=...))")
    certificate = explainer(near, Features(vary=(2,)), model, few).certificate(row)
    assert within in certificate.message[0]
    declared = message(Features(vary=(2,), ranges={2: (-10, few[:, 2].max())}), optimal)
    assert "no row that keeps vary and ranges has class" in declared
    assert declared.endswith("relax vary or ranges")
    assert message(Features(vary=(2,), ranges={2: (-10, 10)}), optimal).startswith("class 1 reached")


def test_floors_are_left_out_of_the_bound_and_the_message_says_so():
    e = explainer(SearchConfig(certify="optimal")).explain(X[:4])
    free = explainer(SearchConfig(certify="optimal", min_typicality=0, min_stability=0)).explain(X[:4])
    assert (e.lower_bound <= free.objective * (1 + 1e-9)).all()
    assert all(
        gap == 0 or "min_typicality, min_stability and min_confidence not counted" in message
        for gap, message in zip(e.gap, e.message, strict=True)
    )
    assert (e.gap > 0).any()
    assert ((e.stability >= 0.7) | [("not 0.7" in message) for message in e.message]).all()


def test_with_theta_the_prototype_is_that_of_the_answer_and_the_message_says_so():
    e = explainer(
        SearchConfig(theta=0.5, min_typicality=0, min_stability=0, min_confidence=0, certify="optimal")
    ).explain(X[:4])
    assert (e.gap == 0).all()
    assert all(
        "no smaller change (by e.objective, with its prototype) that keeps the rules" in message
        for message in e.message
    )


def test_further_answers_have_the_bound_of_the_first_and_no_proof():
    e = explainer(SearchConfig.close(certify="optimal")).explain(X[:2], n=2)
    assert e.lower_bound[0] == e.lower_bound[1]
    assert e.gap[0] == 0
    assert e.gap[1] > 0
    assert not np.array_equal(e.counterfactual[0], e.counterfactual[1])


def test_a_row_in_the_target_has_nothing_to_prove():
    label = int(FOREST.predict(X[:1])[0])
    e = explainer(SearchConfig.close(certify="optimal")).explain(X[:1], target=label)
    assert e.objective[0] == 0
    assert np.isnan(e.lower_bound[0]) or e.lower_bound[0] == 0


def test_a_missing_value_that_stays_goes_where_the_trees_send_it():
    x = X.copy()
    x[::5, 2] = np.nan
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(x, Y)
    e = explainer(SearchConfig.close(certify="optimal"), model=model, x=x).explain(x[:10:5])
    assert np.isnan(x[0, 2])
    assert (e.gap == 0).all()
    assert (model.predict(e.counterfactual) == e.counterfactual_class).all()


def test_one_hot_groups_change_as_a_whole():
    codes = np.random.default_rng(1).integers(0, 3, 200)
    x = np.concatenate([X[:, :2], np.eye(3)[codes]], axis=1)
    y = (X[:, 0] + (codes == 2) > 0.5).astype(int)
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(x, y)
    rules = Features(decimals=None, one_hot={"kind": (2, 3, 4)})
    e = explainer(SearchConfig.close(certify="optimal"), rules, model, x).explain(x[:8])
    assert (e.gap == 0).all()
    assert (e.counterfactual[:, 2:].sum(axis=1) == 1).all()


def test_a_probability_interval_can_be_proved():
    e = explainer(SearchConfig.close(certify="optimal")).explain(X[:4], target={1: (0.4, 0.6)})
    assert (e.gap == 0).sum() >= 3
    proba = FOREST.predict_proba(e.counterfactual)[:, 1]
    assert ((proba >= 0.4) & (proba <= 0.6)).all()


def test_a_function_as_a_relation_is_left_out_of_the_bound_and_the_message_says_so():
    def far(x):
        return x[:, 0] ** 2 > 1

    rules = Features(decimals=None, relations=(far,))
    e = explainer(SearchConfig.close(certify="optimal"), rules).explain(X[:6])
    free = explainer(SearchConfig.close(certify="optimal")).explain(X[:6])
    assert (e.lower_bound <= free.objective * (1 + 1e-9)).all()
    unproved = e.found & (e.gap > 0)
    assert unproved.any()
    assert all("relations not counted" in message for message in e.message[unproved])


def test_a_time_budget_ends_a_proof_and_keeps_the_answer():
    forest = RandomForestClassifier(100, random_state=0).fit(X, (np.sin(3 * X).sum(axis=1) > 0).astype(int))
    e = explainer(SearchConfig.close(certify="optimal"), model=forest).explain(X[:20], time_budget=1.0)
    assert e.found.all()
    assert e.meta["seconds"] < 4
    assert (e.lower_bound >= 0).all()
    assert (e.lower_bound <= e.objective).all()


def test_a_forest_that_is_too_large_gets_an_honest_answer():
    wide = RNG.normal(size=(1500, 12))
    forest = RandomForestClassifier(200, random_state=0).fit(wide, (np.sin(2 * wide).sum(axis=1) > 0).astype(int))
    e = explainer(SearchConfig(certify="optimal"), model=forest, x=wide).explain(wide[:1], time_budget=10)
    assert e.found.all()
    assert e.gap[0] > 0
    assert 0 <= e.lower_bound[0] < e.objective[0]


def test_models_without_trees_are_refused_with_the_names_of_those_that_have_them():
    with pytest.raises(ConfigError, match=r"certify='optimal' needs the trees of the model.*XGBoost.*forests"):
        explainer(SearchConfig(certify="optimal"), model=LogisticRegression().fit(X, Y))
    with pytest.raises(ConfigError, match="certificate needs the trees of the model"):
        explainer(SearchConfig(), model=LogisticRegression().fit(X, Y)).certificate(X[:1])


def test_boosting_with_splits_by_category_is_refused_with_the_reason():
    x = np.column_stack([X[:, 0], RNG.integers(0, 4, len(X))])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1]).fit(x, Y)
    with pytest.raises(ConfigError, match="categorical_features, are known of XGBoost alone"):
        explainer(SearchConfig(certify="optimal"), Features(categorical=[1]), model, x)


def test_a_pipeline_is_named_and_told_to_encode_before_the_model():
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)).fit(X, Y)
    said = r"has none for sklearn\.pipeline\.Pipeline: its trees split what .*Encode the columns before the model"
    with pytest.raises(ConfigError, match=said):
        explainer(SearchConfig(certify="optimal"), model=model)
    with pytest.raises(ConfigError, match=said):
        explainer(SearchConfig(), model=model).certificate(X[:1])


def test_models_that_decide_by_a_rule_of_their_own_are_refused():
    model = FixedThresholdClassifier(RandomForestClassifier(5, random_state=0), threshold=0.3).fit(X, Y)
    with pytest.raises(ConfigError, match="certify='bound' needs"):
        explainer(SearchConfig(certify="bound"), model=model)


def test_a_wrong_word_is_refused():
    with pytest.raises(ConfigError, match="certify is 'optimum'; expected one of bound, optimal"):
        SearchConfig(certify="optimum")


def test_a_certificate_is_the_optimum_without_a_search(proved):
    found = explainer(SearchConfig.close()).certificate(X[:6])
    assert len(found) == 6
    assert found.exact.all()
    assert found.lower_bound == pytest.approx(proved.objective, rel=2e-5)
    assert (found.lower_bound <= proved.objective).all()
    assert found.original_class.tolist() == proved.original_class.tolist()
    assert all(message.startswith("no change smaller than") for message in found.message)
    with pytest.raises(ValueError, match="read-only"):
        found.lower_bound[0] = 0


def test_a_certificate_knows_targets_rules_and_rows_that_are_there_already():
    label = int(FOREST.predict(X[:1])[0])
    tool = explainer(SearchConfig.close())
    there = tool.certificate(X[:1], target=label)
    assert there.lower_bound.tolist() == [0.0]
    assert there.message.tolist() == ["already in the target: no change is needed"]
    free, bound = tool.certificate(X[:3]), tool.certificate(X[:3], features=Features(decimals=None, immutable=(0,)))
    assert (bound.lower_bound >= free.lower_bound * (1 - 1e-5)).all()
    assert (bound.lower_bound > free.lower_bound).any()
    none = tool.certificate(X[:6], features=Features(decimals=None, vary=(3,)))
    assert np.isposinf(none.lower_bound).any()
    with pytest.raises(InputError, match="not a class of the model"):
        tool.certificate(X[:1], target="other")


def test_rows_that_cannot_be_read_have_no_certificate():
    x = X[:2].copy()
    x[1, 0] = np.nan
    found = explainer(SearchConfig.close()).certificate(x)
    assert found.exact[0]
    assert np.isnan(found.lower_bound[1]) or found.lower_bound[1] >= 0


@pytest.mark.parametrize("relation", ["x0 == 100000010", "x0 >= 100000010"])
def test_relations_of_float32_columns_are_proved_with_the_decimals_that_they_are_written_as(relation):
    x = np.random.default_rng(0).uniform(0, 1, (300, 3)).astype(np.float32)
    x[:, 0] = 100000000 + 8 * np.round(9 * x[:, 0])
    model = DecisionTreeClassifier(random_state=0).fit(x, x[:, 1] > 0.45)
    own = x[x[:, 1] < 0.4][:1]
    own[0, 0] = 100000008  # is written 1.0000001e+08
    rules = Features(relations=relation, immutable=(0,))
    e = explainer(SearchConfig.close(certify="optimal"), rules, model, x).explain(own)
    assert e.status.tolist() == ["found"]
    assert e.gap.tolist() == [0]
    found = explainer(SearchConfig.close(), rules, model, x).certificate(own)
    assert found.lower_bound == pytest.approx(e.objective, rel=1e-4)
