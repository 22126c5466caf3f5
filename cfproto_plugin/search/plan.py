"""How a search will go: the method and every weight that was left open, settled for the models at hand."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError

# For tables searched by the path, unless the user says otherwise
FEW_CHANGES, FEW_CHANGES_WITHOUT_SPLITS = 0.5, 2.5
TYPICALITY, STABILITY, CONFIDENCE = 0.1, 0.7, 0.01
CODES_CONFIDENCE = 0.05  # on the path of an encoder: surer answers read as their class to other models, farther away
OPINIONS = 2  # on the path of an encoder: a third is hardly worth its training
BETA, LATENT_BETA = 0.1, 1.0  # weight of L1: the paper's, and that of the path of an encoder
_ITERATION_ONLY = ("c_steps", "max_iterations", "learning_rate", "momentum", "clip")


@dataclass(frozen=True)
class Situation:
    """What the plan depends on beside the settings."""

    gradients: bool  # the classifier has them, and they reach the search space
    autoencoder: bool
    latent: bool  # prototypes are codes of an encoder
    table: bool  # rows are vectors, not images
    splits: bool = False  # the classifier says where it splits the columns
    differences: bool = False  # the encoder or autoencoder has no gradient of its own
    decides: bool = False  # the classifier decides by scores and a rule of its own, not by probabilities
    large: bool = False  # rows have too many numbers for second opinions


class Floor(NamedTuple):
    """The least that an answer should reach, as a rule or as a wish. 0 for none."""

    least: float
    is_rule: bool


@dataclass(frozen=True)
class Plan:
    """Method and weights. A weight of 0 switches its term off.

    c_init, c_steps: first value of c and how many are tried. path_theta: theta of the objective on the path, where it
    begins; 0 for other methods.
    """

    method: Literal["path", "fista"]
    beta: float
    c_init: float
    c_steps: int
    gamma: float
    theta: float
    path_theta: float
    polish: bool
    few_changes: float
    typicality: Floor
    stability: Floor
    confidence: Floor
    opinions: int


def make_plan(config: SearchConfig, situation: Situation) -> Plan:
    """Settle the method and every weight that was left open; refuse settings that contradict each other."""
    gamma = config.gamma if config.gamma is not None else 100.0 * situation.autoencoder
    if gamma > 0 and not situation.autoencoder:
        raise ConfigError(f"gamma is {gamma:g} but there is no autoencoder; pass autoencoder=..., or gamma=0")
    theta = config.theta
    if theta is None:
        theta = 200.0 if situation.latent and not gamma else 100.0
    method = _method(config, theta, gamma, situation)
    c_init = 0.0 if method == "path" else config.c_init
    if c_init is None:
        c_init = float(situation.gradients)
    if c_init == 0 and theta == 0 and method == "fista":
        raise ConfigError("c_init and theta are both 0: nothing would lead to another class; set one of them above 0")
    on_table = method == "path" and not situation.latent and situation.table
    on_codes = method == "path" and situation.latent
    plan = Plan(
        method,
        (LATENT_BETA if on_codes else BETA) if config.beta is None else config.beta,
        c_init,
        1 if c_init == 0 else config.c_steps or 5,
        gamma,
        theta,
        (config.theta or 0.0) if method == "path" else 0.0,
        on_table if config.polish is None else config.polish,
        _few_changes(config, situation) if on_table or config.few_changes else 0.0,
        _floor(TYPICALITY * on_table, config.min_typicality, config.strict),
        _floor(STABILITY * on_table, config.min_stability, config.strict),
        confidence := _floor(_confidence(situation, on_table, on_codes), config.min_confidence, config.strict),
        _opinions(config, situation, useful=on_codes and confidence.least > 0 and not config.theta),
    )
    _refuse_unused(config, plan, situation)
    return plan


def _confidence(situation: Situation, on_table: bool, on_codes: bool) -> float:
    """None of a model that does not decide by its probabilities: they say little about how sure it is."""
    return 0.0 if situation.decides else CONFIDENCE * on_table + CODES_CONFIDENCE * on_codes


def _opinions(config: SearchConfig, situation: Situation, *, useful: bool) -> int:
    """Second opinions are asked about images, by their gradients and the model's own."""
    useful = useful and situation.gradients and not situation.table and not situation.decides
    if config.opinions is None:
        return OPINIONS * (useful and not situation.large)
    if config.opinions and not useful:
        raise ConfigError(
            f"opinions is {config.opinions}, but they are made for images on the path of an encoder, for models with "
            "gradients, with a wish for confidence and without a theta; leave it out"
        )
    return config.opinions


