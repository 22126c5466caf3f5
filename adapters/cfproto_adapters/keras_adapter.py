"""Keras 3 models on the TensorFlow and the PyTorch backend: NumPy in, NumPy out, no global switch touched."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_adapters.files import KERAS
from cfproto_adapters.torch_adapter import TorchNetwork, no_scores, one_tensor
from cfproto_plugin import AdapterSpec, hookimpl
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import Meaning, NetworkAdapter, Output, ScoreReader
from cfproto_plugin.protocols import Pullback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfproto_plugin.protocols import Array, Role

MEANINGS: dict[str, Meaning] = {
    "Softmax": "probabilities",
    "Sigmoid": "probabilities",
    "LogSoftmax": "logits",
    "BiasAdd": "logits",
    "MatMul": "logits",
}
# Steps that leave the meaning of the numbers alone; AddV2 is the bias of a linear layer written as two operations.
PASSING = frozenset(["AddV2", "Cast", "EnsureShape", "ExpandDims", "Identity", "Reshape", "Squeeze", "StridedSlice"])

_making = threading.RLock()  # one thread at a time builds or compiles a model
_home: list[int] = []  # the process in which TensorFlow was first used here; a fork of it inherits the number


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    return [AdapterSpec("keras", claims=("keras:Model",), factory=KerasAdapter, files=KERAS)]


class KerasAdapter(NetworkAdapter):
    """A functional, sequential or subclassed model with one input and one output, called with training=False.

    A subclassed model that was never called is built by the first rows. For `output` see `NetworkAdapter`.

    The answers are those of `model(x, training=False)`, whose weights may change at any time. On TensorFlow it is
    compiled, and compiled again after an attribute of the model or of one of its layers was replaced. What a `call`
    method reads elsewhere, such as a global name or an item of a list, stays as it was: adapt the model again.
    """

    def __init__(self, model: Any, *, role: Role = "classifier", output: Output = "auto") -> None:
        self._net = _network(model)
        self._output, self._changes = output, 0
        super().__init__(self._net, role=role, output=output)

    def session(self) -> AbstractContextManager[None]:
        """Look for changes of the model at the beginning and at predictions, not at every gradient."""
        return self._net.session() if isinstance(self._net, TensorFlowNetwork) else nullcontext()

    def _meaning(self, x: Array) -> Meaning:
        """Decide anew after a change of the model."""
        changes = self._net.changes if isinstance(self._net, TensorFlowNetwork) else 0
        if self._changes != changes:
            self._reader, self._changes = ScoreReader(self._net.name, self._output), changes
        return super()._meaning(x)


def _network(model: Any) -> TensorFlowNetwork | TorchBackendNetwork:
    import keras

    for side in ("inputs", "outputs"):
        tensors = getattr(model, side, None) or [None]
        if len(tensors) > 1:
            raise ModelError(
                f"{model.name} has {len(tensors)} {side}; expected one. "
                "Wrap it in a keras.Model with one input and one output."
            )
    backend = keras.config.backend()
    if backend == "tensorflow":
        return TensorFlowNetwork(model)
    if backend == "torch":
        return TorchBackendNetwork(model)
    raise ModelError(
        f"{model.name} runs on the Keras backend {backend!r}; expected 'tensorflow' or 'torch'. A function works on "
        "any backend, without gradients: lambda x: numpy.asarray(model(x, training=False))."
    )


class TensorFlowNetwork:
    """A model as compiled functions, scores(x) and gradient(x, cotangent), traced once with a free batch size.

    The gradient runs the forward pass again inside its graph: cheaper by far than an eager tape that keeps it. A search
    often pulls the same cotangent back at every step: after two that are equal, one function, both(x, cotangent),
    computes scores and gradient together, and the gradient is used if the next cotangent is equal too.

    changes: how often the functions were dropped because the model had changed in more than its weights.
    """

    def __init__(self, model: Any) -> None:
        import tensorflow as tf

        _require_own_process(str(model.name))
        self._model = model
        self.name = str(model.name)
        inputs = getattr(model, "inputs", None)
        self._dtype = np.dtype(tf.as_dtype(inputs[0].dtype if inputs else model.input_dtype).as_numpy_dtype)
        self._compiled: dict[tuple[str, tuple[int, ...]], Any] = {}
        self._seen: list[tuple[Any, tuple[Any, ...]]] = []  # the layers as they were then, see `_layers`
        self._sessions = self.changes = 0
        self._last: Array | None = None  # the cotangent that was pulled back last
        self._likely: Array | None = None  # the same if the one before was equal

    def __getstate__(self) -> dict[str, Any]:
        """Compiled functions cannot be pickled and are made again when needed."""
        return {**self.__dict__, "_compiled": {}, "_seen": [], "_sessions": 0, "_last": None, "_likely": None}

    @contextmanager
    def session(self) -> Iterator[None]:
        """Gradients inside are those of the model as it is at the beginning, or at a later prediction."""
        self._drop_outdated()
        with _making:
            self._sessions += 1
        try:
            yield
        finally:
            with _making:
                self._sessions -= 1

    def forward(self, x: Array) -> Array:
        self._drop_outdated()
        return self._run("scores", x, self._place(x))[0]

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        import tensorflow as tf

        if not self._sessions:
            self._drop_outdated()
        rows = self._place(x)
        likely, ready = self._likely, None
        if likely is not None and len(likely) == len(x):
            scores, ready = self._run("both", x, rows, tf.constant(likely))
        else:
            scores = self._run("scores", x, rows)[0]
        dtype = x.dtype if x.dtype.kind == "f" else scores.dtype

        def pullback(cotangent: Array) -> Array:
            seed = np.array(cotangent, dtype=scores.dtype)
            if ready is not None and _equal(seed, likely):
                return ready.astype(dtype)
            self._likely = seed if _equal(seed, self._last) else None
            self._last = seed
            return self._run("gradient", x, rows, tf.constant(seed))[0].astype(dtype, copy=False)

        return scores, pullback

    def ending(self, x: Array) -> Meaning | None:
        operation = self._function("scores", x.shape[1:]).outputs[0].op
        while operation.type in PASSING and operation.inputs:
            operation = operation.inputs[0].op
        return MEANINGS.get(operation.type)

    def _place(self, x: Array) -> Any:
        """A copy of x in the dtype of the model's input: the caller may change x before the pullback runs."""
        import tensorflow as tf

        _require_own_process(self.name)
        return tf.constant(np.array(x, dtype=self._dtype))

    def _run(self, name: str, x: Array, *tensors: Any) -> list[Array]:
        """What a compiled function returns for rows x, as arrays."""
        try:
            return [np.asarray(part.numpy()) for part in _called(self._function(name, x.shape[1:]), *tensors)]
        except ModelError:
            raise
        except Exception as error:
            expected = getattr(self._model, "input_shape", None) or "(n, *shape) as in its training data"
            raise ModelError(
                f"{self.name} failed on rows of shape {x.shape}; expected {expected}: {type(error).__name__}: {error}"
            ) from error

    def _function(self, name: str, shape: tuple[int, ...]) -> Any:
        function = self._compiled.get((name, shape))
        if function is None:
            with _making:
                self._drop_outdated()
                function = self._compiled.get((name, shape)) or self._compile(name, shape)
                self._compiled[name, shape] = function
                self._seen = _layers(self._model)
        return function

    def _drop_outdated(self) -> None:
        """Drop the compiled functions if the model has changed in more than its weights."""
        if self._is_outdated():
            with _making:
                if self._is_outdated():  # and no other thread is at it
                    self._compiled, self._last, self._likely = {}, None, None
                    self.changes += 1

    def _is_outdated(self) -> bool:
        return bool(self._compiled) and not _are_same(self._seen, self._model)

    def _compile(self, name: str, shape: tuple[int, ...]) -> Any:
        import tensorflow as tf

        rows = tf.TensorSpec([None, *shape], self._dtype)
        _build(self._model, tf.zeros([1, *shape], self._dtype))
        if name == "scores":
            return _traced(self._scores, rows)
        like = self._function("scores", shape).outputs[0]
        function = self._gradient if name == "gradient" else self._both
        return _traced(function, rows, tf.TensorSpec(like.shape, like.dtype))

    def _scores(self, rows: Any) -> Any:
        import tensorflow as tf

        scores = _call(self._model, rows)
        if not tf.is_tensor(scores) or not scores.dtype.is_floating:
            kind = scores.dtype.name if tf.is_tensor(scores) else type(scores).__name__
            raise no_scores(self.name, kind, scores)
        return tf.cast(scores, tf.float32) if scores.dtype.size < 4 else scores  # noqa: PLR2004 bytes: half precision

    def _gradient(self, rows: Any, cotangent: Any) -> Any:
        return self._both(rows, cotangent)[1]

    def _both(self, rows: Any, cotangent: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(rows)
            scores = self._scores(rows)
        gradient = tape.gradient(scores, rows, output_gradients=cotangent)
        if gradient is None:
            raise ModelError(
                f"the output of {self.name} has no gradient with respect to its input. Make its call differentiable, "
                "or pass a function x -> probabilities instead of the model."
            )
        return scores, gradient


class TorchBackendNetwork(TorchNetwork):
    """A model of the PyTorch backend: a module whose mode is an argument of the call, not a state."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.name = str(model.name)

    def _call(self, rows: Any) -> Any:
        _build(self._model, rows)
        return _call(self._model, rows)

    def _modules(self) -> tuple[Any, ...]:
        return ()


def _call(model: Any, rows: Any) -> Any:
    """Call the model in the structure it was made with: keras.Model([x], [y]) takes and may return a list."""
    import keras

    structure = getattr(model, "input", None)
    nested = isinstance(structure, list | tuple | dict)
    return one_tensor(model(keras.tree.pack_sequence_as(structure, [rows]) if nested else rows, training=False))


def _layers(model: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The model and all layers in it, each with the values of its attributes: weights are variables, which stay."""
    return [(layer, tuple(vars(layer).values())) for layer in model._flatten_layers()]  # noqa: SLF001 no public name


def _are_same(seen: list[tuple[Any, tuple[Any, ...]]], model: Any) -> bool:
    """Whether `_layers` would find the very same objects."""
    layers = model._flatten_layers()  # noqa: SLF001
    return len(seen) == len(layers) and all(
        old is layer and len(values) == len(vars(layer)) and all(map(is_, values, vars(layer).values()))
        for (old, values), layer in zip(seen, layers, strict=True)
    )


def _equal(a: Array, b: Array | None) -> bool:
    return b is not None and bool(np.array_equal(a, b))


def _require_own_process(model: str) -> None:
    """TensorFlow waits for ever in a fork of a process that has used it."""
    if not _home:
        _home.append(os.getpid())
    if _home[0] != os.getpid():
        raise ModelError(
            f"{model} runs on TensorFlow, which hangs in a process that was forked after it was used. Start processes "
            'by multiprocessing.get_context("spawn"), or load the model and fit the explainer in the new process.'
        )


def _build(model: Any, rows: Any) -> None:
    """Build a model that was never called by calling it."""
    if not model.built:
        with _making:
            if not model.built:
                _call(model, rows)


def _called(function: Any, *tensors: Any) -> list[Any]:
    """What a traced function returns, by the operation that runs it: calling it takes twice as long in Python."""
    import tensorflow as tf

    dtypes = [output.dtype for output in function.outputs]
    found: list[Any] = tf.raw_ops.StatefulPartitionedCall(
        args=[*tensors, *function.captured_inputs], Tout=dtypes, f=function
    )
    return found


def _traced(function: Callable[..., Any], *signature: Any) -> Any:
    import tensorflow as tf

    return tf.function(function, input_signature=signature, autograph=False).get_concrete_function()
