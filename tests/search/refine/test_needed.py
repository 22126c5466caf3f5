"""What each change is needed for: the model itself is asked whether the class stays without it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.search.typicality import Typicality

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(300, 8)), columns=[f"c{j}" for j in range(8)])
ROWS += 2 * RNG.normal(size=(300, 1))  # the columns go together: an answer that moves one of them is not typical
LABELS = (ROWS["c0"] + ROWS["c1"] > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    return RandomForestClassifier(20, random_state=0).fit(ROWS, LABELS)


@pytest.fixture(scope="module")
def answers(model):
    return CounterfactualExplainer(model).fit(ROWS).explain(ROWS[:40], progress=False)


def without(line, changes):
    """The counterfactual with these changes taken back."""
    row = line.counterfactual.copy()
    for change in changes:
        row[change.feature] = line.original[change.feature]
    return row


def test_the_class_stays_without_all_changes_that_are_not_needed_for_it(model, answers):
    spare = 0
    for line in answers:
        others = [change for change in line.changes() if change.needed_for != "class"]
        spare += len(others)
        assert model.predict(without(line, others))[0] == line.counterfactual_class[0]
    assert spare > 10


def test_every_answer_has_changes_that_its_class_needs(model, answers):
    for line in answers:
        needed = [change for change in line.changes() if change.needed_for == "class"]
        assert model.predict(without(line, needed))[0] != line.counterfactual_class[0]


@pytest.mark.parametrize("rules", [None, Features(vary=("c0", "c1")), Features(vary=("c0", "c1", "c2"))])
def test_a_row_alone_is_told_the_same_as_in_a_batch(model, rules):
    explainer = CounterfactualExplainer(model).fit(ROWS)
    together = explainer.explain(ROWS[:40], features=rules, progress=False)
    for i, line in enumerate(together):
        alone = explainer.explain(ROWS[i : i + 1], features=rules)
        assert (alone.needed_for[0] == line.needed_for[0]).all()
        others = [change for change in alone.changes() if change.needed_for != "class"]
        if alone.found[0]:
            assert model.predict(without(alone, others))[0] == alone.counterfactual_class[0]
            assert len(others) < alone.n_changes[0]


def test_no_change_that_the_class_needs_can_be_left_out_with_those_that_it_does_not_need(model, answers):
    for line in answers:
        others = [change for change in line.changes() if change.needed_for != "class"]
        for change in line.changes():
            if change.needed_for == "class":
                lost = {model.predict(without(line, more))[0] for more in ([change], [*others, change])}
                assert lost != {line.counterfactual_class[0]}


def test_with_several_classes_it_is_the_class_of_the_answer_that_counts():
    kinds = pd.qcut(ROWS["c0"] + 0.5 * ROWS["c1"] * ROWS["c2"], 6, labels=False)
    model = DecisionTreeClassifier(random_state=0).fit(ROWS, kinds)
    spare = 0
    search = SearchConfig(min_stability=0.9, strict=False)
    for line in CounterfactualExplainer(model, search=search).fit(ROWS).explain(ROWS[:60], progress=False):
        others = [change for change in line.changes() if change.needed_for != "class"]
        spare += len(others)
        assert model.predict(without(line, others))[0] == line.counterfactual_class[0]
    assert spare > 10


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize("vary", [None, ("worst area", "area error", "mean texture")])
def test_the_same_holds_of_boosted_trees_of_which_one_change_of_two_may_suffice(vary):
    xgboost = pytest.importorskip("xgboost")
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1).fit(x[:400], y[:400])
    explainer = CounterfactualExplainer(model, features=Features(vary=vary)).fit(x[:400])
    for i in range(400, 425):
        line = explainer.explain(x[i : i + 1])
        if not line.found[0]:
            continue
        others = [change for change in line.changes() if change.needed_for != "class"]
        assert len(others) < line.n_changes[0]
        assert model.predict(without(line, others))[0] == line.counterfactual_class[0]
        for change in line.changes():
            if change.needed_for == "class":
                lost = {model.predict(without(line, more))[0] for more in ([change], [*others, change])}
                assert lost != {line.counterfactual_class[0]}


def test_where_probabilities_are_asked_for_the_class_needs_what_changes_it(model):
    explainer = CounterfactualExplainer(model).fit(ROWS)
    e = explainer.explain(ROWS[:30], target={1: (0.6, 0.9)}, progress=False)
    kinds = set()
    for i, line in enumerate(e):
        if not e.found[i] or not e.n_changes[i]:
            continue
        same = e.original_class[i] == e.counterfactual_class[i]
        reasons = [change.needed_for for change in line.changes()]
        assert ("class" in reasons) != same
        others = [change for change in line.changes() if change.needed_for != "class"]
        assert model.predict(without(line, others))[0] == e.counterfactual_class[i]
        assert (
            explainer.explain(ROWS[i : i + 1], target={1: (0.6, 0.9)}).needed_for.tolist() == line.needed_for.tolist()
        )
        kinds.add(bool(same))
    assert kinds == {True, False}


def test_where_probabilities_are_asked_for_typicality_is_that_of_the_class_of_the_answer():
    """A row whose probability only has to fall is led by rows of the other class, but stays in its own."""
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    x = x.iloc[:, :8]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    explainer, target = CounterfactualExplainer(model).fit(x), {1: (0.6, 0.8)}
    rows = x[model.predict_proba(x)[:, 1] > 0.9].iloc[:40]
    e = explainer.explain(rows, target=target, progress=False)
    assert (e.counterfactual_class == 1).all()
    scaled = lambda rows: ((rows - x.mean()) / x.std(ddof=0)).to_numpy()  # noqa: E731
    typicality = Typicality(scaled(x), model.predict(x), 0)
    for line in e:
        for change in line.changes():
            if change.needed_for == "typicality":
                assert typicality(scaled(without(line, [change])), np.array([1]))[0] < 0.1


def test_every_reason_is_known_in_a_polished_answer(answers):
    reasons = {change.needed_for for change in answers.changes()}
    assert "class" in reasons
    assert reasons & {"typicality", "stability", "probability"}
    assert reasons <= {"class", "typicality", "stability", "probability"}


def test_without_floors_every_change_is_needed_for_the_class(model):
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(ROWS).explain(ROWS[:20], progress=False)
    assert {change.needed_for for change in e.changes()} == {"class"}


def test_a_rule_that_the_row_breaks_is_a_reason(model):
    features = Features(relations="c6 <= c7")
    e = CounterfactualExplainer(model, features=features, search=SearchConfig.close()).fit(ROWS).explain(ROWS[:40])
    broken = [line for line in e if (line.original["c6"] > line.original["c7"]).all()]
    reasons = [change.needed_for for line in broken for change in line.changes() if change.feature in {"c6", "c7"}]
    assert "rule" in reasons


def test_a_probability_that_was_asked_for_is_a_reason(model):
    search = SearchConfig.close(min_proba=0.95)
    e = CounterfactualExplainer(model, search=search).fit(ROWS).explain(ROWS[:40], progress=False)
    assert {"class", "probability"} <= {change.needed_for for change in e[e.found].changes()}


def test_what_was_not_tried_is_not_claimed(model):
    e = CounterfactualExplainer(model, search=SearchConfig(polish=False)).fit(ROWS).explain(ROWS[:5])
    assert {change.needed_for for change in e.changes()} == {""}
    assert "only" not in e.sentence(0)


def test_the_columns_of_a_frame_in_another_order_keep_their_reasons(model):
    explainer = CounterfactualExplainer(model).fit(ROWS)
    turned = explainer.explain(ROWS[ROWS.columns[::-1]][:10], progress=False)
    usual = explainer.explain(ROWS[:10], progress=False)
    assert sorted(turned.changes()) == sorted(usual.changes())


def test_the_columns_of_a_one_hot_group_share_their_reason():
    table = np.column_stack([RNG.normal(size=200), np.eye(3)[RNG.integers(0, 3, 200)]])

    def predict(x):
        p = 1 / (1 + np.exp(-(x[:, 0] + 3 * x[:, 1] - 1)))
        return np.column_stack([1 - p, p])

    features = Features(one_hot={"kind": (1, 2, 3)}, immutable=0)
    e = CounterfactualExplainer(predict, features=features).fit(table).explain(table[:20])
    line = next(line for line in e if line.n_changes[0])
    assert {change.needed_for for change in line.changes()} == {"class"}
    assert len(line.changes()) == 2


def test_text_sentence_report_frame_and_json_say_it(answers):
    line = next(line for line in answers if any(change.needed_for == "typicality" for change in line.changes()))
    name = next(change.feature for change in line.changes() if change.needed_for == "typicality")
    headline, _, rest = line.sentence().partition(", the model would have said ")
    assert "Also changed, to be typical of the class: " in rest
    assert f"{name} " in rest.partition("typical of the class")[2]
    assert "with all changes its probability is" in rest
    assert all(change.feature in headline for change in line.changes() if change.needed_for == "class")
    assert not any(f"{change.feature} " in headline for change in line.changes() if change.needed_for != "class")
    for text in (repr(line), line._repr_html_(), line.to_html()):
        assert "only for typicality" in text
    assert set(line.changes_frame()["needed_for"]) == {change.needed_for for change in line.changes()}
    back = Explanation.from_json(line.to_json())
    assert back.changes() == line.changes()
    older = {
        key: value for key, value in json.loads(line.to_json()).items() if key not in {"needed_for", "class_names"}
    }
    assert {change.needed_for for change in Explanation.from_json(json.dumps(older)).changes()} == {""}


def test_images_have_no_reasons():
    images = RNG.normal(size=(60, 3, 3, 1))

    def predict(x):
        p = 1 / (1 + np.exp(-x.reshape(len(x), -1).sum(axis=1)))
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(predict).fit(images).explain(images[:2])
    assert e.needed_for.shape == (2, 0)
    assert {change.needed_for for change in e.changes()} == {""}
