"""Calling the factories of plugins: with what they take, and with failures named by plugin and distribution."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from cfproto_plugin.errors import CfprotoError, InputError, PluginError, did_you_mean
from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, PrototypeSpec

if TYPE_CHECKING:
    from cfproto_plugin.plugins.registry import PluginReport

_ONE: dict[type, tuple[str, str]] = {  # what a spec is called in messages, and the method of what its factory makes
    AdapterSpec: ("adapter", "predict"),
    PrototypeSpec: ("prototype provider", "nearest"),
    DistanceSpec: ("distance", "__call__"),
}


class Origin(NamedTuple):
    """Where an adapter, provider or distance comes from. As text it is what messages say."""

    what: str  # "adapter", "prototype provider" or "distance"
    name: str
    plugin: str
    source: str
    role: str | None = None  # that an adapter was made for

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} of plugin {self.plugin} ({self.source})"


def make(
    report: PluginReport,
    spec: Any,
    *args: Any,
    offered: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Any:
    """Call the factory of a spec. Whatever goes wrong is named with the plugin and its distribution.

    offered: what the core passes if the factory takes it. given: what the user asked for, which it must take.
    """
    what, method = next(words for kind, words in _ONE.items() if isinstance(spec, kind))
    origin = Origin(what, spec.name, report.name, report.source, (offered or {}).get("role"))
    options = {**taken(spec.factory, offered or {}), **_required(spec.factory, given or {}, origin)}
    try:
        made = spec.factory(*args, **options)
    except CfprotoError as error:
        error.add_note(f"raised by {origin}")
        error.plugin = error.plugin or report.name
        raise
    except Exception as error:
        on = "".join(f" on {type_name(model)}" for model in args)
        raise PluginError(f"{origin} failed{on}: {type(error).__name__}: {error}", plugin=report.name) from error
    if inspect.isclass(made) or not callable(getattr(made, method, None)):
        raise PluginError(
            f"the factory of {origin} returned {made!r}, which has no method {method}", plugin=report.name
        )
    if not any(made is model for model in args):
        with suppress(AttributeError, TypeError):  # objects with slots stay without
            made.cfproto_origin = origin  # kept when an explainer is pickled
    return made


def parameters_of(factory: Callable[..., Any]) -> tuple[set[str], bool]:
    """The names that a factory takes by keyword, and whether it takes any other."""
    try:
        found = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some built-in types have no signature
        return set(), True
    keywords = {p.name for p in found if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}}
    return keywords, any(p.kind is p.VAR_KEYWORD for p in found)


def taken(factory: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the offered arguments that the factory takes."""
    names, any_other = parameters_of(factory)
    return {name: value for name, value in offered.items() if any_other or name in names}


def _first_parameter(factory: Callable[..., Any]) -> str:
    """The name of the model, the first argument of an adapter's factory; nothing if all are keywords."""
    found = inspect.signature(factory).parameters.values()
    return next((p.name for p in found if p.kind is not p.KEYWORD_ONLY), "")


def _required(factory: Callable[..., Any], given: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """The options that the user gave; one that the factory does not know is an error."""
    names, any_other = parameters_of(factory)
    for name in given:
        if not any_other and name not in names:
            own = sorted(names - {"role", "seed", _first_parameter(factory)})
            raise InputError(
                f"{origin} has no option {name!r}.{did_you_mean(name, own)} Its options: {', '.join(own) or 'none'}",
                plugin=origin.plugin,
            )
    return dict(given)


def type_name(model: Any) -> str:
    """The full name of a model's class."""
    cls = model if inspect.isclass(model) else type(model)
    return f"{cls.__module__}.{cls.__qualname__}"
