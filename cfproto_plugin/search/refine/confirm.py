"""The last look at what will be returned: without changes that its class does not need, and predicted once more.

What is returned was predicted by the model itself, in the user's own columns. A look asks about a point, about every
single change of it taken back, and about growing sets of the changes that the look before found dispensable, starting
with those that save most for the margin they cost. The point moves to the cheapest of these that is valid and is looked
at again, until no single change can be left out. That last look tells what each change is needed for.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates, firsts
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.refine.needed import Needed, nothing_known
from cfproto_plugin.search.refine.versions import UNKNOWN, Versions
from cfproto_plugin.search.shortfall import first_that_meets

_FIRST_ASKED = 8  # versions of a point whose stability is asked at first, whatever the batch


class Confirmed(NamedTuple):
    """m candidates, and what the model says of them."""

    points: Candidates  # `valid` says which hold
    answer: Answer
    calls: int  # predict calls that took changes back
    needed: Array  # (m, A) what each change is needed for, in the words of `needed`


def confirm(judge: Judge, clock: Clock, points: Candidates) -> Confirmed:
    """Predict one point of every line once more and check every rule on it; `valid` is set to what holds.

    Changes of polished points that their class does not need are taken back, in place: what was taken back stays so if
    the time runs out.
    """
    n, columns = points.table.shape
    answer = Answer(np.full((n, judge.task.allowed.shape[1]), np.nan), np.zeros(n, int))
    needed = Needed.of(points)
    polished = bool(points.polished.any())
    size, start, before = max(1, judge.task.tuning.cells // columns**2 if polished else n), 0, judge.model.calls
    while start < n:
        size = judge.model.pace.groups(columns if polished else 1, size)
        at = np.arange(start, min(start + size, n))
        with clock.shared(points.row[at]):
            at, price = _look(judge, points, answer, needed, at, np.full((len(at), columns), UNKNOWN))
            while len(at):
                at, price = _look(judge, points, answer, needed, at, price)
        start += size
    calls = judge.model.calls - before - 1
    if judge.model.is_quick and n:
        answer = _own_answer(judge, points)
    calls += _settled(judge, points, needed)
    return Confirmed(points, answer, max(calls, 0), needed.reason)


def confirm_at_once(judge: Judge, points: Candidates) -> Confirmed:
    """Ask the model itself about all points, any number of a line, in one call; keep the cheapest that holds.

    A line of which nothing holds keeps its first point. Training rows were not judged before: they need a full lead.
    """
    if not len(points.row):
        nothing = Answer(np.zeros((0, judge.task.allowed.shape[1])), np.zeros(0, int))
        return Confirmed(points, nothing, 0, nothing_known(points.table.shape))
    proba, decision = judge.model.own(points.table, judge.task.group[points.row])
    good = judge.margin_by(proba, decision, points.row, own=True, wish=False) > 0
    good &= (judge.margin_by(proba, decision, points.row, wish=False) > 0) | (points.trace["method"] != "nearest")
    good &= judge.keeps_rules(points.table, points.row)
    order = np.lexsort((points.cost, ~good, points.row))
    at = order[firsts(points.row[order])]
    answer = Answer.of(proba, decision)
    points = points._replace(valid=good).take(at)
    return Confirmed(points, Answer(answer.proba[at], answer.label[at]), 0, nothing_known(points.table.shape))


def unconfirmed(judge: Judge, points: Candidates) -> Confirmed:
    """None of the points holds: the model is gone."""
    n, k = len(points.row), judge.task.allowed.shape[1]
    nothing = Answer(np.full((n, k), np.nan), np.zeros(n, int))
    return Confirmed(points._replace(valid=np.zeros(n, dtype=bool)), nothing, 0, nothing_known(points.table.shape))


def _settled(judge: Judge, points: Candidates, needed: Needed) -> int:
    """Settle what changes are needed for, if there is time; without it each is known alone. The predict calls made."""
    before = judge.model.calls
    with suppress(SearchEndsError):
        needed.settle(judge, points)
    return judge.model.calls - before


def _own_answer(judge: Judge, points: Candidates) -> Answer:
    """Ask the model itself, and forget what it does not agree to."""
    proba, decision = judge.model.own(points.table, judge.task.group[points.row])
    points.valid[:] &= judge.margin_by(proba, decision, points.row, own=True) > 0
    return Answer.of(proba, decision)


def _look(
    judge: Judge, points: Candidates, answer: Answer, needed: Needed, at: Array, price: Array
) -> tuple[Array, Array]:
    """Predict these points (q,) and versions of them with fewer changes; return those that have fewer now.

    price: (q, A) of their changes, measured by the look before. Returned likewise, of this look.
    needed: of all points, written for those that stay.
    """
    q = len(at)
    original = judge.task.rows.table[points.row[at]]
    versions = Versions.of(points.table[at], original, points.polished[at], price)
    owner = at[versions.point]
    row = points.row[owner]
    margin, said, label = _ask(judge, versions, row, q)
    cost = _costs(judge, versions, row, margin, points.path_end[owner] if judge.theta else None)
    points.valid[at], answer.proba[at], answer.label[at] = np.isfinite(cost[:q]), said.proba, said.label
    cost[:q] = points.cost[at]
    cost[cost > points.cost[owner]] = np.inf  # a change back may be away from the prototype
    if judge.measures.floors.any:
        _forget_those_that_fall_short(judge, points, versions, owner, cost, q)
    best = versions.best(cost)
    moved = versions.point[best]
    stays = points.polished[at]
    stays[moved] = False
    needed.note(judge, points, versions, at, stays, label, margin)
    points.table[at[moved]], points.cost[at[moved]] = versions.tables(best), cost[best]
    return at[moved], versions.prices(margin, cost)[moved] if len(moved) else price[:0]


def _ask(judge: Judge, versions: Versions, row: Array, q: int) -> tuple[Array, Answer, Array]:
    """The margins (N,) of versions of lines (N,), what the model says of the first q, and the classes (N,) of all.

    In parts that memory and the time that is left allow.
    """
    model, found, start = judge.model, [], 0
    while start < len(row):
        part = np.arange(start, min(len(row), start + model.pace.rows(model.most_rows)))
        table, x = versions.tables(part), judge.task.group[row[part]]
        quick = model.is_quick
        found.append((model.quick(table, x), model.quick_decision(table, x)) if quick else model.own(table, x))
        start += len(table)
    proba = np.concatenate([part for part, _ in found])
    decision = None if found[0][1] is None else np.concatenate([part for _, part in found])
    margin = judge.margin_by(proba, decision, row)
    first = proba[:q], None if decision is None else decision[:q]
    if model.noise.own or model.noise.quick:
        margin[:q] = judge.margin_by(*first, row[:q], own=True)  # judged before
    return margin, Answer.of(*first), Answer.of(proba, decision).label


def _forget_those_that_fall_short(
    judge: Judge, points: Candidates, versions: Versions, owner: Array, cost: Array, q: int
) -> None:
    """Make the cost (N,) of versions that miss a wish by more than their point infinite, and of those not asked."""
    cheaper = np.isfinite(cost).nonzero()[0]
    cheaper = cheaper[cheaper >= q]
    cheaper = cheaper[np.lexsort((cost[cheaper], owner[cheaper]))]
    mine = owner[cheaper]
    table, granted = versions.tables(cheaper), points.shortfall[mine]
    missed = first_that_meets(judge, table, points.row[mine], mine, granted, first_asked=_FIRST_ASKED)
    cost[q:] = np.where(np.isin(np.arange(q, len(cost)), cheaper[missed == 0]), cost[q:], np.inf)


def _costs(judge: Judge, versions: Versions, row: Array, margin: Array, goal: Array | None) -> Array:
    """What versions of lines (N,) cost: (N,), infinite where one has no margin or breaks a rule."""
    cost = np.full(len(row), np.inf)
    good = (margin > 0).nonzero()[0]
    size = judge.model.most_rows
    for at in (good[i : i + size] for i in range(0, len(good), size)):
        table = versions.tables(at)
        keeps = judge.keeps_rules(table, row[at])
        cost[at[keeps]] = judge.cost(table[keeps], row[at[keeps]], None if goal is None else goal[at[keeps]])
    return cost
