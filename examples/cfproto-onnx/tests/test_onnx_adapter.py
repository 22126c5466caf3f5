"""Sessions of every common kind give probabilities; what cannot be used is refused with names."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.helpers import softmax
from cfproto_plugin.testing import check_adapter, checks
from models import LABELS, layers, linear_classifier, network, session, tensor
from onnx import TensorProto
from sklearn.datasets import load_breast_cancer, load_wine

from cfproto_onnx import OnnxAdapter

X, Y = (part.astype(kind) for part, kind in zip(load_wine(return_X_y=True), (np.float32, int), strict=True))
CANCER, GOOD = load_breast_cancer(return_X_y=True)
WEIGHTS = layers(X, Y)
UNIT = (X - X.mean(axis=0)) / X.std(axis=0)


def scores(weights, x):
    """The same network in NumPy."""
    return np.tanh(x @ weights["W"] + weights["b"]) @ weights["V"] + weights["c"]


def positive(weights):
    """The network with one column, the log-odds of class 1."""
    return weights | {"V": weights["V"][:, 1:2], "c": weights["c"][1:2]}


@pytest.fixture(scope="module")
def coefficients():
    found = np.linalg.solve(UNIT.T @ UNIT + np.eye(13), UNIT.T @ (np.eye(3)[Y] * 6 - 2))
    return found.astype(np.float32), np.zeros(3, np.float32)


@pytest.mark.parametrize("check", checks(network(WEIGHTS), X[::12]), ids=str)
def test_session_conforms(check):
    check()


# What is read from the outputs


def test_softmax_is_read_as_probabilities():
    adapter = OnnxAdapter(network(WEIGHTS))
    check_adapter(adapter, X[::12])
    assert np.allclose(adapter.predict(X), softmax(scores(WEIGHTS, X)), atol=1e-4)


def test_logits_become_probabilities():
    adapter = OnnxAdapter(network(WEIGHTS, ending="Identity"))
    check_adapter(adapter, X[::12])
    assert np.allclose(adapter.predict(X), softmax(scores(WEIGHTS, X)), atol=1e-4)


@pytest.mark.parametrize("ending", ["Sigmoid", "Identity"])
def test_one_column_is_the_second_of_two_classes(ending):
    weights = positive(layers(CANCER, GOOD))
    adapter = OnnxAdapter(network(weights, ending=ending))
    check_adapter(adapter, CANCER[::40])
    expected = 1 / (1 + np.exp(-scores(weights, CANCER)[:, 0]))
    assert np.allclose(adapter.predict(CANCER), np.stack([1 - expected, expected], axis=1), atol=1e-3)


def test_scores_can_be_declared_logits_although_they_look_like_probabilities():
    told = OnnxAdapter(network(WEIGHTS), output="logits").predict(X)
    assert np.allclose(told, softmax(OnnxAdapter(network(WEIGHTS)).predict(X)), atol=1e-6)
    with pytest.raises(InputError, match="output='margins': expected one of 'auto', 'logits', 'probabilities'"):
        OnnxAdapter(network(WEIGHTS), output="margins")


def test_one_row_of_logits_that_looks_like_probabilities_is_not_mistaken():
    model = session([("Identity", ["x"], ["z"], {})], [tensor("x", ["n", 2])], [tensor("z", ["n", 2])])
    row = np.array([[0.3, 0.7]])
    assert np.allclose(OnnxAdapter(model).predict(row), softmax(row))


def test_meaning_is_decided_once_and_not_by_each_row():
    adapter = OnnxAdapter(network(WEIGHTS | {"V": WEIGHTS["V"] * 0 + 0.01}, ending="Identity"))
    assert np.allclose(adapter.predict(X).sum(axis=1), 1)
    rows = np.concatenate([X[:1], X[:1] * 1e4])
    assert np.array_equal(adapter.predict(rows)[:1], adapter.predict(rows[:1]))


@pytest.mark.parametrize("zipmap", [True, False])
def test_labels_are_those_of_the_model(coefficients, zipmap):
    model = linear_classifier(*coefficients, zipmap=zipmap)
    adapter = OnnxAdapter(model)
    check_adapter(adapter, UNIT[::6])
    assert sorted(adapter.classes) == sorted(LABELS)
    labels = model.run(["label"], {"x": UNIT})[0]
    assert np.array_equal(adapter.classes[adapter.predict(UNIT).argmax(axis=1)], labels)


def test_labels_that_the_first_rows_do_not_show_are_numbers_unless_they_are_given(coefficients):
    model = linear_classifier(*coefficients, zipmap=False)
    adapter = OnnxAdapter(model)
    for rows in (UNIT[:3], UNIT):
        adapter.predict(rows)
        assert not hasattr(adapter, "classes"), "decided on the first rows"
    given = OnnxAdapter(model, classes=LABELS)
    given.predict(UNIT[:3])
    assert given.classes.tolist() == LABELS


def test_labels_that_do_not_tell_the_columns_apart_are_not_used():
    nodes = [("Softmax", ["x"], ["p"], {}), ("ArgMax", ["x"], ["best"], {"axis": 1, "keepdims": 0})]
    nodes.append(("Sub", ["best", "best"], ["label"], {}))
    outputs = [tensor("label", ["n"], TensorProto.INT64), tensor("p", ["n", 13])]
    adapter = OnnxAdapter(session(nodes, [tensor("x", ["n", 13])], outputs))
    assert set(adapter.predict(UNIT).argmax(axis=1)) == set(range(13))
    assert not hasattr(adapter, "classes")


def test_given_labels_put_the_columns_in_order(coefficients):
    model = linear_classifier(*coefficients, zipmap=True)
    given = OnnxAdapter(model, classes=LABELS)
    assert np.array_equal(given.predict(UNIT).argmax(axis=1), (UNIT @ coefficients[0]).argmax(axis=1))
    with pytest.raises(ModelError, match=r"classes are \['a', 'b', 'c'\]; the session names \['barbera'"):
        OnnxAdapter(model, classes=list("abc")).predict(UNIT)


def test_output_is_chosen_by_name():
    nodes = [("Identity", ["x"], ["one"], {}), ("Softmax", ["x"], ["two"], {})]
    model = session(nodes, [tensor("x", ["n", 3])], [tensor("one", ["n", 3]), tensor("two", ["n", 3])])
    rows = np.random.default_rng(0).normal(size=(5, 3))
    assert np.allclose(OnnxAdapter(model, output_name="two").predict(rows), softmax(rows), atol=1e-6)
    with pytest.raises(ModelError, match=r"'one' \(tensor\(float\)\), 'two' \(tensor\(float\)\).*output_name=\.\.\."):
        OnnxAdapter(model)
    with pytest.raises(ModelError, match="no output 'three'; it has 'one'"):
        OnnxAdapter(model, output_name="three")


def test_of_several_tensors_the_one_called_probabilities_is_used():
    nodes = [("Identity", ["x"], ["embedding"], {}), ("Softmax", ["x"], ["Probabilities"], {})]
    outputs = [tensor("embedding", ["n", 3]), tensor("Probabilities", ["n", 3])]
    rows = np.random.default_rng(0).normal(size=(5, 3))
    adapter = OnnxAdapter(session(nodes, [tensor("x", ["n", 3])], outputs))
    assert np.allclose(adapter.predict(rows), softmax(rows), atol=1e-6)


# What goes in


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_rows_are_converted_to_the_dtype_of_the_input(kind):
    adapter = OnnxAdapter(network(layers(UNIT, Y), kind=kind))
    y = adapter.predict(UNIT)
    assert np.allclose(y, adapter.predict(UNIT.astype(np.float64)))
    assert np.allclose(y.sum(axis=1), 1, atol=1e-6)
    assert np.allclose(y, softmax(scores(layers(UNIT, Y), UNIT)), atol=2e-2 if kind == TensorProto.FLOAT16 else 1e-4)


@pytest.mark.parametrize("batch", [1, 7])
def test_model_with_a_fixed_batch_size_takes_any_number_of_rows(batch):
    fixed, free = OnnxAdapter(network(WEIGHTS, batch=batch)), OnnxAdapter(network(WEIGHTS))
    check_adapter(fixed, X[::12])
    assert np.allclose(fixed.predict(X), free.predict(X), atol=1e-6)


def test_rows_with_as_many_cells_are_reshaped():
    adapter = OnnxAdapter(network(layers(CANCER, GOOD), shape=[1, 5, 6]))
    check_adapter(adapter, CANCER[::40])
    assert np.array_equal(adapter.predict(CANCER), adapter.predict(CANCER.reshape(-1, 1, 5, 6)))


def test_whole_numbers_are_wanted_where_the_input_takes_integers():
    nodes = [("Cast", ["x"], ["y"], {"to": TensorProto.FLOAT}), ("Softmax", ["y"], ["z"], {})]
    adapter = OnnxAdapter(session(nodes, [tensor("x", ["n", 2], TensorProto.INT64)], [tensor("z", ["n", 2])]))
    assert np.allclose(adapter.predict(np.array([[1.0, 3.0]])), softmax(np.array([[1.0, 3.0]])))
    with pytest.raises(ModelError, match=r"takes int64 and a row holds fractions.*Features\(integer=\.\.\.\)"):
        adapter.predict(np.array([[1.0, 3.5]]))


# What is refused


def test_rows_of_another_shape_are_refused_with_both_shapes():
    with pytest.raises(ModelError, match=r"rows have the shape \(4,\); the input 'x' takes \(13\)"):
        OnnxAdapter(network(WEIGHTS)).predict(X[:, :4])


def test_several_inputs_are_refused_by_name():
    inputs = [tensor("age", ["n", 1]), tensor("income", ["n", 1])]
    model = session([("Concat", ["age", "income"], ["y"], {"axis": 1})], inputs, [tensor("y", ["n", 2])])
    with pytest.raises(ModelError, match=r"2 inputs \(age, income\).*x -> probabilities"):
        OnnxAdapter(model)


def test_inputs_of_strings_and_outputs_of_labels_alone_are_refused():
    words = session(
        [("Identity", ["x"], ["y"], {})],
        [tensor("x", ["n", 2], TensorProto.STRING)],
        [tensor("y", ["n", 2], TensorProto.STRING)],
    )
    with pytest.raises(ModelError, match=r"'x' takes tensor\(string\); expected one of tensor\(float\)"):
        OnnxAdapter(words)
    label = session(
        [("ArgMax", ["x"], ["label"], {"axis": 1, "keepdims": 0})],
        [tensor("x", ["n", 2])],
        [tensor("label", ["n"], TensorProto.INT64)],
    )
    with pytest.raises(ModelError, match=r"'label' \(tensor\(int64\)\).*labels alone are not enough"):
        OnnxAdapter(label)


def test_output_that_is_no_table_is_refused_and_failures_of_the_runtime_are_model_errors():
    cube = session([("Identity", ["x"], ["y"], {})], [tensor("x", ["n", 2, 2])], [tensor("y", ["n", 2, 2])])
    with pytest.raises(ModelError, match=r"shape \(3, 2, 2\) for 3 rows.*role=\"transform\""):
        OnnxAdapter(cube).predict(np.ones((3, 2, 2)))
    reshape = [("Reshape", ["x", "to"], ["y"], {})]
    fails = session(reshape, [tensor("x", ["n", 2])], [tensor("y", ["n", 4])], {"to": np.array([1, 4])})
    with pytest.raises(ModelError, match=r"ONNX Runtime cannot run rows of shape \(3, 2\)"):
        OnnxAdapter(fails).predict(np.ones((3, 2)))


# In use


def test_encoder_is_given_back_as_it_is():
    cube = session([("Identity", ["x"], ["y"], {})], [tensor("x", ["n", 2, 2])], [tensor("y", ["n", 2, 2])])
    rows = np.random.default_rng(0).normal(size=(5, 2, 2))
    check_adapter(OnnxAdapter(cube, role="transform"), rows, role="transform")
    assert np.allclose(OnnxAdapter(cube, role="transform").predict(rows), rows, atol=1e-6)


def test_session_is_explained_and_the_session_confirms_it():
    model = network(WEIGHTS)
    e = CounterfactualExplainer(model, features=Features(immutable=(0,))).fit(X).explain(X[:8])
    assert e.meta["adapter"] == "onnx"
    assert (e.status == "found").all()
    (proba,) = model.run(None, {"x": e.counterfactual})
    assert np.array_equal(proba.argmax(axis=1), e.counterfactual_class)
    assert (e.counterfactual_class != e.original_class).all()
    assert np.array_equal(e.counterfactual[:, 0], X[:8, 0])


def test_labels_can_be_targets(coefficients):
    e = CounterfactualExplainer(linear_classifier(*coefficients, zipmap=True)).fit(UNIT).explain(UNIT[:4], "barbera")
    assert e.counterfactual_class.tolist() == ["barbera"] * 4


def test_several_threads_get_the_same_answers():
    adapter, expected = OnnxAdapter(network(WEIGHTS)), OnnxAdapter(network(WEIGHTS)).predict(X)
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(expected, y) for y in pool.map(adapter.predict, [X] * 8))
