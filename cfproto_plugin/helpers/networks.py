"""Neural networks of any framework as adapters: a plugin brings a `Network`, this module what follows its output."""

from __future__ import annotations

from typing import Protocol

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers.probabilities import Meaning, Output, ScoreReader, score_rows
from cfproto_plugin.protocols import Array, Pullback, Role


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

    output: "logits", "probabilities" or "auto": see `ScoreReader`.
    """

    def __init__(self, network: Network, *, role: Role, output: Output) -> None:
        self._network = network
        self._role = role
        self._reader = ScoreReader(network.name, output)

    def predict(self, x: Array) -> Array:
        scores = self._network.forward(x)
        if self._role == "transform":
            return self._checked_transform(scores, len(x))
        rows = score_rows(scores, len(x), self._network.name)
        return self._reader.probabilities(rows, self._meaning(x))

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        scores, pull = self._network.vjp(x)
        if self._role == "transform":
            return self._checked_transform(scores, len(x)), pull
        meaning = self._meaning(x)
        rows = score_rows(scores, len(x), self._network.name)
        y = self._reader.probabilities(rows, meaning)

        def pullback(cotangent: Array) -> Array:
            return pull(self._reader.pull(cotangent, y, rows.shape[1], meaning).reshape(scores.shape))

        return y, pullback

    def _meaning(self, x: Array) -> Meaning:
        return self._reader.meaning(x, self._network.forward, self._network.ending)

    def _checked_transform(self, scores: Array, n: int) -> Array:
        if scores.ndim == 0 or len(scores) != n:
            raise ModelError(
                f"{self._network.name} returned shape {scores.shape} for {n} rows; expected one item per row."
            )
        return scores
