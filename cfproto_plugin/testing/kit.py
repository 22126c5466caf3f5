"""What all checks share: a check bound to what it looks at, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array, ModelAdapter


@dataclass(frozen=True)
class Check:
    """One check and what it looks at. Call it: it raises AssertionError with what is wrong.

    skipped: why the check does not apply; calling it then does nothing.
    """

    name: str
    run: Callable[[], None]
    skipped: str = ""

    def __call__(self) -> None:
        if not self.skipped:
            self.run()

    def __str__(self) -> str:
        return self.name.replace("_", " ")


def bind(check: Callable[..., None], *args: Any, skipped: str = "", **options: Any) -> Check:
    """The check of these arguments, under the name of its function."""
    return Check(check.__name__, partial(check, *args, **options), skipped)


def run_all(found: Iterable[Check]) -> None:
    """Run the checks that apply, one after the other."""
    for check in found:
        check()


def predict(adapter: ModelAdapter, x: Any) -> Array:
    """The output of the adapter for all rows."""
    found: Array = in_batches(adapter, adapter.predict, x)
    return found


def in_batches(adapter: ModelAdapter, method: Callable[[Any], Any], x: Any) -> Any:
    """What a method of the adapter returns for rows of an array or frame, asked for at most `max_rows` at a time."""
    size = Adapted.of(adapter, "adapter").max_rows
    if size is None or len(x) <= size:
        return method(x)
    return np.concatenate([np.asarray(method(x[i : i + size])) for i in range(0, len(x), size)])


def require(condition: bool, message: str) -> None:
    """Say what is wrong unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def required() -> Iterator[None]:
    """What the library refuses is what is wrong."""
    try:
        yield
    except CfprotoError as error:
        raise AssertionError(str(error)) from error


def require_close(a: Array, b: Array, atol: float, message: str) -> None:
    """Require that two arrays of numbers agree."""
    worst = float(np.abs(a.astype(float) - b).max(initial=0)) if a.shape == b.shape else np.inf
    require(worst <= atol, f"{message}: by {worst:.3g}, more than {atol:.3g}")
