"""Plain functions as models: predict-only, any framework or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfproto_plugin.protocols import Array, Role


class FunctionAdapter:
    """A function x -> probabilities (n, k), or x -> codes (n, ...) in the role "transform".

    classes: the labels in the order of the columns, if known. decide: rows -> one of these labels each, the decision of
    a model that has one.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        role: Role = "classifier",
        classes: Any = None,
        decide: Callable[[Any], Any] | None = None,
    ) -> None:
        self._function = function
        self._role = role
        self.accepts_frames = True
        self.classes = None if classes is None else np.asarray(classes)
        self._decide = decide
        self.labels = self._labels if callable(decide) and classes is not None else None

    def predict(self, x: Array) -> Array:
        y = np.asarray(self._function(x))
        if self._role == "classifier" and (y.ndim != 2 or y.shape[1] < 2):  # noqa: PLR2004
            raise ModelError(
                f"the function returned shape {y.shape} for {len(x)} rows; expected ({len(x)}, k) probabilities with "
                "k >= 2. For a model with one probability p return the two columns (1 - p, p)."
            )
        if y.shape[:1] != (len(x),):
            raise ModelError(f"the function returned shape {y.shape} for {len(x)} rows; expected one item per row.")
        return y

    def _labels(self, x: Array) -> Array:
        """The columns (n,) of the model's own decisions."""
        if self._decide is None or self.classes is None:
            raise ModelError("the function has no decision of its own")
        decided = np.asarray(self._decide(x)).reshape(len(x), -1)[:, :1]
        is_label = decided == self.classes
        if not is_label.any(axis=1).all():
            row = int(np.argmin(is_label.any(axis=1)))
            raise ModelError(
                f"the model's predict returned {decided[row, 0]!r}, which is none of its classes_ {list(self.classes)}"
            )
        return np.asarray(is_label.argmax(axis=1))
