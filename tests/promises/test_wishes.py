"""Typicality and stability: wishes by default, rules if given, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

X, Y = load_breast_cancer(return_X_y=True)
TRAIN, ROWS = X[:400], X[400:430]
FOREST = RandomForestClassifier(30, random_state=0).fit(TRAIN, Y[:400])
LEAST = {"min_typicality": 0.1, "min_stability": 0.7}


def isolation(point, rows, count=15):
    """The mean distance to the nearest rows over theirs, by definition; a row itself is not its own neighbour."""
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    around = np.sort(distance, axis=1)[:, 1 : count + 1].mean(axis=1)
    around = np.maximum(around, 0.25 * around.mean())
    own = np.linalg.norm(rows - point, axis=1)
    order = np.argsort(own, kind="stable")
    order = order[own[order] > 0][:count]
    return own[order].mean() / around[order].mean()


def scaled(x):
    return (x - TRAIN.mean(axis=0)) / TRAIN.std(axis=0)


def test_typicality_is_the_share_of_the_class_that_is_at_least_as_isolated():
    e = CounterfactualExplainer(FOREST).fit(TRAIN).explain(ROWS[:6])
    labels = FOREST.predict(TRAIN)
    for point, label, found in zip(e.counterfactual, e.counterfactual_class, e.typicality, strict=True):
        rows = scaled(TRAIN[labels == label])
        those = np.array([isolation(row, rows) for row in rows])
        expected = (1 + (those >= isolation(scaled(point), rows) * (1 - 1e-9)).sum()) / (1 + len(rows))
        assert found == pytest.approx(expected)


def test_stability_is_the_share_of_copies_that_keep_the_class():
    explainer = CounterfactualExplainer(FOREST, search=SearchConfig(noise=0.1)).fit(TRAIN)
    e = explainer.explain(ROWS)
    rng = np.random.default_rng(1)
    for point, label, found in zip(e.counterfactual, e.counterfactual_class, e.stability, strict=True):
        copies = point + 0.1 * TRAIN.std(axis=0) * rng.normal(size=(400, X.shape[1]))
        copies = np.clip(copies, np.minimum(TRAIN.min(axis=0), point), np.maximum(TRAIN.max(axis=0), point))
        assert abs((FOREST.predict(copies) == label).mean() - found) < 0.25, "32 copies against 400 others"


def test_missing_cells_stay_missing_in_the_copies_that_measure_stability():
    x = np.random.default_rng(0).normal(size=(400, 2))
    x[::4, 0] = np.nan

    def model(rows):
        score = np.where(np.isnan(rows[:, 0]), 5 * rows[:, 1], -5.0)
        return np.column_stack([-score, score]) / 20 + 0.5

    rows = x[::4][x[::4, 1] < 0]
    e = CounterfactualExplainer(model, features=Features(immutable=[0])).fit(x).explain(rows)
    assert np.isnan(e.counterfactual[:, 0]).all()
    for point, found in zip(e.counterfactual, e.stability, strict=True):
        copies = point + 0.1 * np.nanstd(x, axis=0) * np.random.default_rng(1).normal(size=(400, 2))
        assert abs((copies[:, 1] > 0).mean() - found) < 0.25, "32 copies against 400 others"


def test_answers_meet_the_wishes_or_say_which_they_miss():
    e = CounterfactualExplainer(FOREST).fit(TRAIN).explain(ROWS)
    missed = np.array(["the best that was found has" in message for message in e.message])
    assert (e.stability[~missed] >= 0.7 - 1e-9).all()
    assert missed.mean() < 0.2


def test_answers_are_seldom_outliers_of_their_class():
    """By another measure than the one that was asked for."""
    found = {}
    for name, search in (("default", SearchConfig()), ("close", SearchConfig.close())):
        e = CounterfactualExplainer(FOREST, search=search).fit(TRAIN).explain(X[400:460])
        out = np.zeros(len(e), dtype=bool)
        for label in (0, 1):
            known = LocalOutlierFactor(20, novelty=True).fit(scaled(TRAIN[FOREST.predict(TRAIN) == label]))
            at = e.counterfactual_class == label
            out[at] = known.predict(scaled(e.counterfactual[at])) < 0
        found[name] = out.mean()
    assert found["default"] <= 0.15
    assert found["close"] > 2 * found["default"]


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_a_floor_that_the_user_gave_is_a_rule(name, least):
    search = SearchConfig(**{name: 0.999, "noise": 1.5})
    rules = Features(vary=tuple(range(20, 30)))
    e = CounterfactualExplainer(FOREST, search=search, features=rules).fit(TRAIN).explain(ROWS)
    reached = getattr(e, name.removeprefix("min_"))
    assert (reached[e.found] >= 0.999 - 1e-9).all() or name == "min_typicality", "or as typical as the row itself"
    assert (~e.found).any(), "hardly a point is that typical or stable"
    (message,) = {message.partition(" reach ")[2].split()[0] for message in e.message[~e.found]}
    assert message == name
    assert getattr(SearchConfig(), name) is None
    assert least < 0.999


def test_zero_switches_a_wish_off_and_the_answers_are_nearer():
    near, usual = (
        CounterfactualExplainer(FOREST, search=SearchConfig(**settings)).fit(TRAIN).explain(ROWS)
        for settings in ({"min_typicality": 0, "min_stability": 0}, {})
    )
    assert near.distance.mean() < usual.distance.mean()
    assert near.stability.mean() < usual.stability.mean()


def test_where_no_prototype_is_stable_a_training_row_that_is_leads_to_an_answer():
    """The nearest rows of the other class lie in the noise between the moons."""
    x, y = make_moons(400, noise=0.3, random_state=0)
    model = RandomForestClassifier(20, random_state=0).fit(x, y)
    e = CounterfactualExplainer(model, search=SearchConfig.stable()).fit(x).explain(x[:40])
    assert (e.stability >= 0.9 - 1e-9).mean() > 0.8
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)


def test_a_batch_gives_the_answers_of_its_rows_one_by_one():
    explainer = CounterfactualExplainer(FOREST).fit(TRAIN)
    together = explainer.explain(ROWS[:8])
    alone = [explainer.explain(row) for row in ROWS[:8]]
    np.testing.assert_array_equal(together.counterfactual, np.concatenate([e.counterfactual for e in alone]))
    np.testing.assert_array_equal(together.typicality, np.concatenate([e.typicality for e in alone]))
    np.testing.assert_array_equal(together.stability, np.concatenate([e.stability for e in alone]))


def test_weights_say_what_a_change_costs_and_not_what_is_typical():
    plain, weighed = (
        CounterfactualExplainer(FOREST, features=Features(weights=weights)).fit(TRAIN).fitted_.guide.floors
        for weights in ({}, {0: 5.0, 3: 0.1})
    )
    for label in (0, 1):
        np.testing.assert_allclose(plain.typicality.classes[label].rows, weighed.typicality.classes[label].rows)
    np.testing.assert_allclose(plain.copies.steps, weighed.copies.steps)


def test_a_row_in_the_target_that_misses_a_floor_that_was_given_is_moved_until_it_does_not():
    x, y = make_moons(300, noise=0.3, random_state=1)
    model = RandomForestClassifier(15, random_state=0, max_depth=4).fit(x, y)
    unsure = x[(model.predict_proba(x)[:, 1] > 0.5) & (model.predict_proba(x)[:, 1] < 0.65)][:10]
    e = CounterfactualExplainer(model, search=SearchConfig(min_stability=0.95)).fit(x).explain(unsure, target=1)
    moved = e.n_changes > 0
    assert moved.any()
    assert (e.stability[moved] >= 0.95).all()


def test_where_nearly_all_copies_must_keep_the_class_there_are_more_of_them():
    for least, count in ((0.7, 32), (0.9, 64)):
        explainer = CounterfactualExplainer(FOREST, search=SearchConfig(min_stability=least)).fit(X)
        assert len(explainer.fitted_.guide.floors.copies.steps) == count


def slab(width):
    def model(x):
        p = np.where(np.abs(np.asarray(x)[:, 0] - 0.5) < width, 0.9, 0.1)
        return np.column_stack([1 - p, p])

    return model


def test_a_stability_that_only_the_first_copies_tell_is_said_to_be_about_so_much():
    x = np.random.default_rng(0).uniform(0, 1, (300, 2))
    search = SearchConfig(min_stability=0.95, min_typicality=0)
    rows = x[np.abs(x[:, 0] - 0.5) > 0.2][:4]
    e = CounterfactualExplainer(slab(0.02), search=search).fit(x).explain(rows, target=1)
    assert set(e.status) == {"not_found"}
    assert all("the best reach min_stability about 0." in message for message in e.message)


def test_a_stability_of_all_copies_is_not_said_to_be_an_estimate():
    x = np.random.default_rng(0).uniform(0, 1, (300, 2))
    search = SearchConfig(min_stability=1.0, min_typicality=0)
    rows = x[np.abs(x[:, 0] - 0.5) > 0.2][:4]
    e = CounterfactualExplainer(slab(0.065), search=search).fit(x).explain(rows, target=1)
    assert set(e.status) == {"not_found"}
    measured = {f"min_stability {kept / 64:.2g}, not 1;" for kept in range(64)}
    assert all(any(text in message for text in measured) for message in e.message), e.message


def own_probability(model, rows):
    """What the model gives the class that it decides for."""
    return model.predict_proba(rows).max(axis=1)


def test_the_model_is_as_sure_of_stable_answers_as_of_two_fifths_of_its_training_rows():
    known = np.sort(own_probability(FOREST, TRAIN))
    e = CounterfactualExplainer(FOREST, search=SearchConfig.stable()).fit(TRAIN).explain(ROWS)
    missed = np.array(["probability" in message for message in e.message])
    sure = own_probability(FOREST, e.counterfactual)
    assert missed.mean() < 0.5
    assert (sure[~missed] >= min(0.99, known[int(0.4 * len(known)) - 1])).all()
    usual = CounterfactualExplainer(FOREST).fit(TRAIN).explain(ROWS)
    assert (own_probability(FOREST, usual.counterfactual) < 0.9).any(), "else nothing is asked"


def test_a_confidence_that_the_user_gave_is_a_rule():
    known = np.sort(own_probability(FOREST, TRAIN))
    search = SearchConfig(min_confidence=0.1, min_stability=0, min_typicality=0)
    e = (
        CounterfactualExplainer(FOREST, search=search)
        .fit(TRAIN)
        .explain(ROWS, features=Features(vary=tuple(range(20, 30))))
    )
    assert 0 < e.found.sum() < len(e), "one can be found for some"
    assert (own_probability(FOREST, e.counterfactual[e.found]) >= known[len(known) // 10 - 1]).all()
    assert all("min_confidence" in message for message in e.message[~e.found])


def test_a_wish_for_confidence_costs_no_row_its_answer_and_is_named_where_it_is_missed():
    search = SearchConfig(min_confidence=0.5, min_stability=0, min_typicality=0, strict=False)
    rules = Features(vary=(0, 1, 20, 22))
    e = CounterfactualExplainer(FOREST, search=search, features=rules).fit(TRAIN).explain(ROWS)
    plain = CounterfactualExplainer(FOREST, search=SearchConfig.close(), features=rules).fit(TRAIN).explain(ROWS)
    assert e.found.tolist() == plain.found.tolist()
    asked = np.array(e.meta["confidence"])[FOREST.predict(e.counterfactual[e.found])]
    short = own_probability(FOREST, e.counterfactual[e.found]) < asked
    assert short.any()
    assert [
        f"probability {p:.3g}, not" in m
        for p, m in zip(own_probability(FOREST, e.counterfactual[e.found]), e.message[e.found], strict=True)
    ] == short.tolist()


def test_a_row_alone_gets_the_answer_of_its_batch_with_a_wish_for_confidence():
    explainer = CounterfactualExplainer(FOREST, search=SearchConfig.stable()).fit(TRAIN)
    together = explainer.explain(ROWS[:8]).counterfactual
    alone = np.concatenate([explainer.explain(row).counterfactual for row in ROWS[:8]])
    assert np.array_equal(together, alone)


def test_networks_reach_the_confidence_that_is_asked_for():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(TRAIN, Y[:400])
    search = SearchConfig.close(min_confidence=0.3)
    e = CounterfactualExplainer(model, search=search).fit(TRAIN).explain(ROWS)
    asked = np.array(e.meta["confidence"])[model.predict(e.counterfactual)]
    sure = own_probability(model, e.counterfactual)
    assert e.found.all()
    assert (sure >= asked).all()
    assert np.median(sure - asked) < 0.01, "and go no farther than they must"


def test_a_wish_for_confidence_that_training_rows_meet_is_met():
    """A row whose own paths end short of it is led to training rows that the model is as sure of."""
    x = np.random.default_rng(0).normal(size=(200, 4)).round(2)

    def model(rows):
        p = 1 / (1 + np.exp(-3 * (np.asarray(rows)[:, :3] @ [1, 1, -1])))
        return np.column_stack([1 - p, p])

    for search in (SearchConfig.stable(), SearchConfig(min_confidence=0.4, strict=False)):
        e = CounterfactualExplainer(model, search=search).fit(x).explain(x[:20])
        assert (e.status == "found").all()
        assert (e.new_class_proba[1] >= np.take(e.meta["confidence"], e.counterfactual_class.astype(int)) - 1e-9).all()


def test_confidence_of_a_model_with_a_threshold_is_that_of_its_own_probabilities():
    model = FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.3)
    model.fit(TRAIN, Y[:400])
    assert CounterfactualExplainer(model).fit(TRAIN).explain(ROWS[:2]).meta["confidence"] is None
    e = CounterfactualExplainer(model, search=SearchConfig.stable()).fit(TRAIN).explain(ROWS)
    least = np.take(e.meta["confidence"], e.counterfactual_class.astype(int))
    for i, change in ((int(change.row), change) for change in e.changes() if change.needed_for == "probability"):
        without = e.counterfactual[i].copy()
        without[int(str(change.feature).removeprefix("x"))] = change.before
        kept = model.predict([without])[0] == e.counterfactual_class[i]
        assert not (kept and model.predict_proba([without])[0][int(e.counterfactual_class[i])] >= least[i])
