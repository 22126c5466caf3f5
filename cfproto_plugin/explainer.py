"""`CounterfactualExplainer`: a model and training data in, verified counterfactuals out."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from cfproto_plugin.claims import adapt
from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, ModelError, NotFittedError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.plugins import registry
from cfproto_plugin.progress import Progress, reporting
from cfproto_plugin.protocols import Array, ModelAdapter, PrototypeProvider
from cfproto_plugin.search.descent import Guides, Weights, search_descent
from cfproto_plugin.search.fallback import fall_back
from cfproto_plugin.search.gradients import with_gradient
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.path import search_path
from cfproto_plugin.search.problem import Problem, reaches
from cfproto_plugin.space import FeatureSpace, as_batch
from cfproto_plugin.targets import allowed_classes
from cfproto_plugin.versions import versions

log = logging.getLogger(__name__)
_PER_CLASS = 4  # prototypes of each class the path tries; the first is the paper's


@dataclass(frozen=True)
class Fitted:
    """All that `fit` learned. Nothing changes it afterwards."""

    adapter_name: str
    adapter: ModelAdapter
    encoder: ModelAdapter | None
    autoencoder: ModelAdapter | None
    space: FeatureSpace
    train: Array  # (N, D) in the user's numbers
    labels: Array  # (N,) columns of `classes`
    classes: Array
    absent: tuple[Any, ...]  # classes the model predicts for no training row
    provider: PrototypeProvider
    latent: bool  # whether the prototypes are encodings
    weights: Weights
    method: str


class CounterfactualExplainer:
    """Explains single predictions of a classifier by what would have to change for another class.

    model: anything a plugin claims, or a callable x -> probabilities (n, k).
    adapter: a registered name or a ModelAdapter; skips detection.
    encoder, autoencoder: ENC and AE of the paper, any model an adapter claims.
    prototypes: "auto" (the encoder if there is one, else k-d trees), a registered name, or a PrototypeProvider.
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
        features: Features | None = None,
        search: SearchConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.adapter = adapter
        self.encoder = encoder
        self.autoencoder = autoencoder
        self.prototypes = prototypes
        self.features = features or Features()
        self.search = search or SearchConfig()
        self.seed = seed
        self.fitted_: Fitted | None = None

    def fit(self, X_train: Any) -> Self:  # noqa: N803 the name every library of the field uses
        """Learn columns, bounds and prototypes from training rows. Their classes come from the model, as in the paper."""
        name, adapter = adapt(self.model, self.adapter)
        encoder = None if self.encoder is None else adapt(self.encoder, role="transform")[1]
        autoencoder = None if self.autoencoder is None else adapt(self.autoencoder, role="transform")[1]
        plain = encoder is None and autoencoder is None
        space, train = FeatureSpace.learn(
            X_train,
            self.features,
            scale=self.features.scale == "auto" and plain and np.ndim(X_train) == 2,  # noqa: PLR2004
            accepts_frames=bool(getattr(adapter, "accepts_frames", False)),
        )
        proba = _first_prediction(SearchModel(adapter, space), train, "the training data")
        labels = proba.argmax(axis=1)
        classes = _labels(adapter, proba.shape[1])
        absent = _absent(labels, classes)
        provider = self._provider(encoder)
        latent = getattr(provider, "encoder", None) is not None
        weights, method = self._plan(SearchModel(adapter, space).has_gradient, latent)
        provider = provider.fit(space.to_search(train).reshape(len(train), *space.shape), labels)
        self.fitted_ = Fitted(
            name, adapter, encoder, autoencoder, space, train, labels, classes, absent, provider, latent, weights, method
        )
        return self

    def explain(
        self, x: Any, target: Any = None, *, time_budget: float | None = None, progress: Progress = None
    ) -> Explanation:
        """Find a counterfactual for every row of x.

        target: a label, or a list, tuple or set of allowed labels; an array or Series is one label per row; None: any other
        class. time_budget: seconds; the best found until then is returned. progress: True, False or a function that is
        called with the fraction done.
        """
        start = time.perf_counter()
        fitted = self._fitted()
        x = as_batch(x)
        flat = fitted.space.read(x)
        if not len(flat):
            raise InputError("x has no rows; expected at least one")
        if time_budget is not None and not time_budget > 0:
            raise InputError(f"time_budget is {time_budget!r}; expected a positive number of seconds, or None")
        model = SearchModel(fitted.adapter, fitted.space, len(fitted.classes))
        proba = _first_prediction(model, flat, "x")
        original = proba.argmax(axis=1)
        allowed = allowed_classes(target, fitted.classes, original)
        there = allowed[np.arange(len(flat)), original]
        if self.search.min_proba is not None:
            there &= proba[np.arange(len(flat)), original] >= self.search.min_proba
        todo = np.flatnonzero(~there)
        with reporting(progress, "explaining") as tick:
            deadline = np.inf if time_budget is None else start + time_budget
            problem = Problem(fitted.space.rows(flat[todo]), allowed[todo], model, self.search, deadline, tick)
            status, message, final = self._solve(fitted, problem)
        return self._report(x, flat, proba, todo, problem, status, message, final, start)

    __call__ = explain

    def __repr__(self) -> str:
        state = "not fitted"
        if self.fitted_ is not None:
            state = f"{self.fitted_.adapter_name}, {self.fitted_.method}, {len(self.fitted_.classes)} classes"
        return f"CounterfactualExplainer({type(self.model).__name__}: {state})"

    def _fitted(self) -> Fitted:
        if self.fitted_ is None:
            raise NotFittedError("this explainer has seen no data; call explainer.fit(X_train) before explain")
        return self.fitted_

    def _provider(self, encoder: ModelAdapter | None) -> PrototypeProvider:
        if not isinstance(self.prototypes, str):
            return self.prototypes
        name = self.prototypes
        if name == "auto":
            name = "kdtree" if encoder is None else "encoder"
        k = self.search.k
        if k is None:
            k = 1 if encoder is None else 5
        options = {"k": None if k == "all" else k, "k_type": self.search.k_type, "encoder": encoder, "seed": self.seed}
        made: PrototypeProvider = registry().named("prototypes", name).factory(per_class=_PER_CLASS, **options)
        return made

    def _plan(self, has_gradient: bool, latent: bool) -> tuple[Weights, str]:
        """Settle the weights and the method for this model."""
        config = self.search
        gamma = config.gamma if config.gamma is not None else 100.0 * (self.autoencoder is not None)
        if gamma > 0 and self.autoencoder is None:
            raise ConfigError(f"gamma is {gamma:g} but there is no autoencoder; pass autoencoder=..., or gamma=0")
        theta = config.theta if config.theta is not None else (100.0 if gamma else 200.0) if latent else 20.0
        separable = not latent and not gamma and not config.c_init and theta > 0
        if config.method == "path" and not separable:
            raise ConfigError(
                "method='path' needs prototypes in the search space and neither L_pred nor L_AE: c_init=0, gamma=0, theta > 0, "
                "no encoder. Use method='fista' or 'auto'."
            )
        method = "path" if separable and config.method != "fista" else "fista"
        c_init = config.c_init if config.c_init is not None else float(has_gradient)
        c_steps = 1 if c_init == 0 else config.c_steps or 5
        if method == "fista" and c_init == 0 and theta == 0:
            raise ConfigError("c_init and theta are both 0: nothing would lead to another class; set one of them above 0")
        return Weights(c_init, c_steps, gamma, theta), method

    def _solve(self, fitted: Fitted, problem: Problem) -> tuple[list[str], list[str], Array]:
        """Search, fall back, verify. Returns status, message and the probabilities of what is returned, per row."""
        n = len(problem.rows.x)
        status, message = ["not_found"] * n, [""] * n
        final = np.full((n, len(fitted.classes)), np.nan)
        stuck = _infeasible(problem)
        if n > len(stuck):
            self._search(fitted, problem)
            problem.best.cost[list(stuck)] = np.inf
        searched = np.isfinite(problem.best.cost)
        if self.search.fallback and not problem.out_of_time():
            problem.allowed[list(stuck)] = False
            fall_back(problem, fitted.train, fitted.labels)
        final, good = _verify(problem, final)
        for i in range(n):
            if good[i]:
                status[i] = "found" if searched[i] else "fallback"
                message[i] = f"class {fitted.classes[final[i].argmax()]} {problem.best.note[i]}"
            elif i in stuck:
                status[i], message[i] = "infeasible", stuck[i]
            else:
                message[i] = self._why_not(fitted, problem, i)
        return status, message, final

    def _search(self, fitted: Fitted, problem: Problem) -> None:
        rows = np.arange(len(problem.rows.x))
        guides = Guides()
        with problem.clock(rows):
            if fitted.weights.theta > 0 or fitted.method == "path":
                z = problem.rows.z.reshape(len(rows), *fitted.space.shape)
                points, kinds = fitted.provider.nearest(z, problem.allowed)
                guides = Guides(points[:, 0], kinds[:, 0])
        if fitted.method == "path":
            search_path(problem, points.reshape(*points.shape[:2], -1), kinds)
            return
        eps = np.asarray(self.search.eps)
        encoder = getattr(fitted.provider, "encoder", None)
        search_descent(
            problem,
            fitted.weights,
            Guides(
                guides.prototypes,
                guides.kinds,
                None if encoder is None else with_gradient(encoder, eps),
                None if fitted.autoencoder is None else with_gradient(fitted.autoencoder, eps),
            ),
        )

    def _why_not(self, fitted: Fitted, problem: Problem, i: int) -> str:
        if problem.out_of_time():
            return "the time budget ran out before a counterfactual was found"
        wanted = [fitted.classes[j] for j in np.flatnonzero(problem.allowed[i])]
        if all(label in fitted.absent for label in wanted):
            return f"the model predicts class {', '.join(map(str, wanted))} for no training row, so nothing leads there"
        proba = "" if self.search.min_proba is None else f" with probability {self.search.min_proba:g}"
        hint = "" if self.search.fallback else "; fallback=True would try training rows"
        return f"no point of the search had class {' or '.join(map(str, wanted))}{proba}{hint}"

    def _report(
        self,
        x: Any,
        flat: Array,
        proba: Array,
        todo: Array,
        problem: Problem,
        status: list[str],
        message: list[str],
        final: Array,
        start: float,
    ) -> Explanation:
        """Put the solved rows back among those that were already in the target."""
        fitted = self._fitted()
        n = len(flat)
        best = problem.best
        words = np.full(n, "found", dtype=object)
        words[todo] = status
        said = np.full(n, "already in the target, returned unchanged", dtype=object)
        said[todo] = message
        result = flat.copy()
        result[todo] = best.x
        result_proba = proba.astype(float)
        result_proba[todo] = final
        steps, seconds, kinds = np.zeros(n, dtype=int), np.zeros(n), np.full(n, -1)
        steps[todo], seconds[todo], kinds[todo] = best.steps, best.seconds, best.kind
        new = np.where(np.isnan(result_proba[:, 0]), -1, np.nan_to_num(result_proba, nan=-1).argmax(axis=1))
        total = time.perf_counter() - start
        return Explanation(
            original=fitted.space.to_user(flat, x),
            counterfactual=fitted.space.to_user(result, x),
            status=words,
            message=said,
            original_class=fitted.classes[proba.argmax(axis=1)],
            counterfactual_class=_named(fitted.classes, new),
            prototype_class=_named(fitted.classes, kinds),
            original_proba=proba.astype(float),
            counterfactual_proba=result_proba,
            classes=fitted.classes,
            n_steps=steps,
            seconds=seconds + (total - seconds.sum()) / n,
            row=np.arange(n),
            feature_names=None if fitted.space.names is None else tuple(map(str, fitted.space.names)),
            meta={
                "adapter": fitted.adapter_name,
                "method": fitted.method,
                "config": asdict(self.search),
                "weights": asdict(fitted.weights),
                "classes_without_prototype": [_plain(label) for label in fitted.absent],
                "versions": versions(self.model),
                "seed": self.seed,
                "n_predict_calls": problem.model.calls,
                "n_predicted_rows": problem.model.predicted,
                "seconds": total,
            },
        )


