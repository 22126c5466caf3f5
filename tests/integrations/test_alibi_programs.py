"""Four programs in the manner of alibi's documentation run with nothing but their import changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cfproto_plugin.datasets import load_adult, load_mnist

pytestmark = [pytest.mark.slow, pytest.mark.needs("keras")]
GOLDEN = Path(__file__).parents[1] / "golden"
CATEGORICAL = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"]
NUMERIC = ["age", "capital-gain", "capital-loss", "hours-per-week"]

MNIST = """
from keras import Input, Model, Sequential
from keras.layers import Conv2D, Dense, Flatten, MaxPooling2D, UpSampling2D
from alibi.explainers import CounterfactualProto

cnn = Sequential([
    Input((28, 28, 1)),
    Conv2D(64, 2, padding="same", activation="relu"), MaxPooling2D(2),
    Conv2D(32, 2, padding="same", activation="relu"), MaxPooling2D(2),
    Flatten(), Dense(256, activation="relu"), Dense(10, activation="softmax"),
])
cnn.set_weights(cnn_weights)
enc = Sequential([
    Input((28, 28, 1)), Conv2D(16, 3, padding="same", activation="relu"),
    Conv2D(16, 3, padding="same", activation="relu"), MaxPooling2D(2), Conv2D(1, 3, padding="same"),
])
dec = Sequential([
    Input((14, 14, 1)), Conv2D(16, 3, padding="same", activation="relu"), UpSampling2D(2),
    Conv2D(16, 3, padding="same", activation="relu"), Conv2D(1, 3, padding="same"),
])
image = Input((28, 28, 1))
ae = Model(image, dec(enc(image)))
ae.set_weights(ae_weights)

X = x_test[2:3]
shape = (1,) + x_train.shape[1:]
cf = CounterfactualProto(cnn, shape, beta=.001, gamma=100., theta=100., ae_model=ae, enc_model=enc, max_iterations=200,
                         feature_range=(-.5, .5), c_init=10., c_steps=2, learning_rate_init=1e-3, clip=(-1000., 1000.))
cf.fit(x_train)
explanation = cf.explain(X, k=5, k_type="mean")
pred, proto = explanation.cf["class"], explanation.id_proto
proba = explanation.cf["proba"][0]
picture = explanation.cf["X"].reshape(28, 28)
noisy = [cf_.reshape(28, 28) for found in explanation.all.values() for cf_ in found]
"""

TABLE = """
from keras import Input, Sequential
from keras.layers import Dense
from alibi.explainers import CounterfactualProto

nn = Sequential([Input((30,)), Dense(40, activation="relu"), Dense(40, activation="relu"),
                 Dense(2, activation="softmax")])
nn.set_weights(weights)

X = x_test[1].reshape((1,) + x_test[1].shape)
cf = CounterfactualProto(nn, X.shape, use_kdtree=True, theta=20., beta=.01, max_iterations=500,
                         feature_range=(feature_min, feature_max), c_init=1., c_steps=5)
cf.fit(x_train)
explanation = cf.explain(X, k=2)
original, counterfactual = explanation.orig_class, explanation.cf["class"]
delta = explanation.cf["X"] - X

predict_fn = lambda x: nn.predict(x, verbose=0)  # the same as a black box, one value of c
black_box = CounterfactualProto(predict_fn, X.shape, use_kdtree=True, theta=20., beta=.01, max_iterations=40,
                                feature_range=(feature_min, feature_max), c_init=1., c_steps=1)
black_box.fit(x_train)
found = black_box.explain(X, k=2)
"""

ORDINAL = """
import numpy as np
from keras import Input, Model
from keras.layers import Concatenate, Dense, Embedding, Reshape
from alibi.explainers import CounterfactualProto

cat_vars_ord = {i: len(np.unique(X_train[:, i])) for i in range(7)}
inputs = Input((11,))
parts = [Reshape((4,))(Embedding(n, 4)(inputs[:, i:i + 1])) for i, n in cat_vars_ord.items()]
hidden = Dense(32, activation="relu")(Concatenate()(parts + [inputs[:, 7:]]))
nn = Model(inputs, Dense(2, activation="softmax")(hidden))
nn.compile("adam", "sparse_categorical_crossentropy")
nn.fit(X_train, y_train, batch_size=256, epochs=1, verbose=0)

X = X_test[0].reshape((1,) + X_test[0].shape)
rng = (-1., 1.)
rng_shape = (1,) + X_train.shape[1:]
feature_range = ((np.ones(rng_shape) * rng[0]).astype(np.float32), (np.ones(rng_shape) * rng[1]).astype(np.float32))
cf = CounterfactualProto(nn, X.shape, beta=.01, cat_vars=cat_vars_ord, max_iterations=200,
                         feature_range=feature_range, c_init=1., c_steps=3, eps=(.01, .01))
cf.fit(X_train, d_type="abdm", disc_perc=[25, 50, 75])
explanation = cf.explain(X)
"""

ONE_HOT = """
import numpy as np
from keras import Input, Sequential
from keras.layers import Dense
from alibi.explainers import CounterfactualProto
from alibi.utils import ohe_to_ord, ord_to_ohe

cat_vars_ord = {i: len(np.unique(X_train[:, i])) for i in range(7)}
X_train_ohe, cat_vars_ohe = ord_to_ohe(X_train, cat_vars_ord)
X_test_ohe = ord_to_ohe(X_test, cat_vars_ord)[0]
nn = Sequential([Input(X_train_ohe.shape[1:]), Dense(32, activation="relu"), Dense(2, activation="softmax")])
nn.compile("adam", "sparse_categorical_crossentropy")
nn.fit(X_train_ohe, y_train, batch_size=256, epochs=1, verbose=0)

