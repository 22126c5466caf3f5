"""What models and functions may return: understood, or refused at `fit` in words."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cfproto_plugin import CounterfactualExplainer, adapt
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import softmax

X = np.random.default_rng(0).normal(size=(80, 4))
ROWS = X[:6]


def logits(x):
    x = np.asarray(x, dtype=float)
    return np.stack([x[:, 0] - x[:, 1], 2 * x[:, 2], -x[:, 3]], axis=1)


def probabilities(x):
    return softmax(logits(x))


def decided(x):
    return logits(x).argmax(axis=1)


def one_hot(x):
    return np.eye(3)[decided(x)]


def explained(function):
    e = CounterfactualExplainer(function).fit(X).explain(ROWS)
    assert e.found.all()
    assert np.array_equal(decided(e.counterfactual), e.counterfactual_class)
    return e


UNDERSTOOD = {
    "integers": lambda x: one_hot(x).astype(int),
    "booleans": lambda x: one_hot(x).astype(bool),
    "lists": lambda x: probabilities(x).tolist(),
    "half precision": lambda x: one_hot(x).astype(np.float16),
    "objects": lambda x: probabilities(x).astype(object),
    "sparse": lambda x: csr_matrix(one_hot(x)),
    "masked, nothing missing": lambda x: np.ma.masked_invalid(probabilities(x)),
    "attribute": lambda x: SimpleNamespace(logits=logits(x)),
    "key": lambda x: {"logits": logits(x), "hidden": None},
    "tuple": lambda x: (probabilities(x), None),
}


@pytest.mark.parametrize("kind", UNDERSTOOD)
def test_a_function_may_return(kind):
    e = explained(UNDERSTOOD[kind])
    if kind in {"attribute", "key", "lists", "tuple"}:
        np.testing.assert_allclose(e.counterfactual_proba, probabilities(e.counterfactual))


def test_a_function_may_return_a_frame():
    pd = pytest.importorskip("pandas")
    explained(lambda x: pd.DataFrame(probabilities(x), columns=list("abc")))


@pytest.mark.needs("torch")
def test_a_function_may_return_a_tensor_that_has_a_gradient():
    import torch

    explained(lambda x: torch.tensor(probabilities(x), requires_grad=True))


REFUSED = {
    "None": (lambda _x: None, "NoneType"),
    "a word": (lambda _x: "yes", "str"),
    "names": (lambda x: np.array(["a", "b", "c"])[decided(x)], "Labels are not enough"),
    "names as objects": (lambda x: np.array(["a", "b", "c"], dtype=object)[decided(x)], "Labels are not enough"),
    "labels": (decided, r"shape \(80,\)"),
    "a number": (lambda _x: 0.5, r"shape \(\)"),
    "another dictionary": (lambda x: {"p": probabilities(x)}, "dict"),
    "masked values": (lambda x: np.ma.masked_less(probabilities(x), 0.1), "masked values"),
    "complex numbers": (lambda x: probabilities(x) + 0j, "complex128"),
    "rows of different length": (lambda x: [[0.5] * (1 + i % 2) for i in range(len(x))], "list"),
    "logits": (logits, r"for row \d+ of the training data; expected probabilities.*softmax"),
    "nothing but NaN": (lambda x: probabilities(x) * np.nan, "for row 0 of the training data.*Look for missing values"),
    "percentages": (lambda x: 100 * probabilities(x), r"for row 0 of the training data.*percentages by 100"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_function_is_refused_at_fit_that_returns(kind):
    function, words = REFUSED[kind]
    with pytest.raises(ModelError, match=words):
        CounterfactualExplainer(function).fit(X)


def test_independent_scores_from_0_to_1_are_taken_as_they_are_and_said_to_be(caplog):
    with caplog.at_level(logging.WARNING):
        explainer = CounterfactualExplainer(lambda x: 1 / (1 + np.exp(-logits(x)))).fit(X)
    assert sum("do not sum to one" in record.getMessage() for record in caplog.records) == 1
    e = explainer.explain(ROWS)
    assert e.found.all()
    assert np.array_equal(decided(e.counterfactual), e.counterfactual_class)


def test_an_adapter_that_returns_logits_is_refused_too():
    class Raw:
        def predict(self, x):
            return logits(x)

    with pytest.raises(ModelError, match="softmax"):
        CounterfactualExplainer(Raw()).fit(X)


def autoencoder_of(columns, value=0.0):
    return lambda x: np.full((len(x), columns), value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"autoencoder": autoencoder_of(3)}, r"autoencoder returned shape \(4, 3\) for rows of shape \(4, 4\)"),
        ({"autoencoder": autoencoder_of(4, np.nan)}, "autoencoder returned .*nan.* for row 0"),
        ({"encoder": autoencoder_of(2, np.nan)}, "encoder returned .*nan.* for row 0 of the training data"),
    ],
)
def test_an_encoder_or_autoencoder_that_cannot_work_is_refused_at_fit(options, words):
    with pytest.raises(ModelError, match=words):
        CounterfactualExplainer(probabilities, **options).fit(X)


torch_only = pytest.mark.needs("torch")


def torch_module(head):
    import torch

    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x):
            return head(self.layer(x))

    return Net()


@torch_only
@pytest.mark.parametrize(
    "head",
    [
        lambda z: SimpleNamespace(logits=z, loss=None),
        lambda z: {"logits": z},
        lambda z: (z, None),
        lambda z: [z],
    ],
)
def test_outputs_of_torch_modules_in_the_manner_of_hugging_face_are_understood(head):
    import torch

    model = torch_module(head)
    x = X.astype(np.float32)
    e = CounterfactualExplainer(model).fit(x).explain(x[:6])
    assert e.found.all()
    expected = torch.softmax(model.layer(torch.tensor(e.counterfactual)), dim=1).detach().numpy()
    np.testing.assert_allclose(e.counterfactual_proba, expected, atol=1e-6)


@torch_only
@pytest.mark.parametrize("around", ["no_grad", "inference_mode", "inside"])
def test_a_torch_module_without_gradients_is_explained_on_tables(around, caplog):
    import torch

    model = torch_module(torch.no_grad()(lambda z: z.softmax(dim=1)) if around == "inside" else lambda z: z)
    if around == "inside":
        forward = model.forward
        model.forward = torch.no_grad()(forward)
    context = torch.inference_mode if around == "inference_mode" else torch.no_grad
    with context(), caplog.at_level(logging.WARNING):
        e = CounterfactualExplainer(model).fit(X).explain(ROWS)
    assert e.found.all()
    assert ".." not in caplog.text


@torch_only
def test_a_module_on_the_meta_device_is_named():
    import torch

    with pytest.raises(ModelError, match="meta device, where tensors have no values"):
        CounterfactualExplainer(torch.nn.Linear(4, 2, device="meta")).fit(X)


@torch_only
def test_one_output_that_is_no_probability_is_named_unless_output_says_what_it_is(caplog):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    with torch.no_grad():
        model.weight *= 10
    for given, warnings in ((adapt(model, output="logits"), 0), (model, 1)):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert CounterfactualExplainer(given).fit(X).explain(ROWS).found.all()
        assert sum("what a regressor predicts" in record.getMessage() for record in caplog.records) == warnings


def _child(explainer, queue):
    try:
        queue.put(explainer.explain(ROWS).found.all())
    except Exception as error:  # noqa: BLE001 whatever it is, the parent looks at it
        queue.put(f"{type(error).__name__}: {error}")


@pytest.mark.slow
@pytest.mark.needs("tensorflow")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_keras_model_in_a_forked_process_says_what_to_do_instead_of_hanging():
    import multiprocessing

    import keras

    if keras.config.backend() != "tensorflow":
        pytest.skip("about TensorFlow")
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    explainer = CounterfactualExplainer(model).fit(X)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_child, args=(explainer, queue))
    process.start()
    try:
        said = queue.get(timeout=60)
    finally:
        process.kill()
        process.join()
    assert "ModelError" in said
    assert "forked" in said
    assert "spawn" in said


def test_the_kit_finds_an_adapter_that_reads_frames_by_position():
    pytest.importorskip("pandas")
    from cfproto_plugin.testing import check_adapter

    class ByPosition:
        accepts_frames = True
        feature_names = ("a", "b", "c", "d")

        def predict(self, x):
            return probabilities(np.asarray(x))

    with pytest.raises(AssertionError, match="columns reversed differs"):
        check_adapter(ByPosition(), X)


def test_an_adapter_that_names_a_class_twice_is_refused():
    class Twice:
        classes = ("a", "a")

        def predict(self, x):
            p = 1 / (1 + np.exp(-x[:, 0]))
            return np.stack([1 - p, p], axis=1)

    with pytest.raises(ModelError, match="has the label 'a' twice"):
        CounterfactualExplainer(Twice()).fit(np.random.default_rng(0).normal(size=(50, 2)))


def test_a_function_that_returns_the_same_array_each_time_is_explained_like_any_other():
    rows = np.random.default_rng(0).normal(size=(200, 4))
    buffer = np.empty((100_000, 2))

    def fresh(x):
        p = 1 / (1 + np.exp(-x[:, 0] - x[:, 1]))
        return np.column_stack([p, 1 - p])

    def reused(x):
        buffer[: len(x)] = fresh(x)
        return buffer[: len(x)]

    one, other = (CounterfactualExplainer(model).fit(rows).explain(rows[:20]) for model in (fresh, reused))
    assert other.status.tolist() == ["found"] * 20
    assert np.array_equal(one.counterfactual, other.counterfactual)
    assert np.array_equal(one.counterfactual_proba, other.counterfactual_proba)
