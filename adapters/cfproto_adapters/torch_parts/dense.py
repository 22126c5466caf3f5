"""Small dense networks of PyTorch as NumPy stages, whose gradients take a third of autograd's time.

Only what is certain is read: stock layers of exactly these types, without hooks, on the CPU. Everything else is left to
the module itself, and so are all predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from cfproto_adapters.numpy_chain import (
    Chain,
    Clamp,
    Dense,
    Elu,
    Gelu,
    HardTanh,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Normalise,
    NormaliseRows,
    Relu,
    Scale,
    Selu,
    Silu,
    Softmax,
    Stage,
    Tanh,
)
from cfproto_adapters.torch_parts.forwards import HOOKS, is_changed, is_genuine, is_stock, steps_of
from cfproto_adapters.torch_parts.graph import Add, Columns, Concatenate, Graph, Join, Multiply, Node
from cfproto_adapters.torch_parts.rows import FUNCTIONS, OPERATORS, Step, Unread
from cfproto_plugin.protocols import Array, Pullback

_MOST_WEIGHTS = 100_000  # beyond, the time around the layers hardly counts
_CLOSE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}  # of the largest number: rounding stays below


class DenseNetwork:
    """A graph or chain in the dtype of its weights, which a module demands of its rows, too."""

    def __init__(self, graph: Graph | Chain, columns: int, dtype: Any) -> None:
        self._graph, self._columns, self._dtype = graph, columns, dtype

    def takes(self, x: Array) -> bool:
        """Whether x are rows (n, columns) of floats; the module itself says what is wrong with others."""
        return x.ndim == 2 and x.shape[1] == self._columns and x.dtype.kind == "f"  # noqa: PLR2004

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the scores, and the map of dL/dscores to dL/dx in the dtype of x."""
        y, pull = self._graph.vjp(x.astype(self._dtype, copy=False))
        return y, lambda cotangent: pull(cotangent.astype(self._dtype, copy=False)).astype(x.dtype, copy=False)

    def agrees(self, x: Array, scores: Array, pullback: Pullback) -> bool:
        """Whether scores and gradients at rows x are those of the module, up to rounding."""
        found, pull = self.vjp(x)
        if found.shape != scores.shape or found.dtype != scores.dtype:
            return False
        seed = np.random.default_rng(0).standard_normal(scores.shape).astype(scores.dtype)
        return self._is_close(found, scores) and self._is_close(pull(seed), pullback(seed))

    def _is_close(self, a: Array, b: Array) -> bool:
        size = np.abs(b[np.isfinite(b)]).max(initial=0)
        return bool(np.allclose(a, b, rtol=0, atol=_CLOSE[np.dtype(self._dtype)] * size, equal_nan=True))


def dense_network(model: Any, columns: int) -> DenseNetwork | None:
    """The module as a graph that reads its weights where they are; None if there is any doubt about what it computes.

    columns: of the rows. Any Sequential or forward method made of Linear, ReLU, ReLU6, LeakyReLU, ELU, SELU, GELU,
    SiLU, Hardtanh, Tanh, Sigmoid, BatchNorm1d, LayerNorm, Softmax and LogSoftmax over the columns, Dropout,
    Flatten and Identity, as layers or (but the norms) as functions, of clamp, and of sums, differences and products of
    rows with rows, numbers, parameters or buffers, concatenations and slices of columns.
    """
    if _is_watched() or not _is_unpatched():
        return None
    try:
        nodes = _nodes(steps_of(model, columns))
    except Unread:
        return None
    weights = [stage.weight for stage, _ in nodes if isinstance(stage, Dense)]
    floats = {value.dtype for stage, _ in nodes for value in _arrays(stage).values() if value.ndim}
    if not weights or len(floats) != 1 or sum(weight.size for weight in weights) > _MOST_WEIGHTS:
        return None
    dtype = floats.pop()
    nodes = [_with_numbers(node, dtype) for node in nodes]
    return DenseNetwork(_chain(nodes) or Graph(nodes), columns, dtype)


