"""The prototypes of all lines, found in pieces where the time is limited."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cfproto_plugin.plugins import nearest_prototypes
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.clock import Clock, OutOfTimeError
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge

_SHARE = 0.5  # of the time that is left, where all prototypes must be there before the search: the rest is for that
_FIRST, _GROWTH = 8, 4  # lines of the first piece, and how much longer than the last a piece may be
_LEAST_SECONDS = 1e-6  # that a piece takes; a clock may not see less
_PIECE = 0.1  # of the time that is left: what one piece may take


class Prototypes(NamedTuple):
    """Prototypes of some lines."""

    rows: Array  # (n,) the lines
    points: Array  # (n, m, *s)
    classes: Array  # (n, m), -1 for none


def prototypes_of(judge: Judge, clock: Clock, guide: Guide) -> Prototypes:
    """Of all lines; where the time is limited, those that half of it did not reach have none."""
    end = clock.share(_SHARE)
    found = list(prototypes_in_pieces(judge, clock, guide, end))
    if not found:
        raise OutOfTimeError
    if len(found) == 1 and len(found[0].rows) == len(judge.task):
        return found[0]
    n, width, first = len(judge.task), max(piece.classes.shape[1] for piece in found), found[0].points
    points = np.zeros((n, width, *first.shape[2:]), dtype=first.dtype)
    classes = np.full((n, width), -1)
    for piece in found:
        at = np.minimum(np.arange(width), piece.classes.shape[1] - 1)  # the last is repeated
        points[piece.rows], classes[piece.rows] = piece.points[:, at], piece.classes[:, at]
    return Prototypes(np.arange(n), points, classes)


def prototypes_in_pieces(judge: Judge, clock: Clock, guide: Guide, end: float = np.inf) -> Iterator[Prototypes]:
    """Of all lines at once; with a deadline in pieces that take a part of the time, until it or `end` is over."""
    task = judge.task
    z = (task.rows.z if task.lead is None else task.lead).reshape(len(task), *judge.space.shape)
    start, size = 0, _FIRST if clock.is_limited else len(task)
    while start < len(task):
        now, left = time.perf_counter(), clock.share(1.0) - time.perf_counter()
        if clock.is_over() or now > end:
            return
        rows = np.arange(start, min(start + size, len(task)))
        with clock.shared(rows):
            found = nearest_prototypes(guide.provider, z[rows], task.allowed[rows])
            piece = Prototypes(rows, *found)
        taken = max(time.perf_counter() - now, _LEAST_SECONDS)
        yield piece
        start += size
        if clock.is_limited:
            size = max(1, int(size * min(_GROWTH, _PIECE * left / taken)))
