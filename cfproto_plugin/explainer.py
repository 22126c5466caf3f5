"""`CounterfactualExplainer`: a model and training data in, verified counterfactuals out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cfproto_plugin.arguments import check_call, check_models, check_parts, check_seed, settings
from cfproto_plugin.checks import as_plain
from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, NotFittedError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.fitted import Fitted, Models
from cfproto_plugin.plugins.versions import versions
from cfproto_plugin.protocols import Array, CategoryDistance, ModelAdapter, PrototypeProvider
from cfproto_plugin.report.sentences import how_in_words, why_not_in_words
from cfproto_plugin.search.clock import Clock, Pace, Progress, reporting
from cfproto_plugin.search.first import first_look, takes
from cfproto_plugin.search.how import How
from cfproto_plugin.search.judge import Judge, margin_of
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.solve import Solved, solve
from cfproto_plugin.search.targets import allowed_classes, names_of
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.contradictions import contradictions
from cfproto_plugin.tables.geometry import count_changed
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.space import FeatureSpace


class CounterfactualExplainer:
    """Explains single predictions of a classifier by what would have to change for another class.

    model: anything a plugin claims, or a callable x -> probabilities (n, k).
    adapter: a registered name or a ModelAdapter; skips detection.
    encoder, autoencoder: ENC and AE of the paper, any model an adapter claims.
    prototypes: "auto" (the encoder if there is one, else k-d trees), a registered name, or a PrototypeProvider.
    distance: between categories: "abdm", "mvdm", "abdm-mvdm", a registered name, or a CategoryDistance.
    features: rules about the columns. search: settings of the search.
    seed: handed to plugins that draw random numbers; the built-in search draws none.
    """

    def __init__(
        self,
        model: Any,
        *,
        adapter: str | ModelAdapter | None = None,
        encoder: Any = None,
        autoencoder: Any = None,
        prototypes: str | PrototypeProvider = "auto",
        distance: str | CategoryDistance = "abdm",
        features: Features | None = None,
        search: SearchConfig | None = None,
        seed: int = 0,
    ) -> None:
        check_models(model, adapter, encoder, autoencoder)
        check_parts(prototypes, distance)
        check_seed(seed)
        self.model = model
        self.adapter = adapter
        self.encoder = encoder
        self.autoencoder = autoencoder
        self.prototypes = prototypes
        self.distance = distance
        self.features = settings(features, "features", Features)
        self.search = settings(search, "search", SearchConfig)
        self.seed = int(seed)
        self.fitted_: Fitted | None = None

    def fit(self, X_train: Any, y: Any = None) -> Self:  # noqa: N803, ARG002 scikit-learn's names and habit
        """Learn columns, bounds and prototypes from training rows; their classes come from the model, y is not used."""
        models = Models.of(self.model, self.adapter, self.encoder, self.autoencoder, self.seed)
        self.fitted_ = Fitted.learn(
            X_train, models, self.features, self.search, self.prototypes, self.distance, self.seed
        )
        return self

    def explain(
        self,
        x: Any,
        target: Any = None,
        n: int = 1,
        *,
        features: Features | None = None,
        time_budget: float | None = None,
        progress: Progress = None,
    ) -> Explanation:
        """Find counterfactuals for every row of x: one row or many, an array or a DataFrame.

        target: a label, or a list, tuple or set of allowed labels; an array is one label per row, and so is a Series,
        matched to the index of a DataFrame; None is any other class. n: how many different ones per row, best first;
        the result has n lines per row, and `row` says which. features: other rules for this call. time_budget: seconds,
        after which the best found so far is returned, and the nearest training row that keeps the rules for rows
        without; one search for these and one call of the model may go beyond it. progress: True, False, or a function
        that is called with the fraction done.
        """
        start = time.perf_counter()
        fitted = self._require_fitted()
        check_call(n, time_budget, progress)
        if features is not None:
            settings(features, "features", Features)
        pace = Pace()
        given, model = self._asked_as(fitted.space.columns.given(x), features, pace)
        space = model.space
        answer, errors = first_look(model, given, fitted.fingerprint)
        errors = {**space.without_place(given.table), **errors}
        group = np.repeat(np.arange(len(given)), n)
        allowed = allowed_classes(target, fitted.classes, answer.label, given.index)[group]
        lines = _Lines(fitted, given, answer, allowed, group)
        lines.refuse(errors)
        open_lines = np.flatnonzero(lines.unsolved)
        rows = space.rows(lines.original[open_lines])
        lines.settle(
            open_lines,
            contradictions(space, rows),
            space.broken(rows.table, rows),
            0 if model.decides else model.noise.own,
        )
        todo = np.flatnonzero(lines.unsolved)
        with reporting(as_plain(progress), "explaining") as tick:
            pace.deadline = np.inf if time_budget is None else start + time_budget
            clock = Clock(len(todo), pace.deadline, tick)
            rows = rows.take(np.searchsorted(open_lines, todo))
            task = Task(rows, allowed[todo], group[todo], space, fitted.config, fitted.tuning)
            solved = solve(Judge(task, model), clock, fitted.guide)
        lines.fill(todo, task, solved)
        counts = {
            "n_predict_calls": model.calls,
            "n_polish_calls": solved.polish_calls,
            "n_predicted_rows": model.predicted,
            "n_gradients": model.gradients,
        }
        seconds = time.perf_counter() - start
        facts = {**counts, "budget": _budget(time_budget, seconds, spent=not solved.in_time), "seconds": seconds}
        return self._explanation(lines, facts)

    __call__ = explain

    def __repr__(self) -> str:
        known = self.fitted_
        state = (
            "not fitted"
            if known is None
            else f"{known.classifier.name}, {known.guide.plan.method}, {len(known.classes)} classes"
        )
        return f"CounterfactualExplainer({type(self.model).__name__}: {state})"

    def _require_fitted(self) -> Fitted:
        if self.fitted_ is None:
            raise NotFittedError("this explainer has seen no data; call explainer.fit(X_train) before explain")
        return self.fitted_

    def _space(self, features: Features) -> FeatureSpace:
        """The space under the rules of one call. What the search moves in was settled by fit."""
        for name in ("categorical", "one_hot", "weights", "scale"):
            given, known = getattr(features, name), getattr(self.features, name)
            if given not in (known, getattr(Features(), name)):
                raise ConfigError(
                    f"{name} is settled by fit and cannot change per call; it was {known!r}. Leave it out of the rules "
                    "of this call, or fit another explainer with it."
                )
        fitted = self._require_fitted()
        return fitted.space.with_rules(features, fitted.guide.train)

    def _asked_as(self, given: Given, features: Features | None, pace: Pace) -> tuple[Given, SearchModel]:
        """The rows and the model of one call.

        Text and objects where training had neither are asked as they are if the model takes them, else in the dtypes of
        training.
        """
        fitted = self._require_fitted()
        space = fitted.space if features is None else self._space(features)

        def made(given: Given) -> SearchModel:
            return SearchModel(
                fitted.classifier,
                space.on(given.columns),
                len(fitted.classes),
                fitted.tuning,
                pace,
                given=given,
                noise=fitted.noise_of(given.table.dtype),
                min_proba=fitted.config.min_proba,
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

    def _explanation(self, lines: _Lines, facts: dict[str, Any]) -> Explanation:
        fitted, seconds = self._require_fitted(), facts["seconds"]
        columns = fitted.space.columns
        return Explanation(
            original=lines.given.original(lines.group),
            counterfactual=lines.given.answers(lines.table, lines.group, lines.label >= 0),
            status=lines.status,
            message=lines.message,
            original_class=_named(fitted.classes, lines.answer.label),
            counterfactual_class=_named(fitted.classes, lines.label),
            prototype_class=_named(fitted.classes, lines.prototype),
            original_proba=lines.answer.proba.astype(float),
            counterfactual_proba=lines.proba,
            distance=lines.distance,
            margin=lines.margin(),
            how=lines.how,
            classes=fitted.classes,
            n_steps=lines.steps,
            seconds=lines.seconds + (seconds - lines.seconds.sum()) / len(lines.group),
            row=lines.group,
            feature_names=None if columns.names is None else tuple(map(str, columns.names)),
            meta={
                "adapter": fitted.classifier.name,
                "method": fitted.guide.plan.method,
                "config": dict(vars(fitted.config)),
                "classes_without_prototype": list(fitted.absent),
                "versions": versions(self.model),
                "seed": self.seed,
                **facts,
            },
        )


class _Lines:
    """The lines of the result while they are being filled in: n answers to every row, all arrays of that length."""

    def __init__(self, fitted: Fitted, given: Given, answer: Answer, allowed: Array, group: Array) -> None:
        n = len(group)
        self.fitted, self.given, self.allowed, self.group = fitted, given, allowed, group
        self.answer, self.original = Answer(*(part[group] for part in answer)), given.table[group]
        self.table = np.full_like(self.original, np.nan)
        self.proba = np.full(self.answer.proba.shape, np.nan)
        self.label, self.prototype = np.full(n, -1), np.full(n, -1)
        self.status = np.full(n, "not_found", dtype=object)
        self.message = np.full(n, "", dtype=object)
        self.how = np.full(n, None, dtype=object)
        self.steps, self.seconds, self.distance = np.zeros(n, dtype=int), np.zeros(n), np.full(n, np.nan)
        self.unsolved = np.ones(n, dtype=bool)

    def refuse(self, errors: Mapping[int, Exception]) -> None:
        """Rows that cannot be read or predicted are done."""
        for row, error in errors.items():
            at = self.group == row
            self.status[at], self.message[at], self.unsolved[at] = "error", str(error), False
            self.answer.label[at], self.answer.proba[at] = -1, np.nan

    def settle(self, at: Array, reasons: dict[int, str], broken: Array, noise: float) -> None:
        """Rows that are in the target and keep the rules are done; rows whose rules contradict each other cannot be.

        at: (m,) lines. reasons: by place in them. broken: (m,) bool: a rule does not hold on the row itself.
        noise: what a margin must exceed.
        """
        config, proba, label = self.fitted.config, self.answer.proba[at], self.answer.label[at]
        own, allowed = (np.arange(len(at)), label), self.allowed[at]
        there = allowed[own] & (proba[own] >= (config.min_proba or 0)) & ~broken
        if config.kappa or noise:
            there &= margin_of(proba, allowed, config.kappa, config.min_proba, noise) > 0
        done = at[there]
        first = done[np.searchsorted(self.group, self.group[done]) == done]
        self.unsolved[done] = False
        self.table[first], self.proba[first] = self.original[first], self.answer.proba[first]
        self.label[first], self.distance[first] = self.answer.label[first], 0.0
        self.status[first], self.how[first] = "found", How("unchanged")
        self.message[done] = "already in the target: there is only the row itself"
        self.message[first] = how_in_words(How("unchanged"), label=None, n_changes=0, cost=0.0)
        for i, reason in reasons.items():
            if not there[i]:
                self.status[at[i]], self.message[at[i]], self.unsolved[at[i]] = "infeasible", reason, False

    def fill(self, at: Array, task: Task, solved: Solved) -> None:
        """Put in what a search found for the lines (m,)."""
        good, trace, classes = solved.good, solved.trace, names_of(self.fitted.classes)
        self.table[at], self.proba[at], self.label[at] = solved.table, solved.proba, solved.label
        self.distance[at], self.seconds[at] = solved.distance, solved.seconds
        self.prototype[at], self.steps[at] = trace["prototype"], trace["steps"]
        self.status[at] = np.where(good, np.where(solved.by_search, "found", "fallback"), "not_found")
        counts, ruled = count_changed(solved.table, task.rows.table), task.space.rules.any_declared
        for i, line in enumerate(at):
            if not good[i]:
                self.message[line] = self._why_not(i, task, solved)
                continue
            prototype = int(trace["prototype"][i])
            how = How(
                method=str(trace["method"][i]),
                prototype_class=classes[prototype] if prototype >= 0 else None,
                theta=float(trace["theta"][i]),
                step=int(trace["step"][i]),
                c=float(trace["c"][i]),
                polished_from=float(trace["before"][i]),
            )
            self.how[line] = how
            self.message[line] = how_in_words(
                how, label=classes[solved.label[i]], n_changes=int(counts[i]), cost=float(solved.cost[i]), ruled=ruled
            )

    def margin(self) -> Array:
        """(n,) the probability of the new class minus the best other."""
        each, label = np.arange(len(self.group)), np.maximum(self.label, 0)
        others = self.proba.copy()
        others[each, label] = -np.inf
        return np.where(self.label < 0, np.nan, self.proba[each, label] - others.max(axis=1))

    def _why_not(self, i: int, task: Task, solved: Solved) -> str:
        wanted = names_of(self.fitted.classes[task.allowed[i]])
        return why_not_in_words(
            wanted,
            in_time=solved.in_time,
            refused=bool(solved.refused[i]),
            further=bool(task.turn[i] and solved.good[task.first[i]]),
            absent=all(label in self.fitted.absent for label in wanted),
            min_proba=self.fitted.config.min_proba,
            fallback=self.fitted.config.fallback,
            reached=float(solved.reached[i]),
            least=self.fitted.config.kappa + self.fitted.noise_of(self.given.table.dtype).lead,
            impossible=None if solved.impossible[i] < 0 else task.space.rules.relations[solved.impossible[i]].name,
            relax=task.binding(),
        )


def _budget(given: float | None, seconds: float, *, spent: bool) -> dict[str, Any]:
    """What became of the time budget: None without one."""
    return {"seconds": given, "spent": spent, "overrun": 0.0 if given is None else max(0.0, seconds - given)}


def _named(classes: Array, columns: Array) -> Array:
    """Labels of the columns (n,), None where the column is -1."""
    if (columns >= 0).all():
        return classes[columns]
    found = np.full(len(columns), None, dtype=object)
    names = names_of(classes)
    for at in np.flatnonzero(columns >= 0):
        found[at] = names[columns[at]]
    return found
