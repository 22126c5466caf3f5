"""Bringing answers on the path of an encoder nearer to their rows, as far as second opinions see the new class too.

Proximal steps lead from the answer towards the row. They minimise beta·L1 + L2 + w·|ENC(z) - ENC(answer)|^2 among the
points of which the model is as sure as is wished for, and the small networks of `opinion` are sure as well: a step
takes all their log odds for linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array, GradientAdapter, Pullback
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.objective.curvature import curvature_of
from cfproto_plugin.search.objective.fista import soft_threshold
from cfproto_plugin.search.objective.gradients import Vjp
from cfproto_plugin.search.objective.terms import LatentDistance
from cfproto_plugin.search.opinion import Opinion
from cfproto_plugin.tables.space import Rows

_STEPS = 30
_SPEED = 0.3  # share of a step to the minimiser of the smooth part: larger ones outrun what the log odds are linear for
_CODES = 15.0  # w, in units in which the distance of codes curves as much as L2 does
_SURE = 0.95  # probability that the small networks have to give the class
_LEAST = 0.55  # and the model at least: more than any other class has
_SPARE = 0.02  # share of what is missing to 1 that a point has more than is asked for, against rounding
_SMALLEST = 1e-6  # probability: beyond, log odds are taken for these
_KEPT = 0.8  # share of the log odds that steps fell short by which the next asks for in addition
_HALVINGS = 16  # to find by how much a step has to turn
_TINY = 1e-12


class _Asked(NamedTuple):
    """A classifier that has to be sure of the classes of p points."""

    vjp: Vjp
    least: Array  # (p,) probability


def bring_nearer(
    judge: Judge, clock: Clock, points: Candidates, encoder: GradientAdapter, opinions: tuple[Opinion, ...]
) -> Iterator[Candidates]:
    """Yield what is nearer to its row, of valid points (m,), one of a line; the model has gradients."""
    size = max(1, judge.task.tuning.network // judge.task.rows.z.shape[1])
    for start in range(0, len(points.row), size):
        part = points.take(np.arange(start, min(start + size, len(points.row))))
        with clock.shared(part.row):
            yield _nearer(judge, clock, part, encoder, opinions)
        if clock.is_over():
            return


def _nearer(
    judge: Judge, clock: Clock, points: Candidates, encoder: GradientAdapter, opinions: tuple[Opinion, ...]
) -> Candidates:
    row, label = points.row, judge.labels(points.table, points.row)
    rows, z = judge.task.rows.take(row), judge.space.to_search(points.table)
    shape = judge.space.shape
    codes = LatentDistance(encoder, encoder.vjp(z.reshape(len(z), *shape))[0], shape, 1.0)
    weight = np.nan_to_num(2 * _CODES / curvature_of(codes, rows.z))[:, None].astype(z.dtype)
    rate = np.asarray(_SPEED / (2 + 2 * _CODES), dtype=z.dtype)
    asked = [_Asked(judge.model.at(rows), _least(judge, label))]
    asked += [_Asked(_of_search(judge, rows, opinion), np.full(len(z), _SURE)) for opinion in opinions]
    best, cost, when = points.table.copy(), points.cost.copy(), np.zeros(len(z), dtype=int)
    owed = np.zeros((len(asked), len(z)))
    for step in range(_STEPS):
        proba, missing, slope = map(np.stack, zip(*(_missing(each, z, label) for each in asked), strict=True))
        table, now = judge.decode(z, row)
        good = (proba >= [each.least for each in asked]).all(axis=0) & (now < cost)
        best[good], cost[good], when[good] = table[good], now[good], step
        if step + 1 == _STEPS or clock.is_over():
            break
        ahead = z - rate * (2 * (z - rows.z) + weight * np.nan_to_num(codes(z).gradient))
        owed = _KEPT * (owed + np.maximum(missing, 0)) * (step > 0)
        z = _moved(z, ahead, missing + owed, slope, rows, judge.task.beta * rate)
    margin, trace = judge.margin(best, row), points.trace.copy()
    trace["before"], trace["steps"] = points.cost, trace["steps"] + when
    return points._replace(table=best, cost=cost, margin=margin, valid=(when > 0) & (margin > 0), trace=trace)


def _least(judge: Judge, label: Array) -> Array:
    """How sure the model has to be of classes (p,): as is asked or wished for, and a little more."""
    wanted = [each[label] for each in (judge.sure, judge.measures.floors.sure) if each is not None]
    return np.asarray(1 - (1 - _SPARE) * (1 - np.max([np.full(len(label), _LEAST), *wanted], axis=0)))


def _of_search(judge: Judge, rows: Rows, opinion: Opinion) -> Vjp:
    """The vjp of a small network at search points (p, D) of these rows."""
    space = judge.space

    def at(z: Array) -> tuple[Array, Pullback]:
        proba, pull = opinion.vjp(space.decode(z, rows))
        return proba, lambda cotangent: pull(cotangent) * space.factor

    return at


def _missing(asked: _Asked, z: Array, label: Array) -> tuple[Array, Array, Array]:
    """The probabilities (p,) of classes (p,) at points z (p, D), what their log odds lack, and the slope of these.

    Where a model fails nothing is sure and nothing has a slope.
    """
    at = np.arange(len(z)), label
    proba, pull = asked.vjp(z)
    own = np.clip(np.nan_to_num(proba[at]), _SMALLEST, 1 - _SMALLEST)
    cotangent = np.zeros_like(proba)
    cotangent[at] = 1 / (own * (1 - own))
    slope = np.nan_to_num(pull(cotangent), posinf=0, neginf=0).astype(z.dtype)
    return own, _log_odds(np.minimum(asked.least, 1 - _SMALLEST)) - _log_odds(own), slope


def _log_odds(proba: Array) -> Array:
    return np.asarray(np.log(proba / (1 - proba)))


def _moved(z: Array, ahead: Array, missing: Array, slope: Array, rows: Rows, shrink: Array) -> Array:
    """From z (p, D) to the shrunk points `ahead` (p, D), turned so far that no log odds lack anything to first order.

    missing, slope: (m, p) what those of m classifiers lack at z, and (m, p, D); one after the other, by bisection.
    """

    def landed(push: Array) -> Array:
        return np.minimum(np.maximum(soft_threshold(ahead + push, rows.z, shrink), rows.z_lower), rows.z_upper)

    push = np.zeros_like(z)
    for wanted, way in zip(missing, slope, strict=True):
        size = np.square(way).sum(axis=1) + _TINY
        lost = ((z - ahead - push) * way).sum(axis=1) + shrink * np.abs(way).sum(axis=1)
        most = 2 * np.maximum(wanted + lost, 0) / size  # enough, but for the bounds
        least = np.zeros_like(most)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            short = ((landed(push + middle[:, None].astype(z.dtype) * way) - z) * way).sum(axis=1) < wanted
            least, most = np.where(short, middle, least), np.where(short, most, middle)
        push = push + np.where(least > 0, most, 0)[:, None].astype(z.dtype) * way
    return landed(push)
