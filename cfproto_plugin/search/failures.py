"""Asking a model that raises for some rows: the others get their answers."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import ModelGoneError
from cfproto_plugin.protocols import Array, Pullback
from cfproto_plugin.search.clock import Pace

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """The answers to parts of n rows, and why single rows have none."""

    parts: list[tuple[Array, Any]]  # rows (m,) and what the model said of them
    failed: dict[int, Exception]  # by row

    def joined(self, n: int, missing: float) -> Array | None:
        """The answers (n, ...), `missing` where there is none; None if there is no answer at all."""
        if not self.parts:
            return None
        rows, like = self.parts[0]
        if len(rows) == n:
            return np.asarray(like)
        found = np.full((n, *like.shape[1:]), missing, dtype=np.result_type(like.dtype, np.min_scalar_type(missing)))
        for at, answer in self.parts:
            found[at] = answer
        return found


def ask(call: Callable[[Array], Any], n: int, most: float = np.inf, seconds: float = np.inf) -> Asked:
    """Ask for n rows in one call; if it raises, find the rows that it raises for by halving.

    call: takes rows (m,). most, seconds: what halving may take; rows without an answer by then count as failed. Raises
    ModelGoneError if the model does.
    """
    rows = np.arange(n)
    try:
        return Asked([(rows, call(rows))], {})
    except ModelGoneError:
        raise
    except Exception as error:  # noqa: BLE001 whatever a model raises
        return halved(call, rows, error, most, time.perf_counter() + seconds)


def ask_vjp(
    vjp: Callable[[Array], tuple[Array, Pullback]], x: Array, pace: Pace, most: float, seconds: float
) -> tuple[Array | None, Pullback]:
    """The vjp at rows (n, *shape), asked in parts that the time that is left allows.

    Where it raises, the output is NaN and the gradient zero; no output if it raises everywhere. most, seconds: as in
    `ask`, for each part.
    """
    if pace.deadline == np.inf and len(x):  # the usual case, without what only a deadline needs
        try:
            y, whole = vjp(x)
        except ModelGoneError:
            raise
        except Exception as error:  # noqa: BLE001 whatever a model raises
            asked = halved(lambda some: vjp(x[some]), np.arange(len(x)), error, most, time.perf_counter() + seconds)
            return _in_parts(asked, x)
        return y, lambda cotangent: _pulled(whole, cotangent, x)
    asked = Asked([], {})
    start = 0
    while start < len(x):
        part = np.arange(start, min(len(x), start + pace.rows(len(x))))
        with pace.timed(len(part)):
            found = ask(lambda some, part=part: vjp(x[part[some]]), len(part), most, seconds)  # type: ignore[misc]
        asked.parts.extend((part[some], both) for some, both in found.parts)
        start += len(part)
    return _in_parts(asked, x)


def _in_parts(asked: Asked, x: Array) -> tuple[Array | None, Pullback]:
    """The output and the pullback at rows (n, *shape) of those of the parts."""

    def pullback(cotangent: Array) -> Array:
        pulled = [(at, _pulled(pull, cotangent[at], x[at])) for at, (_, pull) in asked.parts]
        joined = Asked(pulled, {}).joined(len(x), 0.0)
        return np.zeros_like(x) if joined is None else joined

    if len(asked.parts) == 1 and len(asked.parts[0][0]) == len(x):
        y, pull = asked.parts[0][1]
        return y, lambda cotangent: _pulled(pull, cotangent, x)
    return Asked([(at, y) for at, (y, _) in asked.parts], {}).joined(len(x), np.nan), pullback


def _pulled(pull: Pullback, cotangent: Array, x: Array) -> Array:
    """The gradient at rows x (n, *shape): zero where it is NaN or infinite, and everywhere if the pullback raises.

    A cotangent of zeros, which every step has whose rows are all in their class, needs no backward pass.
    """
    if not cotangent.any():
        return np.zeros_like(x)
    try:
        pulled = pull(cotangent)
    except ModelGoneError:
        raise
    except Exception as error:  # noqa: BLE001 whatever a framework raises
        log.debug("no gradient: %s", in_words(error))
        return np.zeros_like(x)
    if not math.isfinite(pulled.sum()):
        finite = np.isfinite(pulled.reshape(len(x), -1)).all(axis=1)
        pulled = np.where(finite.reshape(-1, *(1,) * (x.ndim - 1)), pulled, 0).astype(pulled.dtype)
    return pulled


def in_words(error: Exception) -> str:
    """The type of an error and the first line of its text."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text.rstrip(".")


def halved(call: Callable[[Array], Any], rows: Array, error: Exception, most: float, deadline: float) -> Asked:
    """Largest parts first: neighbours, such as the points of a path, fail together."""
    asked = Asked([], {})
    todo, calls = deque(_halves(rows)), 0
    if len(rows) == 1:
        asked.failed[0] = error
    while todo:
        at = todo.popleft()
        if calls >= most or time.perf_counter() > deadline:
            asked.failed.update(dict.fromkeys(at.tolist(), error))
            continue
        calls += 1
        try:
            asked.parts.append((at, call(at)))
        except ModelGoneError:
            raise
        except Exception as raised:  # noqa: BLE001
            error = raised
            if len(at) == 1:
                asked.failed[int(at[0])] = error
            todo += _halves(at)
    return asked


def _halves(rows: Array) -> list[Array]:
    middle = len(rows) // 2
    return [rows[:middle], rows[middle:]] if middle else []
