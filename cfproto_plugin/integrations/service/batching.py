"""Requests that wait and ask for the same are explained together, and each gets its own lines.

Servers merge requests by themselves too, and give all of them the parameters of the last. Here only requests with equal
parameters and equal kinds of columns meet, and one that cannot be read was refused before.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.helpers.kinds import library_of, load_pandas
from cfproto_plugin.integrations.requests import Request
from cfproto_plugin.integrations.service.errors import ServiceError
from cfproto_plugin.integrations.service.limits import Limits

_ROWS = ("original", "counterfactual")
_LEAST_SHARE = 0.5  # of its own time that a request has in a batch with an older one
_MOST_WAIT = 0.1  # of its own time that a request waits for others
Search = Callable[[Any, Request, float], Explanation]  # rows, what is asked, deadline of time.monotonic


@dataclass(eq=False)
class Asked:
    """A request in line. rows: an array or a pandas frame. deadline: of time.monotonic."""

    rows: Any
    request: Request
    deadline: float
    arrived: float = field(default_factory=time.monotonic)
    answer: asyncio.Future[Answered] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def may_wait_until(self, max_wait: float) -> float:
        """When its search begins at the latest: waiting for others takes no more than a part of its own time."""
        return min(self.arrived + max_wait, self.arrived + _MOST_WAIT * (self.deadline - self.arrived))

    def goes_with(self, first: Asked) -> bool:
        """Whether both can be explained in one call, which ends with the time of the first."""
        now = time.monotonic()
        in_time = first.deadline - now >= _LEAST_SHARE * (self.deadline - now)
        return in_time and self.request == first.request and _kinds(self.rows) == _kinds(first.rows)


@dataclass(frozen=True)
class Answered:
    """The lines of a request; how long it waited, and how many requests were explained with it."""

    explanation: Explanation
    waited: float
    together: int


class Batcher:
    """The line of waiting requests, and the threads that explain them."""

    def __init__(self, search: Search, limits: Limits) -> None:
        self._search = search
        self._limits = limits
        self._line: deque[Asked] = deque()
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="cfproto")
        self._free = limits.threads
        self._timer: asyncio.TimerHandle | None = None

    async def explain(self, asked: Asked) -> Answered:
        """Wait in line, then for the answer."""
        if len(self._line) >= self._limits.max_waiting:
            raise ServiceError(
                f"{len(self._line)} requests are waiting already; try again later", HTTPStatus.SERVICE_UNAVAILABLE
            )
        self._line.append(asked)
        self._start()
        return await asked.answer

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        """Begin as many searches as there are free threads; the first request may wait for others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._line and self._free:
            wait = self._line[0].may_wait_until(self._limits.max_wait) - time.monotonic()
            if wait > 0 and len(self._line) < self._limits.max_batch:
                self._timer = loop.call_later(wait, self._start)
                return
            batch = self._next()
            if not batch:
                continue
            self._free -= 1
            context = contextvars.copy_context()
            done = loop.run_in_executor(self._pool, context.run, self._answers, batch)
            done.add_done_callback(lambda future, batch=batch: self._done(batch, future))  # type: ignore[misc]

    def _next(self) -> list[Asked]:
        """The first in line with those that go with it; requests that nobody waits for are dropped."""
        batch: list[Asked] = []
        others: deque[Asked] = deque()
        rows = 0
        while self._line:
            asked = self._line.popleft()
            if asked.answer.done():
                continue
            if time.monotonic() >= asked.deadline:
                asked.answer.set_exception(_too_late(asked))
                continue
            fits = len(batch) < self._limits.max_batch and rows + len(asked.rows) <= self._limits.max_rows
            if not batch or (fits and asked.goes_with(batch[0])):
                batch.append(asked)
                rows += len(asked.rows)
            else:
                others.append(asked)
        self._line = others
        return batch

    def _answers(self, batch: Sequence[Asked]) -> list[Answered | Exception]:
        """Explain a batch. If its parameters are wrong, or only some of its rows, each request hears of its own."""
        start = time.monotonic()
        try:
            explanation = self._search(
                joined([asked.rows for asked in batch]), batch[0].request, min(asked.deadline for asked in batch)
            )
        except InputError as error:
            return [error] if len(batch) == 1 else [self._answers([asked])[0] for asked in batch]
        except Exception as error:  # noqa: BLE001 every request of the batch is told
            return [error for _ in batch]
        parts = split(explanation, [len(asked.rows) for asked in batch])
        return [Answered(part, start - asked.arrived, len(batch)) for part, asked in zip(parts, batch, strict=True)]

    def _done(self, batch: Sequence[Asked], future: asyncio.Future[list[Answered | Exception]]) -> None:
        self._free += 1
        failed = (
            future.exception()
            if not future.cancelled()
            else ServiceError("the server is ending", HTTPStatus.SERVICE_UNAVAILABLE)
        )
        found: Sequence[Any] = [failed] * len(batch) if failed is not None else future.result()
        for asked, answer in zip(batch, found, strict=True):
            if asked.answer.done():
                continue
            if isinstance(answer, BaseException):
                asked.answer.set_exception(answer)
            else:
                asked.answer.set_result(answer)
        self._start()


def joined(rows: Sequence[Any]) -> Any:
    """The rows of several requests, one after the other."""
    if len(rows) == 1:
        return rows[0]
    if library_of(rows[0]) is not None:
        return load_pandas().concat(rows, ignore_index=True)
    return np.concatenate(rows)


def split(explanation: Explanation, sizes: Sequence[int]) -> list[Explanation]:
    """The lines of each request, whose rows are counted from 0 again."""
    if len(sizes) == 1:
        return [explanation]
    found, start = [], 0
    for size in sizes:
        lines = np.flatnonzero((explanation.row >= start) & (explanation.row < start + size))
        part = explanation[lines]
        row = part.row - start
        found.append(replace(part, row=row, **{name: _numbered(getattr(part, name), row) for name in _ROWS}))
        start += size
    return found


def _numbered(rows: Any, index: Any) -> Any:
    """Rows with this index, if they have one."""
    return rows.set_axis(index, axis=0) if library_of(rows) is not None else rows


def _kinds(rows: Any) -> Any:
    return list(rows.dtypes) if library_of(rows) is not None else (rows.dtype, rows.shape[1:])


def _too_late(asked: Asked) -> ServiceError:
    given = max(asked.deadline - asked.arrived, 0.0)
    return ServiceError(
        f"the request waited in line for all of its {given:.3g} seconds; try again later, or with a longer time_budget",
        HTTPStatus.SERVICE_UNAVAILABLE,
    )