X = X_test_ohe[0].reshape((1,) + X_test_ohe[0].shape)
rng_shape = (1,) + X_train.shape[1:]
feature_range = ((np.ones(rng_shape) * -1).astype(np.float32), np.ones(rng_shape).astype(np.float32))
cf = CounterfactualProto(nn, X.shape, beta=.01, cat_vars=cat_vars_ohe, ohe=True, max_iterations=200, theta=10.,
                         use_kdtree=True, feature_range=feature_range, c_init=1., c_steps=3)
cf.fit(X_train_ohe, d_type="abdm", disc_perc=[25, 50, 75])
explanation = cf.explain(X)
X_cf_ord = None if explanation.cf is None else ohe_to_ord(explanation.cf["X"], cat_vars_ohe)[0]
"""


def run(program, **names):
    changed = program.replace("alibi.explainers", "cfproto_plugin.integrations.alibi")
    changed = changed.replace("alibi.utils", "cfproto_plugin.integrations.alibi")
    exec(compile(changed, "program", "exec"), names)  # noqa: S102 the programs above
    return names


def cost(x, counterfactual, beta):
    delta = (counterfactual - x).astype(float)
    return beta * np.abs(delta).sum() + np.square(delta).sum()


@pytest.mark.data
def test_images_with_encoder_and_autoencoder_run_and_give_the_reference_s_counterfactual():
    with np.load(GOLDEN / "mnist_encoder.npz") as file:
        arrays = {name: file[name] for name in file}
    found = run(
        MNIST,
        cnn_weights=[arrays[f"w_cnn_{number}"] for number in range(8)],
        ae_weights=[arrays[f"w_ae_{number}"] for number in range(12)],
        x_train=load_mnist("train")[0][: int(arrays["n_train"])],
        x_test=load_mnist("test")[0][arrays["rows"]],
    )
    expected, image = arrays["cf_D"][2], found["X"][0]
    assert found["proto"] == arrays["proto_class_D"][2]
    assert found["proba"].argmax() == found["pred"] != found["explanation"].orig_class
    assert cost(image, found["explanation"].cf["X"][0], 0.001) == pytest.approx(cost(image, expected, 0.001), rel=1e-4)
    assert found["picture"].shape == (28, 28)
    assert len(found["noisy"]) >= 1


def test_a_table_of_numbers_runs_and_gives_the_reference_s_counterfactual(golden):
    found = run(
        TABLE,
        weights=[part for layer in golden.layers for part in layer],
        x_train=golden.x_train,
        x_test=golden.x,
        feature_min=golden.arrays["feature_min"],
        feature_max=golden.arrays["feature_max"],
    )
    expected = golden.arrays["cf_B"][1]
    assert found["original"] != found["counterfactual"]
    assert cost(found["X"], found["explanation"].cf["X"], 0.01) == pytest.approx(
        cost(found["X"], expected, 0.01), rel=0.005
    )
    assert found["explanation"].id_proto == golden.arrays["proto_class_B"][1]
    assert found["found"].cf["class"] == found["counterfactual"]
    assert found["found"].cf["grads_num"].shape == (1, 30)


@pytest.fixture(scope="module")
def adult():
    """Complete rows of Adult: seven columns of codes, then four of numbers scaled to [-1, 1]; labels 0 and 1."""
    frame, label = load_adult(split="train")
    complete = (frame != "?").all(axis=1)
    frame, label = frame[complete], (label[complete] == ">50K").to_numpy().astype(int)
    codes = [np.unique(frame[name], return_inverse=True)[1] for name in CATEGORICAL]
    numbers = frame[NUMERIC].to_numpy(float)
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    rows = np.column_stack([*codes, 2 * (numbers - low) / (high - low) - 1]).astype(np.float32)
    assert rows.shape == (30162, 11)
    return {"X_train": rows, "y_train": label, "X_test": rows[100:110]}


def assert_reference_embedding(numbers):
    """The numbers of the categories are the reference's, up to sign."""
    with np.load(GOLDEN / "adult_distances.npz") as file:
        for column, name in enumerate(CATEGORICAL):
            expected = file[f"abdm_embedding_{name}"]
            off = min(np.abs(numbers[column] - sign * expected).max() for sign in (1, -1))
            assert off < 1e-3, name


@pytest.mark.data
def test_a_table_with_codes_runs_with_the_reference_s_numbers_of_categories(adult):
    found = run(ORDINAL, **adult)
    assert_reference_embedding(found["cf"].d_abs)
    explanation, sizes = found["explanation"], found["cat_vars_ord"]
    x = explanation.cf["X"]
    assert found["nn"].predict(x, verbose=0).argmax() == explanation.cf["class"] != explanation.orig_class
    for column, size in sizes.items():
        assert x[0, column] in range(size)
    assert (np.abs(x[0, 7:]) <= 1).all()


@pytest.mark.data
def test_a_table_with_one_hot_columns_runs_with_the_reference_s_numbers_of_categories(adult):
    found = run(ONE_HOT, **adult)
    assert_reference_embedding(found["cf"].d_abs)
    explanation = found["explanation"]
    x = explanation.cf["X"]
    assert found["nn"].predict(x, verbose=0).argmax() == explanation.cf["class"] != explanation.orig_class
    assert explanation.id_proto == explanation.cf["class"]
    for first, size in found["cat_vars_ohe"].items():
        assert sorted(set(x[0, first : first + size])) == [0, 1]
        assert x[0, first : first + size].sum() == 1
    assert found["X_cf_ord"].shape == (1, 11)
