"""How a search will go: the method and every weight that was left open, settled for the models at hand."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError

_CLOSE_TO_CLASS = 5.0  # theta at which points are about as close to the class as its own rows are
_ITERATION_ONLY = ("c_steps", "max_iterations", "learning_rate", "momentum", "clip")


@dataclass(frozen=True)
class Situation:
    """What the plan depends on beside the settings."""

    gradients: bool  # the classifier has them, and they reach the search space
    autoencoder: bool
    latent: bool  # prototypes are codes of an encoder
    table: bool  # rows are vectors, not images
    differences: bool = False  # the encoder or autoencoder has no gradient of its own


@dataclass(frozen=True)
class Plan:
    """Method and weights. A weight of 0 switches its term off.

    c_init, c_steps: first value of c and how many are tried. path_theta: where the path begins.
    """

    method: Literal["path", "fista"]
    c_init: float
    c_steps: int
    gamma: float
    theta: float
    path_theta: float
    polish: float


def make_plan(config: SearchConfig, situation: Situation) -> Plan:
    """Settle the method and every weight that was left open; refuse settings that contradict each other."""
    gamma = config.gamma if config.gamma is not None else 100.0 * situation.autoencoder
    if gamma > 0 and not situation.autoencoder:
        raise ConfigError(f"gamma is {gamma:g} but there is no autoencoder; pass autoencoder=..., or gamma=0")
    theta = config.theta
    if theta is None:
        theta = (100.0 if gamma else 200.0) if situation.latent else 20.0
    method = _method(config, theta, gamma)
    c_init = 0.0 if method == "path" else config.c_init
    if c_init is None:
        c_init = float(situation.gradients)
    if c_init == 0 and theta == 0:
        raise ConfigError("c_init and theta are both 0: nothing would lead to another class; set one of them above 0")
    polish = config.polish
    if polish is None:
        polish = float(method == "path" and not situation.latent and situation.table)
    close_to_class = config.theta is None and config.polish == 0 and method == "path" and not situation.latent
    path_theta = _CLOSE_TO_CLASS if close_to_class else config.theta or 0.0
    plan = Plan(method, c_init, 1 if c_init == 0 else config.c_steps or 5, gamma, theta, path_theta, polish)
    _refuse_unused(config, plan, situation)
    return plan


def _method(config: SearchConfig, theta: float, gamma: float) -> Literal["path", "fista"]:
    prototypes_alone = not gamma and not config.c_init and theta > 0
    if config.method == "path" and not prototypes_alone:
        raise ConfigError(
            "method='path' needs prototypes and neither L_pred nor L_AE: c_init=0, gamma=0 and theta > 0. "
            "Use method='fista' or 'auto'."
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
    for name in ("k", "k_type"):
        if plan.theta == 0 and getattr(config, name) != defaults[name]:
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
