"""The Keras adapter. The file runs on the backend of this process, and once more on PyTorch in a process of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pytest
from cfproto_adapters.keras_adapter import KerasAdapter
from keras import layers

from cfproto_plugin.errors import ModelError
from cfproto_plugin.plugins import adapted
from cfproto_plugin.testing import check_adapter

BACKEND = keras.config.backend()
on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="about the TensorFlow backend")
on_torch = pytest.mark.skipif(BACKEND != "torch", reason="about the PyTorch backend")

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((6, 5)).astype(np.float32)
IMAGES = RNG.standard_normal((4, 8, 8, 1)).astype(np.float32)


def dense(units, activation=None, seed=1, **options):
    return layers.Dense(units, activation, kernel_initializer=keras.initializers.GlorotUniform(seed), **options)


def sequential(outputs=3, activation=None):
    return keras.Sequential([keras.Input((5,)), dense(16, "tanh"), dense(outputs, activation, seed=2)])


def functional(outputs=3, activation=None):
    x = keras.Input((5,))
    return keras.Model(x, dense(outputs, activation, seed=2)(dense(16, "tanh")(x)))


def in_lists():
    x = keras.Input((5,))
    return keras.Model([x], [dense(3)(x)])


class Subclassed(keras.Model):
    """Its last operation is not its last layer."""

    def __init__(self, outputs, last):
        super().__init__()
        self.last = last
        self.hidden = dense(16, "tanh")
        self.out = dense(outputs, seed=2)

    def call(self, x):
        return self.last(self.out(self.hidden(x)))


class Returning(keras.Model):
    """Returns whatever a function makes of the rows."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, x):
        return self.function(x)


def noisy():
    """Dropout and batch normalisation with statistics worth keeping."""
    model = keras.Sequential(
        [keras.Input((5,)), dense(16), layers.BatchNormalization(), layers.Dropout(0.5), dense(2, "softmax", seed=2)]
    )
    for weight in model.layers[1].non_trainable_weights:
        weight.assign(np.linspace(0.5, 1.5, 16))
    return model


def convolutional():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="silu", kernel_initializer=keras.initializers.GlorotUniform(3)),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            dense(3, "softmax"),
        ]
    )


def pulled(adapter, x):
    y, pullback = adapter.vjp(x)
    return pullback(cotangent_of(y))


def cotangent_of(y):
    return np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)


CLASSIFIERS = {
    "logits": sequential,
    "softmax": lambda: functional(activation="softmax"),
    "log-softmax": lambda: functional(activation="log_softmax"),
    "one logit": lambda: functional(outputs=1),
    "one sigmoid": lambda: sequential(outputs=1, activation="sigmoid"),
    "subclassed": lambda: Subclassed(3, keras.ops.softmax),
    "subclassed, one sigmoid": lambda: Subclassed(1, lambda z: keras.ops.squeeze(keras.ops.sigmoid(z), -1)),
    "sequential that was never called": lambda: keras.Sequential([dense(4, "tanh"), dense(3)]),
    "lists of one input and one output": in_lists,
    "model in a model": lambda: keras.Sequential([keras.Input((5,)), functional(), layers.Softmax()]),
    "dropout and batch normalisation": noisy,
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_conforms(name):
    check_adapter(KerasAdapter(CLASSIFIERS[name]()), ROWS)


def test_convolutional_classifier_conforms():
    check_adapter(KerasAdapter(convolutional()), IMAGES)


def test_encoder_and_autoencoder_conform_and_keep_their_shapes():
    encoder = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(2, 3, activation="tanh")])
    autoencoder = keras.Sequential(
        [keras.Input((8, 8, 1)), layers.Flatten(), dense(8, "tanh"), dense(64, "sigmoid"), layers.Reshape((8, 8, 1))]
    )
    for model, shape in ((encoder, (4, 6, 6, 2)), (autoencoder, (4, 8, 8, 1))):
        adapter = KerasAdapter(model, role="transform")
        check_adapter(adapter, IMAGES, role="transform")
        assert adapter.predict(IMAGES).shape == shape


