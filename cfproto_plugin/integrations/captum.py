"""Counterfactuals as a Captum attribution method. Importing this module imports Captum, and with it PyTorch.

    attribution = CounterfactualAttribution(explainer)
    attribution.attribute(inputs, target=1)     # 1: the class to reach

The explainer is fitted on rows shaped like the inputs; for a tuple of inputs on rows that hold all of them, flattened,
one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, MissingPackageError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.contributions import ORDERS, contributions_of

try:
    from captum.attr import Attribution
    from captum.log import log_usage
except ImportError as error:
    raise MissingPackageError(
        "this needs Captum, which is not installed: pip install 'cfproto-plugin[captum]'"
    ) from error

_SINGLE = 4  # bytes of a float that NumPy knows; narrower ones are widened
_VALUES = ("contributions", "delta")
_EXPECTED = "a tensor of shape (rows, ...), or a tuple of them"


class CounterfactualAttribution(Attribution):  # type: ignore[misc]
    """Attributes the class of a row to what would have to change for another one.

    explainer: a fitted CounterfactualExplainer for arrays of numbers; its model may be of any framework.
    values: "contributions", what each change adds to the probability of the new class (Shapley values over the changed
        features; they add up to the difference, and the columns of a one-hot group share theirs), or "delta",
        counterfactual minus input.
    samples, seed: as in `Explanation.contributions`.
    forward_func, which Captum's metrics take, is the explainer's model: tensors in, probabilities out, no gradients.
    """

    def __init__(
        self,
        explainer: CounterfactualExplainer,
        *,
        values: str = "contributions",
        samples: int = ORDERS,
        seed: int = 0,
    ) -> None:
        if not isinstance(explainer, CounterfactualExplainer):
            raise InputError(f"explainer is {type(explainer).__name__}; expected a fitted CounterfactualExplainer")
        if values not in _VALUES:
            raise InputError(f"values is {values!r}; expected 'contributions' or 'delta'")
        super().__init__(self._probabilities)
        self.explainer, self.values, self.samples, self.seed = explainer, values, samples, seed

    @log_usage()  # type: ignore[untyped-decorator]
    def attribute(
        self, inputs: Any, target: Any = None, additional_forward_args: Any = None, **explain_args: Any
    ) -> Any:
        """Attributions shaped like the inputs, a tensor or a tuple of tensors; zeros where a row has no counterfactual.

        Zeros, with a warning in the log, also for contributions where the model fails for some changes without others.

        target: the class to reach: an integer, its place among the probabilities, for all rows, or a list or tensor of
        one per row; None is any other class. additional_forward_args: not taken, see the error.
        explain_args: further arguments of `explainer.explain`, such as features and time_budget.
        """
        if additional_forward_args is not None:
            raise InputError(
                "additional_forward_args is given, and the model of an explainer takes rows alone: fit the explainer "
                "with these as further columns, name them in Features(immutable=...), and pass them as inputs"
            )
        e = self.explain(inputs, target, **explain_args)
        return _as_tensors(self._of(e), inputs)

    def explain(self, inputs: Any, target: Any = None, **explain_args: Any) -> Explanation:
        """The explanation that `attribute` is made of, one line per row."""
        if "n" in explain_args:
            raise InputError("n is given; attributions have one line per row. Use explainer.explain for several")
        rows = self._rows(inputs)
        return self.explainer.explain(rows, self._labels(target, len(rows)), **explain_args)

    def baselines(self, inputs: Any, target: Any = None, **explain_args: Any) -> Any:
        """The counterfactuals, shaped like the inputs, for methods that take baselines; the row itself without one.

        Integrated Gradients from a counterfactual tells what separates the input from the class that it might have had.
        """
        e = self.explain(inputs, target, **explain_args)
        found = e.found.reshape(-1, *(1,) * (np.ndim(e.original) - 1))
        return _as_tensors(np.where(found, e.counterfactual, e.original), inputs)

    def _of(self, e: Explanation) -> Array:
        """(n, *shape) the attributions of an explanation."""
        values = np.zeros(np.shape(e.original))
        if self.values == "delta":
            lines = np.flatnonzero(e.found)
            values[lines] = e[lines].delta
            return values
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        for line, features, added, _, raised in contributions_of(e, self.samples, self.seed):
            if raised is None:
                for feature, value in zip(features, added, strict=True):
                    flat[line, list(feature.places)] = value / len(feature.places)
        return values

    def _probabilities(self, *inputs: Any) -> Any:
        """The model of the explainer, on tensors."""
        rows = self._rows(inputs)
        return _floating(inputs[0]).new_tensor(self.explainer.source_for(rows).probabilities(rows))

    def _rows(self, inputs: Any) -> Array:
        """One tensor as it is; several as rows that hold all of them."""
        parts = [_checked(tensor) for tensor in _as_tuple(inputs)]
        if not parts:
            raise InputError(f"inputs are empty; expected {_EXPECTED}")
        if len(parts) == 1:
            if parts[0].ndim == 1:
                raise InputError(
                    f"the input has shape {parts[0].shape}; expected {_EXPECTED}: a single row is row[None]"
                )
            return parts[0]
        lengths = [len(part) for part in parts]
        if len(set(lengths)) > 1:
            raise InputError(f"the inputs have {lengths} rows; expected as many in each")
        return np.concatenate([part.reshape(len(part), math.prod(part.shape[1:])) for part in parts], axis=1)

    def _labels(self, target: Any, n: int) -> Any:
        """Classes by their places: one label for all rows, or an array of one per row; None for any other class."""
        fitted = self.explainer.fitted_
        if target is None or fitted is None:  # explain says that it is not fitted
            return None
        try:
            places = np.asarray(_as_array(target) if hasattr(target, "detach") else target)
        except ValueError as error:
            raise _no_target(target) from error
        if places.dtype.kind not in "iu" or places.size not in {1, n} or places.ndim > 1:
            raise _no_target(target)
        wrong = places[(places < 0) | (places >= len(fitted.classes))]
        if wrong.size:
            raise InputError(f"target is {wrong.flat[0]}; the model has {len(fitted.classes)} classes, from 0 on")
        found = fitted.classes[places]
        return found.reshape(-1)[0] if places.size == 1 else found


def _no_target(target: Any) -> InputError:
    return InputError(f"target is {target!r}; expected the number of a class, or one per row")


def _as_tuple(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, (tuple, list)) else (inputs,)


def _checked(tensor: Any) -> Array:
    """An input as an array of rows."""
    if not hasattr(tensor, "layout") or not hasattr(tensor, "is_meta"):  # a tensor of any class has them
        raise InputError(f"the inputs hold {type(tensor).__name__}; expected {_EXPECTED}: torch.as_tensor makes one")
    if str(tensor.layout) != "torch.strided" or tensor.is_meta:
        advice = "without values" if tensor.is_meta else f"of layout {tensor.layout}: use tensor.to_dense()"
        raise InputError(f"the inputs hold a tensor {advice}; expected {_EXPECTED}, dense and with values")
    if tensor.ndim == 0:
        raise InputError(f"the inputs hold a single number; expected {_EXPECTED}")
    return _as_array(tensor)


def _as_array(tensor: Any) -> Array:
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < _SINGLE:
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def _floating(tensor: Any) -> Any:
    return tensor if tensor.is_floating_point() else tensor.float()


def _as_tensors(values: Array, inputs: Any) -> Any:
    """Values (n, ...) of rows in the structure of the inputs, on their devices and in their floating dtypes."""
    parts = _as_tuple(inputs)
    ends = np.cumsum([0, *(math.prod(part.shape[1:]) for part in parts)])
    flat = values.reshape(len(values), int(ends[-1]))
    made = tuple(
        _floating(part).new_tensor(flat[:, start:end].reshape(tuple(part.shape)))
        for part, start, end in zip(parts, ends, ends[1:], strict=False)
    )
    return made if isinstance(inputs, (tuple, list)) else made[0]
