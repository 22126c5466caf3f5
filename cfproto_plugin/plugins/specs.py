"""What hooks return, checked: a mistake is named before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypeVar

import pluggy

from cfproto_plugin.errors import PluginError, did_you_mean
from cfproto_plugin.protocols import CONTRACT, AdapterSpec, DistanceSpec, ModelFile, PrototypeSpec

Kind: TypeAlias = Literal["adapters", "prototypes", "distances"]
KINDS: tuple[Kind, ...] = ("adapters", "prototypes", "distances")
HOOKS = tuple(f"cfproto_{kind}" for kind in KINDS)
Spec = TypeVar("Spec", AdapterSpec, PrototypeSpec, DistanceSpec)


def in_words(error: pluggy.PluginValidationError) -> str:
    """One line, and what was probably meant."""
    text = " ".join(str(error).split())
    unknown = re.search(r"unknown hook '(\w+)'", text)
    if unknown is None:
        return f"{text}; the hooks take no arguments"
    return f"{unknown[0]}.{did_you_mean(unknown[1], HOOKS)} There are {', '.join(HOOKS)}"


def checked(hook: str, kind: type[Spec], results: list[Iterable[Spec]]) -> tuple[Spec, ...]:
    """What the hook returned, if it is what was asked for."""
    for result in results:
        if not isinstance(result, Iterable):
            raise PluginError(f"{hook} returned {result!r}; expected a list of {kind.__name__} objects")
    specs = tuple(spec for result in results for spec in result)
    for spec in specs:
        if not isinstance(spec, kind):
            raise PluginError(f"{hook} returned {spec!r}; expected {kind.__name__} objects")
        if not isinstance(spec.name, str) or not spec.name:
            raise PluginError(f"{hook} returned a spec named {spec.name!r}; expected a word to name it by")
        if spec.contract != CONTRACT:
            raise PluginError(
                f"{spec.name!r} was written for version {spec.contract!r} of the plugin contract; this version of "
                f"cfproto-plugin knows {CONTRACT}: update "
                + ("the plugin" if isinstance(spec.contract, int) and spec.contract < CONTRACT else "cfproto-plugin")
            )
        if not callable(spec.factory):
            raise PluginError(f"the factory of {spec.name!r} is {spec.factory!r}; expected a function or class")
        if isinstance(spec, AdapterSpec):
            _check_claims(spec)
            _check_files(spec)
    return specs


def _check_claims(spec: AdapterSpec) -> None:
    claims: Any = spec.claims
    if isinstance(claims, str):
        raise PluginError(f"adapter {spec.name!r} claims the text {claims!r}; expected a tuple: ({claims!r},)")
    if not claims:
        raise PluginError(f"adapter {spec.name!r} claims nothing; expected names such as 'package.module:Class'")
    for claim in claims:
        module, _, qualname = claim.partition(":") if isinstance(claim, str) else ("", "", "")
        if not (module and qualname):
            raise PluginError(f"adapter {spec.name!r} claims {claim!r}; expected a name such as 'package.module:Class'")


def _check_files(spec: AdapterSpec) -> None:
    for file in spec.files:
        if not isinstance(file, ModelFile):
            raise PluginError(f"adapter {spec.name!r} has {file!r} among its files; expected ModelFile objects")
        suffixes: Any = file.suffixes
        if isinstance(suffixes, str) or not suffixes or not all(map(_is_suffix, suffixes)):
            raise PluginError(
                f"adapter {spec.name!r} reads files with the suffixes {suffixes!r}; expected a tuple such as "
                "('.json',), in lower case"
            )
        for name in ("load", "save", "asks"):
            function = getattr(file, name)
            if not callable(function) and (name == "load" or function is not None):
                raise PluginError(f"adapter {spec.name!r}: {name} of {suffixes} is {function!r}; expected a function")


def _is_suffix(suffix: Any) -> bool:
    return isinstance(suffix, str) and suffix.startswith(".") and suffix == suffix.lower()
