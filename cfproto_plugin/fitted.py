"""What an explainer knows after `fit`: the classifier, its columns, and what leads the search."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, NotFittedError
from cfproto_plugin.features import Features
from cfproto_plugin.helpers.frames import check_known_columns
from cfproto_plugin.plugins import Adapted, adapted, fitted_provider, make, own_copy, registry, space_of
from cfproto_plugin.protocols import Array, CategoryDistance, GradientAdapter, ModelAdapter, PrototypeProvider
from cfproto_plugin.search.copies import Copies
from cfproto_plugin.search.fingerprint import Fingerprint
from cfproto_plugin.search.floors import Floors, sure_probabilities, unweighted
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.noise import Noise
from cfproto_plugin.search.objective.gradients import with_gradient
from cfproto_plugin.search.opinion import LARGEST
from cfproto_plugin.search.parts import parts_that_work, splits_that_work, transform_that_works
from cfproto_plugin.search.plan import Plan, Situation, make_plan
from cfproto_plugin.search.proofs.supported import check_certifiable
from cfproto_plugin.search.targets import names_of
from cfproto_plugin.search.training import Said, ask, difference_in, still, with_opinions
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.search.typicality import Typicality
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.geometry import filled, moments
from cfproto_plugin.tables.space import FeatureSpace

log = logging.getLogger(__name__)
_PER_CLASS = 8  # prototypes of each class the path may try; the first is the paper's
_CODES = 20  # nearest encodings of a class whose mean is its prototype


@dataclass(frozen=True)
class Models:
    """The classifier and the models beside it, behind their adapters."""

    classifier: Adapted
    encoder: Adapted | None
    autoencoder: Adapted | None
    model: Any = None  # the classifier itself, for messages

    @classmethod
    def of(cls, model: Any, adapter: str | ModelAdapter | None, encoder: Any, autoencoder: Any, seed: int) -> Models:
        """Find the adapters."""

        def beside(other: Any) -> Adapted | None:
            return None if other is None else adapted(other, role="transform", seed=seed)

        return cls(adapted(model, adapter, seed=seed), beside(encoder), beside(autoencoder), model)


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
    data: Any  # the training rows: a copy of the user's array or frame
    tuning: Tuning = field(default_factory=Tuning)
    deviations: Array | None = None  # (columns,) of the numbers of a table, NaN for categories; None for images
    class_names: tuple[str, ...] | None = None  # what the user calls the classes, in their order

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
        said: Said | None = None,
    ) -> Fitted:
        """Label the training data by the model and learn the prototypes of every class.

        said: what the model said of this data at an earlier fit; it is then asked only whether it is the same model.
        """
        columns, given = Columns.learn(data, features, accepts_frames=models.classifier.accepts_frames)
        check_known_columns(columns.names, models.classifier.feature_names)
        train = given.table
        models = replace(models, classifier=parts_that_work(models.classifier, columns, train))
        _check_settings(config, models, columns, train.shape[1])
        space = _numeric_space(columns, train, features, models)
        models = replace(
            models,
            encoder=transform_that_works("encoder", models.encoder, space.shape, train),
            autoencoder=transform_that_works("autoencoder", models.autoencoder, space.shape, train),
        )
        provider = make_provider(prototypes, config, models.encoder, seed)
        encoder = space_of(provider)
        splits = splits_that_work(models.classifier, space)
        plan = make_plan(config, _situation(models, columns, latent=encoder is not None, splits=splits is not None))
        if plan.method == "path" and encoder is None and len(columns.shape) == 1:
            space = space.readable(train, features)
        model = SearchModel(models.classifier, space, given=given)
        said = ask(models.classifier, model, given) if said is None else still(said, model)
        said = with_opinions(said, train, plan.opinions, seed)
        classes = said.fingerprint.classes
        measure = make_distance(distance, seed)
        if columns.categories:
            space = space.embedded(train, said.labels, measure, features)
        z = train.copy() if space.is_identity else space.to_search(train)  # the provider may do with it as it likes
        provider = fitted_provider(provider, z.reshape(len(train), *space.shape), said.labels.copy())
        guide = Guide(
            plan,
            provider,
            _gradient(None if encoder is None else Adapted.of(encoder, "encoder"), config),
            _gradient(models.autoencoder, config),
            train,
            said.labels,
            said.proba,
            splits if plan.polish else None,
            _floors(space, plan, config, train, said, len(classes), seed, latent=encoder is not None),
            said.opinions,
        )
        k = None if not isinstance(prototypes, str) else config.k or _default_k(prototypes, models.encoder)
        return cls(
            models.classifier,
            space,
            classes,
            _absent(said.labels, classes),
            _settled(config, plan, k),
            guide,
            said.noise,
            said.fingerprint,
            given.native if given.native is not None else given.rows,
            _tuning(model, guide.floors, splits=splits is not None),
            deviations=_deviations(columns, train),
        )

    @contextmanager
    def session(self) -> Iterator[None]:
        """The sessions of the models, around a search."""
        models = (self.classifier, self.guide.encoder, self.guide.autoencoder)
        with ExitStack() as entered:
            for model in models:
                if isinstance(model, Adapted):
                    entered.enter_context(model.session())
            yield

    @property
    def probabilities(self) -> tuple[Array | None, Array | None]:
        """What the probability of every class (k,) of an answer must be, and what is wished for; None for nothing."""
        return self.guide.floors.probabilities(self.config.min_proba, len(self.classes))

    @property
    def names(self) -> list[Any]:
        """What messages call the classes: by the names that the user gave, else by their labels."""
        return names_of(self.classes) if self.class_names is None else list(self.class_names)

    @property
    def said(self) -> Said:
        """What the model said at fit."""
        return Said(self.guide.labels, self.guide.proba, self.noise, self.fingerprint, self.guide.opinions)

    def difference(self, classifier: Adapted) -> str | None:
        """What another classifier says otherwise than the one of `fit`; None if it says the same."""
        return difference_in(self.fingerprint, SearchModel(classifier, self.space))

    def noise_of(self, dtype: np.dtype[Any]) -> Noise:
        """What a margin must exceed in a table of this dtype."""
        return dict(self.noise).get(dtype.name, self.noise[0][1])


def require_fitted(fitted: Fitted | None) -> Fitted:
    """What `fit` learned, or an error if it was not called."""
    if fitted is None:
        raise NotFittedError("this explainer has seen no data; call explainer.fit(X_train) first")
    return fitted


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
    scale = features.scale is not None and plain and len(columns.shape) == 1
    return FeatureSpace.numeric(columns, train, features, scale=scale)


def _tuning(model: SearchModel, floors: Floors, *, splits: bool) -> Tuning:
    """The constants for trees, for models with gradients, and for those that only predict."""
    if splits:
        return Tuning.of_trees(wishes=floors.any or floors.sure is not None)
    return Tuning() if model.has_gradient else Tuning.of_functions()


def _situation(models: Models, columns: Columns, *, latent: bool, splits: bool) -> Situation:
    classifier = models.classifier
    return Situation(
        gradients=classifier.vjp is not None and columns.plain,
        autoencoder=models.autoencoder is not None,
        latent=latent,
        table=len(columns.shape) == 1,
        splits=splits,
        differences=any(other is not None and other.vjp is None for other in (models.encoder, models.autoencoder)),
        decides=classifier.labels is not None and classifier.scores is not None,
        large=math.prod(columns.shape) > LARGEST,
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
        opinions=plan.opinions,
    )


def _deviations(columns: Columns, train: Array) -> Array | None:
    """The standard deviations of the user's columns in training rows (n, A); NaN for categories, None for images."""
    if len(columns.shape) > 1:
        return None
    found = np.full(columns.shape, np.nan)
    spread = moments(filled(train)[0])[1]
    for at, attribute in enumerate(columns.attributes):
        if attribute.levels is None:
            found[attribute.sources[0]] = spread[at]
    return found