@pytest.mark.parametrize("activation", [None, "softmax"])
def test_the_same_weights_in_keras_and_torch_give_the_same_outputs_and_pullbacks(activation):
    import torch
    from cfproto_adapters.torch_adapter import TorchAdapter

    ours = keras.Sequential([keras.Input((30,)), dense(40, "relu"), dense(40, "relu"), dense(2, activation)])
    linear = [torch.nn.Linear(30, 40), torch.nn.Linear(40, 40), torch.nn.Linear(40, 2)]
    for layer, theirs in zip(ours.layers, linear, strict=True):
        kernel, bias = (np.array(weight) for weight in layer.get_weights())
        theirs.weight.data, theirs.bias.data = torch.from_numpy(kernel.T.copy()), torch.from_numpy(bias)
    relu, last = torch.nn.ReLU(), [torch.nn.Softmax(dim=1)] if activation else []
    x = RNG.standard_normal((20, 30))
    a = KerasAdapter(ours)
    b = TorchAdapter(torch.nn.Sequential(linear[0], relu, linear[1], relu, linear[2], *last))
    np.testing.assert_allclose(a.predict(x), b.predict(x), atol=1e-6)
    difference = np.abs(pulled(a, x) - pulled(b, x)).max()
    assert np.abs(pulled(a, x)).max() > 1e-2
    assert difference < 1e-5


@pytest.mark.parametrize("make", [sequential, functional, lambda: Subclassed(3, keras.ops.softmax)])
def test_model_is_claimed_by_keras(make):
    found = adapted(make())
    assert found.name == "keras"
    assert isinstance(found.adapter, KerasAdapter)


@on_torch
def test_keras_model_on_torch_backend_is_claimed_by_keras_not_torch():
    import torch

    model = sequential()
    assert isinstance(model, torch.nn.Module)
    assert adapted(model).name == "keras"


@on_tensorflow
def test_model_of_tf_keras_is_claimed_by_keras():
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(2)])
    assert adapted(model).name == "keras"