def _first_prediction(model: SearchModel, x: Array, what: str) -> Array:
    """Predict rows the model has not seen; say so in the user's terms if it cannot take their missing values."""
    missing = np.isnan(x)
    if not missing.any():
        return model.proba(x)
    row, column = np.argwhere(missing)[0]
    try:
        return model.proba(x)
    except Exception as error:
        name = model.space.describe(int(column))
        raise InputError(
            f"row {row} of {what} is NaN in column {name}, and the model does not accept missing values "
            f"({type(error).__name__}). Fill it in, or use a model that accepts NaN."
        ) from error


def _labels(adapter: ModelAdapter, n_columns: int) -> Array:
    classes = np.asarray(getattr(adapter, "classes", np.arange(n_columns)))
    if len(classes) != n_columns:
        raise ModelError(f"the adapter names {len(classes)} classes but the model returns {n_columns} columns")
    return classes


def _absent(labels: Array, classes: Array) -> tuple[Any, ...]:
    """Classes without a training row; at least two must have one."""
    seen = np.unique(labels)
    if len(seen) < 2:  # noqa: PLR2004
        raise InputError(
            f"the model predicts class {classes[seen[0]]!r} for every row of the training data; "
            "expected rows of at least two predicted classes"
        )
    absent = tuple(np.delete(classes, seen))
    if absent:
        log.warning("the model predicts %s for no training row: left out as prototypes", ", ".join(map(str, absent)))
    return absent