def _chain(nodes: Sequence[Node]) -> Chain | None:
    """The nodes as a chain, which takes 4 us a step less, if each of them takes what the one before gives."""
    if any(isinstance(stage, Columns) or sources != (at,) for at, (stage, sources) in enumerate(nodes)):
        return None
    return Chain([stage for stage, _ in nodes])


def _nodes(steps: Sequence[Step]) -> list[Node]:
    """Steps as nodes, without those that do nothing."""
    nodes: list[Node] = []
    place = [0]  # of what each step gives
    for step in steps:
        stage, sources = _stage(step), tuple(place[at] for at in step.sources)
        if stage is None:
            place.append(sources[0])
        else:
            nodes.append(Node(stage, sources))
            place.append(len(nodes))
    return nodes[: place[-1]]


def _arrays(stage: Any) -> dict[str, Array]:
    return {name: value for name, value in vars(stage).items() if isinstance(value, np.ndarray)}


def _with_numbers(node: Node, dtype: Any) -> Node:
    """The node with its single numbers in the dtype of the weights."""
    numbers = {name: value.astype(dtype) for name, value in _arrays(node.stage).items() if not value.ndim}
    return node._replace(stage=replace(node.stage, **numbers)) if numbers else node


def _is_watched() -> bool:
    """Whether somebody hooked into all modules, follows every operation or changes its precision; yes if unclear."""
    import torch
    from torch.nn.modules import module
    from torch.utils import _python_dispatch

    if any(getattr(module, f"_global{name}", ()) for name in HOOKS):
        return True
    try:
        modes: Any = _python_dispatch
        return bool(
            torch.is_autocast_enabled("cpu")
            or torch.overrides._get_current_function_mode()  # noqa: SLF001 there is no public name
            or modes._get_current_dispatch_mode()  # noqa: SLF001
        )
    except (AttributeError, TypeError):  # another version of PyTorch
        return True


def _is_unpatched() -> bool:
    """Whether the functions that the layers use, and the methods that call them, are PyTorch's own."""
    import torch

    functional, layers = torch.nn.functional, torch.nn.Module
    places = (torch, functional, torch.Tensor)
    used = [(name, getattr(place, name)) for name in FUNCTIONS for place in places if hasattr(place, name)]
    used += [(name, getattr(functional, name)) for name in ("linear", "batch_norm", "layer_norm")]
    used += [(name, getattr(layers, name)) for name in ("_call_impl", "_wrapped_call_impl")]
    compiled = (MethodDescriptorType, WrapperDescriptorType)
    operators = all(type(getattr(torch.Tensor, name)) in compiled for name in OPERATORS)
    return operators and all(is_genuine(*each) for each in used) and layers.__call__ is layers._wrapped_call_impl  # noqa: SLF001


def _stage(step: Step) -> Stage | Join | None:
    """A step as a stage; None if it does nothing to rows (n, columns) in evaluation mode."""
    if step.layer is not None:
        return _layer(step.layer)
    known: dict[str, Callable[..., Stage | Join]] = {
        "relu": Relu,
        "tanh": Tanh,
        "sigmoid": Logistic,
        "softmax": Softmax,
        "log_softmax": LogSoftmax,
        "silu": Silu,
        "leaky_relu": _leaky,
        "elu": _elu,
        "gelu": _gelu,
        "selu": Selu,
        "clamp": lambda low, high: Clamp(*_ends(low, high)),
        "hardtanh": lambda low, high: HardTanh(*_ends(low, high)),
        "scale": _scale,
        "columns": Columns,
        "add": Add,
        "mul": Multiply,
        "cat": Concatenate,
    }
    return known[step.name](*step.numbers)


