"""Whether a model is left as it was: its parameters and its training mode, read without knowing its framework."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import ModelAdapter
from cfproto_plugin.testing.kit import in_batches, predict, require, require_close

_SHOWN = 3


def model_parameters_are_untouched(adapter: ModelAdapter, x: Any, model: Any) -> None:
    """Compare the model's state before and after, in the mode it is in and in training mode, where statistics move."""
    for mode in (None, True):
        with modes_restored(model):
            switch(model, mode)
            before = state(model)
            use(adapter, x)
            after = state(model)
        changed = [name for name, value in before.items() if after.get(name) != value]
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        require(not changed, f"predicting changed the model: {', '.join(changed[:_SHOWN])}{more}")


def model_training_mode_is_untouched(adapter: ModelAdapter, x: Any, model: Any) -> None:
    """Every part of the model gets its own mode back, also where some are frozen: all off, all on, every other on."""
    parts = switches(model)
    for modes in ([False] * len(parts), [True] * len(parts), [i % 2 == 0 for i in range(len(parts))]):
        with modes_restored(model):
            for part, mode in zip(parts, modes, strict=True):
                part.training = mode
            use(adapter, x)
            after = [part.training for part in parts]
        wrong = [type(part).__name__ for part, old, new in zip(parts, modes, after, strict=True) if old != new]
        require(not wrong, f"predicting left another training mode in {', '.join(wrong[:_SHOWN])}")


def output_does_not_depend_on_the_training_mode(
    adapter: ModelAdapter, x: Any, model: Any, *, atol: float = 1e-5
) -> None:
    """Models are asked in evaluation mode whatever their mode is: dropout is off, statistics are not the batch's."""
    with modes_restored(model):
        switch(model, False)
        evaluated = predict(adapter, x)
        switch(model, True)
        trained = predict(adapter, x)
    require_close(evaluated, trained, max(atol, 1e-5), "the output in training mode is another than in evaluation mode")


def state(model: Any) -> dict[str, str]:
    """A digest of every named part of the model that can be read.

    By the first that there is of `state_dict()` (PyTorch), `get_weights()` (Keras) and what pickle would keep; beside
    it whether parameters require gradients, and the gradients they hold.
    """
    if callable(getattr(model, "state_dict", None)):
        parts = dict(model.state_dict())
    elif callable(getattr(model, "get_weights", None)):
        parts = {f"weight {i}": weight for i, weight in enumerate(model.get_weights())}
    else:
        kept = model.__getstate__()
        parts = kept if isinstance(kept, dict) else {"its pickled state": model}
    parameters = model.parameters() if callable(getattr(model, "parameters", None)) else ()
    for i, parameter in enumerate(parameters):
        parts[f"gradient of parameter {i}"] = getattr(parameter, "grad", None)
        parts[f"requires_grad of parameter {i}"] = getattr(parameter, "requires_grad", None)
    digests = {str(name): _digest(part) for name, part in parts.items()}
    return {name: digest for name, digest in digests.items() if digest is not None}


def switches(model: Any) -> list[Any]:
    """The parts of the model that have a training mode."""
    modules = getattr(model, "modules", None)
    parts = modules() if callable(modules) else [model, *getattr(model, "__dict__", {}).values()]
    return [part for part in parts if isinstance(getattr(part, "training", None), bool)]


def _digest(part: Any) -> str | None:
    try:
        return hashlib.sha256(pickle.dumps(part)).hexdigest()
    except Exception:  # noqa: BLE001 locks, handles and lambdas say so in many ways; they are no parameters
        return None


def switch(model: Any, mode: bool | None) -> None:
    for part in switches(model) if mode is not None else ():
        part.training = mode


@contextmanager
def modes_restored(model: Any) -> Iterator[None]:
    before = [(part, part.training) for part in switches(model)]
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def use(adapter: Any, x: Any) -> None:
    """Call every method of the adapter that takes rows."""
    known = Adapted.of(adapter, "adapter")
    in_batches(adapter, adapter.predict, x)
    if known.has_quick:
        in_batches(adapter, adapter.quick, x)
    if known.labels is not None:
        in_batches(adapter, adapter.labels, x)
    if known.scores is not None:
        in_batches(adapter, adapter.scores, x)
    if known.vjp is not None and not hasattr(x, "iloc"):
        found = adapter.vjp(x[: known.max_rows])
        if isinstance(found, tuple) and callable(found[-1]):  # else the check of the pullback says what is wrong
            found[-1](np.ones_like(found[0]))
