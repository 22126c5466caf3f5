"""What the calls of a model during one search share: when it has to end, and whether the model failed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from cfproto_plugin.integrations.service.errors import PredictorError


@dataclass
class Calls:
    """deadline: of time.monotonic. failure: an error of the model behind a URL that more attempts did not mend; it is
    not asked again in this search. remote: whether there is such a model.
    """

    deadline: float = math.inf
    failure: PredictorError | None = None
    remote: bool = False

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()


_calls: ContextVar[Calls | None] = ContextVar("calls", default=None)


def present_calls() -> Calls:
    """Those of the search that this thread is doing; without a deadline outside of one."""
    return _calls.get() or Calls()


@contextmanager
def calls_until(deadline: float) -> Iterator[Calls]:
    """Calls of a model in this block end at the deadline."""
    calls = Calls(deadline)
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)
