"""Counterfactuals as a Captum attribution method, with Captum's own tools around it."""

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import scale

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import InputError, NotFittedError

torch = pytest.importorskip("torch")
captum = pytest.importorskip("captum")
attr = importlib.import_module("captum.attr")
metrics = importlib.import_module("captum.metrics")
CounterfactualAttribution = importlib.import_module("cfproto_plugin.integrations.captum").CounterfactualAttribution


def trained(net, x, y, steps=150, forward=None):
    torch.manual_seed(0)
    for layer in net.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    optimiser = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy((forward or net)(x), y).backward()
        optimiser.step()
    return net.eval()


@pytest.fixture(scope="module")
def wine():
    """Rows of 13 numbers and three classes, a network, and an explainer that changes at most four."""
    x, y = load_wine(return_X_y=True)
    x = torch.tensor(scale(x), dtype=torch.float32)
    net = torch.nn.Sequential(torch.nn.Linear(13, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3), torch.nn.Softmax(dim=1))
    trained(net, x, torch.tensor(y), forward=net[:3])
    explainer = CounterfactualExplainer(net, search=SearchConfig(max_changes=4)).fit(x.numpy())
    return x, net, explainer


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10), torch.nn.Softmax(dim=1)
    )
    trained(net, x, torch.tensor(y), forward=net[:4])
    return x, net, CounterfactualExplainer(net).fit(x[:600].numpy())


def test_contributions_add_up_to_the_change_of_the_target_probability(wine):
    x, net, explainer = wine
    method = CounterfactualAttribution(explainer)
    rows = x[:5]
    found = method.attribute(rows, target=1)
    assert found.shape == rows.shape
    assert found.dtype == rows.dtype
    changed = method.baselines(rows, target=1)
    with torch.no_grad():
        gap = net(changed)[:, 1] - net(rows)[:, 1]
    torch.testing.assert_close(found.sum(dim=1), gap, atol=1e-5, rtol=0)
    assert (gap > 0).all()
    assert ((found != 0) <= (changed != rows)).all()


def test_deltas_lead_to_the_target(wine):
    x, net, explainer = wine
    target = [1, 2, 1, 2]
    delta = CounterfactualAttribution(explainer, values="delta").attribute(x[:4], target=target)
    with torch.no_grad():
        assert net(x[:4] + delta).argmax(dim=1).tolist() == target


@pytest.mark.parametrize("target", [1, [1, 1, 1], (1, 1, 1), torch.tensor(1), torch.tensor([1]), torch.tensor([1] * 3)])
def test_a_target_comes_as_captum_takes_it(wine, target):
    x, _, explainer = wine
    e = CounterfactualAttribution(explainer).explain(x[:3], target=target)
    assert e.counterfactual_class.tolist() == [1, 1, 1]


def test_without_a_target_any_other_class_is_reached(wine):
    x, net, explainer = wine
    delta = CounterfactualAttribution(explainer, values="delta").attribute(x[:4])
    with torch.no_grad():
        assert (net(x[:4] + delta).argmax(dim=1) != net(x[:4]).argmax(dim=1)).all()


def test_targets_are_places_among_the_probabilities_whatever_the_classes_are_called():
    x, y = load_wine(return_X_y=True)
    names = np.array(["red", "rose", "white"])[y]
    forest = RandomForestClassifier(20, random_state=0).fit(x, names)
    method = CounterfactualAttribution(CounterfactualExplainer(forest).fit(x))
    e = method.explain(torch.tensor(x[:2]), target=2)
    assert e.counterfactual_class.tolist() == ["white", "white"]
    found = method.attribute(torch.tensor(x[:2]), target=2)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), e.to_shap().values)


def test_a_network_with_one_output_has_two_classes():
    x = torch.tensor(np.random.default_rng(0).normal(size=(200, 3)), dtype=torch.float32)
    net = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[2.0, -1.0, 0.5]]))
    method = CounterfactualAttribution(CounterfactualExplainer(net).fit(x.numpy()))
    with torch.no_grad():
        rows = x[net(x)[:, 0] < 0.4][:3]
        changed = method.baselines(rows, target=1)
        gap = (net(changed) - net(rows))[:, 0]
    torch.testing.assert_close(method.attribute(rows, target=1).sum(dim=1), gap, atol=1e-5, rtol=0)
    assert method.forward_func(rows).shape == (3, 2)


