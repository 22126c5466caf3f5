"""The time of a search: when it has to end, how long a call of the model may be, and what every row took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from cfproto_plugin.protocols import Array

Progress = bool | Callable[[float], None] | None
_DELAY = 2.0
_SHARE = 0.25  # of the time that is left: what one call of the model may take
_DUE = 0.1  # of the time that is left: what a search may do before it is judged
_LEAST_SECONDS = 1e-7  # of a row; a clock may not see less


class OutOfTimeError(Exception):
    """The time budget is spent: raised in place of one more call of the model. The driver goes on with what it has."""


class Pace:
    """Keeps calls of a model so short that a deadline can be kept. Without a deadline calls are as large as they like.

    The time of a row is that of the call before, so that it follows a model which is slow at first.
    """

    def __init__(self) -> None:
        self.deadline = np.inf
        self._of_a_row = _LEAST_SECONDS

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.perf_counter()

    def rows(self, most: int) -> int:
        """How many rows the next call may have, from 1 to `most`."""
        left = self.left()
        if left < 0:
            raise OutOfTimeError
        return most if left == np.inf else self.rows_in(_SHARE * left, most)

    def groups(self, rows: int, most: int) -> int:
        """Likewise for groups of so many rows each: how many groups, from 1 to `most`."""
        return max(1, self.rows(rows * most) // rows)

    def rows_in(self, seconds: float, most: int) -> int:
        """How many rows the model predicts in that time, from 1 to `most`."""
        return int(max(1, min(most, seconds / self._of_a_row)))

    @contextmanager
    def timed(self, rows: int) -> Iterator[None]:
        """Measure a call of so many rows."""
        start = time.perf_counter()
        yield
        self._of_a_row = max((time.perf_counter() - start) / max(rows, 1), _LEAST_SECONDS)


class Clock:
    """Deadline, progress and seconds (n,) of the n rows of one search."""

    def __init__(
        self, n: int, deadline: float = np.inf, tick: Callable[[float], None] = lambda _fraction: None
    ) -> None:
        self.seconds = np.zeros(n)
        self._deadline = deadline
        self._due = self.share(_DUE)
        self._tick = tick
        self._span = (0.0, 1.0)

    def is_over(self) -> bool:
        """Whether the time budget is spent."""
        return time.perf_counter() > self._deadline

    def is_due(self) -> bool:
        """Whether a tenth of the time that was left has passed since this was last true. Never without a deadline."""
        if time.perf_counter() < self._due:
            return False
        self._due = self.share(_DUE)
        return True

    @property
    def is_limited(self) -> bool:
        """Whether there is a deadline."""
        return bool(np.isfinite(self._deadline))

    def left(self) -> float:
        """Seconds until the deadline."""
        return self._deadline - time.perf_counter()

    def share(self, fraction: float) -> float:
        """The moment at which this fraction of the time that is left will be spent."""
        now = time.perf_counter()
        return now + fraction * (self._deadline - now)

    def for_some(self, n: int) -> Clock:
        """The clock of a search of n of the rows, with the same deadline."""
        return Clock(n, self._deadline)

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
        try:
            yield
        finally:
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
