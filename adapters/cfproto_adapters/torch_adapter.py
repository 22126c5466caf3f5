"""PyTorch modules: NumPy in, NumPy out, gradients with respect to the input only, the module left as it was."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_adapters.files import TORCH
from cfproto_adapters.torch_parts.backward import gradient_of
from cfproto_plugin import AdapterSpec, hookimpl
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import Meaning, NetworkAdapter, Output, logits_of
from cfproto_plugin.protocols import Pullback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfproto_adapters.torch_parts.dense import DenseNetwork
    from cfproto_plugin.protocols import Array, Role

MEANINGS: dict[str, Meaning] = {
    "Softmax": "probabilities",
    "Sigmoid": "probabilities",
    "LogSoftmax": "logits",
    "Addmm": "logits",
    "Mm": "logits",
}
# Steps that leave the meaning of the numbers alone; Add is the bias of a linear layer written as two operations.
PASSING = frozenset(
    ["Add", "Alias", "Clone", "ReshapeAlias", "Select", "Slice", "Squeeze", "ToCopy", "Unsqueeze", "UnsafeView", "View"]
)

_TRIED_ROWS = 64  # on which what was read has to agree with the module

_modes = threading.Lock()
_NOTHING_SWITCHED: AbstractContextManager[list[Any]] = nullcontext([])
_held: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    return [AdapterSpec("torch", claims=("torch.nn:Module",), factory=TorchAdapter, files=TORCH)]


class TorchAdapter(NetworkAdapter):
    """Any nn.Module, on its own device. Scores in half precision are returned as float32.

    It gets the rows in their own floating dtype, as their owner would give them, or in that of its parameters if it
    refuses that: a network in float32 takes rows of float64.

    It is evaluated in evaluation mode whatever its mode is, and every submodule gets its own mode back. Parameters,
    their `requires_grad` and their `grad` are not touched. For `output` see `NetworkAdapter`.
    """

    def __init__(self, model: Any, *, role: Role = "classifier", output: Output = "auto") -> None:
        self._module = TorchNetwork(model)
        super().__init__(self._module, role=role, output=output)

    def session(self) -> AbstractContextManager[None]:
        """Evaluation mode from begin to end: it is then not switched at every step."""
        return self._module.session()


@dataclass
class _Settled:
    """What is remembered in a session."""

    modules: list[Any]  # all of the model
    first: Any  # its first floating parameter or buffer
    dense: DenseNetwork | None = None  # computes its gradients, if it is a small dense network
    is_read: bool = False  # whether that is known


class TorchNetwork:
    """A module as a function of NumPy arrays."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._taken: dict[tuple[str, Any], Any] = {}  # dtype of the question, by those of rows and parameters
        self._sessions, self._settled = 0, None  # type: tuple[int, _Settled | None]
        self._works_in_place = False
        self.name = type(model).__name__

    def __getstate__(self) -> dict[str, Any]:
        """A copy is in no session."""
        return {**self.__dict__, "_sessions": 0, "_settled": None}

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold evaluation mode, and remember what does not change meanwhile, until the last session ends."""
        with evaluation(self._modules()):
            settled = _Settled(list(self._modules()), self._first())
            with _modes:
                self._sessions, self._settled = self._sessions + 1, settled
            try:
                yield
            finally:
                with _modes:
                    self._sessions -= 1
                    if not self._sessions:
                        self._settled = None

    def forward(self, x: Array) -> Array:
        import torch

        with torch.inference_mode(False), torch.no_grad(), self._evaluation():
            return _to_numpy(self._scores(x)[1])

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        settled = self._settled
        if settled is not None:
            if not settled.is_read and x.ndim == 2 and len(x):  # noqa: PLR2004
                self._read(settled, x[:_TRIED_ROWS])
            if settled.dense is not None and settled.dense.takes(x):
                return settled.dense.vjp(x)
        return self._vjp(x)

    def _read(self, settled: _Settled, x: Array) -> None:
        """Read the model as a graph at the first rows (n, columns) of a session; keep it if both agree on them."""
        from cfproto_adapters.torch_parts.dense import dense_network

        dense = dense_network(self._model, x.shape[1])
        try:
            if dense is not None and dense.takes(x) and dense.agrees(x, *self._vjp(x)):
                settled.dense = dense
        except Exception:  # noqa: BLE001 of the module, which raises it again when it is asked
            settled.dense = None
        settled.is_read = True

    def _vjp(self, x: Array) -> tuple[Array, Pullback]:
        """The same by autograd."""
        import torch

        with self._recording() as switched:
            leaf, scores = self._scores(x, graph=True)
        if not scores.requires_grad:
            raise self._no_gradient()
        raw = _to_numpy(scores)
        dtype = x.dtype if x.dtype.kind == "f" else raw.dtype

        def pullback(cotangent: Array) -> Array:
            seed = _moved(torch.from_numpy(np.array(cotangent, dtype=raw.dtype, order="C")), scores.dtype, scores)
            # Evaluation mode again: a module that saves memory by checkpoints runs its forward pass again.
            with self._recording(switched):
                gradient = gradient_of(scores, leaf, seed)
            if gradient is None:
                raise self._no_gradient()
            return _to_numpy(gradient).astype(dtype, copy=False)

        return raw, pullback

    def ending(self, x: Array) -> Meaning | None:
        with self._recording():
            node = self._scores(x, graph=True)[1].grad_fn
        while node is not None and _operation(node) in PASSING:
            node = node.next_functions[0][0]
        return None if node is None else MEANINGS.get(_operation(node))

    def _call(self, rows: Any) -> Any:
        return self._model(rows)

    def _modules(self) -> Iterable[Any]:
        """The modules whose mode matters."""
        modules: Iterable[Any] = self._model.modules()
        return modules

    def _recording(self, modules: Iterable[Any] | None = None) -> AbstractContextManager[list[Any]]:
        """Gradients and evaluation mode inside, whatever the caller switched off."""
        import torch

        evaluating = self._evaluation(modules)
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            return evaluating
        return _with_gradients(evaluating)

    def _evaluation(self, modules: Iterable[Any] | None = None) -> AbstractContextManager[list[Any]]:
        """Evaluation mode of the modules, by default all; there is nothing to do in a session that nobody disturbs."""
        settled = self._settled
        if settled is not None and not any(module.training for module in settled.modules):
            return _NOTHING_SWITCHED
        return evaluation(self._modules() if modules is None or settled is not None else modules)

    def _first(self) -> Any:
        """The first floating parameter or buffer, None if there is none."""
        settled = self._settled
        if settled is not None:
            return settled.first
        tensors = itertools.chain(self._model.parameters(), self._model.buffers())
        first = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
        if first is not None and first.device.type == "meta":
            raise ModelError(
                f"{self.name} is on the meta device, where tensors have no values. Load its weights, such as with "
                'model.to_empty(device="cpu") and load_state_dict.'
            )
        return first

    def _scores(self, x: Array, *, graph: bool = False) -> tuple[Any, Any]:
        """The input and the scores, in evaluation mode; graph: the input is a leaf of theirs.

        The first dtype that the model takes is remembered: asked in another, it could say another class. A model that
        works in place, which a leaf forbids, gets a copy of it from then on.
        """
        import torch

        first, x = self._first(), np.asarray(x)  # rows may be a frame
        key = x.dtype.str, None if first is None else first.dtype
        known, failure = self._taken.get(key), None
        dtypes = _dtypes(x, key[1]) if known is None else [known]
        while dtypes:
            copied = graph and self._works_in_place
            try:
                rows = _placed(x, dtypes[0], first)
                if graph:
                    rows.requires_grad_()
                scores = one_tensor(self._call(rows.clone() if copied else rows))
            except Exception as error:  # noqa: BLE001 whatever the model raises
                if graph and not copied and "leaf Variable" in str(error):
                    self._works_in_place = True
                else:
                    failure = error
                    dtypes = dtypes[1:]
                continue
            if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
                raise self._no_scores(scores)
            self._taken[key] = dtypes[0]
            return rows, scores
        raise ModelError(
            f"{self.name} failed on rows of shape {x.shape}: {type(failure).__name__}: {failure}\n"
            "  Pass rows (n, *shape) of the shape the model was trained on."
        ) from failure

    def _no_scores(self, scores: Any) -> ModelError:
        kind = str(scores.dtype) if hasattr(scores, "dtype") else type(scores).__name__
        return no_scores(self.name, kind, scores)

    def _no_gradient(self) -> ModelError:
        return ModelError(
            f"the output of {self.name} has no gradient with respect to its input. Make its forward pass "
            "differentiable, or pass a function x -> probabilities instead of the module."
        )


@contextmanager
def _with_gradients(evaluating: AbstractContextManager[list[Any]]) -> Iterator[list[Any]]:
    """Inside, gradients too."""
    import torch

    with torch.inference_mode(False), torch.enable_grad(), evaluating as switched:
        yield switched


def _dtypes(x: Array, own: Any) -> list[Any]:
    """The dtypes to give rows in, best first: their own, as their owner would, else that of the parameters, `own`.

    Whole numbers come as floats that hold more of them than half precision does.
    """
    import torch

    own = own or torch.float32
    kept = {"f2": torch.float16, "f4": torch.float32}.get(x.dtype.str[1:], torch.float64)
    if x.dtype.kind != "f":
        kept = torch.float32 if own.itemsize < 4 else own  # noqa: PLR2004 bytes
    return [kept] if kept == own else [kept, own]


def _placed(x: Array, dtype: Any, first: Any) -> Any:
    """A copy of x in this dtype, on the device of the first parameter."""
    import torch

    rows = torch.from_numpy(np.array(x, dtype=np.float64 if dtype == torch.float64 else np.float32, order="C"))
    return _moved(rows, dtype, first)


def _moved(tensor: Any, dtype: Any, beside: Any) -> Any:
    """A tensor of the CPU in this dtype beside another, None for none; itself if it is there: `to` takes time."""
    if tensor.dtype == dtype and (beside is None or beside.is_cpu):
        return tensor
    return tensor.to(tensor.device if beside is None else beside.device, dtype)


def one_tensor(output: Any) -> Any:
    """The scores in what a module returned: its `logits`, as Hugging Face has them, or the first of a tuple or list."""
    if hasattr(output, "is_floating_point"):  # a tensor
        return output
    logits = logits_of(output)
    if logits is not None:
        return logits
    return output[0] if isinstance(output, tuple | list) and len(output) else output


def no_scores(name: str, kind: str, output: Any) -> ModelError:
    """The error of a model whose output is not a tensor of scores. kind: what it is."""
    part = f"model(x)[{next(iter(output))!r}]" if isinstance(output, Mapping) and output else "model(x)[0]"
    return ModelError(
        f"{name} returned {kind}; expected one tensor of floating scores. Wrap the model so that it returns the logits "
        f"or probabilities alone, such as {part}."
    )


@contextmanager
def evaluation(modules: Iterable[Any]) -> Iterator[list[Any]]:
    """Evaluation mode inside, the old mode of every module after; gives the modules that were in training mode.

    Threads, and adapters of models that share modules, may overlap: each module found in training mode is counted,
    the first in switches it and the last out switches it back.
    """
    with _modes:
        held = [module for module in modules if getattr(module, "training", False) or module in _held]
        for module in held:
            module.training = False
            _held[module] = _held.get(module, 0) + 1
    try:
        yield held
    finally:
        if held:
            with _modes:
                for module in held:
                    _release(module)


def _release(module: Any) -> None:
    _held[module] -= 1
    if _held[module] == 0:
        del _held[module]
        module.training = True


def _operation(node: Any) -> str:
    """The name of an autograd node without its suffix: "SoftmaxBackward0" is "Softmax"."""
    return str(node.name()).rstrip("0123456789").removesuffix("Backward")


def _to_numpy(tensor: Any) -> Array:
    """A copy, since the backward pass may need the tensor as it is; half precision becomes float32."""
    tensor = tensor.detach() if tensor.is_cpu else tensor.detach().cpu()
    return np.array((tensor.float() if tensor.itemsize < 4 else tensor).numpy())  # noqa: PLR2004 bytes
