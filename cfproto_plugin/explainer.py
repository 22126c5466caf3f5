"""`CounterfactualExplainer`: a model and training data in, verified counterfactuals out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cfproto_plugin import saving
from cfproto_plugin.arguments import check_call, check_models, check_parts, check_seed, settings
from cfproto_plugin.asking import FittedSource, asked_as
from cfproto_plugin.checks import as_plain
from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, NotFittedError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.files.loading import Handed
from cfproto_plugin.files.models import How
from cfproto_plugin.files.package import MAX_BYTES
from cfproto_plugin.files.record import Saved
from cfproto_plugin.fitted import Fitted, Models, check_certifiable
from cfproto_plugin.lines import Lines
from cfproto_plugin.plugins.versions import versions
from cfproto_plugin.protocols import Array, CategoryDistance, ModelAdapter, PrototypeProvider
from cfproto_plugin.search.clock import Clock, Pace, Progress, reporting
from cfproto_plugin.search.first import first_look, without_code
from cfproto_plugin.search.floors import Measures
from cfproto_plugin.search.intervals import Intervals, read_intervals
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.proofs.certificate import Certificate
from cfproto_plugin.search.proofs.certify import bounds, certify
from cfproto_plugin.search.several import further_answers
from cfproto_plugin.search.solve import solve
from cfproto_plugin.search.targets import allowed_classes, names_of
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.contradictions import contradictions
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.space import FeatureSpace, Rows


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
        matched to the index of a DataFrame; None is any other class. A dict of label to (low, high) asks for a
        probability in that interval, of any of the labels; a list, array or Series of dicts is one per row.
        n: how many different ones per row: the first is that of n=1, the others change other columns where they can;
        the result has n lines per row, and `row` says which. features: other rules for this call. time_budget: seconds,
        after which the best found so far is returned, and the nearest training row that keeps the rules for rows
        without; one search for these and one call of the model may go beyond it. progress: True, False, or a function
        that is called with the fraction done.
        """
        start = time.perf_counter()
        fitted = self._require_fitted()
        check_call(n, time_budget, progress)
        lines, rows, todo, model = self._begin(x, target, n, features)
        with reporting(as_plain(progress), "explaining") as tick:
            model.pace.deadline = np.inf if time_budget is None else start + time_budget
            clock = Clock(len(todo), model.pace.deadline, lambda fraction: tick(fraction / n))
            guide, certifying = fitted.guide, fitted.config.certify
            judge = self._judge(lines, rows, todo, model)
            first, proofs = solve(judge, clock, guide), None
            if certifying is not None:
                first, proofs = certify(judge, clock, first, fitted.classifier, certifying)
            answers = further_answers(judge, clock, guide, first, n, tick)
        for number, solved in enumerate(answers):
            lines.fill(todo + number, judge.task, solved, answers[0].good & (number > 0), model.raised)
        if proofs is not None:
            lines.certify(todo, n, proofs)
        counts = {
            "n_predict_calls": model.calls,
            "n_polish_calls": sum(solved.polish_calls for solved in answers),
            "n_predicted_rows": model.predicted,
            "n_gradients": model.gradients,
        }
        seconds = time.perf_counter() - start
        facts = {**counts, "budget": _budget(time_budget, seconds, spent=not answers[-1].in_time), "seconds": seconds}
        return self._explanation(lines, facts, features)

    __call__ = explain

    def what_if(self, x: Any, target: Any = None, *, features: str | Sequence[str] | None = None) -> Any:
        """Explain one row and show it as `Explanation.what_if` does."""
        return self.explain(x, target, progress=False).what_if(features=features)

    def certificate(
        self, x: Any, target: Any = None, *, features: Features | None = None, time_budget: float | None = None
    ) -> Certificate:
        """Prove how far every row of x is from another class, without a search: for models that have `trees()`.

        No admissible change whose J is smaller than `lower_bound` leads to the target; theta does not count. The other
        arguments are those of `explain`; without a time budget a row may take a minute.
        """
        start = time.perf_counter()
        fitted = self._require_fitted()
        check_call(1, time_budget, progress=False)
        check_certifiable("certificate", fitted.classifier, fitted.space.columns, encoders=fitted.guide.with_codes)
        lines, rows, todo, model = self._begin(x, target, 1, features)
        model.pace.deadline = np.inf if time_budget is None else start + time_budget
        clock = Clock(len(todo), model.pace.deadline)
        proofs = bounds(self._judge(lines, rows, todo, model), clock, fitted.classifier)
        return lines.certificate(todo, proofs, clock.seconds)

    def _begin(self, x: Any, target: Any, n: int, features: Features | None) -> tuple[Lines, Rows, Array, SearchModel]:
        """Read and predict the rows of a call: their lines, and the first line of every row that is to be searched.

        The rows are those of these lines.
        """
        fitted, pace = self._require_fitted(), Pace()
        if features is not None:
            settings(features, "features", Features)
        given = fitted.space.columns.given(x)
        intervals = self._intervals(target, given)
        space = fitted.space if features is None else self._space(features)
        given, model = asked_as(fitted, given, space, pace, None if intervals is None else intervals.ends)
        space = model.space
        answer, errors = first_look(model, given, fitted.fingerprint)
        errors = {**space.without_place(given.table), **errors}
        errors |= without_code(fitted.guide, given, space.shape, errors)
        group = np.repeat(np.arange(len(given)), n)
        if intervals is None:
            allowed = allowed_classes(target, fitted.classes, answer.label, given.index)[group]
        else:
            allowed, intervals = intervals.leading(answer.proba)[group], intervals.take(group)
        lines = Lines(fitted, given, answer, allowed, group, intervals)
        lines.refuse(errors)
        open_lines = np.flatnonzero(lines.unsolved)
        rows = space.rows(lines.original[open_lines])
        lines.settle(
            open_lines,
            contradictions(space, rows),
            space.broken(rows.table, rows) | self._misses_floors(model, rows, lines, open_lines),
            0 if model.decides and intervals is None else model.noise.own,
        )
        todo = np.flatnonzero(lines.unsolved)[::n]
        return lines, rows.take(np.searchsorted(open_lines, todo)), todo, model

    def _judge(self, lines: Lines, rows: Rows, todo: Array, model: SearchModel) -> Judge:
        """What decides on points of the lines `todo` (m,), whose rows these are."""
        fitted = self._require_fitted()
        wanted = None if lines.intervals is None else lines.intervals.take(todo)
        own, config, tuning = lines.answer.label[todo], fitted.config, fitted.tuning
        least, wished = fitted.probabilities if wanted is None else (None, None)
        task = Task(rows, lines.allowed[todo], lines.group[todo], own, model.space, config, tuning, wanted)
        return Judge(
            replace(task, least=least, wished=wished), model, fitted.guide.floors, fitted.guide.plan.path_theta
        )

    def save(self, path: str | os.PathLike[str], *, model: How = "auto") -> Saved:
        """Write the fitted explainer without pickle: to a folder, or to one file if the name ends in .zip or .cfproto.

        model: "auto" stores the model, the encoder and the autoencoder in a safe format of their own where an installed
        plugin has one, else by reference, with a warning that says why; "file" demands it; "reference" leaves them out,
        and `load` is given them. An explainer that is there already is replaced at once, or not at all.
        """
        settings = {name: getattr(self, name) for name in saving.SETTINGS}
        return saving.save(settings, self._require_fitted(), saving.as_path(path), model)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        model: Any = None,
        *,
        adapter: str | ModelAdapter | None = None,
        encoder: Any = None,
        autoencoder: Any = None,
        prototypes: PrototypeProvider | None = None,
        distance: CategoryDistance | None = None,
        functions: Mapping[str, Any] | None = None,
        trusted: str | Sequence[str] = (),
        max_bytes: int = MAX_BYTES,
    ) -> Self:
        """Read what `save` wrote; nothing in the file is run, and the model is asked about a few rows only.

        model, encoder, autoencoder: in place of what was stored, or where it was saved by reference; each must answer
        as the one did that was explained. adapter, prototypes, distance: objects that were saved by reference.
        functions: by name, those of relations. trusted: names of types that a model file may restore, and of functions
        (module:name) that may be imported. max_bytes: the largest file, unpacked, that is read.
        """
        names = saving.check_handed(functions, trusted, max_bytes)
        handed = Handed(model, adapter, encoder, autoencoder, prototypes, distance, functions, names)
        settings, fitted = saving.load(saving.as_path(path), handed, max_bytes)
        found = cls(**settings)
        found.fitted_ = fitted
        return found

    def __repr__(self) -> str:
        known = self.fitted_
        state = (
            "not fitted"
            if known is None
            else f"{known.classifier.name}, {known.guide.plan.method}, {len(known.classes)} classes"
        )
        return f"CounterfactualExplainer({type(self.model).__name__}: {state})"

    def _misses_floors(self, model: SearchModel, rows: Rows, lines: Lines, at: Array) -> Array:
        """Which rows (m,) of lines (m,) miss a typicality or stability that the user gave as a rule."""
        fitted = self._require_fitted()
        floors = fitted.guide.floors
        if not (floors.least_typicality.is_rule or floors.least_stability.is_rule) or not len(at):
            return np.zeros(len(at), dtype=bool)
        own = lines.answer.label[at]
        task = Task(rows, lines.allowed[at], lines.group[at], own, model.space, fitted.config, fitted.tuning)
        there = np.flatnonzero(lines.allowed[at, own])
        missed = np.zeros(len(at), dtype=bool)
        shortfall = Measures(floors, task, model).shortfall(rows.table[there], there, own[there])
        missed[there] = np.isinf(shortfall)
        return missed

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

    def _intervals(self, target: Any, given: Given) -> Intervals | None:
        """The probabilities that the target asks for; None if it asks for classes."""
        fitted = self._require_fitted()
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
                f"target gives an interval of probabilities, and {type(self.model).__name__} has none: they are made "
                "from its scores. Calibrate it (CalibratedClassifierCV), or give classes as the target"
            )
        return found

    def _source_for(self, rows: Any, features: Features | None = None) -> FittedSource:
        """What an explanation of these rows can ask afterwards."""
        return FittedSource.of(self._require_fitted(), rows, features)

    def _explanation(self, lines: Lines, facts: dict[str, Any], features: Features | None) -> Explanation:
        fitted, seconds = self._require_fitted(), facts["seconds"]
        floors = fitted.guide.floors
        names, deviations = _in_order_of(lines.given.order, fitted)
        original = lines.given.original(lines.group)
        return Explanation(
            original=original,
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
            objective=lines.objective,
            lower_bound=lines.lower_bound,
            gap=lines.gap,
            typicality=lines.typicality,
            stability=lines.stability,
            how=lines.how,
            classes=fitted.classes,
            n_steps=lines.steps,
            seconds=lines.seconds + (seconds - lines.seconds.sum()) / len(lines.group),
            row=lines.group,
            feature_names=names,
            deviations=deviations,
            _source=self._source_for(original, features),
            meta={
                "adapter": fitted.classifier.name,
                "method": fitted.guide.plan.method,
                "config": {
                    **vars(fitted.config),
                    "min_typicality": floors.least_typicality.least,
                    "min_stability": floors.least_stability.least,
                    "min_confidence": floors.least_confidence.least,
                },
                "typicality": None if floors.typicality is None else floors.typicality.described(),
                "confidence": None if floors.sure is None else floors.sure.tolist(),
                "classes_without_prototype": list(fitted.absent),
                "versions": versions(self.model),
                "seed": self.seed,
                **facts,
            },
        )


def _budget(given: float | None, seconds: float, *, spent: bool) -> dict[str, Any]:
    """What became of the time budget: None without one."""
    return {"seconds": given, "spent": spent, "overrun": 0.0 if given is None else max(0.0, seconds - given)}


def _in_order_of(order: Any, fitted: Fitted) -> tuple[tuple[str, ...] | None, Array | None]:
    """Names and deviations of the columns as the rows of a call have them, which may be another order than training's.

    order: the columns of the user's frame; None for arrays.
    """
    names, deviations = fitted.space.columns.names, fitted.deviations
    if names is None or order is None:
        return None if names is None else tuple(map(str, names)), deviations
    places = [names.index(name) for name in order]
    return tuple(map(str, order)), None if deviations is None else deviations[places]


def _named(classes: Array, columns: Array) -> Array:
    """Labels of the columns (n,), None where the column is -1."""
    if (columns >= 0).all():
        return classes[columns]
    found = np.full(len(columns), None, dtype=object)
    names = names_of(classes)
    for at in np.flatnonzero(columns >= 0):
        found[at] = names[columns[at]]
    return found
