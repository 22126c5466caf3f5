"""Loss E with an encoder on images of MNIST's size, PyTorch, 1,000 steps.

The paper's classifier and encoder with random weights, since only time is measured, on scikit-learn's digits enlarged
to 28x28. The reference implementation takes 2.6 s for one row on a comparable machine. `floor_s` is the same number of
bare forward and backward passes of the encoder for as many rows: what no search can go below. Two threads.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, SearchConfig

STEPS = 1000
REFERENCE = 2.6
ROWS = (1, 50)
REPEATS = 3


def measure() -> list[dict[str, Any]]:
    """One line per number of rows."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(2)
    images = _images()
    encoder, classifier = _encoder(), _classifier()
    search = SearchConfig.paper("E", max_iterations=STEPS, fallback=False)
    explainer = CounterfactualExplainer(classifier, encoder=encoder, search=search).fit(images)
    passes: list[int] = []
    encoder.register_forward_hook(lambda _module, _inputs, output: passes.append(len(output)))
    lines = []
    for rows in ROWS:
        x = images[:rows]
        explainer.explain(x[:1], progress=False)
        passes.clear()
        taken = _best(lambda: explainer.explain(x, progress=False))  # noqa: B023 called at once
        counted = len(passes) // REPEATS
        floor = _best(lambda: _passes(encoder, x))  # noqa: B023 called at once
        lines.append(
            {
                "rows": rows,
                "encoder_passes": counted,
                "seconds": taken,
                "seconds_per_row": taken / rows,
                "times_faster_per_row": REFERENCE * rows / taken,
                "floor_s": floor,
                "above_floor": taken / floor,
            }
        )
    return lines


def _best(work: Any) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _passes(encoder: Any, x: np.ndarray) -> None:
    """The squared norm of the encoding and its gradient, repeated."""
    import torch

    tensor = torch.from_numpy(x)
    for _ in range(STEPS):
        leaf = tensor.detach().requires_grad_()
        encoder(leaf).square().sum().backward()


def _images() -> np.ndarray:
    from sklearn.datasets import load_digits

    small = load_digits().images[:600] / 16 - 0.5
    large = np.kron(small, np.ones((3, 3)))
    return np.pad(large, ((0, 0), (2, 2), (2, 2)), constant_values=-0.5)[:, None].astype(np.float32)


def _encoder() -> Any:
    import torch
    from torch import nn

    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
    last = nn.Conv2d(16, 1, 3, padding=1)
    with torch.no_grad():
        last.weight.mul_(20)  # a gradient that moves the pixels, as a trained encoder's does
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2), last).eval()


def _classifier() -> Any:
    """The paper's network; its last layer is made to tell the images apart, so that every class has some."""
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    body = nn.Sequential(
        nn.ZeroPad2d((0, 1, 0, 1)),
        nn.Conv2d(1, 64, 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ZeroPad2d((0, 1, 0, 1)),
        nn.Conv2d(64, 32, 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, 256),
        nn.ReLU(),
    )
    head = nn.Linear(256, 10)
    with torch.no_grad():
        seen = body(torch.from_numpy(_images()))
        wanted = nn.functional.one_hot(torch.from_numpy(load_digits().target[:600]), 10).float() * 10
        head.weight.copy_(torch.linalg.lstsq(seen, wanted).solution.T)
        head.bias.zero_()
    return nn.Sequential(body, head, nn.Softmax(dim=1)).eval()
