"""What an explainer knows after `fit`: the classifier, its columns, and what leads the search."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.features import Features
from cfproto_plugin.helpers.frames import check_known_columns
from cfproto_plugin.helpers.probabilities import check_probabilities
from cfproto_plugin.plugins import Adapted, adapted, fitted_provider, make, own_copy, registry, space_of
from cfproto_plugin.protocols import Array, CategoryDistance, GradientAdapter, ModelAdapter, PrototypeProvider
from cfproto_plugin.search.boundary import between_rows, margins
from cfproto_plugin.search.copies import Copies
from cfproto_plugin.search.fingerprint import Fingerprint
from cfproto_plugin.search.floors import Floors, unweighted
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.noise import Noise, as_margin, noise_of
from cfproto_plugin.search.objective.gradients import with_gradient
from cfproto_plugin.search.parts import parts_that_work, splits_that_work, transform_that_works
from cfproto_plugin.search.plan import Plan, Situation, make_plan
from cfproto_plugin.search.targets import names_of
from cfproto_plugin.search.training import training_answer
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.search.typicality import Typicality
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import filled
from cfproto_plugin.tables.space import FeatureSpace

log = logging.getLogger(__name__)
_COMPARED = 64  # training rows near the boundary that are recomputed, to see how far that is from the model
_PER_CLASS = 8  # prototypes of each class the path may try; the first is the paper's
_CODES = 20  # nearest encodings of a class whose mean is its prototype


@dataclass(frozen=True)
class Models:
    """The classifier and the models beside it, behind their adapters."""

    classifier: Adapted
    encoder: Adapted | None
    autoencoder: Adapted | None

    @classmethod
    def of(cls, model: Any, adapter: str | ModelAdapter | None, encoder: Any, autoencoder: Any, seed: int) -> Models:
        """Find the adapters."""
        others = [
            None if other is None else adapted(other, role="transform", seed=seed) for other in (encoder, autoencoder)
        ]
        return cls(adapted(model, adapter, seed=seed), *others)


@dataclass(frozen=True)
class Fitted:
    """All that `fit` learned. Nothing changes it afterwards."""

    classifier: Adapted
    space: FeatureSpace
    classes: Array  # (k,) labels in the order of the probabilities
    absent: tuple[Any, ...]  # classes the model predicts for no training row
    config: SearchConfig  # the settings that run: every value settled
    guide: Guide
    noise: tuple[tuple[str, Noise], ...]  # of tables of these dtypes; the first is that of the training data
    fingerprint: Fingerprint
    tuning: Tuning = field(default_factory=Tuning)
    deviations: Array | None = None  # (columns,) of the numbers of a table, NaN for categories; None for images

    @classmethod
    def learn(
        cls,
        data: Any,
        models: Models,
        features: Features,
        config: SearchConfig,
        prototypes: str | PrototypeProvider,
        distance: str | CategoryDistance,
        seed: int,
    ) -> Fitted:
        """Label the training data by the model and learn the prototypes of every class."""
        columns, given = Columns.learn(data, features, accepts_frames=models.classifier.accepts_frames)
        check_known_columns(columns.names, models.classifier.feature_names)
        train = given.table
        models = replace(models, classifier=parts_that_work(models.classifier, columns, train))
        _check_settings(config, models, train.shape[1])
        space = _numeric_space(columns, train, features, models)
        models = replace(
            models,
            encoder=transform_that_works("encoder", models.encoder, space.shape, train),
            autoencoder=transform_that_works("autoencoder", models.autoencoder, space.shape, train),
        )
        provider = make_provider(prototypes, config, models.encoder, seed)
        encoder = space_of(provider)
        plan = make_plan(config, _situation(models, columns, latent=encoder is not None))
        if plan.method == "path" and encoder is None and len(columns.shape) == 1:
            space = space.readable(train, features)
        model = SearchModel(models.classifier, space, given=given)
        answer = training_answer(model, train)
        check_probabilities(answer.proba, "the training data")
        classes = models.classifier.classes(answer.proba.shape[1])
        absent = _absent(answer.label, classes)
        measure = make_distance(distance, seed)
        if columns.categories:
            space = space.embedded(train, answer.label, measure, features)
        z = train.copy() if space.is_identity else space.to_search(train)  # the provider may do with it as it likes
        provider = fitted_provider(provider, z.reshape(len(train), *space.shape), answer.label.copy())
        guide = Guide(
            plan,
            provider,
            _gradient(None if encoder is None else Adapted.of(encoder, "encoder"), config),
            _gradient(models.autoencoder, config),
            train,
            answer.label,
            np.take_along_axis(answer.proba, answer.label[:, None], axis=1)[:, 0],
            splits_that_work(models.classifier, space) if plan.polish else None,
            Floors() if encoder is not None else _floors(space, plan, config, train, answer.label, seed),
        )
        k = None if not isinstance(prototypes, str) else config.k or _default_k(prototypes, models.encoder)
        noise = _noise(models.classifier, model, train, answer)
        fingerprint = Fingerprint.take(model, given, answer, noise[0][1], classes)
        return cls(
            models.classifier,
            space,
            classes,
            absent,
            _settled(config, plan, k),
            guide,
            noise,
            fingerprint,
            deviations=_deviations(columns, train),
        )

    def noise_of(self, dtype: np.dtype[Any]) -> Noise:
        """What a margin must exceed in a table of this dtype."""
        return dict(self.noise).get(dtype.name, self.noise[0][1])


def make_provider(
    prototypes: str | PrototypeProvider, config: SearchConfig, encoder: Adapted | None, seed: int
) -> PrototypeProvider:
    """A copy of the provider, or the one of that name made with the settings of the search."""
    given = {name: value for name, value in (("k", config.k), ("k_type", config.k_type)) if value not in (None, "mean")}
    if not isinstance(prototypes, str):
        for name, value in given.items():
            raise ConfigError(
                f"{name} is {value!r}, but prototypes is a {type(prototypes).__name__} that was made already: give "
                f"{name} to it and leave it out of the settings, or pass prototypes by name"
            )
        return own_copy(prototypes)
    name = prototypes
    if name == "auto":
        name = "kdtree" if encoder is None else "encoder"
    k = config.k or _default_k(name, encoder)
    options = {"k": None if k == "all" else k, "k_type": config.k_type}
    offered = {"encoder": encoder, "per_class": _PER_CLASS, "seed": seed}
    made: PrototypeProvider = make(
        *registry().find("prototypes", name),
        offered={**offered, **options},
        given={name: options[name] for name in given},
    )
    return made


def make_distance(distance: str | CategoryDistance, seed: int) -> CategoryDistance:
    """The distance itself, or the one of that name."""
    if not isinstance(distance, str):
        return distance
    made: CategoryDistance = registry().make("distances", distance, seed=seed)
    return made


def _numeric_space(columns: Columns, train: Array, features: Features, models: Models) -> FeatureSpace:
    """The space of the numbers; scaled for tables without encoders."""
    plain = models.encoder is None and models.autoencoder is None
    if not plain and columns.categories:
        raise ConfigError("encoders and autoencoders take numbers; this data has categories. Leave them out.")
    scale = features.scale == "auto" and plain and len(columns.shape) == 1
    return FeatureSpace.numeric(columns, train, features, scale=scale)


def _situation(models: Models, columns: Columns, *, latent: bool) -> Situation:
    return Situation(
        gradients=models.classifier.vjp is not None and columns.plain,
        autoencoder=models.autoencoder is not None,
        latent=latent,
        table=len(columns.shape) == 1,
        differences=any(other is not None and other.vjp is None for other in (models.encoder, models.autoencoder)),
    )


def _settled(config: SearchConfig, plan: Plan, k: Any) -> SearchConfig:
    """The settings with what the plan decided; k is None where the provider was made by the user."""
    return replace(
        config,
        method=plan.method,
        beta=plan.beta,
        theta=plan.path_theta if plan.method == "path" else plan.theta,
        few_changes=plan.few_changes,
        gamma=plan.gamma,
        c_init=plan.c_init,
        c_steps=plan.c_steps,
        k=k,
        polish=plan.polish,
    )


def _deviations(columns: Columns, train: Array) -> Array | None:
    """The standard deviations of the user's columns in training rows (n, A); NaN for categories, None for images."""
    if len(columns.shape) > 1:
        return None
    found = np.full(columns.shape, np.nan)
    spread = np.nanstd(filled(train)[0], axis=0)
    for at, attribute in enumerate(columns.attributes):
        if attribute.levels is None:
            found[attribute.sources[0]] = spread[at]
    return found


