"""What a search hands back for the lines of a task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.refine.needed import UNKNOWN

_ANSWER = (
    *("good", "refused", "table", "proba", "label", "cost", "distance", "trace", "by_search", "reached", "blocked"),
    *("typicality", "stability", "estimated", "least_typicality", "goal", "needed"),
)


class Solved(NamedTuple):
    """What became of the n lines of a task. Lines that are not `good` hold missing values."""

    good: Array  # (n,) bool: has a counterfactual that the model confirmed
    refused: Array  # (n,) bool: the model did not confirm what was found
    table: Array  # (n, A)
    goal: Array  # (n, A) the prototype of the answer, inside the rules
    proba: Array  # (n, k)
    label: Array  # (n,) column of its class, -1 for none
    cost: Array  # (n,) what was minimised
    distance: Array  # (n,) beta·L1 + L2
    trace: Array  # (n,) of dtype TRACE
    by_search: Array  # (n,) bool: found before the fallback
    reached: Array  # (n,) the highest probability of an allowed class of points that kept the rules; NaN for none
    blocked: Array  # (n,) objects: the relations that no point satisfied, as `Blocked`; None for none
    typicality: Array  # (n,) of the answer, or the best of a line without one; NaN where it is not measured
    stability: Array  # (n,) likewise
    estimated: Array  # (n,) bool: the stability of a line without an answer is an estimate
    needed: Array  # (n, A) what each change is needed for, in the words of `refine.needed`
    least_typicality: Array  # (n,) what was asked for
    seconds: Array  # (n,)
    in_time: bool  # the time budget was not spent
    polish_calls: int

    def with_better(self, lines: Array, other: Solved) -> Solved:
        """The answers of another search of these lines (m,) in place of these, where it has any."""
        return self.with_those(lines, other, other.good.nonzero()[0])

    def with_those(self, lines: Array, other: Solved, at: Array) -> Solved:
        """Likewise some of them (q,), whether they have an answer or not."""
        for name in _ANSWER:
            getattr(self, name)[lines[at]] = getattr(other, name)[at]
        return self._replace(in_time=other.in_time, polish_calls=self.polish_calls + other.polish_calls)

    def without_answers(self) -> Solved:
        """The same lines before they are searched for another answer; those without one stay as they are."""
        new = self._replace(**{name: getattr(self, name).copy() for name in _ANSWER}, polish_calls=0)
        at = self.good.nonzero()[0]
        new.good[at], new.label[at], new.trace["prototype"][at], new.cost[at] = False, -1, -1, np.inf
        new.needed[at] = UNKNOWN
        for part in (new.table, new.proba, new.distance, new.typicality, new.stability):
            part[at] = np.nan
        return new._replace(seconds=np.zeros(len(self.good)))