class TwoInputs(torch.nn.Module):
    """A number of columns and a small image."""

    def __init__(self):
        super().__init__()
        self.table, self.image, self.last = torch.nn.Linear(3, 4), torch.nn.Conv2d(1, 2, 2), torch.nn.Linear(12, 2)

    def forward(self, table, image):
        parts = torch.cat([self.table(table), self.image(image).flatten(1)], dim=1)
        return self.last(torch.relu(parts))


@pytest.fixture(scope="module")
def two():
    torch.manual_seed(0)
    table, image = torch.randn(300, 3), torch.randn(300, 1, 3, 3)
    y = (table[:, 0] + image[:, 0, 1, 1] > 0).long()
    net = TwoInputs()
    trained(net, (table, image), y, forward=lambda both: net(*both))

    def predict(rows):
        rows = torch.as_tensor(rows)
        with torch.no_grad():
            return net(rows[:, :3], rows[:, 3:].reshape(-1, 1, 3, 3)).softmax(dim=1).numpy()

    rows = torch.cat([table, image.flatten(1)], dim=1).numpy()
    explainer = CounterfactualExplainer(predict, search=SearchConfig(max_changes=4)).fit(rows)
    return (table, image), net, explainer


def test_a_tuple_of_inputs_gets_a_tuple_of_attributions(two):
    (table, image), net, explainer = two
    method = CounterfactualAttribution(explainer)
    inputs = table[:4], image[:4]
    found = method.attribute(inputs, target=1)
    assert isinstance(found, tuple)
    assert [part.shape for part in found] == [part.shape for part in inputs]
    changed = method.baselines(inputs, target=1)
    with torch.no_grad():
        gap = net(*changed).softmax(dim=1)[:, 1] - net(*inputs).softmax(dim=1)[:, 1]
    total = found[0].sum(dim=1) + found[1].sum(dim=(1, 2, 3))
    torch.testing.assert_close(total, gap, atol=1e-5, rtol=0)
    probabilities = method.forward_func(*inputs)
    with torch.no_grad():
        torch.testing.assert_close(probabilities, net(*inputs).softmax(dim=1), atol=1e-6, rtol=0)


def test_inputs_of_different_lengths_are_refused(two):
    (table, image), _, explainer = two
    with pytest.raises(InputError, match=r"the inputs have \[4, 3\] rows"):
        CounterfactualAttribution(explainer).attribute((table[:4], image[:3]))


def test_captum_noise_tunnel_smooths_the_attributions(wine):
    x, _, explainer = wine
    method = CounterfactualAttribution(explainer)
    torch.manual_seed(0)
    tunnel = attr.NoiseTunnel(method)
    found = tunnel.attribute(x[:2], nt_type="smoothgrad", nt_samples=4, stdevs=0.05, target=torch.tensor([1, 2]))
    assert found.shape == (2, 13)
    plain = method.attribute(x[:2], target=[1, 2])
    assert torch.nn.functional.cosine_similarity(found, plain).min() > 0.5
    assert not torch.equal(found, plain)


def test_captum_noise_tunnel_takes_tuples(two):
    (table, image), _, explainer = two
    tunnel = attr.NoiseTunnel(CounterfactualAttribution(explainer))
    found = tunnel.attribute((table[:2], image[:2]), nt_samples=2, stdevs=0.01, target=1)
    assert [part.shape for part in found] == [(2, 3), (2, 1, 3, 3)]


def perturb(inputs):
    """Small noise, in the two forms that Captum takes: what is taken off, and what is left."""
    noise = 0.05 * torch.randn_like(inputs)
    return noise, inputs - noise


def test_captum_infidelity_is_measured(wine):
    x, _, explainer = wine
    method = CounterfactualAttribution(explainer)
    found = method.attribute(x[:3], target=1)
    torch.manual_seed(0)
    score = metrics.infidelity(method.forward_func, perturb, x[:3], found, target=1, n_perturb_samples=20)
    assert score.shape == (3,)
    assert (score >= 0).all()
    assert torch.isfinite(score).all()
    torch.manual_seed(0)
    wrong = metrics.infidelity(method.forward_func, perturb, x[:3], 100 * found, target=1, n_perturb_samples=20)
    assert (wrong > score).all()


def test_captum_sensitivity_is_measured(wine):
    x, _, explainer = wine
    method = CounterfactualAttribution(explainer)
    torch.manual_seed(0)
    score = metrics.sensitivity_max(method.attribute, x[:2], perturb_radius=0.01, n_perturb_samples=3, target=1)
    assert score.shape == (2,)
    assert torch.isfinite(score).all()
    assert (score < 2).all()


def test_captum_metrics_take_tuples(two):
    (table, image), net, explainer = two
    method = CounterfactualAttribution(explainer)
    inputs = table[:2], image[:2]

    def perturb_both(inputs):
        noise = tuple(0.05 * torch.randn_like(part) for part in inputs)
        return noise, tuple(part - off for part, off in zip(inputs, noise, strict=True))

    found = method.attribute(inputs, target=1)
    score = metrics.infidelity(
        lambda *parts: net(*parts).softmax(dim=1), perturb_both, inputs, found, target=1, n_perturb_samples=4
    )
    assert score.shape == (2,)
    assert metrics.sensitivity_max(method.attribute, inputs, n_perturb_samples=2, target=1).shape == (2,)


def test_counterfactuals_are_baselines_of_integrated_gradients(wine):
    x, net, explainer = wine
    changed = CounterfactualAttribution(explainer).baselines(x[:3], target=1)
    found, gap = attr.IntegratedGradients(net).attribute(
        x[:3], baselines=changed, target=1, return_convergence_delta=True
    )
    assert gap.abs().max() < 0.05
    assert not found[changed == x[:3]].any()


def test_captum_draws_the_attributions_of_an_image(digits):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    x, net, explainer = digits
    method = CounterfactualAttribution(explainer, values="delta")
    image = x[1:2]
    found = method.attribute(image)
    assert found.shape == (1, 1, 8, 8)
    with torch.no_grad():
        assert net(image + found).argmax() != net(image).argmax()
    figure, _ = attr.visualization.visualize_image_attr(
        found[0].permute(1, 2, 0).numpy(), image[0].permute(1, 2, 0).numpy(), "heat_map", "all", use_pyplot=False
    )
    figure.canvas.draw()
    plt.close("all")


def test_contributions_of_an_image_add_up(digits):
    x, _, explainer = digits
    method = CounterfactualAttribution(explainer, samples=8)
    e = method.explain(x[1:2])
    found = method.attribute(x[1:2])
    before, after = e.new_class_proba
    assert found.sum().item() == pytest.approx(after[0] - before[0], abs=1e-5)


def test_rows_without_a_counterfactual_are_zeros(wine):
    x, _, explainer = wine
    method = CounterfactualAttribution(explainer)
    fixed = Features(immutable=tuple(range(13)))
    assert not method.attribute(x[:2], target=1, features=fixed).any()
    assert torch.equal(method.baselines(x[:2], target=1, features=fixed), x[:2])
    assert not CounterfactualAttribution(explainer, values="delta").attribute(x[:2], features=fixed).any()


def test_dtypes_are_those_of_the_inputs_and_integers_get_floats():
    random = np.random.default_rng(0)
    x = random.integers(0, 20, size=(300, 3))
    model = RandomForestClassifier(10, random_state=0).fit(x, x.sum(axis=1) > 30)
    method = CounterfactualAttribution(CounterfactualExplainer(model).fit(x))
    assert method.attribute(torch.tensor(x[:2])).dtype == torch.float32
    assert method.attribute(torch.tensor(x[:2], dtype=torch.bfloat16)).dtype == torch.bfloat16
    needing = torch.tensor(x[:2], dtype=torch.float64, requires_grad=True)
    assert method.attribute(needing).dtype == torch.float64


