"""Telling the user how far long work has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[float], None] | None
_DELAY = 2.0


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
