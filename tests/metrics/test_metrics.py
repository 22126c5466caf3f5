"""Measures of counterfactuals, against numbers worked out by hand and against loops."""

from __future__ import annotations

import math

import networks
import numpy as np
import pytest
from scipy import stats

from cfproto_plugin import CounterfactualExplainer, Explanation, SearchConfig
from cfproto_plugin.errors import InputError, ModelError, NoAdapterError
from cfproto_plugin.metrics import (
    changed_attributes,
    elastic_net,
    evaluate,
    im1,
    im2,
    l0,
    l1,
    l2,
    measure,
    neighbour_distance,
    summarise,
    validity,
)

X = np.array([[1.0, 2.0], [3.0, -1.0]])


def half(x):
    return x / 2


def shifted(x):
    return x + np.array([1.0, 2.0])


def explanation(x0, x, old, new, **other) -> Explanation:
    """Lines as `explain` would return them; a new class of None is a row without a counterfactual."""
    n = len(old)
    there = np.array([label is not None for label in new])
    given = {
        "original": x0,
        "counterfactual": x,
        "status": np.where(there, "found", "not_found").astype(object),
        "message": np.full(n, "", dtype=object),
        "original_class": np.array(old),
        "counterfactual_class": np.array(new),
        "prototype_class": np.array(new),
        "original_proba": np.full((n, 2), 0.5),
        "counterfactual_proba": np.full((n, 2), 0.5),
        "classes": np.array([0, 1]),
        "n_steps": np.arange(n) + 1,
        "seconds": np.full(n, 0.25),
        "row": np.arange(n),
        "feature_names": None,
        "meta": {},
    }
    return Explanation(**{**given, **other})


@pytest.fixture
def three() -> Explanation:
    x0 = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    x = np.array([[1.0, 2.0], [3.0, 1.0], [np.nan, np.nan]])
    return explanation(x0, x, [0, 1, 0], [1, 0, None])


def test_im1_is_the_ratio_of_the_two_squared_reconstruction_errors():
    np.testing.assert_allclose(im1(X, half, shifted), [(0.25 + 1) / 5, (2.25 + 0.25) / 5], rtol=1e-9)


def test_im2_is_the_squared_difference_of_two_reconstructions_by_the_l1_norm_of_the_row():
    by_hand = [((0.5 - 2) ** 2 + (1 - 4) ** 2) / 3, ((1.5 - 4) ** 2 + (-0.5 - 1) ** 2) / 4]
    np.testing.assert_allclose(im2(X, half, shifted), by_hand, rtol=1e-9)


def test_epsilon_keeps_perfect_reconstructions_and_empty_images_finite():
    assert im1(X, half, lambda x: x, eps=0.5).tolist() == [2 * 1.25, 2 * 2.5]
    assert im2(np.zeros((1, 2)), half, shifted, eps=0.5).tolist() == [5 / 0.5]


def test_images_are_measured_over_all_their_pixels():
    images = np.arange(24.0).reshape(2, 3, 4, 1)
    flat = images.reshape(2, 12)
    np.testing.assert_allclose(im1(images, half, lambda x: x * 3), im1(flat, half, lambda x: x * 3))
    assert l0(images, images[::-1]).tolist() == [12, 12]


def test_any_model_that_an_adapter_claims_is_an_autoencoder():
    layers = networks.trained(X.astype(np.float32), None, (2, 3, 2), epochs=1)
    x = X.astype(np.float32)
    expected = im1(x, lambda rows: networks.forward(layers, rows, softmax=False), half)
    np.testing.assert_allclose(im1(x, networks.in_torch(layers, softmax=False), half), expected, rtol=1e-5)


def test_an_adapter_that_only_predicts_is_an_autoencoder():
    class Adapter:
        def predict(self, x):
            return x / 2

    assert im1(X, Adapter(), shifted).tolist() == im1(X, half, shifted).tolist()
    with pytest.raises(NoAdapterError):
        im1(X, "half", shifted)


def test_an_encoder_in_place_of_an_autoencoder_is_refused():
    with pytest.raises(ModelError, match=r"shape \(2, 1\)"):
        im1(X, lambda x: x[:, :1], half)


def test_distances_are_those_of_the_papers_objective():
    x0 = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert l0(X, x0).tolist() == [1, 2]
    assert l1(X, x0).tolist() == [2, 5]
    assert l2(X, x0).tolist() == [4, 13]
    np.testing.assert_allclose(elastic_net(X, x0), [4.2, 13.5])
    np.testing.assert_allclose(elastic_net(X, x0, beta=1), [6, 18])
    assert l0(X, x0, tolerance=2).tolist() == [0, 1]


def test_a_row_without_a_counterfactual_has_no_distance():
    x = np.full((1, 2), np.nan)
    assert np.isnan([l0(x, X[:1]), l1(x, X[:1]), l2(x, X[:1]), elastic_net(x, X[:1])]).all()


def test_rows_of_other_shapes_are_refused():
    with pytest.raises(InputError, match=r"\(2, 2\).*\(1, 2\)"):
        l1(X, X[:1])


def test_neighbour_distance_is_the_mean_of_the_k_nearest():
    reference = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0], [30.0, 40.0]])
    assert neighbour_distance([[0.0, 0.0]], reference, k=3).tolist() == [5.0]
    assert neighbour_distance(np.empty((0, 2)), reference, k=3).shape == (0,)
    with pytest.raises(InputError, match="k is 5"):
        neighbour_distance(X, reference)
    with pytest.raises(InputError, match="2 features"):
        neighbour_distance(X, reference[:, :1], k=1)


def test_neighbour_distance_does_not_depend_on_how_many_rows_are_taken_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    x, reference = rng.standard_normal((9, 3)), rng.standard_normal((20, 3))
    at_once = neighbour_distance(x, reference)
    monkeypatch.setattr("cfproto_plugin.metrics.interpretability._CELLS", 45)
    np.testing.assert_array_equal(neighbour_distance(x, reference), at_once)
    loop = [np.sort(np.linalg.norm(reference - row, axis=1))[:5].mean() for row in x]
    np.testing.assert_allclose(at_once, loop)


def test_three_changed_features_of_one_attribute_are_one_attribute():
    delta = np.array([[1.5, -2.0, 3.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.1, -1.2, 0.0, 1.0]])
    groups = ["radius", "radius", "radius", "texture", "texture", "area"]
    assert [part.tolist() for part in changed_attributes(delta, groups, threshold=1)] == [[3, 2], [1, 2]]
    assert [part.tolist() for part in changed_attributes(delta, groups)] == [[4, 3], [2, 3]]
    with pytest.raises(InputError, match="names 2 attributes"):
        changed_attributes(delta, ["radius", "texture"])


def test_bounds_are_students():
    values = np.array([1.0, 2.0, 4.0, 7.0])
    (record,) = summarise({"l1": values}, confidence=0.9)
    expected = stats.t.interval(0.9, 3, values.mean(), stats.sem(values))
    assert (record.n, record.mean) == (4, 3.5)
    assert record.std == pytest.approx(values.std(ddof=1))
    assert (record.lower, record.upper) == pytest.approx(expected)


def test_bounds_of_validity_are_wilsons():
    (record,) = summarise({"validity": [1, 1, 1, 0, 1, 1, 1, 1]})
    expected = stats.binomtest(7, 8).proportion_ci(method="wilson")
    assert (record.lower, record.upper) == pytest.approx((expected.low, expected.high))
    (record,) = summarise({"validity": [1.0] * 20})
    assert record.lower < 1
    assert record.upper == 1


def test_one_value_has_no_bounds_and_none_has_no_mean():
    one, none = summarise({"l1": [2.0], "l2": [math.nan]})
    assert (one.n, one.mean) == (1, 2.0)
    assert math.isnan(one.lower)
    assert none.n == 0
    assert math.isnan(none.mean)
    with pytest.raises(InputError, match="confidence is 95"):
        summarise({"l1": [1.0]}, confidence=95)


def test_rows_without_a_counterfactual_count_in_validity_only(three):
    assert validity(three).tolist() == [1, 1, 0]
    table = evaluate(three)
    assert {record.metric: record.n for record in table.records} == {
        "validity": 3, "n_steps": 2, "seconds": 2, "elastic_net": 2, "l0": 2, "l1": 2, "l2": 2,
    }  # fmt: skip
    assert table.select("", "validity").mean == pytest.approx(2 / 3)
    assert table.select("", "l2").mean == (5 + 4) / 2
    assert table.select("", "elastic_net").mean == pytest.approx((5.3 + 4.2) / 2)
    assert table.select("", "n_steps").mean == 1.5


def test_each_line_is_measured_by_the_autoencoders_of_its_own_classes(three):
    values = measure(three, autoencoders={0: half, 1: shifted}, autoencoder=lambda x: x)
    x = three.counterfactual
    expected = [im1(x[:1], shifted, half)[0], im1(x[1:2], half, shifted)[0], np.nan]
    np.testing.assert_allclose(values["im1"], expected)
    expected = [im2(x[:1], shifted, lambda x: x)[0], im2(x[1:2], half, lambda x: x)[0], np.nan]
    np.testing.assert_allclose(values["im2"], expected)
    assert "im2" not in measure(three, autoencoders={0: half, 1: shifted})
    with pytest.raises(InputError, match="none for class 1"):
        measure(three, autoencoders={0: half})


def test_lines_of_one_new_class_and_different_old_ones_are_told_apart():
    e = explanation(X - 1, X, ["a", "b"], ["c", "c"])
    models = {"a": half, "b": shifted, "c": lambda x: x * 3}
    expected = [im1(X[:1], models["c"], half)[0], im1(X[1:], models["c"], shifted)[0]]
    np.testing.assert_allclose(measure(e, autoencoders=models)["im1"], expected)


def test_neighbours_are_those_of_the_new_class(three):
    rows = np.concatenate([np.zeros((5, 2)), np.ones((5, 2))])
    values = measure(three, reference=(rows, np.repeat([0, 1], 5)))
    np.testing.assert_allclose(values["neighbour_distance"], [1, math.sqrt(10), np.nan])
    with pytest.raises(InputError, match="10 rows and 2 labels"):
        measure(three, reference=(rows, [0, 1]))


def test_sets_are_told_apart_by_name_and_groups_by_class(three):
    table = evaluate({"first": three, "second": three[:1]}, by="counterfactual_class")
    assert [(r.name, r.group) for r in table.records if r.metric == "l2"] == [
        ("first", 0), ("first", 1), ("first", None), ("second", 1),
    ]  # fmt: skip
    assert table.select("first", "l2", 0).mean == 4
    assert table.select("second", "l2", 1).mean == 5
    with pytest.raises(InputError, match="Did you mean 'original_class'"):
        evaluate(three, by="orignal_class")
    with pytest.raises(InputError, match="no line 'third'"):
        table.select("third", "l2")


def test_the_table_prints_one_line_per_record_and_makes_a_frame(three):
    table = evaluate({"A": three})
    lines = str(table).splitlines()
    assert lines[0].split() == ["name", "metric", "n", "mean", "std", "lower", "upper"]
    assert lines[-1].split()[:4] == ["A", "l2", "2", "4.5"]
    assert len(lines) == len(table) + 1
    assert "group" in str(evaluate({"A": three}, by="original_class"))
    frame = table.to_frame()
    assert frame.set_index("metric").loc["l2", "mean"] == 4.5


def test_tables_of_words_have_the_measures_that_need_no_numbers():
    import pandas as pd

    before = pd.DataFrame({"age": [20, 30, 40], "job": ["a", "b", "b"]})
    after = pd.DataFrame({"age": [25, 30, 40], "job": ["b", "a", "b"]})
    e = explanation(before, after, [0, 0, 0], [1, 1, 1], feature_names=("age", "job"), row=np.array([4, 4, 5]))
    values = measure(e)
    assert values["l0"].tolist() == [2, 1, 0]
    assert "l1" not in values
    with pytest.raises(InputError, match="hold words"):
        measure(e, reference=(before, [0, 1, 1]))


def test_frames_of_numbers_are_measured_like_arrays(three):
    import pandas as pd

    frames = explanation(pd.DataFrame(three.original), pd.DataFrame(three.counterfactual), [0, 1, 0], [1, 0, None])
    for metric, values in measure(three).items():
        np.testing.assert_array_equal(measure(frames)[metric], values)


def test_what_an_explainer_returns_can_be_evaluated(golden):
    search = SearchConfig.paper("E", theta=20, beta=0.01, k=2, max_iterations=200)
    explainer = CounterfactualExplainer(networks.in_torch(golden.layers), features=golden.features, search=search)
    e = explainer.fit(golden.x_train).explain(golden.x)
    labels = networks.forward(golden.layers, golden.x_train).argmax(axis=1)
    table = evaluate({"E": e}, autoencoders={0: half, 1: lambda x: x * 0.9}, reference=(golden.x_train, labels))
    found = int((e.status == "found").sum())
    assert 0 < found < 19
    assert table.select("E", "validity").mean == found / 19
    assert table.select("E", "im1").n == table.select("E", "neighbour_distance").n == found
    assert table.select("E", "im1").lower < table.select("E", "im1").mean < table.select("E", "im1").upper
