"""Dense networks, trained with torch as the appendix of the paper says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch

Weights = dict[str, Any]


def layers(
    widths: tuple[int, ...], linear: tuple[int, ...] = (), start: Literal["keras", "torch"] = "keras"
) -> torch.nn.Sequential:
    """Linear layers with ReLU between them; none after the last, nor after the layers whose numbers are `linear`.

    They start as those of Keras do, which the paper's reference is written in: Glorot's uniform weights, no bias; or as
    those of PyTorch.
    """
    modules: list[torch.nn.Module] = []
    last = len(widths) - 2
    for number, (n_in, n_out) in enumerate(pairwise(widths)):
        layer = torch.nn.Linear(n_in, n_out)
        if start == "keras":
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)
        modules.append(layer)
        if number != last and number not in linear:
            modules.append(torch.nn.ReLU())
    return torch.nn.Sequential(*modules)


def classifier(start: Literal["keras", "torch"] = "keras") -> torch.nn.Sequential:
    """30-40-40-2, ReLU."""
    return layers((30, 40, 40, 2), start=start)


def autoencoder(start: Literal["keras", "torch"] = "keras") -> torch.nn.Sequential:
    """30-20-10-6-10-20-30, ReLU but for the code and the output."""
    return layers((30, 20, 10, 6, 10, 20, 30), linear=(2,), start=start)


def train(
    network: torch.nn.Module, x: Any, y: Any, *, epochs: int, rate: float, adam: bool, batch: int = 128
) -> torch.nn.Module:
    """Minimise cross entropy for labels y, mean squared error if y are rows."""
    inputs, targets = torch.from_numpy(np.asarray(x, dtype=np.float32)), torch.from_numpy(np.asarray(y))
    loss: Callable[..., torch.Tensor] = (
        torch.nn.functional.mse_loss if targets.ndim > 1 else torch.nn.functional.cross_entropy
    )
    optimiser = (torch.optim.Adam if adam else torch.optim.SGD)(network.parameters(), lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(batch):
            optimiser.zero_grad()
            loss(network(inputs[rows]), targets[rows]).backward()
            optimiser.step()
    return network


def weights(network: torch.nn.Module, prefix: str = "") -> Weights:
    """The parameters by name, to be kept in a file."""
    return {prefix + name: value.detach().numpy() for name, value in network.state_dict().items()}


def loaded(network: torch.nn.Module, kept: Weights, prefix: str = "") -> torch.nn.Module:
    """The network with the parameters of a file."""
    network.load_state_dict(
        {name[len(prefix) :]: torch.from_numpy(v) for name, v in kept.items() if name.startswith(prefix)}
    )
    return network.eval()
