"""What an explainer knows after `fit`: adapters, columns, prototypes, and the plan of the search."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.features import Features
from cfproto_plugin.plugins import Adapted, adapted, own_copy, registry, space_of
from cfproto_plugin.protocols import (
    Array,
    CategoryDistance,
    ModelAdapter,
    PrototypeProvider,
)
from cfproto_plugin.search.methods.descent import Weights
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.refine.moves import Splits
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.space import FeatureSpace

log = logging.getLogger(__name__)
_DEEP = 5.0  # theta at which points are about as close to the class as its own rows are
_PER_CLASS = 8  # prototypes of each class the path may try; the first is the paper's


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

    @property
    def network(self) -> bool:
        """Whether the classifier has gradients."""
        return self.classifier.vjp is not None


@dataclass(frozen=True)
class Plan:
    """How the search will go for the models at hand."""

    method: Literal["path", "fista"]
    weights: Weights
    polish: float


@dataclass(frozen=True)
class Fitted:
    """All that `fit` learned. Nothing changes it afterwards."""

    models: Models
    space: FeatureSpace
    train: Array  # (N, A) the table of the training data
    labels: Array  # (N,) columns of `classes`
    classes: Array
    absent: tuple[Any, ...]  # classes the model predicts for no training row
    provider: PrototypeProvider
    plan: Plan
    config: SearchConfig  # with what the plan settled
    splits: Splits | None  # where a tree model splits the columns of the table

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
        columns, train = Columns.learn(data, features, accepts_frames=models.classifier.accepts_frames)
        plain = models.encoder is None and models.autoencoder is None
        if not plain and columns.categories:
            raise ConfigError("encoders and autoencoders take numbers; this data has categories. Leave them out.")
        scale = features.scale == "auto" and plain and len(columns.shape) == 1
        space = FeatureSpace.numeric(columns, train, features, scale=scale)
        provider = make_provider(prototypes, config, models.encoder, seed)
        plan = make_plan(config, models, columns, latent=space_of(provider) is not None)
        proba = first_prediction(
            SearchModel(models.classifier, space, network=models.network), train, "the training data"
        )
        labels = proba.argmax(axis=1)
        classes = models.classifier.classes(proba.shape[1])
        absent = _absent(labels, classes)
        if columns.categories:
            space = space.embedded(train, labels, make_distance(distance, seed), features)
        provider = provider.fit(space.to_search(train).reshape(len(train), *space.shape), labels)
        splits = _splits(models.classifier, columns) if plan.polish > 0 else None
        config = replace(config, polish=plan.polish, theta=_begin(config, plan, provider))
        return cls(models, space, train, labels, classes, absent, provider, plan, config, splits)


def make_provider(
    prototypes: str | PrototypeProvider, config: SearchConfig, encoder: Adapted | None, seed: int
) -> PrototypeProvider:
    """The provider itself, or the one of that name made with the settings of the search."""
    if not isinstance(prototypes, str):
        return own_copy(prototypes)
    name = prototypes
    if name == "auto":
        name = "kdtree" if encoder is None else "encoder"
    k = config.k or (1 if encoder is None else 5)
    options = {
        "k": None if k == "all" else k,
        "k_type": config.k_type,
        "encoder": encoder,
    }
    made: PrototypeProvider = registry().make("prototypes", name, **options, per_class=_PER_CLASS, seed=seed)
    return made


def make_distance(distance: str | CategoryDistance, seed: int) -> CategoryDistance:
    """The distance itself, or the one of that name."""
    if not isinstance(distance, str):
        return distance
    made: CategoryDistance = registry().make("distances", distance, seed=seed)
    return made


def make_plan(config: SearchConfig, models: Models, columns: Columns, *, latent: bool) -> Plan:
    """Settle the method and every weight that was left open."""
    gamma = config.gamma if config.gamma is not None else 100.0 * (models.autoencoder is not None)
    if gamma > 0 and models.autoencoder is None:
        raise ConfigError(f"gamma is {gamma:g} but there is no autoencoder; pass autoencoder=..., or gamma=0")
    theta = config.theta
    if theta is None:
        theta = (100.0 if gamma else 200.0) if latent else 20.0
    led = not gamma and not config.c_init and theta > 0  # by the prototypes alone
    if config.method == "path" and not led:
        raise ConfigError(
            "method='path' needs prototypes and neither L_pred nor L_AE: c_init=0, gamma=0 and theta > 0. "
            "Use method='fista' or 'auto'."
        )
    method: Literal["path", "fista"] = "path" if led and config.method != "fista" else "fista"
    c_init = 0.0 if method == "path" else config.c_init
    if c_init is None:
        c_init = float(models.network and columns.plain)
    if c_init == 0 and theta == 0:
        raise ConfigError("c_init and theta are both 0: nothing would lead to another class; set one of them above 0")
    polish = config.polish
    if polish is None:
        polish = float(method == "path" and not latent and len(columns.shape) == 1)
    return Plan(method, Weights(c_init, 1 if c_init == 0 else config.c_steps or 5, gamma, theta), polish)


def _begin(config: SearchConfig, plan: Plan, provider: PrototypeProvider) -> float | None:
    """Where the path begins: at theta; at the row if none was given, unless no polishing was asked for."""
    close_to_class = plan.method == "path" and space_of(provider) is None and config.polish == 0
    return _DEEP if config.theta is None and close_to_class else config.theta


def first_prediction(model: SearchModel, x: Array, what: str) -> Array:
    """Predict rows the model has not seen; say so in the user's terms if it cannot take their missing values."""
    missing = np.isnan(x)
    if not missing.any():
        return model.proba(x)
    try:
        return model.proba(x)
    except Exception as error:
        row, at = np.argwhere(missing)[0]
        raise InputError(
            f"row {row} of {what} is NaN in column {model.space.columns.describe(at)}, and the model does not accept "
            f"missing values ({type(error).__name__}). Fill it in, or use a model that accepts NaN."
        ) from error


def _splits(model: Adapted, columns: Columns) -> Splits | None:
    """The split values of a tree model whose columns are those of the table."""
    found = model.thresholds if columns.plain else None
    if found is None or len(found) != len(columns.attributes):
        return None
    own = model.feature_names or ()  # of an adapter that takes them in any order
    names = list(map(str, columns.names or ()))
    if own and set(names) == set(own):
        found = [found[own.index(name)] for name in names]
    return Splits(found)


def _absent(labels: Array, classes: Array) -> tuple[Any, ...]:
    """Classes without a training row; at least two must have one."""
    seen = np.unique(labels)
    if len(seen) == 1:
        raise InputError(
            f"the model predicts class {classes[seen[0]]} for every row of the training data; "
            "expected rows of at least two predicted classes"
        )
    absent = tuple(np.delete(classes, seen).tolist())
    if absent:
        log.warning("the model predicts %s for no training row: left out as prototypes", ", ".join(map(str, absent)))
    return absent
