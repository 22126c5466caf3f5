"""A plugin of cfproto-plugin: models exported to ONNX from anywhere, run by ONNX Runtime. Predict-only.

A session returns a list of {label: probability}, as scikit-learn's converter writes, or a float tensor of probabilities
or logits: `ScoreReader` decides which on the first rows.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cfproto_plugin import AdapterSpec, ModelFile, hookimpl
from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import Output, ScoreReader, score_rows
from cfproto_plugin.protocols import Array, Role

from cfproto_onnx.signature import Input, score_output, tensor_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnxruntime import InferenceSession

__all__ = ["OnnxAdapter", "cfproto_adapters"]

NAME = "the session"


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    files = (ModelFile((".onnx",), load_session, safe=True),)
    return [AdapterSpec("onnx", claims=("onnxruntime:InferenceSession",), factory=OnnxAdapter, files=files)]


def load_session(path: Path, *, model: Any = None, trusted: Any = ()) -> InferenceSession:  # noqa: ARG001
    """Open a model on the CPU."""
    from onnxruntime import InferenceSession

    return InferenceSession(path, providers=["CPUExecutionProvider"])


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
        output: Output = "auto",
        classes: Sequence[Any] | None = None,
    ) -> None:
        self._session = session
        self._role = role
        self._input = Input.of(session)
        self._scores_name = score_output(session, output_name, role)
        self._label_names = tensor_names(session, ("tensor(int64)", "tensor(string)"))
        self._reader = ScoreReader(NAME, output)
        self._named = False
        self._lock = threading.Lock()
        if classes is not None:
            self.classes = np.asarray(classes)

    def predict(self, x: Array) -> Array:
        scores = self._scores(x)
        if self._role == "transform":
            return scores
        rows = score_rows(scores, len(x), NAME)
        if not self._named:
            self._find_labels(x)
        y = self._reader.probabilities(rows, self._reader.meaning(x, self._scores))
        return np.asarray(y / y.sum(axis=1, keepdims=True))  # half precision leaves the sums off one

    def _scores(self, x: Array) -> Array:
        return self._run(x, [self._scores_name])[0]

    def _find_labels(self, x: Array) -> None:
        """Find out once which label belongs to which column."""
        with self._lock:
            if not self._named and not hasattr(self, "classes") and len(self._label_names) == 1:
                scores, labels = self._run(x, [self._scores_name, *self._label_names])
                self._name_columns(score_rows(scores, len(x), NAME), labels.reshape(-1))
            self._named = True

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
