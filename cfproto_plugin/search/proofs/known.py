"""Points of a line that the model itself confirmed: what proofs compare answers and bounds with."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import FAR, candidates, traces
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.nearest import nearest_rows
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.proofs.prove import Confirmed
from cfproto_plugin.search.refine.confirm import confirm, confirm_at_once
from cfproto_plugin.search.refine.needed import nothing_known

_ASKED = 16  # training rows near a line that the model is asked about, beside those that need not be moved


class Known(NamedTuple):
    """A point of a line that the model confirmed and that keeps every rule."""

    table: Array  # (1, A)
    cost: float
    shortfall: float  # by how much it misses the wishes
    answer: Answer

    @property
    def rank(self) -> float:
        """What answers are compared by: those that meet the wishes first, then by cost."""
        return self.cost + FAR * self.shortfall


def witness(judge: Judge, guide: Guide, line: int) -> Confirmed | None:
    """The cheapest training row, moved inside the rules, that the model confirms for a line; None for none.

    It is no answer, since it may miss wishes: a program that does not have it is wrong.
    """
    with suppress(SearchEndsError):
        found = confirm_at_once(judge, nearest_rows(judge, guide, np.array([line]), _ASKED)).points
        if found.valid.any():
            return Confirmed(found.table[0], float(found.cost[0]))
    return None


def without_needless(judge: Judge, clock: Clock, line: int, point: Known, goal: Array | None) -> tuple[Known, Array]:
    """A point without changes that could be left out, and what each of the others is needed for (A,).

    Such changes cost next to nothing, less than a program can tell from its optimum. goal: (1, A) its prototype.
    Without time to ask the model the point stays as it is, and so do those that miss a wish for confidence.
    """
    row, end = np.array([line]), point.table if goal is None else goal
    points = candidates(
        row,
        point.table.copy(),
        np.array([point.cost]),
        np.full(1, np.nan),
        traces(1, "proof"),
        path_end=end,
        shortfall=np.array([point.shortfall]),
        polished=True,
    )
    with suppress(SearchEndsError):
        found = confirm(judge, clock.for_some(len(judge.task)), points)
        if found.points.valid[0]:
            cost = float(found.points.cost[0])
            return Known(found.points.table, cost, point.shortfall, found.answer), found.needed[0]
    return point, nothing_known(point.table.shape[1:])
