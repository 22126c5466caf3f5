"""The numbers of the constructor, checked, and the distance that they define."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfproto_plugin.checks import as_plain, is_count, is_number, shown
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.protocols import Array


@dataclass(frozen=True)
class Settings:
    """What the search is run with.

    eps: steps of the differences, of probabilities (k,) or one number, and of features (D,) or one number.
    """

    kappa: float
    beta: float
    gamma: float
    theta: float
    learning_rate: float
    max_iterations: int
    c_init: float
    c_steps: int
    eps: tuple[Any, Any]
    clip: tuple[float, float]

    def __post_init__(self) -> None:
        for name in ("kappa", "beta", "gamma", "theta", "c_init"):
            _require(name, getattr(self, name), _is_weight, "a number of at least 0")
        _require("learning_rate_init", self.learning_rate, _is_positive, "a number above 0")
        for name in ("max_iterations", "c_steps"):
            _require(name, getattr(self, name), is_count, "a whole number of at least 1")
        object.__setattr__(self, "clip", _pair("clip", self.clip))
        low, high = self.clip
        if not (is_number(low) and is_number(high) and low < high):
            raise ConfigError(f"clip is {shown(self.clip)}; expected two numbers, the lower first: (-1000, 1000)")
        eps = tuple(map(_numbers, _pair("eps", self.eps)))
        if any(part.size == 0 or not (np.isfinite(part) & (part > 0)).all() for part in eps):
            raise ConfigError(
                f"eps is {shown(self.eps)}; expected two steps above 0, each a number or an array: of the "
                "probabilities, and of the features"
            )
        object.__setattr__(self, "eps", eps)

    def cost(self, z: Array, original: Array) -> Array:
        """beta·L1 + L2 between points (..., D)."""
        delta = z - original
        return np.asarray(self.beta * np.abs(delta).sum(axis=-1) + np.square(delta).sum(axis=-1))

    def check_sizes(self, n_features: int, n_classes: int) -> None:
        """Refuse steps that are neither one nor one for each."""
        for part, size, what in ((0, n_classes, "classes"), (1, n_features, "features")):
            if self.eps[part].size not in {1, size}:
                raise ConfigError(
                    f"eps[{part}] has {self.eps[part].size} numbers for {size} {what}; expected one, or one for each"
                )


def feature_bounds(given: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """feature_range as a lower and an upper bound of the search's `shape`, each float32.

    Each may be a number, an array of that shape, or one with a leading 1.
    """
    low, high = (_bound(part, shape) for part in _pair("feature_range", given))
    if not (low <= high).all():  # NaN is refused with it
        at = np.argwhere(~(low <= high))[0].tolist()
        raise ConfigError(
            f"feature_range is from {low[tuple(at)]:g} to {high[tuple(at)]:g} in feature {at}; expected the lower "
            "bound first"
        )
    return low, high


def _bound(given: Any, shape: tuple[int, ...]) -> Array:
    try:
        found = np.asarray(given, dtype=np.float32)
        return np.broadcast_to(found.reshape(found.shape[1:]) if found.shape == (1, *shape) else found, shape).copy()
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"feature_range has {shown(given)}; expected a number, or an array of shape {(1, *shape)}, one number "
            "for each feature"
        ) from error


def _numbers(given: Any) -> Array:
    """A number or an array of them, flat; empty if it is neither."""
    try:
        return np.asarray(given, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        return np.empty(0)


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 2:  # noqa: PLR2004
        raise ConfigError(f"{name} is {shown(given)}; expected a tuple of two")
    return as_plain(given[0]), as_plain(given[1])


def _require(name: str, value: Any, is_good: Any, expected: str) -> None:
    if not is_good(as_plain(value)):
        raise ConfigError(f"{name} is {shown(value)}; expected {expected}")


def _is_weight(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf
