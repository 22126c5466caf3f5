"""Neural networks as adapters: what the numbers they return mean, and how gradients pass back through that.

NumPy only: the PyTorch and the Keras adapters each bring a `Network`, everything after its last layer is here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.protocols import Array, Role, softmax

log = logging.getLogger(__name__)

Meaning: TypeAlias = Literal["logits", "probabilities"]
Output: TypeAlias = Literal["auto", "logits", "probabilities"]
Pullback: TypeAlias = Callable[[Array], Array]

SUM_TOLERANCE = 5e-3  # of the sum of a row of probabilities computed in half precision
_LOCK = threading.Lock()


class Network(Protocol):
    """A framework's model as a function of NumPy arrays; scores are float32 or float64."""

    name: str

    def forward(self, x: Array) -> Array:
        """Return the scores of the rows in inference mode."""
        ...

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the scores, and the map of dL/dscores to dL/dx in the dtype of x."""
        ...

    def ending(self, x: Array) -> Meaning | None:
        """Return what the operation that made the scores says about them: softmax, sigmoid, linear; None if unclear."""
        ...


class NetworkAdapter:
    """A network as a classifier that gives (n, k) probabilities, or as a transform that gives its output as it is.

    output: "logits", "probabilities", or "auto", which decides on the first rows seen and remembers:

    1. by the operation that made the output: a softmax or a sigmoid gives probabilities; a linear layer or a
       log-softmax gives logits (softmax(log p) = p);
    2. where that cannot be seen (a compiled model, an unusual last step), by values: probabilities if every row is
       non-negative and sums to one, or lies in [0, 1] where there is one column. A single row may do so by luck, so
       points between the rows and zero are looked at too.

    Where probabilities are announced, by the caller or by the last operation, and the values are none, ModelError is
    raised. One column, (n, 1) or (n,), is the second of two classes.
    """

    def __init__(self, network: Network, *, role: Role, output: Output) -> None:
        if output not in get_args(Output):
            raise InputError(f"output={output!r}: expected one of {', '.join(map(repr, get_args(Output)))}")
        self._network = network
        self._role = role
        self._output = output
        self._meaning: Meaning | None = "logits" if output == "logits" else None

    def predict(self, x: Array) -> Array:
        scores = self._network.forward(x)
        if self._role == "transform":
            return self._checked_transform(scores, len(x))
        return _probabilities(self._rows(scores, len(x)), self._meaning or self._decide(x))

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        scores, pull = self._network.vjp(x)
        if self._role == "transform":
            return self._checked_transform(scores, len(x)), pull
        meaning = self._meaning or self._decide(x)
        rows = self._rows(scores, len(x))
        y = _probabilities(rows, meaning)

        def pullback(cotangent: Array) -> Array:
            return pull(_pull_probabilities(cotangent, y, rows.shape[1], meaning).reshape(scores.shape))

        return y, pullback

    def _decide(self, x: Array) -> Meaning:
        """Find out what the scores mean. Several threads may do so at once: the first answer stays."""
        probes = _probes(x)
        likely = _are_probabilities(self._rows(self._network.forward(probes), len(probes)))
        by_values: Meaning = "probabilities" if likely else "logits"
        told: Meaning | None = None if self._output == "auto" else self._output
        ending = None if told else self._network.ending(probes[:1])
        found = told or ending or by_values
        source = f"output={told!r}" if told else "its last operation" if ending else "the values it returns"
        if found == "probabilities" and not likely:
            raise ModelError(
                f"{self._network.name} gives probabilities according to {source}, but some rows of its output are "
                'negative or do not sum to one. Pass output="logits" if they are logits; wrap a model with several '
                "independent sigmoids so that its rows are the probabilities of exclusive classes."
            )
        with _LOCK:
            if self._meaning is None:
                self._meaning = found
                log.info("%s: output read as %s, from %s", self._network.name, found, source)
        return self._meaning

    def _rows(self, scores: Array, n: int) -> Array:
        """Scores as (n, k). A model that squeezes its one column returns (n,), and () for a single row."""
        if scores.shape == (n,) or (scores.ndim == 0 and n == 1):
            return scores.reshape(n, 1)
        if scores.ndim != 2 or len(scores) != n:  # noqa: PLR2004
            raise ModelError(
                f"{self._network.name} returned shape {scores.shape} for {n} rows; a classifier returns ({n}, k), or "
                f'({n},) for two classes. Flatten it in a wrapper; for an encoder or autoencoder use role="transform".'
            )
        return scores

    def _checked_transform(self, scores: Array, n: int) -> Array:
        if scores.ndim == 0 or len(scores) != n:
            raise ModelError(
                f"{self._network.name} returned shape {scores.shape} for {n} rows; expected one item per row."
            )
        return scores


def _probabilities(rows: Array, meaning: Meaning) -> Array:
    """Softmax if (n, k) are logits. One column z is completed to (0, z) as a logit, to (1 - z, z) as a probability."""
    if rows.shape[1] == 1:
        first = np.zeros_like(rows) if meaning == "logits" else 1 - rows
        rows = np.concatenate([first, rows], axis=1)
    return softmax(rows) if meaning == "logits" else rows


def _pull_probabilities(g: Array, y: Array, k: int, meaning: Meaning) -> Array:
    """dL/dy to dL/drows: y (g - <g, y>) for a softmax; the one column of a pair takes g_1, or g_1 - g_0."""
    if meaning == "logits":
        g = y * (g - (g * y).sum(axis=1, keepdims=True))
        return g[:, 1:] if k == 1 else g
    return g[:, 1:] - g[:, :1] if k == 1 else g


def _probes(x: Array) -> Array:
    """A few rows, and points between them and zero: inside the range of the data, where category codes stay valid."""
    rows = x[:8] if len(x) else np.zeros((1, *x.shape[1:]), x.dtype)
    return np.concatenate([rows * t for t in (1.0, 0.75, 0.5, 0.25, 0.0)])


def _are_probabilities(rows: Array) -> bool:
    """Whether no row contradicts it; a row with missing values says nothing."""
    if (rows < 0).any() or (rows > 1 + SUM_TOLERANCE).any():
        return False
    return rows.shape[1] == 1 or not (np.abs(rows.sum(axis=1) - 1) > SUM_TOLERANCE).any()
