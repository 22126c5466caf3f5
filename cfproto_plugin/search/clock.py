"""The time of a search: when it has to end, how far it has come, and what every row took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from cfproto_plugin.protocols import Array

Progress = bool | Callable[[float], None] | None
_DELAY = 2.0


class Clock:
    """Deadline, progress and seconds (n,) of the n rows of one search."""

    def __init__(
        self, n: int, deadline: float = np.inf, tick: Callable[[float], None] = lambda _fraction: None
    ) -> None:
        self.seconds = np.zeros(n)
        self._deadline = deadline
        self._tick = tick
        self._span = (0.0, 1.0)

    def is_over(self) -> bool:
        """Whether the time budget is spent."""
        return time.perf_counter() > self._deadline

    def begin(self, low: float, high: float) -> None:
        """The next piece of work goes from this fraction of the whole to that."""
        self._span = (low, high)

    def report(self, fraction: float) -> None:
        """Say how much of the present piece is done."""
        low, high = self._span
        self._tick(low + (high - low) * fraction)

    @contextmanager
    def shared(self, rows: Array) -> Iterator[None]:
        """Share the time of a piece of work among the rows (m,) it was for."""
        start = time.perf_counter()
        yield
        self.seconds[rows] += (time.perf_counter() - start) / max(len(rows), 1)


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the fraction done.

    True shows a bar, False nothing, a callable is called with the fraction; None shows a bar on a terminal or in a
    notebook once the work has lasted two seconds.
    """
    if callable(progress):
        yield progress
        return
    interactive = sys.stderr.isatty() or "ipykernel" in sys.modules
    if progress is False or (progress is None and not interactive):
        yield lambda _fraction: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=100, desc=description, unit="%", delay=0 if progress else _DELAY, leave=False) as bar:
        yield lambda fraction: bar.update(min(100, round(100 * fraction)) - bar.n) and None
