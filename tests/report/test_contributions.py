"""What each change adds to the probability of the new class."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import InputError
from cfproto_plugin.report.contributions import Contribution
from cfproto_plugin.report.shapley import all_masks, order_masks, orders, sampled_shapley, shapley
from cfproto_plugin.report.subsets import changed_features, subsets


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    return x, forest, CounterfactualExplainer(forest).fit(x)


@pytest.fixture(scope="module")
def few(cancer):
    x, forest, _ = cancer
    return CounterfactualExplainer(forest, search=SearchConfig(max_changes=4)).fit(x).explain(x[:8])


def by_definition(value, m):
    """The mean over all orders of what a change adds when its turn comes."""
    added = np.zeros(m)
    for order in itertools.permutations(range(m)):
        made = set()
        for j in order:
            before = value(frozenset(made))
            made.add(j)
            added[j] += value(frozenset(made)) - before
    return added / math.factorial(m)


def sums(e, **settings):
    lines = {}
    for each in e.contributions(**settings):
        lines[each.row] = lines.get(each.row, 0.0) + each.contribution
    return lines


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_shapley_values_of_all_subsets_are_those_of_the_definition(m):
    values = np.random.default_rng(m).normal(size=2**m)
    expected = by_definition(lambda made: values[sum(1 << j for j in made)], m)
    np.testing.assert_allclose(shapley(values), expected, atol=1e-12)


def test_every_subset_is_there_once_none_first_and_all_last():
    masks = all_masks(3)
    assert len({tuple(mask) for mask in masks.tolist()}) == 8
    assert not masks[0].any()
    assert masks[-1].all()


def test_sampled_values_come_near_the_exact_ones_within_their_error_and_add_up():
    m = 6
    values = np.random.default_rng(0).normal(size=2**m)
    order = orders(m, 2000, seed=0)
    number = (order_masks(order) << np.arange(m)).sum(axis=2)
    ends = np.full((len(order), 1), values[0]), np.full((len(order), 1), values[-1])
    mean, error = sampled_shapley(order, np.hstack([ends[0], values[number], ends[1]]))
    assert mean.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)
    assert (np.abs(mean - shapley(values)) < 4 * error).all()
    assert (error > 0).all()


def test_contributions_add_up_to_the_change_of_the_new_class_probability(few):
    before, after = few.new_class_proba
    for row, total in sums(few).items():
        assert total == pytest.approx(after[row] - before[row], abs=1e-12)


def test_contributions_are_those_of_the_model_asked_directly(cancer, few):
    _, forest, _ = cancer
    line = int(np.flatnonzero(few.n_changes > 1)[0])
    one = few[line]
    places = np.flatnonzero(one.is_changed[0])

    def value(made):
        row = one.original.copy()
        at = places[list(made)]
        row[0, at] = one.counterfactual[0, at]
        return forest.predict_proba(row)[0, int(one.counterfactual_class[0])]

    expected = by_definition(value, len(places))
    found = one.contributions()
    np.testing.assert_allclose([each.contribution for each in found], expected, atol=1e-12)
    assert [each[:4] for each in found] == [each[:4] for each in one.changes()]
    assert all(each.error == 0 for each in found)


def test_many_changes_are_sampled_with_an_error_and_still_add_up(cancer):
    x, _, explainer = cancer
    e = explainer.explain(x[:8])
    assert (e.n_changes > 8).any()
    found, (before, after) = e.contributions(), e.new_class_proba
    for row, total in sums(e).items():
        assert total == pytest.approx(after[row] - before[row], abs=1e-12)
        exact = e.n_changes[row] <= 8
        errors = [each.error for each in found if each.row == row]
        assert max(errors) == 0 if exact else max(errors) > 0
    assert found == e.contributions()
    assert found != e.contributions(seed=1)


def test_more_orders_have_a_smaller_error(cancer):
    x, _, explainer = cancer
    e = explainer.explain(x[:1])
    few, many = (sum(each.error for each in e.contributions(samples=n)) for n in (8, 256))
    assert many < few / 2


def test_a_batch_gives_the_contributions_of_its_rows_one_by_one(cancer):
    x, _, explainer = cancer
    e = explainer.explain(x[:5])
    alone = [each for line in e for each in line.contributions()]
    assert e.contributions() == alone


def test_several_answers_and_lines_without_one():
    x = np.random.default_rng(0).normal(size=(200, 4))
    model = LogisticRegression().fit(x, x[:, 0] + x[:, 1] > 0)
    rules = Features(immutable=(2, 3), ranges={0: (-3, 3), 1: (-3, 3)})
    explainer = CounterfactualExplainer(model, features=rules).fit(x)
    e = explainer.explain(x[:4], n=3)
    before, after = e.new_class_proba
    expected = {row: 0.0 for row, n in zip(e.row.tolist(), e.n_changes, strict=True) if n}
    for line in np.flatnonzero(e.found):
        expected[int(e.row[line])] += after[line] - before[line]
    assert sums(e) == pytest.approx(expected)
    none = explainer.explain(x[:2], features=Features(immutable=(0, 1, 2, 3)))
    assert not none.found.any()
    assert none.contributions() == []
    assert none.contributions_frame().columns.tolist() == list(Contribution._fields)


def test_a_row_that_is_in_the_target_has_no_contributions(cancer):
    x, forest, explainer = cancer
    e = explainer.explain(x[:2], target=forest.predict(x[:2]))
    assert e.found.all()
    assert e.contributions() == []
    assert [each.masks.shape for each in subsets(e)] == [(1, 0), (1, 0)]


def test_a_fallback_has_contributions_too(cancer):
    x, forest, _ = cancer
    config = SearchConfig(method="fista", c_init=1e-3, c_steps=1, max_iterations=4, theta=0)
    e = CounterfactualExplainer(forest.predict_proba, search=config).fit(x).explain(x[:1])
    assert e.status.tolist() == ["fallback"]
    before, after = e.new_class_proba
    assert sums(e)[0] == pytest.approx(after[0] - before[0])


def grouped(seed=0, names=None):
    random = np.random.default_rng(seed)
    x = np.column_stack([random.normal(size=300), np.eye(3)[random.integers(0, 3, 300)]])
    model = LogisticRegression(C=100)
    frame = x if names is None else pd.DataFrame(x, columns=names)
    return frame, model.fit(frame, x[:, 0] + 3 * x[:, 3] > 1)


def test_a_one_hot_group_is_one_feature():
    frame, model = grouped(names=["size", "red", "green", "blue"])
    features = Features(one_hot={"colour": ("red", "green", "blue")}, immutable=("size",))
    rows = frame[(model.predict(frame) == 0) & (frame["size"] > 0)].head(5)[["blue", "size", "green", "red"]]
    e = CounterfactualExplainer(model, features=features).fit(frame).explain(rows)
    assert e.found.all()
    found = e.contributions()
    assert [each.feature for each in found] == ["colour"] * 5
    assert {each.before for each in found} <= {"red", "green"}
    assert {each.after for each in found} == {"blue"}
    before, after = e.new_class_proba
    np.testing.assert_allclose([each.contribution for each in found], after - before)


def test_a_group_of_an_array_is_named_too():
    x, model = grouped()
    explainer = CounterfactualExplainer(model, features=Features(one_hot={"colour": (1, 2, 3)}, immutable=(0,))).fit(x)
    e = explainer.explain(x[(model.predict(x) == 0) & (x[:, 0] > 0)][:1])
    assert e.contributions()[0][1:4] in {("colour", "x1", "x3"), ("colour", "x2", "x3")}


KINDS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_every_library_with_missing_cells_and_categories(kind):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, 400),
            "job": random.choice(["clerk", "nurse", "pilot"], 400),
            "income": random.normal(3000, 500, 400).astype(np.float32),
        }
    )
    frame.loc[frame.index[::5], "income"] = np.nan

    def predict(rows):
        rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
        income = np.nan_to_num(np.asarray(rows["income"], dtype=float), nan=2500)
        score = 0.002 * (income - 3000) + 0.03 * (np.asarray(rows["age"]) - 50) + (np.asarray(rows["job"]) == "pilot")
        p = 1 / (1 + np.exp(-2 * (score - 0.5)))
        return np.stack([1 - p, p], axis=1)

    made = KINDS[kind](frame)
    e = CounterfactualExplainer(predict).fit(made).explain(KINDS[kind](frame.head(10)), n=2)
    assert e.found.any()
    before, after = e.new_class_proba
    lines = np.flatnonzero(e.found)
    total = math.fsum(after[lines] - before[lines])
    assert sum(each.contribution for each in e.contributions()) == pytest.approx(total, abs=1e-9)


def test_float32_and_whole_numbers():
    x = np.random.default_rng(0).integers(0, 20, size=(300, 3))
    for dtype in (np.float32, np.int16):
        rows = x.astype(dtype)
        model = RandomForestClassifier(10, random_state=0).fit(rows, rows.sum(axis=1) > 30)
        e = CounterfactualExplainer(model).fit(rows).explain(rows[:6], n=2)
        before, after = e.new_class_proba
        change = np.where(e.found, after - before, 0)
        for row, total in sums(e).items():
            assert total == pytest.approx(change[e.row == row].sum(), abs=1e-9)


def test_a_model_that_fails_for_a_mixture_leaves_the_line_without_numbers_and_says_so(caplog):
    """Only pairs of equal signs can be predicted: one change without the other cannot."""

    def predict(rows):
        if (rows[:, 0] * rows[:, 1] < 0).any():
            raise ValueError("signs differ")
        p = 1 / (1 + np.exp(-rows.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 1] = np.abs(x[:, 1]) * np.sign(x[:, 0])
    x[0], x[1] = [-2.0, -2.0], [2.0, 0.3]
    e = CounterfactualExplainer(predict).fit(x).explain(x[:1])
    assert e.n_changes.tolist() == [2]
    found = e.contributions()
    assert all(math.isnan(each.contribution) and math.isnan(each.error) for each in found)
    assert "row 0 has no contributions" in caplog.text
    assert "ValueError: signs differ" in caplog.text


def test_images_are_sampled_over_their_changed_pixels_up_to_a_size():
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=2000).fit(x / 16, y)
    images = (x / 16).reshape(-1, 8, 8)

    def predict(rows):
        return model.predict_proba(rows.reshape(len(rows), -1))

    e = CounterfactualExplainer(predict).fit(images).explain(images[:2])
    assert e.found.all()
    found = e[0].contributions(samples=16)
    before, after = e[0].new_class_proba
    assert sum(each.contribution for each in found) == pytest.approx(after[0] - before[0], abs=1e-9)
    assert len(found) == e.n_changes[0]
    assert all(isinstance(each.feature, tuple) and len(each.feature) == 2 for each in found)


def test_too_many_changes_are_refused_by_name():
    x = np.random.default_rng(0).normal(size=(60, 40, 40)).astype(np.float32)
    x[30:] += 1.0

    def predict(rows):
        p = 1 / (1 + np.exp(-4 * (rows.mean(axis=(1, 2)) - 0.5)))
        return np.stack([1 - p, p], axis=1)

    config = SearchConfig(beta=0.0, theta=50.0)
    e = CounterfactualExplainer(predict, search=config).fit(x).explain(x[0])
    assert e.n_changes[0] > 1024
    with pytest.raises(InputError, match=r"row 0 changes \d+ features; contributions are for at most 1024"):
        e.contributions()


@pytest.mark.parametrize(("settings", "words"), [({"samples": 3}, "samples is 3"), ({"seed": -1}, "seed is -1")])
def test_wrong_settings_are_named(few, settings, words):
    with pytest.raises(InputError, match=words):
        few.contributions(**settings)


def test_subsets_hold_every_combination_or_single_reversals(cancer, few):
    x, _, explainer = cancer
    for each in subsets(few):
        m = len(each.features)
        assert each.masks.shape == (2**m, m)
        np.testing.assert_array_equal(each.proba[0], few.original_proba[each.line])
        np.testing.assert_array_equal(each.proba[-1], few.counterfactual_proba[each.line])
        np.testing.assert_allclose(each.proba.sum(axis=1), 1)
    large = explainer.explain(x[:1])
    (one,) = subsets(large)
    m = len(one.features)
    assert m > 8
    assert one.masks.sum(axis=1).tolist() == [0, m, *[m - 1] * m]
    assert [f.name for f in one.features] == [change.feature for change in large.changes()]


def test_the_model_is_asked_once_for_all_lines(cancer):
    x, forest, _ = cancer
    calls = []

    def predict(rows):
        calls.append(len(rows))
        return forest.predict_proba(rows)

    e = CounterfactualExplainer(predict, search=SearchConfig(max_changes=4)).fit(x).explain(x[:8])
    calls.clear()
    e.contributions()
    check, asked = calls  # first whether it is still the model of fit
    assert check == len(e.source.fitted.fingerprint.rows)
    assert asked <= sum(2**m - 2 for m in e.n_changes)


def test_changed_features_of_a_line_without_answer_are_none():
    x = np.random.default_rng(0).normal(size=(100, 2))
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    e = CounterfactualExplainer(model).fit(x).explain(x[:1], features=Features(immutable=(0, 1)))
    assert changed_features(e) == [()]
