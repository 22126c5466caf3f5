"""`CounterfactualExplainer`: a model and training data in, verified counterfactuals out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, NotFittedError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.fitted import Fitted, Models, first_prediction
from cfproto_plugin.plugins.versions import versions
from cfproto_plugin.protocols import Array, CategoryDistance, ModelAdapter, PrototypeProvider
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.problem import Problem
from cfproto_plugin.search.progress import Progress, reporting
from cfproto_plugin.search.solve import infeasible, solve
from cfproto_plugin.search.targets import allowed_classes
from cfproto_plugin.tables.columns import as_batch, is_frame
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
        self.model = model
        self.adapter = adapter
        self.encoder = encoder
        self.autoencoder = autoencoder
        self.prototypes = prototypes
        self.distance = distance
        self.features = features or Features()
        self.search = search or SearchConfig()
        self.seed = seed
        self.fitted_: Fitted | None = None

    def fit(self, X_train: Any) -> Self:  # noqa: N803 the name every library of the field uses
        """Learn columns, bounds and prototypes from training rows; their classes come from the model."""
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

        target: a label, or a list, tuple or set of allowed labels; an array or Series is one label per row; None is any
        other class. n: how many different ones per row, best first; the result has n lines per row, and `row` says
        which. features: other rules for this call. time_budget: seconds, after which the best found so far is
        returned. progress: True, False, or a function that is called with the fraction done.
        """
        start = time.perf_counter()
        fitted = self._require_fitted()
        if time_budget is not None and not time_budget > 0:
            raise InputError(f"time_budget is {time_budget!r}; expected a positive number of seconds, or None")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"n is {n!r}; expected how many counterfactuals per row, a whole number of at least 1")
        x = as_batch(x)
        flat = fitted.space.columns.read(x)
        space = fitted.space if features is None else self._space(features)
        model = SearchModel(fitted.models.classifier, space, len(fitted.classes), network=fitted.models.network)
        proba = first_prediction(model, flat, "x")
        allowed = allowed_classes(target, fitted.classes, proba.argmax(axis=1))
        row = np.repeat(np.arange(len(flat)), n)
        rows = space.rows(flat).take(row)
        draft = _Draft.of(flat[row], proba[row], allowed[row], fitted.config.min_proba, infeasible(space, rows), n)
        todo = np.flatnonzero(draft.open)
        with reporting(progress, "explaining") as tick:
            deadline = np.inf if time_budget is None else start + time_budget
            problem = Problem(rows.take(todo), allowed[row[todo]], model, fitted.config, deadline, tick, n)
            draft.fill(todo, problem, *solve(fitted, problem))
        lines = x.iloc[row] if is_frame(x) else x
        return self._explanation(lines, flat[row], proba[row], row, draft, problem, time.perf_counter() - start)

    __call__ = explain

    def __repr__(self) -> str:
        known = self.fitted_
        state = (
            "not fitted"
            if known is None
            else f"{known.models.classifier.name}, {known.plan.method}, {len(known.classes)} classes"
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
                raise ConfigError(f"{name} is settled by fit and cannot change per call; it was {known!r}")
        fitted = self._require_fitted()
        return fitted.space.with_rules(features, fitted.train)

    def _explanation(
        self, x: Any, flat: Array, proba: Array, row: Array, draft: _Draft, problem: Problem, seconds: float
    ) -> Explanation:
        fitted = self._require_fitted()
        none = np.isnan(draft.proba[:, 0])
        reached = np.where(none, -1, np.where(none[:, None], 0, draft.proba).argmax(axis=1))
        columns = fitted.space.columns
        return Explanation(
            original=columns.to_user(flat, x),
            counterfactual=columns.to_user(draft.x, x),
            status=draft.status,
            message=draft.message,
            original_class=fitted.classes[proba.argmax(axis=1)],
            counterfactual_class=_named(fitted.classes, reached),
            prototype_class=_named(fitted.classes, draft.kind),
            original_proba=proba.astype(float),
            counterfactual_proba=draft.proba,
            classes=fitted.classes,
            n_steps=draft.steps,
            seconds=draft.seconds + (seconds - draft.seconds.sum()) / len(flat),
            row=row,
            feature_names=None if columns.names is None else tuple(map(str, columns.names)),
            meta={
                "adapter": fitted.models.classifier.name,
                "method": fitted.plan.method,
                "config": dict(vars(self.search)),
                "weights": dict(vars(fitted.plan.weights)),
                "classes_without_prototype": list(fitted.absent),
                "versions": versions(self.model),
                "seed": self.seed,
                "n_predict_calls": problem.model.calls,
                "n_polish_calls": problem.polish_calls,
                "n_predicted_rows": problem.model.predicted,
                "seconds": seconds,
            },
        )


@dataclass
class _Draft:
    """The lines of the result while they are being filled in."""

    x: Array
    proba: Array
    status: Array
    message: Array
    kind: Array
    steps: Array
    seconds: Array
    open: Array

    @classmethod
    def of(
        cls, flat: Array, proba: Array, allowed: Array, min_proba: float | None, stuck: dict[int, str], copies: int
    ) -> _Draft:
        """Rows that are already in the target are done; rows whose rules contradict each other cannot be."""
        n = len(flat)
        own = np.arange(n), proba.argmax(axis=1)
        there = allowed[own] & (proba[own] >= (min_proba or 0))
        draft = cls(
            x=np.where(there[:, None], flat, np.nan).astype(flat.dtype),
            proba=np.where(there[:, None], proba.astype(float), np.nan),
            status=np.where(there, "found", "not_found").astype(object),
            message=np.where(there, "already in the target, returned unchanged", "").astype(object),
            kind=np.full(n, -1),
            steps=np.zeros(n, dtype=int),
            seconds=np.zeros(n),
            open=~there,
        )
        for i, reason in stuck.items():
            if not there[i]:
                draft.status[i], draft.message[i], draft.open[i] = "infeasible", reason, False
        again = there & (np.arange(n) % copies > 0)
        draft.x[again], draft.proba[again] = np.nan, np.nan
        draft.status[again], draft.message[again] = "not_found", "already in the target: there is only the row itself"
        return draft

    def fill(self, rows: Array, problem: Problem, status: list[str], message: list[str], proba: Array) -> None:
        """Put in what a search found."""
        best = problem.best
        self.x[rows], self.proba[rows] = best.x, proba
        self.status[rows], self.message[rows] = status, message
        self.kind[rows], self.steps[rows], self.seconds[rows] = best.kind, best.steps, best.seconds


def _named(classes: Array, columns: Array) -> Array:
    """Labels of the columns, None where the column is -1."""
    if (columns >= 0).all():
        return classes[columns]
    return np.array([None if column < 0 else classes.tolist()[column] for column in columns], dtype=object)
