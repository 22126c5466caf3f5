"""Asking a fitted model about rows of the user's: for `explain`, and for what an explanation is asked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, InputError, ModelError
from cfproto_plugin.features import Features
from cfproto_plugin.fitted import Fitted
from cfproto_plugin.helpers.kinds import library_of, names_of, take, to_pandas
from cfproto_plugin.plugins import nearest_prototypes
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.source import Categories, FloorsMet, Mixed, Outcome, PrototypePath, Step, Training
from cfproto_plugin.search.clock import Pace
from cfproto_plugin.search.failures import ask, in_words
from cfproto_plugin.search.first import takes
from cfproto_plugin.search.floors import Measures
from cfproto_plugin.search.methods.path import path_points
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.task import Task
from cfproto_plugin.search.training import check_same
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.space import FeatureSpace
from cfproto_plugin.tables.steps import stepped

_NOT_ASKED = np.empty(0, dtype=int)
_NAMING = 64  # calls to find the row that a model fails for


def asked_as(fitted: Fitted, given: Given, space: FeatureSpace, ends: Array | None = None) -> tuple[Given, SearchModel]:
    """The rows and the model of one call.

    Text and objects where training had neither are asked as they are if the model takes them, else in the dtypes of
    training. ends: of the intervals that a probability has to lie in.
    """
    pace = Pace()

    def made(given: Given) -> SearchModel:
        return SearchModel(
            fitted.classifier,
            space.on(given.columns),
            len(fitted.classes),
            fitted.tuning,
            pace,
            given=given,
            noise=fitted.noise_of(given.table.dtype),
            by_proba=any(part is not None for part in fitted.probabilities),
            ends=ends,
        )

    model = made(given)
    if given.loose is None:
        return given, model
    loose = replace(given, columns=given.loose, loose=None)
    tried = made(loose)
    if takes(tried, loose):
        return loose, tried
    model.calls, model.predicted = tried.calls, tried.predicted
    return given, model


@dataclass(frozen=True)
class FittedSource:
    """What an explanation asks of the explainer that made it; `report.source.Source` says what each answer is."""

    fitted: Fitted
    features: Features | None = None  # the rules of the call
    order: tuple[Any, ...] | None = None  # the columns of the user's frame; None for arrays

    @classmethod
    def of(cls, fitted: Fitted, rows: Any, features: Features | None = None) -> FittedSource:
        """For explained rows."""
        return cls(fitted, features, None if library_of(rows) is None else tuple(names_of(rows)))

    @property
    def classes(self) -> Array:
        """(k,) labels."""
        return self.fitted.classes

    @cached_property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """One-hot groups."""
        attributes, place = self.fitted.space.columns.attributes, self._places
        return {str(a.name): tuple(int(place[at]) for at in a.sources) for a in attributes if a.group}

    @cached_property
    def _places(self) -> Array:
        """(columns,) where the columns of training stand in the explained rows."""
        names = self.fitted.space.columns.names
        if self.order is None or names is None:
            return np.arange(int(np.prod(self.fitted.space.columns.shape)))
        return np.array([self.order.index(name) for name in names])

    def probabilities(self, rows: Any) -> Array:
        """(n, k)."""
        return self._answer(rows).proba

    def labels(self, rows: Any) -> Array:
        """(n,)."""
        return self._answer(rows).label

    def mixed(self, original: Any, counterfactual: Any, line: Array, taken: Array, *, labels: bool = False) -> Mixed:
        """Mixed in the table, written into the originals: the way that answers are confirmed."""
        given, model = self._unchanged(original)
        goal = self.fitted.space.columns.given(counterfactual).table.astype(given.table.dtype, copy=False)
        cells = taken.reshape(len(taken), -1)[:, self._places]
        if not given.columns.plain:
            cells = np.stack([cells[:, a.sources].any(axis=1) for a in given.columns.attributes], axis=1)
        size = max(1, self.fitted.tuning.cells // cells.shape[1])
        parts = [slice(start, start + size) for start in range(0, len(line), size)]
        tables = ((np.where(cells[p], goal[line[p]], given.table[line[p]]), line[p]) for p in parts)
        said = [model.answer(*table) if labels else Answer(model.own_proba(*table), _NOT_ASKED) for table in tables]
        proba = np.concatenate([np.empty((0, len(self.classes))), *(answer.proba for answer in said)])
        return Mixed(proba, model.raised, np.concatenate([_NOT_ASKED, *(answer.label for answer in said)]))

    def training(self, most: int = 2000) -> Training:
        """Half of them by the sizes of the classes, half of them evenly."""
        labels, k = self.fitted.guide.labels, len(self.classes)
        chosen = np.arange(len(labels))
        if len(labels) > most:
            random, parts = np.random.default_rng(0), []
            for each in range(k):
                at = np.flatnonzero(labels == each)
                share = most // (2 * k) + int(most / 2 * len(at) / len(labels))
                parts.append(random.permutation(at)[:share])
            chosen = np.sort(np.concatenate(parts))
        rows = to_pandas(take(self.fitted.data, chosen))
        if library_of(rows) is not None:
            rows = rows.iloc[:, np.argsort(self._places)].reset_index(drop=True)
        return Training(rows, labels[chosen])

    def toward_prototype(self, original: Any, label: int | None = None, points: int = 33) -> PrototypePath:
        """Inside the bounds and on the grids of the rules."""
        fitted = self.fitted
        if fitted.guide.encoder is not None:
            raise InputError(
                "the prototypes of this explainer are codes of its encoder, and the way to a code is no path of rows"
            )
        given, model = self._unchanged(original)
        space = self._ruled.on(given.columns)
        rows = space.rows(given.table[:1])
        allowed = np.zeros((1, len(self.classes)), dtype=bool)
        allowed[0, slice(None) if label is None else label] = True
        if label is None:
            allowed[0, model.answer(given.table[:1], np.zeros(1, dtype=int)).label] = False
        found, classes = nearest_prototypes(fitted.guide.provider, rows.z.reshape(1, *space.shape), allowed)
        if classes[0, 0] < 0:
            raise InputError(f"class {self.classes[allowed[0]].tolist()} has no training row, and so no prototype")
        t = np.linspace(0, 1, points)
        goal = found[:, :1].reshape(1, 1, -1).astype(rows.z.dtype, copy=False)
        z = path_points(rows.z, goal, t[None, None], rows.z_lower, rows.z_upper, float(np.asarray(fitted.config.beta)))
        table = space.decode(z[:, 0], rows.spread())[0]
        table[0] = given.table[0]
        same = np.zeros(points, dtype=int)
        return PrototypePath(t, given.answers(table, same, np.ones(points, dtype=bool)), int(classes[0, 0]))

    def categories(self, column: Any = None) -> Categories:
        """Their numbers are those of the fitted space."""
        space = self.fitted.space
        known = {at: str(attribute.name) for at, attribute in space.columns.categories.items()}
        if column is None and len(known) == 1:
            (at,) = known
        else:
            at = -1 if column is None or not known else space.columns.find(column, "column")
        if at not in known:
            there = f"expected one of {', '.join(map(repr, known.values()))}" if known else "no column has categories"
            what = "is None" if column is None else f"is {column!r}, which has no categories"
            raise InputError(f"column {what}; {there}", column=column)
        attribute, numbers = space.columns.attributes[at], space.embeddings[at]
        counts = np.bincount(self.fitted.guide.train[:, at].astype(int), minlength=len(numbers))
        place = None if attribute.group else int(self._places[attribute.sources[0]])
        return Categories(known[at], place, list(attribute.levels), numbers, counts)

    def reconstructed(self, rows: Any) -> Array | None:
        """By the autoencoder of the explainer."""
        model = self.fitted.guide.autoencoder
        if model is None:
            return None
        table = self.fitted.space.columns.given(rows).table
        return np.asarray(model.predict(table.reshape(len(table), *self.fitted.space.shape))).reshape(np.shape(rows))

    def outcome(self, original: Any, actions: Sequence[Sequence[Step]]) -> Outcome:
        """In the table, by the way that answers are confirmed."""
        given, model = self._unchanged(original)
        space = self._ruled.on(given.columns)
        rows, shape = space.rows(given.table), (len(actions), len(given))
        labels, proba = np.full(shape, -1), np.full((*shape, len(self.classes)), np.nan)
        kept, moved = np.zeros(shape, dtype=bool), np.zeros(shape)
        size = max(1, self.fitted.tuning.cells // max(given.table.size, 1))
        for start in range(0, len(actions), size):
            part = slice(start, start + size)
            tables = np.stack([stepped(space, rows, self._in_table(steps)) for steps in actions[part]])
            kept[part] = np.stack([~space.broken(table, rows) for table in tables])
            moved[part] = np.abs(space.to_search(tables) - rows.z).sum(axis=2)
            action, row = np.nonzero(kept[part])
            if len(row):
                answer = model.answer(tables[action, row], row)
                failed = np.isnan(answer.proba).any(axis=1)
                labels[start + action, row] = np.where(failed, -1, answer.label)
                proba[start + action, row] = answer.proba
        return Outcome(labels, proba, kept, moved)

    def floors(self, original: Any, action: Sequence[Step], labels: Array) -> FloorsMet:
        """By the measures of the search."""
        fitted, known = self.fitted, self.fitted.guide.floors
        is_rule = known.least_typicality.is_rule or known.least_stability.is_rule
        if not known.any or not len(labels):
            return FloorsMet(np.ones(len(labels), dtype=bool), is_rule)
        given, model = self._unchanged(original)
        space, each = self._ruled.on(given.columns), np.arange(len(given))
        rows = space.rows(given.table)
        own = model.answer(given.table, each).label
        task = Task(
            rows, np.ones((len(given), len(self.classes)), bool), each, own, space, fitted.config, fitted.tuning
        )
        table = stepped(space, rows, self._in_table(action))
        return FloorsMet(Measures(known, task, model).shortfall(table, each, labels) <= 0, is_rule)

    def _in_table(self, steps: Sequence[Step]) -> list[tuple[int, str, float]]:
        """Steps of the user's columns as those of the table: codes for categories, days for dates."""
        columns, found = self.fitted.space.columns, []
        for step in steps:
            source = int(np.flatnonzero(self._places == step.column)[0])
            at = next(at for at, attribute in enumerate(columns.attributes) if source in attribute.sources)
            attribute = columns.attributes[at]
            if attribute.group:
                value: float = attribute.sources.index(source) + attribute.dropped
            elif attribute.levels is not None:
                value = columns.code(at, step.value, "an action")
            else:
                value = float(step.value) if step.kind == "by" else columns.number(at, step.value, "an action")
            found.append((at, step.kind, value))
        return found

    @cached_property
    def _ruled(self) -> FeatureSpace:
        """The space under the rules of the call."""
        fitted = self.fitted
        return fitted.space if self.features is None else fitted.space.with_rules(self.features, fitted.guide.train)

    def _given(self, rows: Any) -> tuple[Given, SearchModel]:
        """Rows that can all be read, and the model as explained rows are asked."""
        given = self.fitted.space.columns.given(rows)
        for error in given.errors.values():
            raise error
        return asked_as(self.fitted, given, self.fitted.space)

    def _unchanged(self, rows: Any) -> tuple[Given, SearchModel]:
        """Likewise; ModelError if it is not the model of `fit` any more, asked about a few rows."""
        given, model = self._given(rows)
        check_same(self.fitted.fingerprint, model)
        return given, model

    def _answer(self, rows: Any) -> Answer:
        given, model = self._given(rows)
        each, known = np.arange(len(given)), self.fitted.fingerprint
        try:
            answer, again = (Answer.of(*both) for both in model.strictly(given.table, each, known.rows))
        except CfprotoError:
            raise
        except Exception as error:
            asked = ask(lambda at: model.strictly(given.table[at], at), len(given), _NAMING)
            row = min(asked.failed, default=0)
            text = f"row {row}: the model cannot predict it: {in_words(asked.failed.get(row, error))}"
            raise InputError(text, row=row) from error
        known.check(again, model.classes)
        missing = np.flatnonzero(np.isnan(answer.proba).any(axis=1))
        if len(missing):
            raise ModelError(str(model.no_number(answer.proba[missing[0]], f"row {missing[0]}")), row=int(missing[0]))
        return answer
