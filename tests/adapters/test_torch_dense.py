"""Small dense networks of PyTorch, read as NumPy stages for their gradients: only where nothing is in doubt."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.needs("torch")

ROWS = np.random.default_rng(0).normal(size=(7, 4))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def network(torch, *last, dtype=None):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)]
    return torch.nn.Sequential(*layers, *last).to(dtype or torch.float32)


def read(model, columns=4):
    from cfproto_adapters.torch_parts.dense import dense_network

    return dense_network(model.eval(), columns)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", ["Softmax", "Sigmoid", "Identity"])
def test_scores_and_gradients_are_those_of_autograd(torch, dtype, last):
    from cfproto_plugin import adapt

    ending = torch.nn.Softmax(dim=1) if last == "Softmax" else getattr(torch.nn, last)()
    model = network(torch, ending, dtype=getattr(torch, dtype))
    adapter = adapt(model, role="transform")
    seed = np.random.default_rng(1).normal(size=(7, 3))
    for rows in (ROWS, ROWS.astype(np.float32)):
        y, pull = adapter.vjp(rows)
        expected = pull(seed)
        with adapter.session():
            found, pull = adapter.vjp(rows)
            gradient = pull(seed)
        assert found.dtype == y.dtype == np.dtype(dtype)
        assert gradient.dtype == expected.dtype == rows.dtype
        tolerance = 1e-12 if dtype == "float64" and rows.dtype == np.float64 else 1e-5
        assert found == pytest.approx(y, abs=tolerance)
        assert gradient == pytest.approx(expected, abs=tolerance)


def test_a_session_computes_the_gradient_without_the_module(torch):
    from cfproto_plugin import adapt

    model, calls = network(torch), []
    adapter = adapt(model, role="transform")
    with adapter.session():
        adapter.vjp(ROWS)
        model.register_forward_hook(lambda *_: calls.append(1))
        adapter.vjp(ROWS)
        assert not calls
        adapter.predict(ROWS)
        assert calls


def test_weights_are_read_anew_in_every_session(torch):
    from cfproto_plugin import adapt

    model = network(torch)
    adapter = adapt(model, role="transform")
    with adapter.session():
        before = adapter.vjp(ROWS)[0]
    model[0].weight = torch.nn.Parameter(2 * model[0].weight.detach())
    with adapter.session():
        after = adapter.vjp(ROWS)[0]
        assert after == pytest.approx(adapter.predict(ROWS), abs=1e-5)
        with torch.no_grad():
            model[0].weight.mul_(2)
        assert adapter.vjp(ROWS)[0] == pytest.approx(adapter.predict(ROWS), abs=1e-5)
    assert np.abs(after - before).max() > 1e-3


def doubtful(torch):
    class Own(torch.nn.Linear):
        pass

    hooked = network(torch)
    hooked[1].register_forward_hook(lambda _module, _rows, y: 2 * y)
    before = network(torch)
    before[0].register_forward_pre_hook(lambda _module, rows: rows)
    normed = network(torch)
    torch.nn.utils.parametrizations.weight_norm(normed[0])
    patched = network(torch)
    patched[1].forward = torch.abs
    subclass = type("Mine", (torch.nn.Sequential,), {})(torch.nn.Linear(4, 3))
    wide = torch.nn.Sequential(torch.nn.Linear(4, 30_000), torch.nn.Linear(30_000, 3))
    return {
        "hook": hooked,
        "hook before": before,
        "parametrization": normed,
        "method of its own": patched,
        "subclass": subclass,
        "layer of its own": torch.nn.Sequential(Own(4, 3)),
        "unknown layer": network(torch, torch.nn.Mish()),
        "softmax over an unknown axis": network(torch, torch.nn.Softmax()),
        "softmax over the rows": network(torch, torch.nn.Softmax(dim=0)),
        "no linear layer": torch.nn.Sequential(torch.nn.ReLU()),
        "half precision": network(torch, dtype=torch.bfloat16),
        "two precisions": torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 3).double()),
        "layers that do not fit": torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)),
        "many weights": wide,
        "rows of another width": torch.nn.Linear(5, 3),
    }


def test_what_is_in_doubt_is_left_to_the_module(torch):
    assert read(network(torch)) is not None
    assert read(torch.nn.Sequential(network(torch), torch.nn.Softmax(dim=-1))) is not None
    assert read(torch.nn.Sequential(torch.nn.Linear(4, 3, bias=False))) is not None
    found = {name: read(model) for name, model in doubtful(torch).items()}
    assert [name for name, chain in found.items() if chain is not None] == []


def test_hooks_of_all_modules_and_other_precision_are_left_to_the_module(torch):
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert read(network(torch)) is None
    finally:
        handle.remove()
    with torch.autocast("cpu"):
        assert read(network(torch)) is None
    with torch.device("cpu"):  # a mode that follows every operation
        assert read(network(torch)) is None


def test_rows_of_another_shape_are_left_to_the_module(torch):
    from cfproto_plugin import adapt
    from cfproto_plugin.errors import ModelError

    adapter = adapt(network(torch), role="transform")
    with adapter.session(), pytest.raises(ModelError, match="failed on rows of shape"):
        adapter.vjp(ROWS[:, :3])
