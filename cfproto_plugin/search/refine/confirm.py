"""The last look at what will be returned: without changes that its class does not need, and predicted once more.

What is returned was predicted by the model itself, in the user's own columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import LOWEST_FLOOR, Candidates, cheapest, firsts
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import Answer
from cfproto_plugin.tables.geometry import changed, count_changed


class Confirmed(NamedTuple):
    """m candidates, and what the model says of them."""

    points: Candidates  # `valid` says which hold
    answer: Answer
    calls: int  # predict calls that took changes back


def confirm(judge: Judge, clock: Clock, points: Candidates) -> Confirmed:
    """Predict one point of every line once more and check every rule on it; `valid` is set to what holds.

    In the same call every single change of a polished point is taken back; where one can be, the point is looked at
    again.
    """
    points = points._replace(table=points.table.copy(), cost=points.cost.copy(), valid=points.valid.copy())
    answer = Answer(np.full((len(points.row), judge.task.allowed.shape[1]), np.nan), np.zeros(len(points.row), int))
    polished = np.isfinite(points.floor).any()
    size = max(1, judge.task.tuning.cells // points.table.shape[1] ** 2 if polished else len(points.row))
    calls = 0
    for start in range(0, len(points.row), size):
        part = _look(judge, clock, points, answer, np.arange(start, min(start + size, len(points.row))))
        before = judge.model.calls
        while len(part):
            part = _look(judge, clock, points, answer, part)
        calls += judge.model.calls - before
    if judge.model.is_quick and len(points.row):
        answer = _own_answer(judge, points)
    return Confirmed(points, answer, calls)


def confirm_at_once(judge: Judge, points: Candidates) -> Confirmed:
    """Ask the model itself about all points, any number of a line, in one call; keep the cheapest that holds.

    A line of which nothing holds keeps its first point. Training rows were not judged before: they need a full lead.
    """
    if not len(points.row):
        return Confirmed(points, Answer(np.zeros((0, judge.task.allowed.shape[1])), np.zeros(0, int)), 0)
    proba, decision = judge.model.own(points.table, judge.task.group[points.row])
    good = judge.margin_by(proba, decision, points.row, own=True) > 0
    good &= (judge.margin_by(proba, decision, points.row) > 0) | (points.trace["method"] != "nearest")
    good &= judge.keeps_rules(points.table, points.row)
    order = np.lexsort((points.cost, ~good, points.row))
    at = order[firsts(points.row[order])]
    answer = Answer.of(proba, decision)
    return Confirmed(points._replace(valid=good).take(at), Answer(answer.proba[at], answer.label[at]), 0)


def _own_answer(judge: Judge, points: Candidates) -> Answer:
    """Ask the model itself, and forget what it does not agree to."""
    proba, decision = judge.model.own(points.table, judge.task.group[points.row])
    points.valid[:] &= judge.margin_by(proba, decision, points.row, own=True) > 0
    return Answer.of(proba, decision)


def _look(judge: Judge, clock: Clock, points: Candidates, answer: Answer, at: Array) -> Array:
    """Predict these points (q,) and check them; return those that have a change less now."""
    table, owner, cost = points.table[at], at, points.cost[at]
    if not clock.is_over():
        fewer, whose, price = _one_less(judge, points, at)
        table, owner = np.concatenate([table, fewer]), np.concatenate([owner, whose])
        cost = np.concatenate([cost, price])
    row, model = points.row[owner], judge.model
    x = judge.task.group[row]
    if model.is_quick:
        proba, decision = model.quick(table, x), model.quick_decision(table, x)
    else:
        proba, decision = model.own(table, x)
    good = judge.margin_by(proba, decision, row) > 0
    good[: len(at)] = judge.margin_by(proba, decision, row, own=True)[: len(at)] > 0
    good &= judge.keeps_rules(table, row)
    said = Answer.of(proba, decision)
    points.valid[at] = good[: len(at)]
    answer.proba[at], answer.label[at] = said.proba[: len(at)], said.label[: len(at)]
    better = np.flatnonzero(good[len(at) :]) + len(at)
    if not len(better):
        return better
    better = better[cheapest(owner[better], cost[better], np.full(len(points.row), np.inf))]
    points.table[owner[better]], points.cost[owner[better]] = table[better], cost[better]
    return np.asarray(owner[better])


def _one_less(judge: Judge, points: Candidates, at: Array) -> tuple[Array, Array, Array]:
    """The polished ones of these points with one change less each: tables, whose they are, and what they cost."""
    original = judge.task.rows.table[points.row[at]]
    polished = np.isfinite(points.floor[at])[:, None]
    point, column = np.nonzero(changed(points.table[at], original) & polished)
    owner = at[point]
    table = points.table[owner]
    table[np.arange(len(table)), column] = original[point, column]
    cost = judge.cost(table, points.row[owner])
    worth = (cost >= points.floor[owner]) | (points.floor[owner] <= LOWEST_FLOOR)
    worth &= count_changed(table, original[point]) > 0  # a change may cost nothing after rounding
    return table[worth], owner[worth], cost[worth]
