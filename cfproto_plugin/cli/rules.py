"""Rules about the columns and settings of the search, from flags and a TOML file.

A flag adds to the file. Where both speak of the same column or the same setting, the flag wins.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from cfproto_plugin.config import PRESETS, SearchConfig
from cfproto_plugin.errors import CfprotoError, ConfigError, InputError, did_you_mean
from cfproto_plugin.features import Features

LISTS = ("categorical", "integer", "immutable", "vary", "increasing", "decreasing")
MAPPINGS = ("ranges", "allowed", "step", "weights")
SEARCH = (
    *("theta", "polish", "max_changes", "few_changes", "min_proba"),
    *("min_typicality", "min_stability", "min_confidence", "noise"),
)
_DIRECTIONS = ("immutable", "increasing", "decreasing")
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys((*LISTS, "relations"), (list, 'a list such as ["age", "sex"]')),
    **dict.fromkeys((*MAPPINGS, "one_hot", "search"), (dict, "a table with one line per name")),
    "scale": (str, '"auto", "minmax" or "none"'),
    "decimals": ((str, int, dict), '"auto", "none", a number, or a table with one per column'),
}
Rules = dict[str, Any]
_Kind = TypeVar("_Kind", Features, SearchConfig)


def read_rules(path: Path | None) -> tuple[Rules, Rules]:
    """The fields of `Features` and, from the table [search], those of `SearchConfig`."""
    if path is None:
        return {}, {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    _check_names(content, _KINDS, str(path))
    for name, value in content.items():
        kind, expected = _KINDS[name]
        if not isinstance(value, kind):
            raise ConfigError(f"{path}: {name} is {value!r}; expected {expected}")
    search = content.pop("search", {})
    _check_names(search, [field.name for field in fields(SearchConfig)], f"{path}, [search]")
    for name in ("scale", "decimals"):  # TOML has no word for None
        if content.get(name) == "none":
            content[name] = None
    return content, search


def make_features(file: Rules, flags: Mapping[str, Sequence[str]], train: Any) -> Features:
    """The rules of the file with the flags, `flags[field]` being the texts given for a field of `Features`."""
    columns = list(train.columns)
    named = {field: column_names(flags[field], columns) for field in LISTS}
    turned = {name for field in _DIRECTIONS for name in named[field]}
    against = {**dict.fromkeys(_DIRECTIONS, turned), "vary": named["immutable"]}
    against["immutable"] = {*turned, *named["vary"]}
    rules: Rules = dict(file)
    for field in LISTS:
        kept = [name for name in file.get(field, []) if name not in against.get(field, ())]
        rules[field] = [*kept, *named[field]]
    if not rules["vary"] and not file.get("vary"):
        rules["vary"] = None
    for field in MAPPINGS:
        given = (_assignment(text, columns, field) for text in flags[field])
        rules[field] = {**file.get(field, {}), **{name: _VALUES[field](text, name, train) for name, text in given}}
    rules["relations"] = [*file.get("relations", []), *flags["relations"]]
    return _built(Features, rules)


def make_search(file: Rules, flags: Mapping[str, Any]) -> SearchConfig:
    """The preset, the settings of the file, and the flags that were given: the later wins."""
    preset = {} if flags["preset"] is None else PRESETS[flags["preset"]]
    return _built(SearchConfig, {**preset, **file, **{name: flags[name] for name in SEARCH if flags[name] is not None}})


def _built(kind: type[_Kind], values: Rules) -> _Kind:
    try:
        return kind(**values)
    except CfprotoError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"a value of the rules cannot be used: {error}") from error


def _check_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"{where}: there is no {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}")


def column_names(texts: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Columns, several of them between commas; a column may have a comma in its name."""
    return [name for text in texts for name in ([text] if text in columns else map(str.strip, text.split(",")))]


def class_names(texts: Sequence[str]) -> dict[str, str] | None:
    """Names by label from "0=good,1=bad"; a name may have a comma, and "=", if no label follows. None for none."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in re.split(r",(?=[^,=]+=)", text)):
        label, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not label or not name:
            raise ConfigError(f"--class-names {part}: expected LABEL=NAME, such as 0=good,1=bad")
        found[label] = name
    return found or None


def _assignment(text: str, columns: Sequence[str], field: str) -> tuple[str, str]:
    """Column and value of "column=value"; a column may have "=" in its name."""
    cuts = [at for at, letter in enumerate(text) if letter == "="]
    if not cuts:
        raise ConfigError(f"{_FLAGS[field]} {text}: expected {_EXAMPLES[field]}")
    cut = next((at for at in cuts if text[:at].strip() in columns), cuts[0])
    return text[:cut].strip(), text[cut + 1 :].strip()


def _range(text: str, name: str, train: Any) -> tuple[Any, Any]:
    low, colon, high = text.partition(":")
    if name in train.columns and getattr(train[name].dtype, "kind", "O") == "M":
        return low.strip() or -math.inf, high.strip() or math.inf
    if not colon:
        raise ConfigError(f"--range {name}={text}: expected {_EXAMPLES['ranges']}, or 17: and :90 for one side")
    return (
        _number(low, f"--range {name}={text}") if low.strip() else -math.inf,
        _number(high, f"--range {name}={text}") if high.strip() else math.inf,
    )


def _allowed(text: str, name: str, train: Any) -> list[Any]:
    """The values in the type of the column: 1 and "1" look the same on a command line."""
    values = train[name].drop_duplicates().tolist() if name in train.columns else []
    known = {str(value): value for value in values}
    parts = [part.strip() for part in ([text] if text in known else text.split(","))]
    if name in train.columns and getattr(train[name].dtype, "kind", "O") in "iuf":
        return [_number(part, f"--allowed {name}={text}") for part in parts]
    return [known.get(part, part) for part in parts]


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{where}: {text.strip()!r} is not a number") from None


_FLAGS = {"ranges": "--range", "allowed": "--allowed", "step": "--step", "weights": "--weight"}
_EXAMPLES = {
    "ranges": "such as age=17:90",
    "allowed": "such as workclass=Private,State-gov",
    "step": "such as income=100",
    "weights": "such as age=3",
}
_VALUES: dict[str, Callable[[str, str, Any], Any]] = {
    "ranges": _range,
    "allowed": _allowed,
    "step": lambda text, name, _train: _number(text, f"--step {name}={text}"),
    "weights": lambda text, name, _train: _number(text, f"--weight {name}={text}"),
}
