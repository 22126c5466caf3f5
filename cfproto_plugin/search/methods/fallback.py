"""Where a search found nothing: the way to the nearest training rows that satisfy the rules, or can be made to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge, elastic_net
from cfproto_plugin.search.methods.beam import search_beam
from cfproto_plugin.search.methods.between import search_between
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.methods.product import search_product

_PROTOTYPES = 16
_FIRST_TRY, _GROWTH = 256, 4  # training rows of one row that are predicted together, nearest first


def fall_back(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """Search the paths to training rows, moved inside the rules, for lines that have nothing.

    The prototypes of the search are nearest before the rules are applied, these are nearest after. First the nearest
    few of all lines at once; then, line by line, as many as it takes to find one that keeps its class inside the
    rules; then combinations of values where few columns are free, and changes one by one.
    """
    near, theta = _Near(judge, clock, guide.train, guide.labels), guide.plan.path_theta
    for choose in (near.nearest, near.nearest_valid):
        rows = np.flatnonzero(np.isinf(best))
        if not len(rows) or clock.is_over():
            break
        with clock.shared(rows):
            chosen = [choose(row) for row in rows.tolist() if not clock.is_over()]
        if len(chosen) < len(rows):
            break
        z, classes = (np.stack(part) for part in zip(*chosen, strict=True))
        search = search_path if judge.task.intervals is None else search_between
        yield from search(judge, clock, best, rows, z, classes, theta, method="fallback")
    limited = judge.task.config.max_changes is not None  # few changes are the beam's own matter
    if limited:
        yield from search_beam(judge, clock, best, guide)
    yield from search_product(judge, clock, best, guide)
    if not limited and len(judge.space.shape) == 1:  # single pixels of an image lead nowhere, and are many
        yield from search_beam(judge, clock, best, guide)


class _Near:
    """Training rows near a line, as search points inside its rules."""

    def __init__(self, judge: Judge, clock: Clock, train: Array, labels: Array) -> None:
        self.judge, self.clock, self.train, self.labels = judge, clock, train, labels

    def nearest(self, row: int) -> tuple[Array, Array]:
        """The nearest points (16, D) and their classes; class -1 where there are fewer."""
        return self._first(row, *self._inside(row))

    def nearest_valid(self, row: int) -> tuple[Array, Array]:
        """The nearest points that are counterfactuals themselves, sought in growing batches."""
        z, classes = self._inside(row)
        start, size = 0, _FIRST_TRY
        while start < len(z) and not self.clock.is_over():
            part = slice(start, start + size)
            rows = np.full(len(z[part]), row)
            table, cost = self.judge.decode(z[part], rows)
            valid = np.flatnonzero((cost > 0) & self.judge.is_valid(table, rows))
            if len(valid):
                return self._first(row, z[part][valid], classes[part][valid])
            start, size = start + size, size * _GROWTH
        return self._first(row, z[:0], classes[:0])

    def _inside(self, row: int) -> tuple[Array, Array]:
        """Training rows of the allowed classes inside the bounds of the line, nearest first; their classes."""
        task, space = self.judge.task, self.judge.space
        allowed = np.flatnonzero(task.sources[row][self.labels])
        one = task.rows.take(np.array([row]))
        z = space.to_search(self.train[allowed].astype(one.table.dtype, copy=False))
        z = np.minimum(np.maximum(z, one.z_lower), one.z_upper)
        order = np.argsort(elastic_net(z - one.z, task.beta), kind="stable")
        return z[order], self.labels[allowed[order]]

    def _first(self, row: int, z: Array, classes: Array) -> tuple[Array, Array]:
        points = np.repeat(self.judge.task.rows.z[[row]], _PROTOTYPES, axis=0)
        found, count = np.full(_PROTOTYPES, -1), min(_PROTOTYPES, len(z))
        points[:count], found[:count] = z[:count], classes[:count]
        return points, found
