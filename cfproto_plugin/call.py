"""The beginning of a call: its rows are read and predicted, and those that need no search are settled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.asking import asked_as
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.features import Features
from cfproto_plugin.fitted import Fitted
from cfproto_plugin.lines import Lines
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.first import first_look, without_code
from cfproto_plugin.search.floors import Measures
from cfproto_plugin.search.intervals import Intervals, read_intervals
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.targets import allowed_classes
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.contradictions import contradictions
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.space import FeatureSpace, Rows


class Call(NamedTuple):
    """A call whose rows were read and predicted.

    todo: (m,) the first line of every row that is to be searched. rows: those of these lines.
    """

    lines: Lines
    rows: Rows
    todo: Array
    model: SearchModel

    @classmethod
    def begin(cls, fitted: Fitted, space: FeatureSpace, x: Any, target: Any, n: int) -> Call:
        """Read, predict and settle the rows of x, n lines each. space: under the rules of this call."""
        given = fitted.space.columns.given(x)
        intervals = _intervals(fitted, target, given)
        given, model = asked_as(fitted, given, space, ends=None if intervals is None else intervals.ends)
        space = model.space
        answer, errors = first_look(model, given, fitted.fingerprint)
        errors = {**space.without_place(given.table), **errors}
        errors |= without_code(fitted.guide, given, space.shape, errors)
        group = np.arange(len(given)).repeat(n)
        if intervals is None:
            allowed = allowed_classes(target, fitted.classes, answer.label, given.index)[group]
        else:
            allowed, intervals = intervals.leading(answer.proba)[group], intervals.take(group)
        lines = Lines(fitted, given, answer, allowed, group, intervals)
        lines.refuse(errors)
        open_lines = lines.unsolved.nonzero()[0]
        rows = space.rows(lines.original[open_lines])
        lines.settle(
            open_lines,
            contradictions(space, rows),
            space.broken(rows.table, rows) | _misses_floors(model, rows, lines, open_lines),
            0 if model.decides and intervals is None else model.noise.own,
        )
        todo = lines.unsolved.nonzero()[0][::n]
        return cls(lines, rows.take(open_lines.searchsorted(todo)), todo, model)

    def judge(self) -> Judge:
        """What decides on points of the lines that are to be searched."""
        lines, todo, fitted = self.lines, self.todo, self.lines.fitted
        wanted = None if lines.intervals is None else lines.intervals.take(todo)
        least, wished = fitted.probabilities if wanted is None else (None, None)
        task = _task(lines, todo, self.rows, self.model.space, intervals=wanted, least=least, wished=wished)
        return Judge(task, self.model, fitted.guide.floors, fitted.guide.plan.path_theta)


def space_under(features: Features, fitted: Fitted, known: Features) -> FeatureSpace:
    """The space under the rules of one call. What the search moves in was settled by fit, with the rules `known`."""
    for name in ("categorical", "one_hot", "weights", "scale"):
        given, settled = getattr(features, name), getattr(known, name)
        if given not in (settled, getattr(Features(), name)):
            raise ConfigError(
                f"{name} is settled by fit and cannot change per call; it was {settled!r}. Leave it out of the rules "
                "of this call, or fit another explainer with it."
            )
    return fitted.space.with_rules(features, fitted.guide.train)


def _intervals(fitted: Fitted, target: Any, given: Given) -> Intervals | None:
    """The probabilities that the target asks for; None if it asks for classes."""
    found = read_intervals(target, fitted.classes, len(given), given.index)
    if found is None:
        return None
    if fitted.config.min_proba is not None:
        raise ConfigError(
            f"target gives an interval of probabilities, and min_proba is {fitted.config.min_proba:g}; leave out "
            "one of the two"
        )
    if fitted.classifier.scored:
        raise InputError(
            "target gives an interval of probabilities, and the model has none: they are made from its scores. "
            "Calibrate it (CalibratedClassifierCV), or give classes as the target"
        )
    return found


def _misses_floors(model: SearchModel, rows: Rows, lines: Lines, at: Array) -> Array:
    """Which rows (m,) of lines (m,) miss a typicality or stability that the user gave as a rule."""
    floors = lines.fitted.guide.floors
    if not (floors.least_typicality.is_rule or floors.least_stability.is_rule) or not len(at):
        return np.zeros(len(at), dtype=bool)
    own = lines.answer.label[at]
    there = lines.allowed[at, own].nonzero()[0]
    missed = np.zeros(len(at), dtype=bool)
    measures = Measures(floors, _task(lines, at, rows, model.space), model)
    shortfall = measures.shortfall(rows.table[there], there, own[there])
    missed[there] = np.isinf(shortfall)
    return missed


def _task(lines: Lines, at: Array, rows: Rows, space: FeatureSpace, **target: Any) -> Task:
    """What is asked of lines (m,), whose rows these are; target: `intervals`, `least` and `wished` of the task."""
    fitted, (proba, own) = lines.fitted, (part[at] for part in lines.answer)
    allowed, group, tuning = lines.allowed[at], lines.group[at], fitted.tuning
    return Task(rows, allowed, group, own, space, fitted.config, tuning, proba=proba, **target)