def _floors(space: FeatureSpace, plan: Plan, config: SearchConfig, train: Array, labels: Array, seed: int) -> Floors:
    """How typical and how stable answers are, for tables; for images it is not measured."""
    if len(space.shape) > 1:
        return Floors()
    return Floors(
        Typicality(unweighted(space, train), labels, seed),
        Copies.of(space, config.noise, Tuning().copies, seed),
        plan.typicality,
        plan.stability,
    )


def _default_k(prototypes: str, encoder: Adapted | None) -> int:
    return 1 if encoder is None or prototypes == "kdtree" else _CODES


def _check_settings(config: SearchConfig, models: Models, columns: int) -> None:
    """Refuse what only the data and the model can show to be wrong."""
    if config.kappa and models.classifier.labels is not None:
        raise ConfigError(
            f"kappa is {config.kappa:g}, but the model decides by a rule of its own, so that probabilities need not "
            "lead; use min_proba"
        )
    if np.size(config.eps) not in {1, columns}:
        raise ConfigError(
            f"eps has {np.size(config.eps)} numbers for {columns} columns; expected one, or one per column"
        )


def _noise(adapter: Adapted, model: SearchModel, train: Array, answer: Answer) -> tuple[tuple[str, Noise], ...]:
    """Measure the noise of the model, and how far it is from its recomputation, also in float32 if that is narrower."""
    guided = adapter.labels is not None and adapter.scores is not None
    proba = model.quick(train, np.arange(len(train))) if guided else answer.proba

    def ask(table: Array, row: Array) -> Array:
        return model.quick(table, row) if guided else model.own_proba(table, row)

    noise = Noise() if adapter.row_by_row else noise_of(ask, train, proba, partial(between_rows, model.space))
    if noise.random:
        log.warning(
            "the model gave different answers to the same rows twice: what is found cannot be guaranteed, and a model "
            "that is fitted again goes unnoticed. Switch its random parts off, such as dropout."
        )
    if noise.by_batch:
        log.warning(
            "the model's answers to a row depend on the other rows of the call: what is found holds in one batch and "
            "may not in another, and a model that is fitted again goes unnoticed. Put a network in evaluation mode, "
            "such as by model.eval() for batch normalisation, and take means and scales from the training data."
        )
    if adapter.vjp is not None:  # smooth, so that rounding decides near the boundary, seen or not
        noise = noise._replace(own=max(noise.own, 4 * float(np.finfo(answer.proba.dtype).eps)))
    if guided or not model.is_quick:
        return ((train.dtype.name, noise),)
    near = np.argsort(margins(answer.proba), kind="stable")[:_COMPARED]
    found = [(train.dtype.name, noise._replace(quick=as_margin(model.quick(train[near], near), answer.proba[near])))]
    if train.dtype == np.float64 and model.space.columns.names is None:
        rows = train[near].astype(np.float32)
        difference = as_margin(model.quick(rows), model.own_proba(rows))
        found.append(("float32", noise._replace(own=max(noise.own, difference * bool(noise.own)), quick=difference)))
    return tuple(found)


def _gradient(adapter: Adapted | None, config: SearchConfig) -> GradientAdapter | None:
    return None if adapter is None else with_gradient(adapter, np.asarray(config.eps))


def _absent(labels: Array, classes: Array) -> tuple[Any, ...]:
    """Classes without a training row; at least two must have one."""
    seen = np.unique(labels)
    if len(seen) == 1:
        raise InputError(
            f"the model predicts class {classes[seen[0]]} for every row of the training data; "
            "expected rows of at least two predicted classes"
        )
    absent = tuple(names_of(np.delete(classes, seen)))
    if absent:
        log.warning("the model predicts %s for no training row: left out as prototypes", ", ".join(map(str, absent)))
    return absent
