"""Modules with a forward method of their own, read by running it on stand-ins: what is read, and what is left alone."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.nn.functional import relu as rectified  # noqa: E402

from cfproto_plugin import adapt  # noqa: E402

pytestmark = pytest.mark.needs("torch")

ROWS = np.random.default_rng(0).normal(size=(7, 4))
SEED = np.random.default_rng(1).normal(size=(7, 3))
WIDTH = 4
CALLS = 0


def read(model, columns=4):
    from cfproto_adapters.torch_parts.dense import dense_network

    return dense_network(model.eval(), columns)


def module(forward, **parts):
    """A module with two linear layers, a batch norm that has seen data, these parts and this forward method."""
    torch.manual_seed(0)

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.norm = nn.Linear(4, 6), nn.Linear(6, 3), nn.BatchNorm1d(6)
            with torch.no_grad():
                self.norm.running_mean.uniform_(-1, 1)
                self.norm.running_var.uniform_(0.5, 2)
                self.norm.weight.uniform_(-2, 2)
            for name, part in parts.items():
                setattr(self, name, part)

    Own.forward = forward
    return Own()


def with_functions(self, x):
    return F.softmax(self.b(F.relu(self.a(x))), dim=1)


def with_torch(self, x):
    return torch.log_softmax(self.b(torch.tanh(self.a(x))), 1)


def with_methods(self, x):
    return self.b(self.a(x).sigmoid()).softmax(-1)


def with_nested_names(self, x):
    return self.b(torch.nn.functional.leaky_relu(self.a(x), negative_slope=0.3))


def with_imported_function(self, x):
    return self.b(rectified(self.a(x), inplace=True))


def with_views(self, x):
    x = x.view(x.size(0), -1).reshape(-1, WIDTH).flatten(1)
    return self.b(torch.flatten(self.a(x), start_dim=1).contiguous().view(x.shape[0], 6))


def with_norm_and_dropout(self, x):
    x = F.dropout(self.norm(self.a(x)), 0.5, self.training)
    return self.b(F.dropout(x, p=0.1, training=self.training))


def with_a_loop(self, x):
    for layer in self.layers:
        x = F.relu(layer(x))
    return self.layers[1](x) if len(self.layers) > 9 else self.a.b(x)


def with_a_flag(self, x, scale=None):
    x = self.a(x)
    if self.normalised and scale is None:
        x = self.norm(x)
    return self.head(x)


def with_the_same_layer_twice(self, x):
    return self.b(self.square(torch.relu(self.square(F.relu(self.a(x))))))


def with_stored_function(self, x):
    return self.b(self.act(self.a(x)))


def with_ndim(self, x):
    return self.b(self.a(x if x.dim() == 2 and x.ndim == 2 else x.unsqueeze(0)))


def with_an_optional_layer(self, x):
    x = self.a(x)
    if self.norm is not None:
        x = self.norm(x)
    return self.b(x)


def with_names_of_the_stand_ins(self, x):
    return self.b(self.columns(self._run(self._module(self.a(x)))))


def with_several_arguments(self, *rows, **_options):
    return self.b(self.a(rows[0]))


def with_torch_imported_around_it():
    import torch as imported

    def forward(self, x):
        return imported.softmax(self.b(imported.relu(self.a(x))), dim=1)

    return forward


def residual(self, x):
    h = self.a(x)
    return self.b(F.relu(h) + h)


def scaled(self, x):
    return self.b(self.a(x / 2))


def earlier(self, x):
    h = self.b(self.a(x))
    self.act(h + 1)
    return h


def residual_in_place(self, x):
    h = self.a(x)
    out = self.square(F.relu(h))
    out += h
    return self.b(self.act(out))


def several_residuals(self, x):
    h = self.a(x)
    for _ in range(3):
        h = h + self.square(self.act(self.norm(h))) * 0.5
    return self.b(h)


def concatenated(self, x):
    h = self.a(x)
    return self.wide(torch.cat([x, h, torch.tanh(h)], dim=1))


def gated(self, x):
    h, gate = self.a(x).chunk(2, dim=1)
    return self.small(h * torch.sigmoid(gate))


def highway(self, x):
    h = self.a(x)
    t = torch.sigmoid(self.square(h))
    return self.b(t * torch.tanh(h) + (1 - t) * h)


def weighed_by_one_column(self, x):
    h = self.a(x)
    return self.b(torch.sigmoid(self.one(h)) * h - self.one(h))


def sliced(self, x):
    h = self.a(x)
    return self.b(torch.cat((h[:, 3:], h[:, : h.shape[1] // 2]), -1) + torch.mul(h, h[:, ::2][:, 1:2]))


def with_numbers(self, x):
    h = -self.a((x - 1) / 2)
    return self.b(torch.add(2 - h, 3).mul(h * 0.1)) * 2


def in_place_between(self, x):
    h = self.a(x)
    g = h * 2
    h = F.relu(h, inplace=True)
    return self.b(h - g)


def summed_with_itself(self, x):
    h = self.a(x)
    return self.b(h + h * h)


def with_smooth_functions(self, x):
    h = F.elu(F.gelu(self.a(x)), alpha=0.7)
    return self.b(F.silu(h) + F.relu(h))


def with_bounded_functions(self, x):
    h = 2 * self.a(x) - torch.selu(self.a(x)) + F.hardtanh(self.a(x), -0.3, 0.4)
    return self.b(h.clamp(min=-1).clamp(max=2) + F.relu6(9 * self.a(x)) + torch.clamp(h, 0.0, 0.5))


def with_smooth_layers(self, x):
    h = self.a(x)
    return self.b(h + self.smooth(h))


def standardised(self, x):
    h = self.a((x - self.mean) / self.deviation)
    return self.b(self.gain * h + self.offset - self.single) if self.absent is None else x


def none_asked_for(self, x, mask=None):
    is_masked = mask is not None
    return self.b(self.a(x) if not is_masked else x)


def head(self, x):
    return self.b(torch.tanh(x))


def readable():
    inner = module(with_functions)
    inner.a = nn.Linear(3, 6)
    with_method = module(with_a_flag, normalised=True)
    type(with_method).head = head
    looped = module(with_a_loop, layers=nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 5)]))
    looped.a = nn.Module()
    looped.a.b = nn.Linear(5, 3)
    looped.norm = nn.Identity()
    plain = nn.BatchNorm1d(6, affine=False)
    layers = [nn.Linear(4, 6), nn.BatchNorm1d(6), nn.LeakyReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(6, 3)]
    joins = [several_residuals, concatenated, gated, highway, weighed_by_one_column, sliced, with_numbers]
    joins += [residual, residual_in_place, scaled, earlier, in_place_between, summed_with_itself, none_asked_for]
    joins += [with_smooth_functions, with_smooth_layers, with_bounded_functions]
    plain_norm = nn.LayerNorm(6, elementwise_affine=False)
    smooth = nn.Sequential(nn.LayerNorm(6), nn.GELU(), plain_norm, nn.SiLU(), nn.ELU(0.5))
    smooth[0].weight.data.uniform_(-2, 2)
    bounded = [nn.Linear(4, 6), nn.ReLU6(), nn.SELU(), nn.Linear(6, 6), nn.Hardtanh(-0.2, 0.4, inplace=True)]
    parts = {"square": nn.Linear(6, 6), "wide": nn.Linear(16, 3), "small": nn.Linear(3, 3), "one": nn.Linear(6, 1)}
    parts |= {"act": nn.ReLU(inplace=True), "smooth": smooth}
    weighted = module(standardised, gain=nn.Parameter(torch.rand(6)), offset=nn.Parameter(torch.rand(1, 6)))
    weighted.register_buffer("mean", torch.tensor([1.0, -2, 3, 0]))
    weighted.register_buffer("deviation", torch.tensor([1.0, 2, 3, 4]))
    weighted.register_buffer("single", torch.tensor(0.3))
    weighted.register_parameter("absent", None)
    return {forward.__name__: module(forward, **parts) for forward in joins} | {
        "parameters and buffers": weighted,
        "optional layer": module(with_an_optional_layer),
        "optional layer that is not there": module(with_an_optional_layer, norm=None),
        "several arguments": module(with_several_arguments),
        "torch imported around it": module(with_torch_imported_around_it()),
        "names of the stand-ins": module(
            with_names_of_the_stand_ins, columns=nn.Tanh(), _run=nn.ReLU(), _module=nn.Linear(6, 6)
        ),
        "functions": module(with_functions),
        "functions of torch": module(with_torch),
        "methods": module(with_methods),
        "nested names": module(with_nested_names),
        "imported function": module(with_imported_function),
        "views": module(with_views),
        "norm and dropout": module(with_norm_and_dropout),
        "norm without weights": module(with_norm_and_dropout, norm=plain),
        "loop": looped,
        "flag": with_method,
        "same layer twice": module(with_the_same_layer_twice, square=nn.Linear(6, 6)),
        "stored function": module(with_stored_function, act=torch.relu),
        "number of axes": module(with_ndim),
        "own in Sequential": nn.Sequential(nn.Linear(4, 3), inner),
        "layers": nn.Sequential(*layers, nn.LogSoftmax(dim=1)),
        "bounded layers": nn.Sequential(*bounded, nn.Linear(6, 3)),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", list(readable()))
def test_what_is_read_gives_the_scores_and_gradients_of_autograd(name, dtype):
    model = readable()[name].to(getattr(torch, dtype)).train()
    assert read(model) is not None
    model.train()
    adapter = adapt(model, role="transform")
    rows = ROWS.astype(dtype)
    y, pull = adapter.vjp(rows)
    expected = pull(SEED)
    with adapter.session():
        found, pull = adapter.vjp(rows)
        gradient = pull(SEED)
        assert adapter._network._settled.dense is not None
    assert model.training
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert found == pytest.approx(y, abs=tolerance)
    assert gradient == pytest.approx(expected, abs=tolerance)


def in_place_aside(self, x):
    h = self.a(x)
    F.relu(h, inplace=True)
    return self.b(h)


def in_place_method(self, x):
    return self.b(self.a(x).relu_())


def in_place_item(self, x):
    h = self.a(x)
    h[:, 0] = 0
    return self.b(h)


def branch_on_data(self, x):
    return self.b(torch.relu(self.a(x)) if x.sum() > 0 else torch.tanh(self.a(x)))


def branch_on_rows(self, x):
    return self.b(torch.relu(self.a(x)) if x.shape[0] > 3 else torch.tanh(self.a(x)))


def branch_on_number_of_rows(self, x):
    return self.b(torch.relu(self.a(x)) if len(x) > 3 else torch.tanh(self.a(x)))


def branch_on_chance(self, x):
    return self.b(torch.relu(self.a(x)) if np.random.default_rng().random() < 0.5 else torch.tanh(self.a(x)))


def branch_on_chance_of_torch(self, x):
    return self.b(torch.relu(self.a(x)) if torch.rand(1) < 0.5 else torch.tanh(self.a(x)))


def counting(self, x):
    self.calls += 1
    return self.b(torch.relu(self.a(x)) if self.calls % 2 else torch.tanh(self.a(x)))


def counting_outside(self, x):
    global CALLS  # noqa: PLW0603
    CALLS += 1
    return self.b(torch.relu(self.a(x)) if CALLS % 2 else torch.tanh(self.a(x)))


def counting_in_a_list(self, x):
    self.seen.append(1)
    return self.b(torch.relu(self.a(x)) if len(self.seen) % 2 else torch.tanh(self.a(x)))


def default_that_counts(self, x, seen=[]):  # noqa: B006
    seen.append(1)
    return self.b(torch.relu(self.a(x)) if len(seen) % 2 else torch.tanh(self.a(x)))


def catching(self, x):
    try:
        return self.b(torch.exp(self.a(x)))
    except Exception:  # noqa: BLE001
        return self.b(self.a(x))


def without_gradient(self, x):
    with torch.no_grad():
        h = self.a(x)
    return self.b(h)


def detached(self, x):
    return self.b(self.a(x).detach())


def always_dropping(self, x):
    return self.b(F.dropout(self.a(x)))


def over_the_rows(self, x):
    return F.softmax(self.b(self.a(x)), dim=0)


def implicit_axis(self, x):
    return F.softmax(self.b(self.a(x)))


def other_dtype(self, x):
    return torch.softmax(self.b(self.a(x)), 1, torch.float64)


def rows_mixed_by_a_view(self, x):
    return self.b(self.a(x.view(4, -1).t()))


def all_flat(self, x):
    return self.b(self.a(x.flatten().view(-1, 4)))


def several(self, x):
    return self.b(self.a(x)), x


def named(self, x):
    return {"logits": self.b(self.a(x))}


def branch_on_a_text(self, x):
    return self.b(torch.relu(self.a(x)) if f"{x}".count("-") % 2 else torch.tanh(self.a(x)))


def branch_on_a_shape(self, x):
    return self.b(torch.relu(self.a(x)) if x.shape == (7, 4) else torch.tanh(self.a(x)))


def layer_made_in_passing(self, x):
    return nn.Softmax(dim=1)(self.b(self.a(x)))


def replacing_weights(self, x):
    self.a.weight = self.a.weight
    return self.b(self.a(x))


def counting_in_its_class(self, x):
    self.__class__.calls = 1
    return self.b(self.a(x))


def by_a_helper(self, x):
    return self.b(helper(self.a(x)))


def helper(x):
    return x.relu()


def with_property(self, x):
    return self.b(torch.relu(self.a(x)) if self.flag else self.a(x))


def with_weights(self, x):
    return self.b(F.linear(x, self.a.weight))


def many_inputs(self, x, y):
    return self.b(self.a(x + y))


def in_place_sum_aside(self, x):
    h = g = self.a(x)
    h += x[:, :1]
    return self.b(g)


def in_place_in_a_slice(self, x):
    h = self.a(x)
    half = h[:, :3]
    half *= 2
    return self.b(h)


def in_place_under_a_view(self, x):
    h = self.a(x)
    same = h.reshape(-1, 6)
    F.relu(self.norm(h), inplace=True)
    F.relu(h, inplace=True)
    return self.b(same)


def in_place_by_a_layer(self, x):
    h = self.a(x)
    return self.b(h + self.act(h))


def in_place_behind_a_layer_that_does_nothing(self, x):
    h = self.a(x)
    return self.b(self.act(self.idle(h)) + h)


def weights_of_several_rows(self, x):
    return self.b(self.a(x) * self.several)


def more_weights_than_columns(self, x):
    return self.b(self.only(x) + self.gain)


def weights_changed(self, x):
    self.gain.data = self.gain.data * 2
    return self.b(self.a(x) * self.gain)


def weights_counted_up(self, x):
    self.gain += 1
    return self.b(self.a(x) * self.gain)


def weights_looked_at(self, x):
    return self.b(torch.relu(self.a(x)) if self.gain.sum() > 0 else self.a(x))


def divided_by_nothing(self, x):
    return self.b(self.a(x) * None)


def in_place_function(self, x):
    return self.b(self.a(x).add_(1))


def content_replaced(self, x):
    h = self.a(x)
    h.data = h.data * 2
    return self.b(h)


def one_column_without_its_axis(self, x):
    h = self.a(x)
    return self.b(h * h[:, 0])


def one_row(self, x):
    h = self.a(x)
    return self.b(h + h[:1])


def concatenated_rows(self, x):
    h = self.a(x)
    return self.b(torch.cat([h, h])[: len(x)])


def divided_by_rows(self, x):
    h = self.a(x)
    return self.b(h / (h * h + 1))


def columns_that_do_not_fit(self, x):
    return self.b(self.a(x) + x)


def by_an_infinite_number(self, x):
    return self.b(self.a(x) * 1e400)


def asking_whether_one_row(self, x):
    one = x.shape[0] is self.one
    return self.b(torch.relu(self.a(x)) if one else torch.tanh(self.a(x)))


def asking_whether_one_row_inside(self, x):
    layers = [torch.relu if each is self.one else torch.tanh for each in x.shape[:1]]
    return self.b(layers[0](self.a(x)))


def catching_inside(self, x):
    def tried(h):
        try:
            return torch.exp(h)
        except Exception:  # noqa: BLE001
            return h

    return self.b(tried(self.a(x)))


def by_a_part_that_looks_up_names(self, x):
    return self.b(self.part.a(x))


class LooksUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.other = nn.Linear(4, 6), nn.Linear(4, 6)

    def __getattr__(self, name):
        return super().__getattr__("other" if name == "a" else name)


def unreadable():
    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    class Called(nn.Linear):
        def __call__(self, x):
            return super().__call__(x).abs()

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)

        def _call_impl(self, x):
            return -super()._call_impl(x)

        forward = with_functions

    def closing():
        calls = []

        def forward(self, x):
            calls.append(1)
            return self.b(torch.relu(self.a(x)) if len(calls) % 2 else torch.tanh(self.a(x)))

        return forward

    def counting_around():
        calls = 0

        def forward(self, x):
            nonlocal calls
            calls += 1
            return self.b(torch.relu(self.a(x)) if calls % 2 else torch.tanh(self.a(x)))

        return forward

    hooked, hooked_inside, hooked_before, normed = (module(with_functions) for _ in range(4))
    hooked.register_forward_hook(lambda _module, _rows, y: 2 * y)
    hooked_inside.b.register_forward_hook(lambda _module, _rows, y: 2 * y)
    hooked_before.a.register_forward_pre_hook(lambda _module, rows: (2 * rows[0],))
    nn.utils.parametrizations.weight_norm(normed.a)
    patched = module(with_functions)
    patched.forward = types.MethodType(with_methods, patched)
    patched_inside = module(with_functions)
    patched_inside.b.forward = torch.abs
    property_ = module(with_property)
    type(property_).flag = property(lambda _self: np.random.default_rng().random() < 0.5)
    shadowed = module(with_functions)
    type(shadowed).b = staticmethod(torch.abs)
    untracked = module(with_norm_and_dropout, norm=nn.BatchNorm1d(6, track_running_stats=False))
    forwards = [
        in_place_aside, in_place_method, in_place_item, branch_on_data, branch_on_rows,
        branch_on_number_of_rows, branch_on_chance, branch_on_chance_of_torch, counting_outside, default_that_counts,
        catching, without_gradient, detached, always_dropping, over_the_rows, implicit_axis, other_dtype,
        rows_mixed_by_a_view, all_flat, several, named, by_a_helper, with_weights, many_inputs,
        branch_on_a_text, branch_on_a_shape, layer_made_in_passing, replacing_weights, counting_in_its_class,
    ]  # fmt: skip
    joins = [
        in_place_sum_aside, in_place_in_a_slice, in_place_under_a_view, in_place_by_a_layer,
        in_place_behind_a_layer_that_does_nothing, in_place_function, content_replaced, one_column_without_its_axis,
        one_row, concatenated_rows, divided_by_rows, columns_that_do_not_fit, by_an_infinite_number,
        asking_whether_one_row, asking_whether_one_row_inside, catching_inside, by_a_part_that_looks_up_names,
        weights_of_several_rows, more_weights_than_columns, weights_changed, weights_counted_up, weights_looked_at,
        divided_by_nothing,
    ]  # fmt: skip
    parts = {"act": nn.ReLU(inplace=True), "idle": nn.Identity(), "one": 1, "part": LooksUp(), "only": nn.Linear(4, 1)}
    parts |= {"several": nn.Parameter(torch.rand(7, 6)), "gain": nn.Parameter(torch.rand(6))}
    return {forward.__name__: module(forward) for forward in forwards} | {
        **{forward.__name__: module(forward, **parts) for forward in joins},
        "counting": module(counting, calls=0),
        "counting in a list": module(counting_in_a_list, seen=[]),
        "closure": module(closing()),
        "count in a closure": module(counting_around()),
        "own linear layer": module(with_functions, b=Doubled(6, 3)),
        "own call": module(with_functions, b=Called(6, 3)),
        "own machinery": Wrapped(),
        "hook": hooked,
        "hook inside": hooked_inside,
        "hook before": hooked_before,
        "parametrization": normed,
        "forward of one instance": patched,
        "forward of one layer": patched_inside,
        "property": property_,
        "layer behind a name of the class": shadowed,
        "batch norm without statistics": untracked,
        "approximate GELU": module(with_functions, b=nn.Sequential(nn.Linear(6, 3), nn.GELU("tanh"))),
        "layer norm over rows": module(with_functions, a=nn.Sequential(nn.Linear(4, 6), nn.LayerNorm((7, 6)))),
        "two precisions": module(with_functions, b=nn.Linear(6, 3).double()),
        "convolution": module(with_functions, a=nn.Conv1d(4, 6, 1)),
        "graph module": torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3))),
    }


@pytest.mark.parametrize("name", list(unreadable()))
def test_what_is_in_doubt_is_left_to_the_module(name):
    assert read(unreadable()[name]) is None


def test_reading_runs_no_code_of_the_module_on_real_things():
    counting_, listing = module(counting, calls=0), module(counting_in_a_list, seen=[])
    assert read(counting_) is None
    assert read(listing) is None
    assert counting_.calls == 0
    assert listing.seen == []
    before = CALLS
    assert read(module(counting_outside)) is None
    assert before == CALLS


def test_what_disagrees_with_the_module_on_its_rows_is_not_used(monkeypatch):
    from cfproto_adapters.numpy_chain import Tanh

    adapter = adapt(module(with_torch), role="transform")
    monkeypatch.setattr(Tanh, "pull", lambda _self, g, _x, _y: g)
    with adapter.session():
        y, _ = adapter.vjp(ROWS.astype(np.float32))
        assert adapter._network._settled.dense is None
        assert y == pytest.approx(adapter.predict(ROWS.astype(np.float32)), abs=1e-6)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (F, "linear"),
        (F, "relu"),
        (torch, "softmax"),
        (torch, "cat"),
        (torch.Tensor, "tanh"),
        (torch.Tensor, "__mul__"),
        (nn.Module, "__call__"),
    ],
)
def test_patched_functions_of_pytorch_leave_everything_to_the_module(place, name, monkeypatch):
    model, original = module(with_functions), getattr(place, name)
    assert read(model) is not None
    monkeypatch.setattr(place, name, lambda *args, **options: original(*args, **options).clamp(max=6))
    assert read(model) is None


@pytest.mark.parametrize("kind", [nn.Linear, nn.ReLU, nn.BatchNorm1d, nn.Sequential])
def test_wrapped_forward_of_a_stock_layer_leaves_everything_to_the_module(kind, monkeypatch):
    model, original = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)), kind.forward
    assert read(model) is not None

    @functools.wraps(original)
    def clipped(self, x):
        return original(self, x).clamp(max=5)

    for wrapped in (clipped, torch.no_grad()(original)):
        monkeypatch.setattr(kind, "forward", wrapped)
        assert read(model) is None


def test_wrapped_functions_of_pytorch_leave_everything_to_the_module(monkeypatch):
    model, original = module(with_functions), F.relu
    monkeypatch.setattr(F, "relu", functools.wraps(original)(lambda x: original(x).clamp(max=5)))
    assert read(model) is None


def test_weights_and_statistics_that_change_are_followed():
    model = module(with_norm_and_dropout).eval()
    adapter = adapt(model, role="transform")
    rows = ROWS.astype(np.float32)
    with adapter.session():
        before = adapter.vjp(rows)[0]
        with torch.no_grad():
            model.norm.running_var.mul_(4)
            model.norm.weight.add_(1)
        after = adapter.vjp(rows)[0]
        assert adapter._network._settled.dense is not None
        assert after == pytest.approx(adapter.predict(rows), abs=1e-5)
    assert np.abs(after - before).max() > 1e-3
    model.b = nn.Linear(6, 3)
    with adapter.session():
        assert adapter.vjp(rows)[0] == pytest.approx(adapter.predict(rows), abs=1e-5)


def test_rows_of_another_width_are_left_to_the_module():
    from cfproto_plugin.errors import ModelError

    adapter = adapt(module(with_functions), role="transform")
    with adapter.session(), pytest.raises(ModelError, match="failed on rows of shape"):
        adapter.vjp(ROWS[:, :3])