def test_a_one_hot_group_shares_its_contribution():
    random = np.random.default_rng(0)
    x = np.column_stack([random.normal(size=300), np.eye(3)[random.integers(0, 3, 300)]])
    model = RandomForestClassifier(20, random_state=0).fit(x, x[:, 0] + 3 * x[:, 3] > 1)
    features = Features(one_hot={"colour": (1, 2, 3)}, immutable=(0,))
    rows = x[(model.predict(x) == 0) & (x[:, 0] > 0)][:2]
    method = CounterfactualAttribution(CounterfactualExplainer(model, features=features).fit(x))
    e, found = method.explain(torch.tensor(rows)), method.attribute(torch.tensor(rows))
    before, after = e.new_class_proba
    np.testing.assert_allclose(found.sum(dim=1), after - before)
    np.testing.assert_allclose(found[:, 1:].numpy(), np.repeat(((after - before) / 3)[:, None], 3, axis=1))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": 3}, "target is 3; the model has 3 classes"),
        ({"target": -1}, "target is -1"),
        ({"target": 1.5}, "target is 1.5; expected the number of a class"),
        ({"target": [1, 2]}, r"target is \[1, 2\]; expected"),
        ({"target": [(1, 2), (1, 2), (1, 2)]}, "expected the number of a class"),
        ({"additional_forward_args": (torch.ones(3),)}, r"additional_forward_args.*Features\(immutable"),
        ({"n": 2}, "n is given"),
    ],
)
def test_what_cannot_be_used_is_named(wine, settings, words):
    x, _, explainer = wine
    with pytest.raises(InputError, match=words):
        CounterfactualAttribution(explainer).attribute(x[:3], **settings)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda x: x.numpy(), r"hold ndarray; expected a tensor of shape \(rows, \.\.\.\), or a tuple of them"),
        (lambda x: pd.DataFrame(x.numpy()), "hold DataFrame; expected a tensor"),
        (lambda _: None, "hold NoneType; expected a tensor"),
        (lambda _: [1.0, 2.0], "hold float; expected a tensor"),
        (lambda _: (), "inputs are empty; expected a tensor"),
        (lambda _: torch.tensor(1.0), "hold a single number; expected a tensor"),
        (lambda x: (x, torch.tensor(1.0)), "hold a single number; expected a tensor"),
        (lambda x: x[0], r"has shape \(13,\); expected a tensor .*: a single row is row\[None\]"),
        (lambda x: x.to_sparse(), r"of layout torch.sparse_coo: use tensor.to_dense\(\)"),
        (lambda x: x.to("meta"), "a tensor without values"),
    ],
)
def test_inputs_that_are_no_rows_are_named(wine, made, words):
    x, _, explainer = wine
    method, inputs = CounterfactualAttribution(explainer), made(x[:3])
    with pytest.raises(InputError, match=words):
        method.attribute(inputs, target=1)
    with pytest.raises(InputError, match=words):
        method.forward_func(*inputs) if isinstance(inputs, (tuple, list)) else method.forward_func(inputs)


def test_wrong_parts_are_named(wine):
    x, net, explainer = wine
    with pytest.raises(InputError, match="explainer is Sequential"):
        CounterfactualAttribution(net)
    with pytest.raises(InputError, match="values is 'shap'"):
        CounterfactualAttribution(explainer, values="shap")
    with pytest.raises(NotFittedError):
        CounterfactualAttribution(CounterfactualExplainer(net)).attribute(x[:1], target=1)


def test_without_captum_the_error_says_how_to_install_it():
    code = "import sys; sys.modules['captum'] = None\nimport cfproto_plugin.integrations.captum"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'cfproto-plugin[captum]'" in ran.stderr


def test_its_name_is_readable():
    assert CounterfactualAttribution.get_name() == "Counterfactual Attribution"
