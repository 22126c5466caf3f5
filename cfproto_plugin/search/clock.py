"""The time of a search: when it has to end, how long a call of the model may be, and what every row took."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array


class Done(float):
    """The fraction of the work that is done, from 0 to 1, and the rows that it is about.

    rows: all of them. done: how many the work so far would have finished one by one; rows of a batch advance together.
    found: the rows that have a counterfactual by now, which may still be improved.
    """

    rows: int
    done: int
    found: int

    def __new__(cls, fraction: float, rows: int, done: int, found: int) -> Self:
        """Attributes of a float."""
        made = super().__new__(cls, fraction)
        made.rows, made.done, made.found = rows, done, found
        return made

    def __repr__(self) -> str:
        return f"Done({float(self):.3g}: {self})"

    def __str__(self) -> str:
        return f"{self.rows:,} row{'' if self.rows == 1 else 's'}, {self.found:,} found, {self.done:,} done"


Progress = bool | Callable[[Done], None] | None
_DELAY = 2.0
_SHARE = 0.25  # of the time that is left: what one call of the model may take
_DUE = 0.1  # of the time that is left: what a search may do before it is judged
_LEAST_SECONDS = 1e-7  # of a row; a clock may not see less


class OutOfTimeError(SearchEndsError):
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
        if self.deadline == np.inf:
            return most
        left = self.left()
        if left < 0:
            raise OutOfTimeError
        return self.rows_in(_SHARE * left, most)

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
        self.note(rows, time.perf_counter() - start)

    def note(self, rows: int, seconds: float) -> None:
        """Take note of what a call of so many rows took."""
        self._of_a_row = max(seconds / max(rows, 1), _LEAST_SECONDS)


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
        self.found = 0  # rows that have a counterfactual by now; the driver counts them

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
        return self._deadline != np.inf

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

    def of_part(self, lines: Array) -> Clock:
        """The clock of a search of consecutive lines (m,), all before them done: it reports on the whole."""
        n, before = len(self.seconds), self.found
        clock = Clock(len(lines), self._deadline)

        def tick(fraction: float) -> None:
            self.found = before + clock.found
            self._tick((int(lines[0]) + fraction * len(lines)) / n)

        clock._tick = tick
        return clock

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


def silent(_done: Done) -> None:
    """What `reporting` yields if nobody asks what is done."""


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Callable[[Done], None]]:
    """Yield a function that takes what is done.

    True shows a bar, False nothing, a callable is called with it; None shows a bar on a terminal or in a notebook once
    the work has lasted two seconds.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _is_interactive()):
        yield silent
        return
    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    delay = 0 if progress else _DELAY
    with _bars()(total=100, desc=description, bar_format=form, delay=delay, mininterval=0, leave=False) as bar:

        def show(done: Done) -> None:
            percent, text = min(100, round(100 * done)), f"{description} {done}"
            if (percent, text) != (bar.n, bar.desc):
                bar.set_description_str(text, refresh=False)
                bar.update(percent - bar.n)

        yield show


def _is_interactive() -> bool:
    """Whether somebody watches: a terminal, or the kernel of a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():  # None in programs without a console
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in shell.config


def _bars() -> Any:
    """The bars of tqdm for a terminal or a notebook; without ipywidgets those of terminals, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm
