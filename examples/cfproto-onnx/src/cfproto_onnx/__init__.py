"""A plugin of cfproto-plugin: models exported to ONNX from anywhere, run by ONNX Runtime. Predict-only.

What a session returns is read as follows:

    a list of {label: probability}    the probabilities, and the labels (what scikit-learn's converter writes)
    a float tensor (n, k)             probabilities if every row is non-negative and sums to one, else logits
    a float tensor (n, 1) or (n,)     the second of two classes: a probability if it lies in [0, 1], else a logit

Which of the two a tensor holds is decided on the first rows seen and remembered.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from cfproto_plugin import AdapterSpec, hookimpl
from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.helpers import softmax
from cfproto_plugin.protocols import Array, Role

from cfproto_onnx.signature import Input, score_output, tensor_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnxruntime import InferenceSession

__all__ = ["OnnxAdapter", "cfproto_adapters"]

MEANINGS = ("auto", "logits", "probabilities")
SUM_TOLERANCE = 5e-3  # of a row of probabilities computed in half precision


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    return [AdapterSpec("onnx", claims=("onnxruntime:InferenceSession",), factory=OnnxAdapter)]


class OnnxAdapter:
    """A session with one input.

    output_name: which output to use, where it has several.
    output: "logits", "probabilities", or "auto", which looks at the values.
    classes: the labels in the order of the columns. By default those a list of {label: probability} names, or those
    that a second output with the labels shows on the first rows, if every class is among them; else 0, 1, ...
    """

    classes: Array  # only where they are known

    def __init__(
        self,
        session: InferenceSession,
        *,
        role: Role = "classifier",
        output_name: str | None = None,
        output: Literal["auto", "logits", "probabilities"] = "auto",
        classes: Sequence[Any] | None = None,
        **_options: Any,
    ) -> None:
        if output not in MEANINGS:
            raise InputError(f"output={output!r}; expected one of {', '.join(map(repr, MEANINGS))}")
        self._session = session
        self._role = role
        self._input = Input.of(session)
        self._scores_name = score_output(session, output_name, role)
        self._label_names = tensor_names(session, ("tensor(int64)", "tensor(string)"))
        self._logits: bool | None = None if output == "auto" else output == "logits"
        self._ready = False
        self._lock = threading.Lock()
        if classes is not None:
            self.classes = np.asarray(classes)

    def predict(self, x: Array) -> Array:
        (scores,) = self._run(x, [self._scores_name])
        if self._role == "transform":
            return scores
        rows = _as_rows(scores, len(x))
        if not self._ready:
            self._learn(x)
        if rows.shape[1] == 1:
            rows = np.concatenate([np.zeros_like(rows) if self._logits else 1 - rows, rows], axis=1)
        # Half precision leaves sums of probabilities off one.
        return softmax(rows) if self._logits else rows / rows.sum(axis=1, keepdims=True)

    def _learn(self, x: Array) -> None:
        """Find out once what the scores mean and which label belongs to which column."""
        with self._lock:
            if self._ready:
                return
            if self._logits is None:
                (scores,) = self._run(probes := _probes(x), [self._scores_name])
                self._logits = not _are_probabilities(_as_rows(scores, len(probes)))
            if not hasattr(self, "classes") and len(self._label_names) == 1:
                scores, labels = self._run(x, [self._scores_name, *self._label_names])
                self._name_columns(_as_rows(scores, len(x)), labels.reshape(-1))
            self._ready = True

    def _name_columns(self, rows: Array, labels: Array) -> None:
        """A column has the label of the rows in which it is the largest, if all have one and no two the same."""
        winner = rows.argmax(axis=1) if rows.shape[1] > 1 else None
        if winner is None or len(labels) != len(rows):
            return
        found = [set(labels[winner == column].tolist()) for column in range(rows.shape[1])]
        names = [name for names in found for name in names]
        if all(len(names) == 1 for names in found) and len(set(names)) == len(found):
            self.classes = np.array(names)

    def _run(self, x: Array, names: list[str]) -> list[Array]:
        """The named outputs for all rows, in batches of the size the model was exported with, if it has one."""
        parts = []
        for batch, count in self._input.batches(np.asarray(x)):
            try:
                outputs = self._session.run(names, {self._input.name: batch})
            except Exception as error:  # ONNX Runtime's errors have no common base
                raise ModelError(f"ONNX Runtime cannot run rows of shape {batch.shape}: {error}") from error
            parts.append([self._array(output)[:count] for output in outputs])
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    def _array(self, output: Any) -> Array:
        """Tensors as they are, half precision as float32; a list of {label: probability} as (n, k)."""
        if isinstance(output, list):
            if not hasattr(self, "classes"):
                self.classes = np.array(list(output[0]))
            labels = self.classes.tolist()
            if set(labels) != set(output[0]):
                raise ModelError(f"classes are {labels}; the session names {list(output[0])}.")
            return np.array([[row[label] for label in labels] for row in output], dtype=np.float32)
        array = np.asarray(output)
        return array.astype(np.float32) if array.dtype == np.float16 else array


def _as_rows(scores: Array, n: int) -> Array:
    """Scores as (n, k)."""
    if scores.shape == (n,):
        return scores.reshape(n, 1)
    if scores.ndim != 2 or len(scores) != n:  # noqa: PLR2004
        raise ModelError(
            f"the session returned shape {scores.shape} for {n} rows; a classifier returns ({n}, k), or ({n},) for two "
            'classes. Choose another output with output_name=..., or use role="transform" for an encoder.'
        )
    return scores


def _probes(x: Array) -> Array:
    """A few rows and points between them and zero: one row of logits may look like probabilities by luck."""
    rows = np.asarray(x)[:8]
    probes = np.concatenate([rows * t for t in (1.0, 0.75, 0.5, 0.25, 0.0)])
    return np.rint(probes) if np.array_equal(rows, np.rint(rows)) else probes


def _are_probabilities(rows: Array) -> bool:
    if (rows < 0).any() or (rows > 1 + SUM_TOLERANCE).any():
        return False
    return rows.shape[1] == 1 or not (np.abs(rows.sum(axis=1) - 1) > SUM_TOLERANCE).any()