def _layer(layer: Any) -> Stage | None:
    import torch

    nn = torch.nn
    simple: dict[type, type[Stage]] = {nn.ReLU: Relu, nn.Tanh: Tanh, nn.Sigmoid: Logistic, nn.SiLU: Silu, nn.SELU: Selu}
    over_columns: dict[type, type[Stage]] = {nn.Softmax: Softmax, nn.LogSoftmax: LogSoftmax}
    weighted: dict[type, Callable[[Any], Stage]] = {
        nn.Linear: _dense,
        nn.BatchNorm1d: _normalise,
        nn.LayerNorm: _normalise_rows,
        nn.LeakyReLU: lambda found: _leaky(found.negative_slope),
        nn.ELU: lambda found: _elu(found.alpha),
        nn.GELU: lambda found: _gelu(found.approximate),
        nn.Hardtanh: lambda found: HardTanh(*_ends(found.min_val, found.max_val)),
        nn.ReLU6: lambda found: HardTanh(*_ends(found.min_val, found.max_val)),
    }
    kind = type(layer)
    if is_changed(layer) or not is_stock(layer):
        raise Unread
    if kind in simple:
        return simple[kind]()
    if kind in over_columns and layer.dim in {1, -1}:
        return over_columns[kind]()
    if kind in weighted:
        return weighted[kind](layer)
    idle = (
        kind is nn.Identity
        or (kind is nn.Dropout and not layer.training)
        or (kind is nn.Flatten and layer.start_dim in {1, -1} and layer.end_dim in {1, -1})
    )
    if not idle:
        raise Unread
    return None


def _scale(*values: Any) -> Scale:
    return Scale(*[value if value is None else _by(value) for value in values])


def _by(value: Any) -> Array:
    """A number, or the memory of a parameter or buffer."""
    return np.asarray(value) if type(value) in {int, float} else _array(value, value.shape)


def _leaky(slope: Any) -> LeakyRelu:
    if type(slope) not in {int, float} or not slope >= 0:
        raise Unread
    return LeakyRelu(np.asarray(slope, np.float64))


def _elu(alpha: Any) -> Elu:
    if type(alpha) not in {int, float} or not alpha >= 0:
        raise Unread
    return Elu(np.asarray(alpha, np.float64))


def _gelu(approximate: Any) -> Gelu:
    if type(approximate) is not str or approximate != "none":
        raise Unread
    return Gelu()


def _ends(low: Any, high: Any) -> tuple[Array, Array]:
    """The ends of an interval; where there is None it has none."""
    if {type(low), type(high)} - {int, float, type(None)}:
        raise Unread
    return np.asarray(-np.inf if low is None else low, np.float64), np.asarray(
        np.inf if high is None else high, np.float64
    )


def _dense(layer: Any) -> Dense:
    """A linear layer whose arrays are the memory of its parameters."""
    weight = _array(layer.weight, (layer.out_features, layer.in_features))
    if layer.bias is None:
        return Dense(weight.T, np.zeros(len(weight), weight.dtype))
    return Dense(weight.T, _array(layer.bias, (layer.out_features,)))


def _normalise(layer: Any) -> Normalise:
    """A batch norm with the statistics of its training, likewise."""
    if layer.training or layer.running_mean is None or layer.running_var is None or type(layer.eps) is not float:
        raise Unread
    shape = (layer.num_features,)
    mean, variance = _array(layer.running_mean, shape), _array(layer.running_var, shape)
    factor, offset = (None if part is None else _array(part, shape) for part in (layer.weight, layer.bias))
    return Normalise(mean, variance, np.asarray(layer.eps, mean.dtype), factor, offset)


def _normalise_rows(layer: Any) -> NormaliseRows:
    """A layer norm over the columns, likewise."""
    if type(layer.eps) is not float:
        raise Unread
    shape = layer.normalized_shape
    factor, offset = (None if part is None else _array(part, shape) for part in (layer.weight, layer.bias))
    return NormaliseRows(np.asarray(layer.eps), factor, offset)


def _array(tensor: Any, shape: tuple[int, ...]) -> Array:
    """The memory of a parameter or buffer of this shape; Unread where that is not plain memory."""
    import torch

    plain = type(tensor) in {torch.nn.Parameter, torch.Tensor} and tensor.is_cpu and tensor.layout is torch.strided
    if not plain or tensor.dtype not in {torch.float32, torch.float64} or tensor.shape != shape:
        raise Unread
    if tensor.is_neg() or tensor.is_conj():
        raise Unread
    array: Array = tensor.detach().numpy()
    return array
