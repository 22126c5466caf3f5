"""Where no path led to a point that is typical and stable enough: paths to training rows that are themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.nearest import nearest_rows
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.shortfall import first_that_meets

_FIRST_ASKED = 8  # training rows of a line that are asked at first, whatever the batch


def search_wished(judge: Judge, clock: Clock, best: Array, rows: Array, guide: Guide) -> Iterator[Candidates]:
    """Follow the paths from lines (n,) to their nearest training rows, inside the rules, that meet the wishes."""
    tuning, task = judge.task.tuning, judge.task
    with clock.shared(rows):
        near = nearest_rows(judge, guide, rows, tuning.wished_rows, wished=True)
        near = near.take(judge.margin(near.table, near.row) > 0)
        near = near.take(np.lexsort((near.cost, near.row)))
        meets = first_that_meets(judge, near.table, near.row, near.row, first_asked=_FIRST_ASKED) == 0
        near = near.take(meets)
    if not len(near.row):
        return
    place = np.arange(len(near.row)) - np.searchsorted(near.row, near.row)
    near, place = near.take(place < tuning.starts), place[place < tuning.starts]
    lines = near.row[firsts(near.row)]
    points = np.repeat(task.rows.z[lines][:, None], tuning.starts, axis=1)
    classes = np.full(points.shape[:2], -1)
    at = np.searchsorted(lines, near.row), place
    points[at], classes[at] = judge.space.to_search(near.table), near.trace["prototype"]
    yield from search_path(judge, clock, best, lines, points, classes, guide.plan.path_theta)
