"""The settings of the search, and the losses of the paper's experiments as settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from cfproto_plugin.checks import as_plain, is_count, is_flag, is_number, shown
from cfproto_plugin.errors import ConfigError, did_you_mean

_PAPER: dict[str, dict[str, Any]] = {
    "A": {"c_init": 1.0, "gamma": 0.0, "theta": 0.0},
    "B": {"c_init": 1.0, "gamma": 100.0, "theta": 0.0},
    "C": {"c_init": 1.0, "gamma": 0.0, "theta": 200.0},
    "D": {"c_init": 1.0, "gamma": 100.0, "theta": 100.0},
    "E": {"c_init": 0.0, "gamma": 0.0, "theta": 200.0, "c_steps": 1},
    "F": {"c_init": 0.0, "gamma": 100.0, "theta": 100.0, "c_steps": 1},
}
_PAPER_TABLE: dict[str, dict[str, Any]] = {  # the paper names neither theta nor k of this experiment
    "A": {"c_init": 1.0, "gamma": 0.0, "theta": 0.0},
    "B": {"c_init": 1.0, "gamma": 0.0, "theta": 100.0},
    "C": {"c_init": 0.0, "gamma": 0.0, "theta": 100.0, "c_steps": 1},
}
_EXPERIMENTS = {"mnist": (_PAPER, 5), "breast_cancer": (_PAPER_TABLE, 1)}  # losses, and the k of their prototypes
_NO_FLOORS = dict.fromkeys(("min_typicality", "min_stability", "min_confidence"), 0.0)
_MOST_OPINIONS = 100  # small networks: each takes seconds to train
PRESETS: dict[str, dict[str, Any]] = {  # settings that go together, by the name of a classmethod of SearchConfig
    "close": {"theta": 0.0, "few_changes": 0.0, **_NO_FLOORS},
    "few": {"theta": 0.0, "few_changes": 12.0, **_NO_FLOORS},
    "typical": {"theta": 5.0, "few_changes": 0.0},
    "stable": {"noise": 0.45, "min_stability": 0.9, "min_confidence": 0.4, "strict": False},
}


@dataclass(frozen=True)
class SearchConfig:
    """Settings of the search, which minimises c·L_pred + beta·L1 + L2 + gamma·L_AE + theta·L_proto.

    A weight of 0 switches its term off. None means: chosen for the model at hand, as described here. A setting that the
    method in use ignores is refused when the explainer is fitted.

    method: "path" follows the minimisers of the objective from the row to its prototypes as theta grows; "fista" is the
        paper's iteration; "auto" is the path if the search has neither L_pred nor L_AE, else the iteration.
    beta: weight of L1. None is 1 on the path of an encoder, which then changes a third fewer pixels, else 0.1.
    theta: weight of the prototype, the one knob between close to the row (0) and close to the class (5 and more). None
        is 0 for tables searched by the path, which changes few columns; for the iteration 200 with an encoder and 100
        without, or beside L_AE.
    gamma: None is 100 if there is an autoencoder, else 0.
    kappa: by how much the new class must lead the others.
    c_init: None is 0 on the path and for models without gradients, else 1. c_steps: None is 1 if c_init is 0, else 5.
    max_iterations, learning_rate, momentum, clip: of the iteration; clip bounds every entry of the gradient. Without
        momentum the counterfactuals of loss A on the Breast Cancer network lie at half the distance.
    k: prototypes are the mean of the k nearest encodings, or the k-th nearest training row. None is 20 with an encoder
        and 1 for k-d trees; "all" averages whole classes. k_type: "mean", or "point" for the k-th nearest encoding.
    eps: half the step of finite differences, one number or one per feature, in units of the search.
    polish: whether what the method found is improved on the same objective. None is True for tables searched by the
        path, else False.
    max_changes: the most columns that may differ. few_changes: what each changed column costs beside its distance, in
        units of beta·L1 + L2; None is 0.5 for tables searched by the path if the model splits columns, as trees do, 2.5
        for tables if it does not and would change all of them a little, else 0. min_proba: the least probability of the
        new class. What is wished for by min_confidence, below, may be more; min_confidence=0 is without that.
    min_typicality: the least share of the new class's training rows that are at least as isolated among their like as
        the counterfactual is among them, or that of the row in its own class if that is less. min_stability: the least
        share of copies with noise that keep the new class; noise: theirs, in standard deviations of the training data.
        min_confidence: the least share of training rows of whose class the model is at most as sure as of the new class
        of the counterfactual. The three are rules if given. None is a wish: 0.1, 0.7 and 0.01 on tables searched by
        the path, and a confidence of 0.05 on the path of an encoder; none of confidence where the model decides by a
        rule of its own. A row that cannot reach it gets the answer that comes nearest to it. 0 is off, and so is None
        elsewhere. strict: False makes wishes of those that are given, too, and True rules of all.
    opinions: how many small networks learn at fit what the model calls the training rows, and should agree with it
        about every answer, which lies nearer to its row for that. Each takes 4 s for images of 28x28, in proportion to
        their size. None is 2 for images on the path of an encoder, up to 4,096 numbers, if the model has gradients and
        a confidence is wished for; else 0, which is off.
    certify: for models of trees: "bound" adds a lower bound of the objective to every answer, below which there is no
        admissible counterfactual; "optimal" goes on until the answer is proved to be the best, replaces it by a better
        one where there is one, and ends with the time budget, or after a minute a row.
    fallback: where the search finds nothing, try the nearest training rows of the allowed classes.
    """

    method: Literal["auto", "path", "fista"] = "auto"
    beta: float | None = None
    theta: float | None = None
    gamma: float | None = None
    kappa: float = 0.0
    c_init: float | None = None
    c_steps: int | None = None
    max_iterations: int = 500
    learning_rate: float = 0.01
    momentum: bool = False
    k: int | Literal["all"] | None = None
    k_type: Literal["mean", "point"] = "mean"
    eps: float | Sequence[float] = 1e-3
    clip: float = 1000.0
    polish: bool | None = None
    max_changes: int | None = None
    few_changes: float | None = None
    min_proba: float | None = None
    min_typicality: float | None = None
    min_stability: float | None = None
    min_confidence: float | None = None
    noise: float = 0.1
    strict: bool | None = None
    opinions: int | None = None
    certify: Literal["bound", "optimal"] | None = None
    fallback: bool = True

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, as_plain(getattr(self, each.name)))
        self._one_of("method", ("auto", "path", "fista"))
        self._one_of("k_type", ("mean", "point"))
        if self.certify is not None:
            self._one_of("certify", ("bound", "optimal"))
        for name in ("beta", "kappa", "theta", "gamma", "c_init", "few_changes"):
            self._check(name, lambda value: is_number(value) and 0 <= value < math.inf, "a number of at least 0")
        for name in ("learning_rate", "clip", "noise"):
            self._check(name, lambda value: is_number(value) and 0 < value < math.inf, "a number above 0")
        for name in ("max_iterations", "c_steps", "max_changes"):
            self._check(name, is_count, "a whole number of at least 1")
        for name in ("momentum", "fallback"):
            self._check(name, is_flag, "True or False")
            object.__setattr__(self, name, bool(getattr(self, name)))
        self._check("k", lambda value: is_count(value) or _is(value, "all"), "a whole number of at least 1, or 'all'")
        self._check("eps", _are_positive, "a positive number, or one per feature")
        for name in ("min_typicality", "min_stability", "min_confidence"):
            self._check(name, lambda value: is_number(value) and 0 <= value <= 1, "a share from 0 to 1")
        self._check("strict", is_flag, "True or False")
        self._check(
            "opinions", lambda value: is_count(value, 0) and value <= _MOST_OPINIONS, "a whole number from 0 to 100"
        )
        self._check_polish()
        self._check(
            "min_proba", lambda value: is_number(value) and 0 < value <= 1, "a probability above 0 and at most 1"
        )

    @classmethod
    def close(cls, **overrides: Any) -> SearchConfig:
        """As close to the row as the class allows, and nothing else: answers that another model may not agree with."""
        return cls._preset("close", overrides)

    @classmethod
    def few(cls, **overrides: Any) -> SearchConfig:
        """As few changed columns as possible, and nothing else; with the wishes of the default: `few_changes=3`."""
        return cls._preset("few", overrides)

    @classmethod
    def typical(cls, **overrides: Any) -> SearchConfig:
        """Close to a row of the new class, as the paper has it: most columns change."""
        return cls._preset("typical", overrides)

    @classmethod
    def stable(cls, **overrides: Any) -> SearchConfig:
        """Farther from the boundary: models that are fitted again mostly agree. All floors are wishes."""
        return cls._preset("stable", overrides)

    @classmethod
    def _preset(cls, name: str, overrides: dict[str, Any]) -> SearchConfig:
        cls._check_names(overrides)
        return cls(**{**PRESETS[name], **overrides})

    @classmethod
    def _check_names(cls, overrides: dict[str, Any]) -> None:
        known = [field.name for field in fields(cls)]
        for name in overrides:
            if name not in known:
                raise ConfigError(f"SearchConfig has no field {name!r}.{did_you_mean(name, known)}")

    @classmethod
    def paper(cls, loss: str, *, experiment: str = "mnist", **overrides: Any) -> SearchConfig:
        """The losses of the paper's experiments: its constants, its iteration with momentum, no fallback.

        experiment: whose letters. "mnist" has A to F: beta 0.1, kappa 0, gamma 100, theta 200 (100 beside L_AE), K 5
        and c 1 are the paper's. "breast_cancer" has A, B and C, which are A, C and E of the other list: beta, kappa and
        c are the paper's; theta 100 and k 1 are ours, among the values it tries, because it does not name those of its
        table. 1,000 iterations, 10 steps of c and learning rate 0.01 are of its reference implementation. Any field can
        be overridden.
        """
        if not isinstance(experiment, str) or experiment not in _EXPERIMENTS:
            known = ", ".join(_EXPERIMENTS)
            raise ConfigError(
                f"experiment is {shown(experiment)}; expected one of {known}.{did_you_mean(experiment, _EXPERIMENTS)}"
            )
        losses, k = _EXPERIMENTS[experiment]
        if not isinstance(loss, str) or loss not in losses:
            raise ConfigError(
                f"loss is {shown(loss)}; expected one of {', '.join(losses)}, the list of the paper's experiment "
                f"{experiment!r}"
            )
        cls._check_names(overrides)
        base = cls(
            method="fista", beta=0.1, c_steps=10, max_iterations=1000, momentum=True, polish=False, fallback=False
        )
        settings = {**losses[loss], **overrides}
        return replace(base, **{"k": None if _is_zero(settings["theta"]) else k, **settings})  # only L_proto uses k

    @classmethod
    def reference(cls, loss: str, *, experiment: str = "mnist", **overrides: Any) -> SearchConfig:
        """The same losses as the paper's reference implementation in effect runs them: `paper` without momentum.

        Its update of the momentum reads a variable that is assigned in the same step. In float32 and without momentum
        its counterfactuals of the Breast Cancer rows come out again. One thing is not a setting: with an encoder it
        chooses the class of the prototype by the mean of the K distances, the paper by the distance to their mean.
        """
        return cls.paper(loss, experiment=experiment, **{"momentum": False, **overrides})

    def _check_polish(self) -> None:
        """True or False, or 0 and 1 for these; it used to be a share of the distance."""
        given: Any = self.polish
        if is_number(given) and 0 < given < 1:
            raise ConfigError(
                f"polish is {given:g}; expected True or False. How close an answer stays to its class is said by "
                "theta: 0 is close to the row, 5 and more close to the class."
            )
        self._check("polish", lambda value: is_flag(value) or (is_number(value) and value in (0, 1)), "True or False")
        if self.polish is not None:
            object.__setattr__(self, "polish", bool(self.polish))

    def _one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in allowed:
            raise ConfigError(
                f"{name} is {shown(value)}; expected one of {', '.join(allowed)}.{did_you_mean(value, allowed)}"
            )

    def _check(self, name: str, is_good: Callable[[Any], bool], expected: str) -> None:
        """Refuse a value that is not good; None is good where it is the default."""
        value, optional = getattr(self, name), type(self).__dataclass_fields__[name].default is None
        if not (is_good(value) or (value is None and optional)):
            raise ConfigError(f"{name} is {shown(value)}; expected {expected}{', or None' * optional}")


def _is(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _is_zero(value: Any) -> bool:
    return is_number(value) and value == 0


def _are_positive(value: Any) -> bool:
    if is_number(value):
        return bool(0 < value < math.inf)
    try:
        found = np.asarray(value)
    except ValueError:  # lists of different lengths
        return False
    return found.dtype.kind in "iuf" and found.size > 0 and bool((np.isfinite(found) & (found > 0)).all())