@pytest.mark.slow
@on_tensorflow
def test_all_tests_of_this_file_hold_on_the_torch_backend():
    command = [sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed, (\d+) skipped", done.stdout)
    assert found, done.stdout
    assert int(found[1]) >= 45
    assert int(found[2]) == 8


# What the output means


def test_probabilities_are_those_of_the_model():
    z = np.array(keras.ops.convert_to_numpy(sequential()(ROWS)), dtype=float)
    expected = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    for name in ("logits", "softmax", "log-softmax", "subclassed"):
        np.testing.assert_allclose(KerasAdapter(CLASSIFIERS[name]()).predict(ROWS), expected, atol=1e-6)
    z = np.array(keras.ops.convert_to_numpy(sequential(outputs=1)(ROWS)), dtype=float)
    expected = np.concatenate([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)
    for name in ("one logit", "one sigmoid", "subclassed, one sigmoid"):
        np.testing.assert_allclose(KerasAdapter(CLASSIFIERS[name]()).predict(ROWS), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("logits", "logits"),
        ("softmax", "probabilities"),
        ("one logit", "logits"),
        ("one sigmoid", "probabilities"),
        ("subclassed", "probabilities"),
        ("subclassed, one sigmoid", "probabilities"),
        ("model in a model", "probabilities"),
    ],
)
def test_meaning_of_the_output_is_read_off_the_last_operation_once_and_logged(name, meaning, caplog):
    adapter = KerasAdapter(CLASSIFIERS[name]())
    with caplog.at_level(logging.INFO, logger="cfproto_plugin"):
        adapter.predict(ROWS)
        adapter.predict(ROWS)
    (record,) = (record for record in caplog.records if record.levelname == "INFO")
    assert record.getMessage().endswith(f"output read as {meaning}, from its last operation")


def test_unusual_last_operation_is_judged_by_values():
    tempered = KerasAdapter(Subclassed(3, lambda z: z / 2))
    np.testing.assert_allclose(
        tempered.predict(ROWS), KerasAdapter(Subclassed(3, lambda z: keras.ops.softmax(z / 2))).predict(ROWS), atol=1e-6
    )
    mean = KerasAdapter(Subclassed(3, lambda z: (keras.ops.softmax(z) + keras.ops.softmax(z)) / 2))
    np.testing.assert_allclose(mean.predict(ROWS), KerasAdapter(sequential()).predict(ROWS), atol=1e-6)


def test_told_meaning_wins_over_the_last_operation():
    adapter = KerasAdapter(sequential(activation="softmax"), output="logits")
    assert adapter.predict(ROWS).max() < 1 / (1 + 2 / np.e) + 1e-6


def test_several_sigmoids_are_an_error():
    with pytest.raises(ModelError, match="do not sum to one"):
        KerasAdapter(sequential(activation="sigmoid")).predict(ROWS)


def test_model_made_with_a_list_of_one_input_is_called_with_a_list():
    received = []

    class Listening(keras.Model):
        def call(self, inputs, training=None, mask=None):
            received.append(type(inputs))
            return super().call(inputs, training=training, mask=mask)

    x = keras.Input((5,))
    model = Listening([x], [dense(3)(x)])
    received.clear()
    KerasAdapter(model).predict(ROWS)
    assert set(received) == {list}


# Dtypes and batches


def test_float64_and_half_precision_models_give_floats_and_pullbacks_in_the_dtype_of_the_rows():
    for policy, expected in (("float64", np.float64), ("mixed_bfloat16", np.float32), ("bfloat16", np.float32)):
        model = keras.Sequential(
            [keras.Input((5,), dtype="float32"), dense(8, "tanh", dtype=policy), dense(3, dtype=policy)]
        )
        adapter = KerasAdapter(model)
        for dtype in (np.float32, np.float64):
            y, pullback = adapter.vjp(ROWS.astype(dtype))
            assert y.dtype == expected
            assert np.abs(y.sum(axis=1) - 1).max() < 1e-6
            assert pullback(y).dtype == dtype


@on_tensorflow
def test_nothing_is_traced_again_when_the_batch_size_changes():
    traced = []

    def counted(x):
        traced.append(x.shape)
        return keras.ops.softmax(x)

    adapter = KerasAdapter(Subclassed(3, counted))
    pulled(adapter, ROWS)
    built_and_compiled = len(traced)
    for n in (1, 2, 5, 6, 0):
        pulled(adapter, ROWS[:n])
        adapter.predict(ROWS[:n].astype(np.float64))
    assert len(traced) == built_and_compiled
    assert traced[-1] == (None, 3)


def test_empty_batch_gives_no_rows():
    assert KerasAdapter(sequential()).predict(ROWS[:0]).shape == (0, 3)


def test_rows_may_change_between_vjp_and_pullback():
    adapter = KerasAdapter(sequential())
    x = ROWS.copy()
    expected = pulled(adapter, x)
    y, pullback = adapter.vjp(x)
    cotangent = cotangent_of(y)
    x[:] = 0
    np.testing.assert_allclose(pullback(cotangent), expected, atol=1e-7)


def test_weights_trained_after_the_first_call_are_used():
    model = sequential()
    adapter = KerasAdapter(model)
    before = pulled(adapter, ROWS)
    model.layers[-1].kernel.assign(-model.layers[-1].kernel)
    assert np.abs(pulled(adapter, ROWS) - before).max() > 1e-2
    np.testing.assert_allclose(pulled(adapter, ROWS), pulled(KerasAdapter(model), ROWS), atol=1e-7)


def other_head(model):
    model.pop()
    model.add(dense(3, seed=7))


def other_activation(model):
    model.layers[-2].activation = keras.activations.relu


def other_head_inside(model):
    other_head(model.layers[0])


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize(
    ("make", "change"),
    [
        (sequential, other_head),
        (functional, other_activation),
        (lambda: keras.Sequential([keras.Input((5,)), sequential()]), other_head_inside),
    ],
)
def test_model_that_changed_in_more_than_its_weights_is_compiled_again(make, change, in_session, is_used):
    model = make()
    adapter = KerasAdapter(model)
    before = adapter.predict(ROWS)
    if is_used:
        for _ in range(4):
            pulled(adapter, ROWS)
    change(model)
    expected = KerasAdapter(model)
    with adapter.session() if in_session else contextlib.nullcontext():
        gradient = pulled(adapter, ROWS)
        after = adapter.predict(ROWS)
    assert np.abs(after - before).max() > 1e-2
    np.testing.assert_allclose(after, expected.predict(ROWS), atol=1e-6)
    np.testing.assert_allclose(gradient, pulled(expected, ROWS), atol=1e-6)


@on_tensorflow
def test_attribute_that_call_reads_is_followed_and_predictions_notice_in_a_session():
    model = Subclassed(3, keras.ops.softmax)
    adapter = KerasAdapter(model)
    with adapter.session():
        before = adapter.predict(ROWS)
        model.last = lambda z: keras.ops.softmax(2 * z)
        after = adapter.predict(ROWS)
    assert np.abs(after - before).max() > 1e-2
    np.testing.assert_allclose(after, model(ROWS), atol=1e-6)


@on_tensorflow
def test_meaning_of_the_output_is_read_again_after_a_change():
    model = sequential(outputs=1, activation="sigmoid")
    adapter = KerasAdapter(model)
    expected = adapter.predict(ROWS)
    model.layers[-1].activation = keras.activations.linear
    np.testing.assert_allclose(adapter.predict(ROWS), expected, atol=1e-6)


@on_tensorflow
def test_nothing_is_traced_again_when_weights_are_set_or_the_model_predicts():
    traced = []

    def counted(x):
        traced.append(x.shape)
        return keras.ops.softmax(x)

    model = Subclassed(3, counted)
    adapter = KerasAdapter(model)
    pulled(adapter, ROWS)
    model.set_weights([-weight for weight in model.get_weights()])
    known = len(traced)
    before = adapter.predict(ROWS)
    assert len(traced) == known
    expected = np.asarray(model(ROWS))  # calls it
    np.testing.assert_allclose(before, expected, atol=1e-6)
    adapter.predict(ROWS)
    pulled(adapter, ROWS)
    assert len(traced) == known + 1


@on_tensorflow
def test_explainer_notices_that_the_head_of_the_model_was_replaced_after_fit():
    from cfproto_plugin import CounterfactualExplainer, SearchConfig

    rows = np.random.default_rng(3).standard_normal((60, 5)).astype(np.float32)
    model = sequential(outputs=2, activation="softmax")
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(rows)
    kernel, bias = model.layers[-1].get_weights()
    model.pop()
    model.add(dense(2, "softmax"))
    model.layers[-1].set_weights([kernel[:, ::-1], bias[::-1]])
    with pytest.raises(ModelError, match=r"the model changed after explainer\.fit"):
        explainer.explain(rows[:5])
    answers = explainer.fit(rows).explain(rows[:5])
    classes = np.asarray(model(np.asarray(answers.counterfactual))).argmax(axis=1)
    assert answers.found.all()
    assert np.array_equal(classes, answers.counterfactual_class)


# The model and the process stay as they were


def test_weights_metrics_and_trainability_are_untouched():
    model = noisy()
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(ROWS, np.arange(6) % 2, epochs=1, verbose=0)
    model.layers[0].trainable = False
    weights = [weight.copy() for weight in model.get_weights()]
    metrics, trainable = model.get_metrics_result(), [layer.trainable for layer in model.layers]
    adapter = KerasAdapter(model)
    adapter.predict(ROWS)
    pulled(adapter, ROWS)
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), weights, strict=True))
    assert {name: float(value) for name, value in model.get_metrics_result().items()} == {
        name: float(value) for name, value in metrics.items()
    }
    assert [layer.trainable for layer in model.layers] == trainable


