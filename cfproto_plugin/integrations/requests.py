"""What a request to a served explainer asks for, in texts and numbers, as servers hand them on.

target: the text of a label, or JSON: a list of labels, or an object of label to [low, high].
n, time_budget: as in `explain`; n is at most 100.
rules: a JSON object with fields of `Features`, which replace those of the explainer.
preset: close, few, typical or stable.

Servers that take JSON may give lists and objects in place of texts that hold them.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cfproto_plugin.checks import shown
from cfproto_plugin.config import PRESETS, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array

PARAMS = {"target": "string", "n": "long", "time_budget": "double", "rules": "string", "preset": "string"}
DEFAULTS = {"n": 1}
MOST_ANSWERS = 100  # per row
_RULES = tuple(field.name for field in fields(Features))


@dataclass(frozen=True)
class Request:
    """What is asked for each row: the arguments of `explain`, and the name of a preset."""

    target: Any = None
    n: Any = 1
    features: Features | None = None
    time_budget: Any = None
    preset: str | None = None


def read_request(params: Mapping[str, Any] | None, classes: Array) -> Request:
    """The request of these params; None is not given. classes: the labels that the explainer knows."""
    given = {name: value for name, value in (params or {}).items() if value is not None}
    for name in given:
        if name not in PARAMS:
            raise ConfigError(f"there is no param {name!r}.{did_you_mean(name, PARAMS)} Known: {', '.join(PARAMS)}")
    return Request(
        read_target(given.get("target"), classes),
        read_n(given.get("n", 1)),
        read_rules(given.get("rules")),
        given.get("time_budget"),
        given.get("preset"),
    )


def read_target(text: Any, classes: Array) -> Any:
    """The label of this text; else a list of labels or a dict of label to interval, from JSON. None is any other."""
    known = {str(label): label for label in classes.tolist()}
    if text is None or (isinstance(text, (str, int, float)) and str(text) in known):
        return None if text is None else known[str(text)]
    found = _from_json(text)
    if isinstance(found, list):
        return [_label(item, known) for item in found]
    if isinstance(found, dict):
        return {_label(item, known): _limits(value, 0.0, 1.0) for item, value in found.items()}
    raise InputError(
        f"target is {shown(text)}; expected the text of a label, or JSON such as {json.dumps(list(known)[:2])} or "
        f'{{"{next(iter(known))}": [0.7, 0.9]}}.{did_you_mean(text, known)} Labels: {", ".join(known)}'
    )


def read_n(n: Any) -> Any:
    """How many answers per row: a request may not ask for so many that nobody else is served."""
    if isinstance(n, numbers.Real) and not n <= MOST_ANSWERS:
        raise ConfigError(f"n is {shown(n)}; expected at most {MOST_ANSWERS} answers per row in a request")
    return n


def read_rules(text: Any) -> Features | None:
    """The rules of a JSON object; null in a range is no limit."""
    if text is None:
        return None
    found = _from_json(text)
    if not isinstance(found, dict):
        raise ConfigError(
            f'rules is {shown(text)}; expected a JSON object with fields of Features, such as {{"immutable": ["sex"]}}'
        )
    for name in found:
        if name not in _RULES:
            raise ConfigError(f"rules: there is no {name!r}.{did_you_mean(name, _RULES)} Known: {', '.join(_RULES)}")
    ranges = found.get("ranges")
    if isinstance(ranges, dict):
        found["ranges"] = {name: _limits(value, -math.inf, math.inf) for name, value in ranges.items()}
    return Features(**found)


def read_preset(name: str | None, search: SearchConfig) -> SearchConfig | None:
    """The settings with those of a preset in their place; None without a preset."""
    if name is None:
        return None
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(
            f"preset is {shown(name)}; expected one of {', '.join(PRESETS)}.{did_you_mean(name, PRESETS)}"
        )
    return replace(search, **PRESETS[name])


def _label(item: Any, known: Mapping[str, Any]) -> Any:
    return known.get(str(item), item)


def _limits(value: Any, low: float, high: float) -> Any:
    """A pair as an interval; null is its lowest or highest end."""
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 a pair
        return tuple(end if given is None else given for given, end in zip(value, (low, high), strict=True))
    return value


def _from_json(text: Any) -> Any:
    """What the JSON says; None if it is none, which no caller expects. Lists and objects are taken as they are."""
    if isinstance(text, (list, dict)):
        return text
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
