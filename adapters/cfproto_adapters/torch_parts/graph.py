"""A network as NumPy stages that take what one or several stages before them give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from cfproto_plugin.protocols import Array, Pullback


class Join(Protocol):
    """A stage that takes several arrays (n, columns)."""

    def __call__(self, *x: Array) -> Array:
        """Return y = f(x_1, x_2, ...)."""
        ...

    def pulls(self, g: Array, x: Sequence[Array]) -> Sequence[Array]:
        """Return dL/dx_1, dL/dx_2, ... from g = dL/dy."""
        ...


class Add:
    """y = x_1 + x_2, where one of them may have a single column."""

    def __call__(self, *x: Array) -> Array:
        return np.asarray(x[0] + x[1])

    def pulls(self, g: Array, x: Sequence[Array]) -> Sequence[Array]:
        return _summed(g, x[0]), _summed(g, x[1])


class Multiply:
    """y = x_1 x_2, likewise."""

    def __call__(self, *x: Array) -> Array:
        return np.asarray(x[0] * x[1])

    def pulls(self, g: Array, x: Sequence[Array]) -> Sequence[Array]:
        return _summed(g * x[1], x[0]), _summed(g * x[0], x[1])


class Concatenate:
    """y = [x_1, x_2, ...] by columns."""

    def __call__(self, *x: Array) -> Array:
        return np.concatenate(x, axis=1)

    def pulls(self, g: Array, x: Sequence[Array]) -> Sequence[Array]:
        return np.split(g, np.cumsum([each.shape[1] for each in x[:-1]]), axis=1)


@dataclass(frozen=True)
class Columns:
    """y = x[:, start:stop:step]."""

    start: int
    stop: int
    step: int

    def __call__(self, x: Array) -> Array:
        return x[:, self.start : self.stop : self.step]

    def pull(self, g: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        whole = np.zeros_like(x)
        whole[:, self.start : self.stop : self.step] = g
        return whole


def _summed(g: Array, x: Array) -> Array:
    """dL/dx where x was repeated to the columns of g."""
    return g if g.shape == x.shape else g.sum(axis=1, keepdims=True)


class Node(NamedTuple):
    """A stage, and what it takes: 0 is the rows, i what the i-th node gives."""

    stage: Any  # a Stage of numpy_chain if it takes one array, else a Join
    sources: tuple[int, ...]


class Graph:
    """Nodes in order. The last one's result is that of the graph; all arrays have the dtype of the rows."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = tuple((at, *node) for at, node in enumerate(nodes, start=1))
        self._reversed = self._nodes[::-1]

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the output and the pullback."""
        values = [x]
        for _, stage, sources in self._nodes:
            values.append(stage(values[sources[0]]) if len(sources) == 1 else stage(*[values[at] for at in sources]))

        def pullback(g: Array) -> Array:
            slopes: list[Any] = [None] * len(values)  # None where the result does not depend on it
            slopes[-1] = g
            for at, stage, sources in self._reversed:
                slope = slopes[at]
                if slope is None:
                    continue
                if len(sources) == 1:
                    pulled = [stage.pull(slope, values[sources[0]], values[at])]
                else:
                    pulled = stage.pulls(slope, [values[source] for source in sources])
                for source, part in zip(sources, pulled, strict=True):
                    known = slopes[source]
                    slopes[source] = part if known is None else known + part
            return np.asarray(slopes[0])

        return values[-1], pullback