def _floors(
    space: FeatureSpace, plan: Plan, config: SearchConfig, train: Array, said: Said, k: int, seed: int, *, latent: bool
) -> Floors:
    """How sure the model should be of answers; for tables without encoders also how typical and stable they are."""
    sure = sure_probabilities(said.labels, said.proba, k, plan.confidence)
    if latent or len(space.shape) > 1:
        return Floors(least_confidence=plan.confidence, sure=sure)
    return Floors(
        Typicality(unweighted(space, train), said.labels, seed),
        Copies.of(space, config.noise, Tuning().copies_for(plan.stability.least), seed),
        plan.typicality,
        plan.stability,
        plan.confidence,
        sure,
    )


def _default_k(prototypes: str, encoder: Adapted | None) -> int:
    return 1 if encoder is None or prototypes == "kdtree" else _CODES


def _check_settings(config: SearchConfig, models: Models, table: Columns, columns: int) -> None:
    """Refuse what only the data and the model can show to be wrong."""
    if config.certify is not None:
        encoders = models.encoder is not None or models.autoencoder is not None
        what = f"certify={config.certify!r}"
        check_certifiable(what, models.classifier, table, encoders=encoders, itself=models.model)
    if config.kappa and models.classifier.labels is not None:
        raise ConfigError(
            f"kappa is {config.kappa:g}, but the model decides by a rule of its own, so that probabilities need not "
            "lead; use min_proba"
        )
    if np.size(config.eps) not in {1, columns}:
        raise ConfigError(
            f"eps has {np.size(config.eps)} numbers for {columns} columns; expected one, or one per column"
        )


def _gradient(adapter: Adapted | None, config: SearchConfig) -> GradientAdapter | None:
    return None if adapter is None else with_gradient(adapter, np.asarray(config.eps))


def _absent(labels: Array, classes: Array) -> tuple[Any, ...]:
    """Classes without a training row."""
    absent = tuple(names_of(np.delete(classes, np.unique(labels))))
    if absent:
        log.warning("the model predicts %s for no training row: left out as prototypes", ", ".join(map(str, absent)))
    return absent
