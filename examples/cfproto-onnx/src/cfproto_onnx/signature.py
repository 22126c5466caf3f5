"""What a session takes and gives, read from its own description."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from cfproto_plugin.errors import ModelError
from cfproto_plugin.protocols import Array, Role

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

DTYPES: dict[str, type] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
MAPS = "seq(map("


@dataclass(frozen=True)
class Input:
    """The one input: its name, dtype, the shape of a row (None where any size is accepted), and a fixed batch size."""

    name: str
    dtype: type
    shape: tuple[int | None, ...]
    batch: int | None

    @classmethod
    def of(cls, session: InferenceSession) -> Self:
        inputs = session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(node.name for node in inputs)
            raise ModelError(
                f"the session has {len(inputs)} inputs ({names}); expected one that takes all columns. Export the "
                "model with one input, or pass a function x -> probabilities that feeds them."
            )
        (node,) = inputs
        if node.type not in DTYPES:
            raise ModelError(f"the input {node.name!r} takes {node.type}; expected one of {', '.join(DTYPES)}.")
        if not node.shape:
            raise ModelError(f"the input {node.name!r} has the shape {node.shape}; expected rows as (n, ...).")
        batch, *shape = (size if isinstance(size, int) else None for size in node.shape)
        return cls(node.name, DTYPES[node.type], tuple(shape), batch)

    def batches(self, x: Array) -> Iterator[tuple[Array, int]]:
        """Rows as the session takes them, and how many of them count: a short batch is filled with its last row."""
        rows = self._converted(x)
        size = self.batch or max(1, len(rows))
        for start in range(0, max(1, len(rows)), size):
            part = rows[start : start + size]
            missing = (self.batch or len(part)) - len(part)
            yield (np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part), len(part)

    def _converted(self, x: Array) -> Array:
        if np.issubdtype(self.dtype, np.integer) and not np.array_equal(x, np.rint(x)):
            raise ModelError(
                f"the input {self.name!r} takes {np.dtype(self.dtype)} and a row holds fractions. Say which columns "
                "are whole numbers with Features(integer=...)."
            )
        fits = len(x.shape) == 1 + len(self.shape) and all(
            size in {None, got} for size, got in zip(self.shape, x.shape[1:], strict=True)
        )
        if fits:
            return np.ascontiguousarray(x, dtype=self.dtype)
        sizes = [size for size in self.shape if size is not None]
        if len(sizes) < len(self.shape) or math.prod(sizes) != math.prod(x.shape[1:]):
            expected = ", ".join("any" if size is None else str(size) for size in self.shape)
            raise ModelError(f"rows have the shape {x.shape[1:]}; the input {self.name!r} takes ({expected}).")
        return np.ascontiguousarray(x, dtype=self.dtype).reshape(len(x), *sizes)


def score_output(session: InferenceSession, name: str | None, role: Role) -> str:
    """The output that holds the probabilities, logits or encodings."""
    outputs = {node.name: node for node in session.get_outputs()}
    if name is not None:
        if name not in outputs:
            raise ModelError(f"the session has no output {name!r}; it has {_listed(outputs.values())}.")
        return name
    maps = [node.name for node in outputs.values() if node.type.startswith(MAPS) and role == "classifier"]
    found = maps or tensor_names(session, FLOATS)
    if len(found) > 1:
        found = [name for name in found if "probab" in name.lower()]
    if len(found) != 1:
        raise ModelError(
            f"the session has the outputs {_listed(outputs.values())}, and which holds the probabilities is not clear. "
            "Choose with adapt(session, output_name=...); labels alone are not enough."
        )
    return found[0]


def tensor_names(session: InferenceSession, types: tuple[str, ...]) -> list[str]:
    """The outputs of these types."""
    return [node.name for node in session.get_outputs() if node.type in types]


def _listed(nodes: Any) -> str:
    return ", ".join(f"{node.name!r} ({node.type})" for node in nodes)