def _infeasible(problem: Problem) -> dict[int, str]:
    """Rows whose rules contradict each other or leave nothing to change, with the reason."""
    rows, space = problem.rows, problem.space
    reasons: dict[int, str] = {}
    crossed = rows.lower > rows.upper
    for i, column in np.argwhere(crossed):
        reasons[int(i)] = (
            f"the rules leave no value for column {space.describe(int(column))}: at least {rows.lower[i, column]:g} "
            f"and at most {rows.upper[i, column]:g}"
        )
    rigid = ((rows.lower == rows.upper) | np.isnan(rows.lower)).all(axis=1)
    for i in np.flatnonzero(rigid):
        reasons.setdefault(int(i), "every column is fixed by immutable or ranges")
    return reasons


def _verify(problem: Problem, final: Array) -> tuple[Array, Array]:
    """Predict what will be returned once more and check every rule on it; forget what does not hold."""
    good = np.isfinite(problem.best.cost)
    at = np.flatnonzero(good)
    if len(at):
        x = problem.best.x[at]
        proba = problem.model.proba(x)
        holds = reaches(proba, problem.allowed[at], problem.config.kappa, problem.config.min_proba)
        holds &= ~problem.space.broken(x, problem.rows.take(at))
        good[at] = holds
        final[at[holds]] = proba[holds]
    problem.best.x[~good] = np.nan
    return final, good


def _named(classes: Array, columns: Array) -> Array:
    """Labels of the columns, None where the column is -1."""
    if (columns >= 0).all():
        return classes[columns]
    return np.array([_plain(classes[column]) if column >= 0 else None for column in columns], dtype=object)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
