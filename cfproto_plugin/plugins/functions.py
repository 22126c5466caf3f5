"""Plain functions as models: predict-only, any framework or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers.probabilities import logits_of, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfproto_plugin.protocols import Array, Role


class FunctionAdapter:
    """A function x -> probabilities (n, k), or x -> codes (n, ...) in the role "transform".

    Arrays, lists, frames, sparse matrices and tensors of numbers are understood, and outputs with `logits`, as those of
    Hugging Face: their softmax is taken. classes: the labels in the order of the columns, if known. decide: rows -> one
    of these labels each, the decision of a model that has one. source: that model, whose `classes_` are read each time.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        role: Role = "classifier",
        classes: Any = None,
        decide: Callable[[Any], Any] | None = None,
        source: Any = None,
    ) -> None:
        self._function = function
        self._role = role
        self.accepts_frames = True
        self._classes = classes
        self._source = source
        self._decide = decide
        self.labels = self._labels if callable(decide) and classes is not None else None

    @property
    def classes(self) -> Array | None:
        """The labels in the order of the columns: those that the model names now."""
        found = getattr(self._source, "classes_", self._classes)
        return None if found is None else np.asarray(found)

    def predict(self, x: Array) -> Array:
        found = self._function(x)
        if isinstance(found, tuple | list) and found and getattr(found[0], "ndim", 0) > 1:
            found = found[0]  # scores and more, as some networks return
        logits = logits_of(found) if self._role == "classifier" else None
        y = as_numbers(found if logits is None else logits, len(x))
        if self._role == "classifier" and (y.ndim != 2 or y.shape[1] < 2):  # noqa: PLR2004
            raise ModelError(
                f"the function returned shape {y.shape} for {len(x)} rows; expected ({len(x)}, k) probabilities with "
                "k >= 2. For a model with one probability p return the two columns (1 - p, p)."
            )
        if y.shape[:1] != (len(x),):
            raise ModelError(f"the function returned shape {y.shape} for {len(x)} rows; expected one item per row.")
        return y if logits is None else softmax(y)

    def _labels(self, x: Array) -> Array:
        """The columns (n,) of the model's own decisions."""
        if self._decide is None or self.classes is None:
            raise ModelError("the function has no decision of its own")
        if self.classes.ndim != 1:
            raise ModelError(
                f"the model's classes_ are {self.classes.tolist()}; expected one label for each column. A list of "
                "tuples is read as a table: make the labels strings, or put them in an array of objects"
            )
        decided = np.asarray(self._decide(x)).reshape(len(x), -1)[:, :1]
        is_label = decided == self.classes
        if not is_label.any(axis=1).all():
            row = int(np.argmin(is_label.any(axis=1)))
            raise ModelError(
                f"the model's predict returned {decided[row, 0]!r}, which is none of its classes_ {list(self.classes)}"
            )
        return np.asarray(is_label.argmax(axis=1))


def as_numbers(y: Any, n: int) -> Array:
    """What a function returned for n rows as an array of floats; ModelError if it is none."""
    if y is None or isinstance(y, str | bytes | Mapping):
        raise _no_numbers(type(y).__name__, repr(y), n)
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        raise ModelError(f"the function returned masked values for {n} rows; expected numbers. Fill them in.")
    for name in ("detach", "cpu", "toarray"):  # tensors that have a gradient or are on a device, sparse matrices
        if callable(getattr(y, name, None)):
            y = getattr(y, name)()
    try:
        found = np.asarray(y)
        shown = repr(found.ravel()[0]) if found.size else "nothing"
        if found.dtype.kind == "O":
            found = found.astype(float)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _no_numbers(type(y).__name__, repr(y)[:80], n) from error
    if found.dtype.kind not in "fiub":
        raise _no_numbers(f"an array of {found.dtype}", shown, n)
    if found.dtype.kind == "f" and found.dtype.itemsize in {4, 8}:
        return found
    return found.astype(np.float32 if found.dtype == np.float16 else np.float64)


def _no_numbers(kind: str, shown: str, n: int) -> ModelError:
    return ModelError(
        f"the function returned {kind}, such as {shown}, for {n} rows; expected numbers, one probability per class: "
        f"({n}, k). Labels are not enough: pass the model itself, or its predict_proba."
    )
