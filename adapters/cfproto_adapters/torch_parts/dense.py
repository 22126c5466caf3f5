"""Small dense networks of PyTorch as a chain of NumPy stages, whose gradients take a third of autograd's time.

Only what is certain is read: stock layers of exactly these types, without hooks, on the CPU. Everything else is left to
the module itself, and so are all predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cfproto_adapters.numpy_chain import Chain, Dense, Logistic, Relu, Softmax, Stage, Tanh
from cfproto_plugin.protocols import Array, Pullback

_MOST_WEIGHTS = 100_000  # beyond, the time around the layers hardly counts
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class DenseChain:
    """A chain in the dtype of its weights, which a module demands of its rows, too."""

    def __init__(self, stages: Sequence[Stage], columns: int, dtype: Any) -> None:
        self._chain, self._columns, self._dtype = Chain(stages), columns, dtype

    def takes(self, x: Array) -> bool:
        """Whether x are rows (n, columns) of floats; the module itself says what is wrong with others."""
        return x.ndim == 2 and x.shape[1] == self._columns and x.dtype.kind == "f"  # noqa: PLR2004

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the scores, and the map of dL/dscores to dL/dx in the dtype of x."""
        y, pull = self._chain.vjp(x.astype(self._dtype, copy=False))
        return y, lambda cotangent: pull(cotangent.astype(self._dtype, copy=False)).astype(x.dtype, copy=False)


def dense_chain(model: Any) -> DenseChain | None:
    """The module as a chain that reads its weights where they are; None if there is any doubt about what it computes.

    A Sequential, or Sequentials in such, of Linear, ReLU, Tanh, Sigmoid, Softmax over the columns, and Identity.
    """
    import torch

    if type(model) is not torch.nn.Sequential or _is_watched():
        return None
    layers = _layers(model)
    if layers is None:
        return None
    stages = [_stage(layer) for layer in layers if type(layer) is not torch.nn.Identity]
    if not stages or not all(stages) or not isinstance(stages[0], Dense):
        return None
    dense = [stage for stage in stages if isinstance(stage, Dense)]
    fitting = all(a.weight.shape[1] == b.weight.shape[0] for a, b in pairwise(dense))
    alike = len({stage.weight.dtype for stage in dense}) == 1
    small = sum(stage.weight.size for stage in dense) <= _MOST_WEIGHTS
    if not (fitting and alike and small):
        return None
    first = dense[0].weight
    return DenseChain([stage for stage in stages if stage is not None], len(first), first.dtype)


def _is_watched() -> bool:
    """Whether somebody hooked into all modules, follows every operation or changes its precision; yes if unclear."""
    import torch
    from torch.nn.modules import module
    from torch.utils import _python_dispatch

    if any(getattr(module, f"_global{name}", ()) for name in _HOOKS):
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


def _layers(module: Any) -> list[Any] | None:
    """The layers of a Sequential in order; None if one of them may do more than its type says."""
    import torch

    if _is_changed(module):
        return None
    if type(module) is not torch.nn.Sequential:
        return [module]
    found: list[Any] = []
    for child in module:
        layers = _layers(child)
        if layers is None:
            return None
        found += layers
    return found


def _is_changed(module: Any) -> bool:
    """Whether hooks, a compiled call or a method of its own make a module of a stock type compute something else."""
    own = vars(module)
    hooked = any(own.get(name) for name in _HOOKS)
    stock = str(type(module).forward.__module__).startswith("torch.nn.modules.")
    return hooked or not stock or "forward" in own or own.get("_compiled_call_impl") is not None


def _stage(layer: Any) -> Stage | None:
    """A layer as a stage; None if it is none of those known."""
    import torch

    simple: dict[type, type[Stage]] = {torch.nn.ReLU: Relu, torch.nn.Tanh: Tanh, torch.nn.Sigmoid: Logistic}
    if type(layer) in simple:
        return simple[type(layer)]()
    if type(layer) is torch.nn.Softmax:
        return Softmax() if layer.dim in {1, -1} else None
    return _dense(layer) if type(layer) is torch.nn.Linear else None


def _dense(layer: Any) -> Dense | None:
    """A linear layer whose arrays are the memory of its parameters; None where that is not plain memory."""
    import torch

    weight, bias = layer.weight, layer.bias
    for tensor in (weight, bias) if bias is not None else (weight,):
        plain = type(tensor) is torch.nn.Parameter and tensor.is_cpu and tensor.layout is torch.strided
        if not plain or tensor.dtype not in {torch.float32, torch.float64} or tensor.dtype != weight.dtype:
            return None
    if weight.shape != (layer.out_features, layer.in_features):
        return None
    array = weight.detach().numpy()
    return Dense(array.T, np.zeros(len(array), array.dtype) if bias is None else bias.detach().numpy())
