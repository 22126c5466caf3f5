"""The option --target: labels, or labels with the probabilities that are asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cfproto_plugin.cli.fitting import several
from cfproto_plugin.errors import InputError

if TYPE_CHECKING:
    from cfproto_plugin.explainer import CounterfactualExplainer

_INTERVAL = re.compile(r"(?P<label>.+):(?P<low>\d*\.?\d*)\.\.(?P<high>\d*\.?\d*)")
TARGET = several(
    "--target",
    "target",
    "LABEL",
    "An acceptable target class; default: any other class. LABEL:0.7..0.9 asks for a probability of it in between.",
)


def asked_classes(explainer: CounterfactualExplainer, target: tuple[str, ...]) -> list[Any] | dict[Any, Any] | None:
    """The classes of these names, 1 and "1" look the same on a command line; or the probabilities that they ask for."""
    if not target or explainer.fitted_ is None:
        return None
    fitted = explainer.fitted_
    known = {str(label): label for label in fitted.classes.tolist()}
    known = {**dict(zip(map(str, fitted.names), fitted.classes.tolist(), strict=True)), **known}
    asked = [None if text in known else _INTERVAL.fullmatch(text) for text in target]
    if not any(asked):
        return [known.get(label, label) for label in target]
    if not all(asked):
        raise InputError(f"--target {' --target '.join(target)}: expected labels, or LABEL:LOW..HIGH for each of them")
    pairs = [(found["label"], found["low"], found["high"]) for found in asked if found]
    return {known.get(label, label): (float(low or 0), float(high or 1)) for label, low, high in pairs}