@on_tensorflow
def test_no_global_switch_is_touched():
    import tensorflow as tf

    def switches():
        return (
            tf.executing_eagerly(),
            tf.config.functions_run_eagerly(),
            keras.config.floatx(),
            keras.config.dtype_policy().name,
        )

    before = switches()
    pulled(KerasAdapter(sequential()), ROWS)
    assert switches() == before


@pytest.mark.parametrize("make", [noisy, lambda: Subclassed(3, keras.ops.softmax)])
def test_four_threads_get_the_answers_of_one(make):
    batches = [RNG.standard_normal((n, 5)) for n in (1, 7, 20, 3)] * 5
    adapter = KerasAdapter(make())
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: pulled(adapter, x), batches))
    for x, together in zip(batches, got, strict=True):
        np.testing.assert_allclose(together, pulled(adapter, x), atol=1e-6)
    assert len(adapter._network._model.weights) == len(make_built(make).weights)


def test_threads_that_meet_a_model_never_called_build_it_once():
    built, together = [], threading.Barrier(4, timeout=20)

    class Slow(layers.Layer):
        def build(self, shape):
            built.append(shape)
            time.sleep(0.2)
            self.scale = self.add_weight(shape=(3,), initializer="ones")

        def call(self, x):
            return x * self.scale

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.slow = Slow()

        def call(self, x):
            return self.slow(x[:, :3])

    adapter = KerasAdapter(Model())

    def predict(x):
        together.wait()
        return adapter.predict(x)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(predict, [ROWS] * 4))
    assert len(built) == 1
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def make_built(make):
    model = make()
    model(ROWS)
    return model


def test_adapter_survives_pickling():
    adapter = KerasAdapter(sequential())
    expected = adapter.predict(ROWS)
    again = pickle.loads(pickle.dumps(adapter))  # noqa: S301 our own bytes
    np.testing.assert_allclose(again.predict(ROWS), expected, atol=1e-7)


# Errors


def test_rows_of_the_wrong_shape_are_an_error_that_names_shape_and_model():
    model = sequential()
    with pytest.raises(ModelError, match=rf"{model.name} failed on rows of shape \(6, 2\)"):
        KerasAdapter(model).predict(ROWS[:, :2])


def test_several_inputs_or_outputs_are_an_error():
    a, b = keras.Input((5,)), keras.Input((5,))
    with pytest.raises(ModelError, match="has 2 inputs; expected one"):
        KerasAdapter(keras.Model([a, b], layers.add([a, b])))
    with pytest.raises(ModelError, match="has 2 outputs; expected one"):
        KerasAdapter(keras.Model(a, [dense(2)(a), dense(3)(a)]))


@pytest.mark.parametrize("function", [lambda x: (x, x + 1), lambda x: {"logits": x, "other": x + 1}])
def test_logits_and_the_first_of_several_outputs_are_understood(function):
    np.testing.assert_array_equal(
        KerasAdapter(Returning(function)).predict(ROWS), KerasAdapter(Returning(lambda x: x)).predict(ROWS)
    )


@pytest.mark.parametrize(
    ("function", "part"),
    [(lambda x: {"scores": x}, r"model\(x\)\['scores'\]"), (lambda x: keras.ops.argmax(x, 1), "")],
)
def test_output_without_a_floating_tensor_is_an_error_that_says_to_wrap_it(function, part):
    with pytest.raises(ModelError, match=rf"returned (dict|int64|int32|torch.int\d+); expected.*Wrap.*{part}"):
        KerasAdapter(Returning(function)).predict(ROWS)


def test_model_without_a_gradient_is_an_error_that_offers_a_function():
    adapter = KerasAdapter(Returning(keras.ops.stop_gradient))
    adapter.predict(ROWS)
    with pytest.raises(ModelError, match=r"no gradient.*pass a function"):
        pulled(adapter, ROWS)


def test_other_backends_are_an_error_that_offers_a_function(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ModelError, match=r"backend 'jax'; expected 'tensorflow' or 'torch'.*lambda x"):
        KerasAdapter(sequential())
