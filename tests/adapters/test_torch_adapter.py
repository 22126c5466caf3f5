"""The PyTorch adapter: right numbers, and a module that does not notice it was explained."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from cfproto_adapters.torch_adapter import TorchAdapter
from cfproto_adapters.torch_parts import backward
from torch import nn
from torch.utils.checkpoint import checkpoint

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.plugins import adapted
from cfproto_plugin.testing import check_adapter

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((6, 5))
IMAGES = RNG.standard_normal((4, 1, 8, 8)).astype(np.float32)


def mlp(*last: nn.Module, outputs: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, outputs), *last)


def conv() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3))


def noisy() -> nn.Sequential:
    """Dropout and batch normalisation, in training mode, with statistics worth keeping."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 2))
    model(torch.randn(32, 5))
    return model.train()


class Applied(nn.Module):
    """A module that does something to the output of another."""

    def __init__(self, model, function):
        super().__init__()
        self.model = model
        self.function = function

    def forward(self, x):
        return self.function(self.model(x))


class Opaque(torch.autograd.Function):
    """The identity, hiding which operation made its input."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def modes(model):
    return [module.training for module in model.modules()]


def pulled(adapter, x):
    y, pullback = adapter.vjp(x)
    return pullback(cotangent_of(y))


def cotangent_of(y):
    return np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)


CLASSIFIERS = {
    "logits": mlp(),
    "softmax": mlp(nn.Softmax(dim=1)),
    "log-softmax": mlp(nn.LogSoftmax(dim=1)),
    "functional softmax": Applied(mlp(), lambda z: torch.softmax(z, dim=1)),
    "one logit": mlp(outputs=1),
    "one sigmoid": mlp(nn.Sigmoid(), outputs=1),
    "one squeezed sigmoid": Applied(mlp(outputs=1), lambda z: torch.sigmoid(z).squeeze()),
    "training mode": noisy(),
    "no parameters": nn.Softmax(dim=1),
    "works in place": nn.Sequential(nn.ELU(inplace=True), mlp()),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_conforms(name):
    check_adapter(TorchAdapter(CLASSIFIERS[name]), ROWS.astype(np.float32))


def test_convolutional_classifier_conforms():
    check_adapter(TorchAdapter(conv()), IMAGES)


def test_encoder_and_autoencoder_conform_and_keep_their_shapes():
    encoder = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh())
    autoencoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 64), nn.Unflatten(1, (1, 8, 8)))
    for model, shape in ((encoder, (4, 2, 6, 6)), (autoencoder, (4, 1, 8, 8))):
        adapter = TorchAdapter(model, role="transform")
        check_adapter(adapter, IMAGES, role="transform")
        assert adapter.predict(IMAGES).shape == shape


def test_output_has_the_dtype_of_the_model_and_the_pullback_that_of_the_rows():
    for model_dtype, expected in (
        (torch.float64, np.float64),
        (torch.float32, np.float32),
        (torch.bfloat16, np.float32),
    ):
        adapter = TorchAdapter(mlp().to(model_dtype))
        for dtype in (np.float32, np.float64):
            y, pullback = adapter.vjp(ROWS.astype(dtype))
            assert y.dtype == adapter.predict(ROWS.astype(dtype)).dtype == expected
            assert pullback(y).dtype == dtype


def test_float64_module_is_differentiated_in_float64():
    adapter = TorchAdapter(mlp().double())
    direction = RNG.standard_normal(ROWS.shape)
    up, down = (adapter.predict(ROWS + h * direction) for h in (1e-6, -1e-6))
    _, pullback = adapter.vjp(ROWS)
    slope = ((up - down) / 2e-6)[:, 0]
    np.testing.assert_allclose((pullback(np.eye(3)[[0] * 6]) * direction).sum(axis=1), slope, rtol=1e-7, atol=1e-9)


def test_module_is_claimed_by_torch():
    found = adapted(mlp())
    assert found.name == "torch"
    assert isinstance(found.adapter, TorchAdapter)


def test_plugins_of_networks_load_without_importing_a_framework():
    code = (
        "import sys, cfproto_adapters.torch_adapter as t, cfproto_adapters.keras_adapter as k;"
        "t.cfproto_adapters(), k.cfproto_adapters();"
        "sys.exit(', '.join({'torch', 'keras', 'tensorflow', 'sklearn'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert done.returncode == 0


# What the output means


@pytest.mark.parametrize(
    ("model", "meaning", "source"),
    [
        (mlp(), "logits", "last operation"),
        (mlp(nn.Softmax(dim=1)), "probabilities", "last operation"),
        (mlp(nn.LogSoftmax(dim=1)), "logits", "last operation"),
        (Applied(mlp(outputs=1), torch.sigmoid), "probabilities", "last operation"),
        (Applied(mlp(), lambda z: Opaque.apply(z.softmax(1))), "probabilities", "values"),
        (Applied(mlp(), Opaque.apply), "logits", "values"),
        (Applied(mlp(outputs=1), lambda z: Opaque.apply(z.sigmoid())), "probabilities", "values"),
        (Applied(mlp(outputs=1), lambda z: Opaque.apply(9 * z)), "logits", "values"),
        (Applied(mlp(outputs=1), lambda z: Opaque.apply(z.abs() + 1)), "logits", "values"),
    ],
)
def test_meaning_of_the_output_is_found_once_and_logged(model, meaning, source, caplog):
    adapter = TorchAdapter(model)
    with caplog.at_level(logging.INFO, logger="cfproto_plugin"):
        first = adapter.predict(ROWS)
        adapter.predict(ROWS)
    (record,) = (record for record in caplog.records if record.levelname == "INFO")
    assert meaning in record.getMessage()
    assert source in record.getMessage()
    told = TorchAdapter(model, output=meaning).predict(ROWS)
    np.testing.assert_array_equal(first, told)


def test_probabilities_are_those_of_the_model():
    z = mlp()(torch.tensor(ROWS, dtype=torch.float32)).detach().numpy().astype(float)
    expected = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    for name in ("logits", "softmax", "log-softmax", "functional softmax"):
        np.testing.assert_allclose(TorchAdapter(CLASSIFIERS[name]).predict(ROWS), expected, atol=1e-6)
    z = mlp(outputs=1)(torch.tensor(ROWS, dtype=torch.float32)).detach().numpy().astype(float)
    expected = np.concatenate([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)
    for name in ("one logit", "one sigmoid", "one squeezed sigmoid"):
        np.testing.assert_allclose(TorchAdapter(CLASSIFIERS[name]).predict(ROWS), expected, atol=1e-6)


def test_one_row_of_logits_that_looks_like_probabilities_by_luck_is_read_as_logits():
    lucky = np.array([[0.25, 0.75]], dtype=np.float32)
    adapter = TorchAdapter(Applied(nn.Identity(), Opaque.apply))
    assert adapter.predict(lucky)[0, 1] == pytest.approx(1 / (1 + np.exp(-0.5)), abs=1e-6)


def test_one_linear_output_inside_zero_and_one_is_read_as_a_logit():
    model = nn.Linear(5, 1)
    nn.init.zeros_(model.weight)
    nn.init.constant_(model.bias, 0.5)
    assert TorchAdapter(model).predict(ROWS)[0, 1] == pytest.approx(1 / (1 + np.exp(-0.5)), abs=1e-6)


def test_row_without_numbers_does_not_decide_what_the_output_means():
    missing = ROWS.copy()
    missing[0] = np.nan
    adapter = TorchAdapter(mlp(nn.Softmax(dim=1)))
    assert np.isnan(adapter.predict(missing)[0]).all()
    assert np.isfinite(adapter.predict(missing)[1:]).all()


@pytest.mark.parametrize(("model", "output"), [(mlp(), "probabilities"), (mlp(nn.Sigmoid()), "auto")])
def test_announced_probabilities_that_are_none_are_an_error(model, output):
    with pytest.raises(ModelError, match=r"do not sum to one.*output=\"logits\""):
        TorchAdapter(model, output=output).predict(ROWS)


def test_unknown_meaning_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match=r"output='logit'.*'auto', 'logits', 'probabilities'"):
        TorchAdapter(mlp(), output="logit")


# The module stays as it was


def test_parameters_gradients_buffers_and_modes_are_untouched():
    model = noisy()
    model[1].eval()  # a user's frozen batch normalisation
    model[0].weight.requires_grad_(False)
    model[4].weight.grad = torch.full_like(model[4].weight, 3.0)
    before, old_modes = copy.deepcopy(model.state_dict()), modes(model)
    adapter = TorchAdapter(model)
    adapter.predict(ROWS)
    pulled(adapter, ROWS)
    assert modes(model) == old_modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [parameter.requires_grad for parameter in model.parameters()] == [False, True, True, True, True, True]
    assert [name for name, parameter in model.named_parameters() if parameter.grad is not None] == ["4.weight"]
    assert (model[4].weight.grad == 3).all()


def test_modes_are_restored_after_an_exception():
    model = noisy()
    adapter = TorchAdapter(model)
    for call in (adapter.predict, adapter.vjp):
        with pytest.raises(ModelError):
            call(ROWS[:, :2])
        assert all(modes(model))


def test_rows_may_change_between_vjp_and_pullback_and_so_may_the_output():
    for model in (mlp(), mlp(nn.Softmax(dim=1))):
        adapter = TorchAdapter(model)
        x = ROWS.astype(np.float32)
        expected = pulled(adapter, x)
        y, pullback = adapter.vjp(x)
        cotangent = cotangent_of(y)
        x[:] = 0
        np.testing.assert_allclose(pullback(cotangent), expected, atol=1e-7)
    scores, pullback = TorchAdapter(mlp(nn.Sigmoid()), role="transform").vjp(ROWS)
    before = pullback(np.ones_like(scores))
    scores[:] = 0
    np.testing.assert_array_equal(pullback(np.ones_like(scores)), before)


def test_gradients_are_those_of_autograds_public_function_to_the_bit(monkeypatch):
    scaled = Applied(mlp(), lambda z: z * z.norm(dim=1, keepdim=True) + z[:, :1])
    for model, x in ((mlp(), ROWS), (conv(), IMAGES), (scaled, ROWS)):
        fast = pulled(TorchAdapter(model, output="logits"), x)
        with monkeypatch.context() as patched:
            patched.setattr(backward, "_engine", lambda: None)
            np.testing.assert_array_equal(pulled(TorchAdapter(model, output="logits"), x), fast)
    assert backward._engine() is not None


def test_an_engine_that_takes_something_else_is_not_used(monkeypatch):
    def refuses(*_, **__):
        raise TypeError("run_backward takes other arguments")

    monkeypatch.setattr(backward, "_run", refuses)
    assert backward._engine.__wrapped__() is None


def test_cotangent_of_another_shape_is_refused():
    _, pullback = TorchAdapter(mlp(), role="transform").vjp(ROWS)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        pullback(np.ones((1, 3), np.float32))


def test_module_that_works_in_place_is_asked_once_more_and_then_given_copies():
    seen = []

    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = mlp()

        def forward(self, x):
            seen.append(x.is_leaf)
            with torch.no_grad():
                x.add_(1)
            return self.model(x.mul_(2))

    adapter = TorchAdapter(InPlace(), output="logits")
    expected = pulled(TorchAdapter(mlp(), output="logits"), 2 * (ROWS.astype(np.float32) + 1))
    for _ in range(2):
        np.testing.assert_allclose(pulled(adapter, ROWS.astype(np.float32)), 2 * expected, rtol=1e-5)
    assert seen == [True, False, False]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_gradients_work_inside_contexts_that_switch_them_off(context):
    model = mlp()
    expected = pulled(TorchAdapter(model), ROWS)
    with context():
        np.testing.assert_array_equal(pulled(TorchAdapter(model), ROWS), expected)
        assert torch.is_inference_mode_enabled() == (context is torch.inference_mode)
        assert not torch.is_grad_enabled()


def test_module_that_recomputes_its_forward_pass_is_recomputed_in_evaluation_mode():
    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = noisy()

        def forward(self, x):
            return checkpoint(self.model, x, use_reentrant=False, preserve_rng_state=False)

    np.testing.assert_allclose(pulled(TorchAdapter(Saving()), ROWS), pulled(TorchAdapter(noisy()), ROWS), atol=1e-6)


# Several threads


class Meeting(nn.Module):
    """Waits inside forward until `parties` threads are there; a row that starts with 1 stays until told to leave."""

    def __init__(self, parties):
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(5, 2)
        self.together = threading.Barrier(parties, timeout=20)
        self.leave = threading.Event()
        self.seen = []

    def forward(self, x):
        self.together.wait()
        if x[0, 0] == 1:
            self.leave.wait(20)
        self.seen.append([module.training for module in self.modules()])
        return self.linear(self.dropout(x))


def test_four_threads_at_once_see_evaluation_mode_and_the_last_restores_training_mode():
    model = Meeting(4)
    adapter = TorchAdapter(model, output="logits")
    first, stays = np.zeros((3, 5), np.float32), np.ones((3, 5), np.float32)  # a dtype that it takes at once
    with ThreadPoolExecutor(4) as pool:
        early = [pool.submit(adapter.predict, first), pool.submit(pulled, adapter, first)]
        late = [pool.submit(pulled, adapter, stays), pool.submit(adapter.predict, stays)]
        for future in early:
            future.result(20)
        assert not any(modes(model))
        model.leave.set()
        for future in late:
            future.result(20)
    assert len(model.seen) == 4
    assert not np.any(model.seen)
    assert all(modes(model))


def test_adapters_of_a_module_and_of_its_submodule_do_not_undo_each_other():
    inner = Meeting(2)
    outer = nn.Sequential(inner, nn.Dropout(0.5)).train()
    with ThreadPoolExecutor(2) as pool:
        stays = pool.submit(TorchAdapter(inner, output="logits").predict, np.ones((3, 5), np.float32))
        pool.submit(TorchAdapter(outer, output="logits").predict, np.zeros((3, 5), np.float32)).result(20)
        assert outer[1].training
        assert not any(modes(inner))
        inner.leave.set()
        stays.result(20)
    assert all(modes(outer))


def test_four_threads_get_the_answers_of_one():
    adapter = TorchAdapter(noisy())
    batches = [RNG.standard_normal((n, 5)) for n in (1, 7, 20, 3)] * 10
    expected = [pulled(TorchAdapter(noisy()), x) for x in batches]
    with ThreadPoolExecutor(4) as pool:
        for got, wanted in zip(pool.map(lambda x: pulled(adapter, x), batches), expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert all(modes(adapter._network._model))


# Other kinds of modules and rows


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_traced_and_frozen_modules_conform():
    scripted = torch.jit.script(noisy())
    traced = torch.jit.trace(noisy().eval(), torch.zeros(1, 5))
    frozen = torch.jit.freeze(torch.jit.script(noisy().eval()))
    for model in (scripted, traced, frozen):
        check_adapter(TorchAdapter(model), ROWS.astype(np.float32))
    assert all(modes(scripted))


def test_module_moved_to_another_dtype_is_followed():
    model = mlp()
    adapter = TorchAdapter(model)
    assert adapter.predict(ROWS).dtype == np.float32
    model.double()
    assert adapter.predict(ROWS).dtype == np.float64


class Casting(nn.Module):
    """Layers in half precision behind statistics in float32: it casts its rows itself."""

    def __init__(self, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(5, 3).to(dtype)
        self.register_buffer("mean", torch.full((5,), 1000.0))

    def forward(self, x):
        return self.layer((x - self.mean).to(self.layer.weight.dtype)).float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [np.float32, np.float64])
def test_rows_are_given_in_their_own_dtype_to_a_module_that_takes_it(dtype, rows):
    model, x = Casting(dtype), (1000 + ROWS).astype(rows)
    expected = model(torch.from_numpy(x)).softmax(1).detach().numpy()
    adapter = TorchAdapter(model)
    np.testing.assert_allclose(adapter.predict(x), expected, atol=1e-6)
    np.testing.assert_allclose(adapter.vjp(x)[0], expected, atol=1e-6)


def test_whole_numbers_keep_what_half_precision_would_round():
    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table = nn.Embedding(400, 3).to(torch.bfloat16)

        def forward(self, x):
            return self.table(x[:, 0].long()).float()

    model, codes = Codes(), np.arange(400)[:, None]
    expected = model(torch.from_numpy(codes)).softmax(1).detach().numpy()
    np.testing.assert_allclose(TorchAdapter(model).predict(codes), expected, atol=1e-6)


def test_the_dtype_that_a_module_refuses_is_tried_once():
    seen = []
    model = Applied(mlp(), lambda z: z)
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0].dtype))
    adapter = TorchAdapter(model, output="logits")
    adapter.predict(ROWS)
    adapter.predict(ROWS)
    assert seen == [torch.float64, torch.float32, torch.float32]


def test_a_module_that_took_the_dtype_of_the_rows_is_asked_in_no_other_when_it_raises():
    def picky(z):
        if z.dtype == torch.float64 and bool((z > 9).any()):
            raise ValueError("too large")
        return torch.cat([z, -z], dim=1)

    adapter = TorchAdapter(Applied(nn.Identity(), picky), output="logits")
    adapter.predict(np.ones((1, 1)))
    with pytest.raises(ModelError, match="too large"):
        adapter.predict(np.full((1, 1), 10.0))


def test_read_only_reversed_integer_and_empty_rows_are_taken():
    adapter = TorchAdapter(mlp())
    rows = ROWS.astype(np.float32)
    rows.flags.writeable = False
    np.testing.assert_array_equal(adapter.predict(rows), adapter.predict(ROWS))
    np.testing.assert_allclose(adapter.predict(ROWS[::-1]), adapter.predict(ROWS)[::-1], atol=1e-6)
    assert pulled(adapter, np.ones((2, 5), dtype=int)).dtype == np.float32
    assert TorchAdapter(mlp()).predict(ROWS[:0]).shape == (0, 3)


def test_adapter_survives_pickling_with_what_it_found_out():
    adapter = TorchAdapter(mlp())
    expected = adapter.predict(ROWS)
    again = pickle.loads(pickle.dumps(adapter))  # noqa: S301 our own bytes
    assert again._reader._meaning == "logits"
    np.testing.assert_array_equal(again.predict(ROWS), expected)


# Errors


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda z: {"scores": z}, r"model\(x\)\['scores'\]"),
        (lambda z: (None, z), r"model\(x\)\[0\]"),
        (lambda z: z.argmax(1), ""),
    ],
)
def test_output_without_a_floating_tensor_is_an_error_that_says_to_wrap_it(function, part):
    with pytest.raises(ModelError, match=rf"Applied returned (NoneType|dict|torch.int64).*Wrap.*{part}"):
        TorchAdapter(Applied(mlp(), function)).predict(ROWS)


def test_rows_of_the_wrong_shape_are_an_error_that_names_shape_and_model():
    with pytest.raises(ModelError, match=r"Sequential failed on rows of shape \(6, 2\)"):
        TorchAdapter(mlp()).predict(ROWS[:, :2])


def test_classifier_that_returns_maps_is_an_error():
    with pytest.raises(ModelError, match=r"shape \(4, 4, 6, 6\) for 4 rows"):
        TorchAdapter(conv()[:1]).predict(IMAGES)


def test_transform_that_loses_rows_is_an_error():
    with pytest.raises(ModelError, match=r"shape \(3,\) for 6 rows; expected one item per row"):
        TorchAdapter(Applied(mlp(), lambda z: z.mean(0)), role="transform").predict(ROWS)


@pytest.mark.parametrize(
    "model", [Applied(nn.Identity(), torch.detach), nn.Sequential(Applied(nn.Identity(), torch.detach), mlp())]
)
def test_module_without_a_gradient_is_an_error_that_offers_a_function(model):
    adapter = TorchAdapter(model)
    adapter.predict(ROWS)
    with pytest.raises(ModelError, match=r"no gradient.*pass a function"):
        pulled(adapter, ROWS)
