"""Loss A through PyTorch and Keras beside the bare passes of the network.

The network, the 19 rows and the settings of the golden file: 5 values of c, 500 steps each, all rows in one call. What
the search asks of the network is recorded: a forward and a backward pass for every step, and a forward pass for the
iterates that are checked. Then the same passes run without the search, on tensors that are there already: in PyTorch
as `model(rows)` and `torch.autograd.grad`, in Keras as one compiled function that returns the output and the gradient,
and one that returns the output. Both run in turn in one process; `ratio` is the median of `repeats` pairs, `cpu_ratio`
the same of the processor's time, which other work on the machine disturbs less. One thread.

A small `Sequential` of stock layers has its gradients computed in NumPy, which takes about as long as autograd's bare
passes or less, and so has a module whose forward method is made of such layers and of sums, products, concatenations
and slices, such as residual connections. Any other module, such as one with attention or with a function that is not
known, is asked itself at every step.

The bare passes have a backward pass for every step. The search needs none at a step at which every row is in its class:
a fifth to a third of them here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import reference_network as networks
from reference import GOLDEN, loss_a

from cfproto_plugin import CounterfactualExplainer, adapt

REPEATS = 9


class Passes(NamedTuple):
    """What was asked of a network, in order."""

    steps: list[np.ndarray]  # rows (n, D) of a forward and a backward pass
    checks: list[np.ndarray]  # rows (n, D) of a forward pass


class Recorded:
    """An adapter that keeps the rows it is asked about."""

    def __init__(self, adapter: Any) -> None:
        self._adapter, self.passes = adapter, Passes([], [])

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.passes.checks.append(x.copy())
        found: np.ndarray = self._adapter.predict(x)
        return found

    def vjp(self, x: np.ndarray) -> Any:
        self.passes.steps.append(x.copy())
        return self._adapter.vjp(x)


def measure() -> list[dict[str, Any]]:
    """One line per network."""
    with np.load(GOLDEN) as golden:
        layers = [(golden[f"w{i}"], golden[f"b{i}"]) for i in (1, 2, 3)]
        x, train = golden["x"], golden["x_train"]
    models = {
        "PyTorch, evaluation mode": (networks.in_torch(layers).eval(), bare_torch),
        "PyTorch, training mode": (networks.in_torch(layers).train(), bare_torch),
        "PyTorch, a forward method of its own": (_with_own_forward(networks.in_torch(layers)), bare_torch),
        "PyTorch, a residual connection": (_with_residual(networks.in_torch(layers)), bare_torch),
        "PyTorch, concatenation and product": (_with_joins(networks.in_torch(layers)), bare_torch),
        "PyTorch, attention": (_with_attention(networks.in_torch(layers)), bare_torch),
        "PyTorch, a function that is not known": (_with_function(networks.in_torch(layers)), bare_torch),
        "Keras on TensorFlow, sequential": (networks.in_keras(layers), bare_keras),
        "Keras on TensorFlow, functional": (_functional(networks.in_keras(layers)), bare_keras),
        "Keras on TensorFlow, logits": (networks.in_keras(layers, softmax=False), bare_keras),
    }
    return [_line(name, model, bare, x, train) for name, (model, bare) in models.items()]


def _with_own_forward(inner: Any) -> Any:
    """The layers of the network in a module as most people write it."""
    import torch

    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = inner[0], inner[2], inner[4]

        def forward(self, rows: Any) -> Any:
            rows = torch.relu(self.first(rows))
            rows = torch.relu(self.second(rows))
            return torch.softmax(self.last(rows), dim=1)

    return Own().eval()


def _with_residual(inner: Any) -> Any:
    """The network with a residual block, h + relu(W h), before its last layer."""
    import torch

    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = inner[0], inner[2], inner[4]
            torch.manual_seed(0)
            self.block = torch.nn.Linear(self.last.in_features, self.last.in_features)

        def forward(self, rows: Any) -> Any:
            rows = torch.relu(self.second(torch.relu(self.first(rows))))
            rows = rows + torch.relu(self.block(rows))
            return torch.softmax(self.last(rows), dim=1)

    return Residual().eval()


def _with_joins(inner: Any) -> Any:
    """The network with a gate on its last hidden layer, which also sees the rows."""
    import torch

    class Joins(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = inner[0], inner[2], inner[4]
            torch.manual_seed(0)
            self.gate = torch.nn.Linear(self.first.in_features + self.last.in_features, self.last.in_features)

        def forward(self, rows: Any) -> Any:
            hidden = torch.relu(self.second(torch.relu(self.first(rows))))
            gate = torch.sigmoid(self.gate(torch.cat([rows, hidden], dim=1)))
            return torch.softmax(self.last(2 * hidden * gate), dim=1)

    return Joins().eval()


def _with_attention(inner: Any) -> Any:
    """The network with attention between groups of four units, h + attention(h), before its last layer."""
    import torch

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = inner[0], inner[2], inner[4]
            torch.manual_seed(0)
            self.attention = torch.nn.MultiheadAttention(4, 1, batch_first=True)

        def forward(self, rows: Any) -> Any:
            hidden = torch.relu(self.second(torch.relu(self.first(rows)))).reshape(len(rows), -1, 4)
            hidden = hidden + self.attention(hidden, hidden, hidden, need_weights=False)[0]
            return torch.softmax(self.last(hidden.flatten(1)), dim=1)

    return Attention().eval()


def _with_function(inner: Any) -> Any:
    """The network with its last hidden layer scaled by its length."""
    import torch

    class Function(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = inner[0], inner[2], inner[4]

        def forward(self, rows: Any) -> Any:
            hidden = torch.relu(self.second(torch.relu(self.first(rows))))
            return torch.softmax(self.last(5 * hidden / (1 + hidden.norm(dim=1, keepdim=True))), dim=1)

    return Function().eval()


def _functional(sequential: Any) -> Any:
    """The same layers as a functional model."""
    import keras

    rows = scores = keras.Input(sequential.input_shape[1:])
    for layer in sequential.layers:
        scores = layer(scores)
    return keras.Model(rows, scores)


def _line(
    name: str, model: Any, bare: Callable[..., Callable[[], None]], x: np.ndarray, train: np.ndarray
) -> dict[str, Any]:
    passes = recorded(model, x, train)
    explainer = CounterfactualExplainer(model, **loss_a()).fit(train)
    ours, theirs = in_turn(lambda: explainer.explain(x), bare(model, passes))
    pairs = ours / theirs
    return {
        "model": name,
        "rows": len(x),
        "found": int((explainer.explain(x).status == "found").sum()),
        "steps": len(passes.steps),
        "checks": len(passes.checks),
        "checked_rows": sum(map(len, passes.checks)),
        "ours_s": float(np.median(ours[:, 0])),
        "bare_s": float(np.median(theirs[:, 0])),
        "ratio": float(np.median(pairs[:, 0])),
        "cpu_ratio": float(np.median(pairs[:, 1])),
        "repeats": len(ours),
    }


def recorded(model: Any, x: np.ndarray, train: np.ndarray) -> Passes:
    """The passes of one call of `explain`."""
    adapter = Recorded(adapt(model))
    explainer = CounterfactualExplainer(adapter, **loss_a()).fit(train)
    adapter.passes = Passes([], [])
    explainer.explain(x)
    return adapter.passes


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and processor seconds of both, (repeats, 2) each, in turn after a run of each that does not count."""
    times: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for _ in range(REPEATS + 1):
        for work, taken in zip((ours, theirs), times, strict=True):
            start = _now()
            work()
            taken.append(_now() - start)
    return np.array(times[0][1:]), np.array(times[1][1:])


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def bare_torch(model: Any, passes: Passes) -> Callable[[], None]:
    """The passes as a loop over tensors."""
    import torch

    steps = [torch.from_numpy(rows.astype(np.float32)).requires_grad_() for rows in passes.steps]
    checks = [torch.from_numpy(rows.astype(np.float32)) for rows in passes.checks]
    seeds = {len(rows): torch.ones(len(rows), 2) for rows in steps}

    def run() -> None:
        for rows in steps:
            torch.autograd.grad(model(rows), rows, seeds[len(rows)])
        with torch.no_grad():
            for rows in checks:
                model(rows)

    return run


def bare_keras(model: Any, passes: Passes) -> Callable[[], None]:
    """The passes as two compiled functions over tensors."""
    import tensorflow as tf

    spec = tf.TensorSpec([None, passes.steps[0].shape[1]], tf.float32)

    @tf.function(input_signature=[spec])
    def step(rows: Any) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(rows)
            scores = model(rows, training=False)
        return scores, tape.gradient(scores, rows)

    @tf.function(input_signature=[spec])
    def check(rows: Any) -> Any:
        return model(rows, training=False)

    steps = [tf.constant(rows.astype(np.float32)) for rows in passes.steps]
    checks = [tf.constant(rows.astype(np.float32)) for rows in passes.checks]

    def run() -> None:
        for rows in steps:
            step(rows)
        for rows in checks:
            check(rows)

    return run