def _few_changes(config: SearchConfig, situation: Situation) -> float:
    """A model without splits changes every column a little, where that costs nothing: it takes a higher price."""
    if config.few_changes is not None:
        return config.few_changes
    return FEW_CHANGES if situation.splits else FEW_CHANGES_WITHOUT_SPLITS


def _floor(usual: float, given: float | None, strict: bool | None) -> Floor:
    """What was given is a rule and the usual one a wish, unless the user says otherwise."""
    least = usual if given is None else given
    is_rule = given is not None if strict is None else strict
    return Floor(least, is_rule=is_rule and least > 0)


def _method(config: SearchConfig, theta: float, gamma: float, situation: Situation) -> Literal["path", "fista"]:
    """The path leads to prototypes also where these weigh nothing (theta 0), unless they are codes."""
    prototypes_alone = not gamma and not config.c_init and (theta > 0 or not situation.latent)
    if config.method == "path" and not prototypes_alone:
        raise ConfigError(
            "method='path' needs prototypes and neither L_pred nor L_AE: c_init=0, gamma=0, and theta above 0 with an "
            "encoder. Use method='fista' or 'auto'."
        )
    if config.method == "auto":
        return "path" if prototypes_alone else "fista"
    return config.method


def _refuse_unused(config: SearchConfig, plan: Plan, situation: Situation) -> None:
    """A setting that the method does not use would be ignored without a word."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(SearchConfig)}
    if not np.array_equal(config.eps, defaults["eps"]) and not (
        situation.differences or (plan.c_init > 0 and not situation.gradients)
    ):
        raise ConfigError(f"eps is {config.eps!r}, but no gradient is taken by differences here; leave it out")
    _refuse_for_tables_only(plan, situation)
    for name in ("k", "k_type"):
        if plan.theta == 0 and plan.method == "fista" and getattr(config, name) != defaults[name]:
            raise ConfigError(
                f"{name} is {getattr(config, name)!r}, but theta is 0, so no prototype is used. Set theta above 0, or "
                f"leave {name} out."
            )
    if plan.method == "fista":
        if plan.c_init == 0 and (config.c_steps or 1) > 1:
            raise ConfigError(f"c_steps is {config.c_steps}, but L_pred is off: set c_init above 0, or leave it out")
        return
    for name in _ITERATION_ONLY:
        value = getattr(config, name)
        if value != defaults[name]:
            raise ConfigError(
                f"{name} is {value!r}, but method={plan.method!r} does not use it. "
                f"Pass method='fista' as well, or leave {name} out."
            )


def _refuse_for_tables_only(plan: Plan, situation: Situation) -> None:
    """Polishing, typicality and stability know the objective of tables with prototypes in the search space."""
    if plan.polish and (situation.latent or plan.gamma > 0):
        term = "L_AE" if plan.gamma else "the distance of codes"
        raise ConfigError(f"polish is True, but polishing cannot weigh {term}; leave it out, or the {_model(plan)}")
    for name in ("typicality", "stability"):
        floor: Floor = getattr(plan, name)
        if floor.least and (situation.latent or not situation.table):
            raise ConfigError(
                f"min_{name} is {floor.least:g}, but it is made for tables without encoders; leave it out"
            )


def _model(plan: Plan) -> str:
    return "autoencoder" if plan.gamma else "encoder"
