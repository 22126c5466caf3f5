"""Finding and loading plugins. Each loads alone: a broken one is recorded with its cause, the others keep working.

What a plugin offers is made here as well, so that every failure of a factory is named with its plugin and distribution.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import pluggy

from cfproto_plugin import hookspecs
from cfproto_plugin.errors import CfprotoError, InputError, PluginError, UnknownNameError, did_you_mean
from cfproto_plugin.hookspecs import PROJECT
from cfproto_plugin.protocols import CONTRACT, AdapterSpec, DistanceSpec, ModelFile, PrototypeSpec

log = logging.getLogger(__name__)
Spec = TypeVar("Spec", AdapterSpec, PrototypeSpec, DistanceSpec)
Kind: TypeAlias = Literal["adapters", "prototypes", "distances"]
KINDS: tuple[Kind, ...] = ("adapters", "prototypes", "distances")
HOOKS = tuple(f"cfproto_{kind}" for kind in KINDS)
SLOW_SECONDS = 1.0  # the built-in plugins take some 10 ms; a plugin that imports a framework takes seconds
DISABLE = "CFPROTO_DISABLE_PLUGINS"
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


@dataclass(frozen=True)
class PluginReport:
    """What became of one plugin."""

    name: str
    status: Literal["ok", "broken", "disabled"]
    source: str
    module: str = ""  # "module" or "module:object", as in the entry point; nothing if it cannot be imported
    seconds: float = 0.0
    error: str = ""
    adapters: tuple[AdapterSpec, ...] = ()
    prototypes: tuple[PrototypeSpec, ...] = ()
    distances: tuple[DistanceSpec, ...] = ()

    @property
    def offers(self) -> dict[str, list[str]]:
        """Names by kind, for printing."""
        return {kind: [spec.name for spec in getattr(self, kind)] for kind in KINDS if getattr(self, kind)}

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of the model files it reads."""
        return [suffix for spec in self.adapters for suffix in spec.suffixes]

    @property
    def slow(self) -> bool:
        """Whether it works but took longer than SLOW_SECONDS to load."""
        return self.status == "ok" and self.seconds > SLOW_SECONDS

    @property
    def advice(self) -> str:
        """What its author should do, if anything."""
        return f"slow: {self.seconds:.1f} s; import frameworks inside functions" if self.slow else ""

    def __str__(self) -> str:
        return f"{self.name} ({self.source})"


class Registry:
    """The plugins of one process."""

    def __init__(self, entries: Iterable[EntryPoint] = (), disabled: Iterable[str] = ()) -> None:
        self.reports: list[PluginReport] = []
        self._disabled = frozenset(disabled)
        for entry in entries:
            dist = entry.dist
            source = f"{dist.name} {dist.version}" if dist else entry.value
            blocked = not self._disabled.isdisjoint({entry.name, dist.name if dist else entry.name})
            self._add(PluginReport(entry.name, "disabled" if blocked else "ok", source, entry.value), entry.load)

    def register(self, plugin: object, name: str | None = None) -> PluginReport:
        """Add a plugin of the running program: a module or object with hook implementations."""
        name = name or str(getattr(plugin, "__name__", type(plugin).__name__))
        if any(report.name == name and report.status == "ok" for report in self.reports):
            raise PluginError(
                f"a plugin named {name!r} is already registered; unregister({name!r}) it first.", plugin=name
            )
        status: Literal["ok", "disabled"] = "disabled" if name in self._disabled else "ok"
        module = plugin.__name__ if isinstance(plugin, ModuleType) else ""
        report = self._add(PluginReport(name, status, "registered at run time", module), lambda: plugin)
        if report.status == "broken":
            self.reports.remove(report)
            raise PluginError(f"plugin {name!r} cannot be registered: {report.error}", plugin=name)
        return report

    def unregister(self, name: str) -> None:
        """Forget a plugin."""
        kept = [report for report in self.reports if report.name != name]
        if len(kept) == len(self.reports):
            known = [report.name for report in self.reports]
            raise UnknownNameError(
                f"no plugin is named {name!r}.{did_you_mean(name, known)} Pass its name, as `cfproto plugins` lists it"
            )
        self.reports = kept

    def adapters(self) -> list[tuple[PluginReport, AdapterSpec]]:
        """Every adapter with the plugin it came from."""
        return [(report, spec) for report in self.reports for spec in report.adapters]

    def broken(self) -> list[PluginReport]:
        """Plugins that did not load."""
        return [report for report in self.reports if report.status == "broken"]

    def make(self, kind: Kind, name: str, **offered: Any) -> Any:
        """Call the factory of that kind and name with those of the arguments that it takes."""
        return make(*self.find(kind, name), offered=offered)

    def file_formats(self) -> dict[str, list[tuple[PluginReport, AdapterSpec, ModelFile]]]:
        """Who reads models from files with which suffix."""
        found: dict[str, list[tuple[PluginReport, AdapterSpec, ModelFile]]] = {}
        for report, spec in self.adapters():
            for file in spec.files:
                for suffix in file.suffixes:
                    found.setdefault(suffix, []).append((report, spec, file))
        return found

    def file_format(self, suffix: str) -> tuple[PluginReport, AdapterSpec, ModelFile]:
        """Who reads models from files with this suffix. None, or two, is an error that names them."""
        formats = self.file_formats()
        found = formats.get(suffix.lower(), [])
        if len(found) > 1:
            owners = [report for report, _, _ in found]
            raise PluginError(
                f"{suffix} files are read by {' and '.join(map(str, owners))}.\n  Block one plugin: "
                f"{how_to_block(owners)}.",
                plugin=names_of(owners),
            )
        if not found:
            raise UnknownNameError(
                f"no installed plugin reads models from {suffix or 'files without a suffix'}.\n  There are readers "
                f"for: {', '.join(sorted(formats)) or 'none'}" + self.in_words_broken()
            )
        return found[0]

    def find(self, kind: Kind, name: str) -> tuple[PluginReport, Any]:
        """The spec of that kind and name, and the plugin that offers it."""
        specs = [(report, spec) for report in self.reports for spec in getattr(report, kind)]
        found = [(report, spec) for report, spec in specs if spec.name == name]
        if len(found) > 1:
            owners = [report for report, _ in found]
            raise PluginError(
                f"{kind} named {name!r} come from {' and '.join(map(str, owners))}.\n  Pass an instance, or block one "
                f"plugin: {how_to_block(owners)}.",
                plugin=names_of(owners),
            )
        if found:
            return found[0]
        known = sorted(spec.name for _, spec in specs)
        raise UnknownNameError(
            f"no {kind} named {name!r}.{did_you_mean(name, known)}\n  there are: {', '.join(known) or 'none'}"
            + self.in_words_broken()
        )

    def in_words_broken(self) -> str:
        """The broken plugins, their distributions and causes, for the end of a message; nothing if there are none."""
        broken = ", ".join(f"{report.name} of {report.source} ({report.error})" for report in self.broken())
        return f"   broken: {broken}" if broken else ""

    def _add(self, report: PluginReport, load: Callable[[], object]) -> PluginReport:
        """Load the plugin unless it is disabled, and record what became of it."""
        if report.status == "ok":
            start = time.perf_counter()
            try:
                report = _collect(report, load())
            except (Exception, SystemExit) as error:  # noqa: BLE001 whatever a plugin does, the others keep working
                log.warning("plugin %s is broken: %s: %s", report, type(error).__name__, error)
                report = replace(report, status="broken", error=f"{type(error).__name__}: {error}")
            report = replace(report, seconds=time.perf_counter() - start)
        if report.slow:
            log.warning("plugin %s is %s", report, report.advice)
        self.reports.append(report)
        return report


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


def names_of(owners: Iterable[PluginReport]) -> str:
    """The names of several plugins, for the field `plugin` of an error."""
    return ", ".join(report.name for report in owners)


def how_to_block(owners: Iterable[PluginReport]) -> str:
    """The settings of the environment that block one of these plugins; by distribution if they share their name."""
    names = [report.name for report in owners]
    if len(set(names)) < len(names):
        names = [report.source.partition(" ")[0] for report in owners]
    return " or ".join(f"{DISABLE}={name}" for name in names)


def type_name(model: Any) -> str:
    """The full name of a model's class."""
    cls = model if inspect.isclass(model) else type(model)
    return f"{cls.__module__}.{cls.__qualname__}"


def _collect(report: PluginReport, plugin: object) -> PluginReport:
    """Call the plugin's hooks in a manager of its own, so that its mistakes stay its own."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, report.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(_in_words(error)) from error
    report = replace(
        report,
        adapters=_checked("cfproto_adapters", AdapterSpec, manager.hook.cfproto_adapters()),
        prototypes=_checked("cfproto_prototypes", PrototypeSpec, manager.hook.cfproto_prototypes()),
        distances=_checked("cfproto_distances", DistanceSpec, manager.hook.cfproto_distances()),
    )
    if not report.offers:
        raise PluginError(f"it offers nothing: expected one of the hooks {', '.join(HOOKS)}, marked with @hookimpl")
    return report


def _in_words(error: pluggy.PluginValidationError) -> str:
    """One line, and what was probably meant."""
    text = " ".join(str(error).split())
    unknown = re.search(r"unknown hook '(\w+)'", text)
    if unknown is None:
        return f"{text}; the hooks take no arguments"
    return f"{unknown[0]}.{did_you_mean(unknown[1], HOOKS)} There are {', '.join(HOOKS)}"


def _checked(hook: str, kind: type[Spec], results: list[Iterable[Spec]]) -> tuple[Spec, ...]:
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
        if not callable(file.load):
            raise PluginError(f"adapter {spec.name!r}: load of {suffixes} is {file.load!r}; expected a function")


def _is_suffix(suffix: Any) -> bool:
    return isinstance(suffix, str) and suffix.startswith(".") and suffix == suffix.lower()


@functools.cache
def registry() -> Registry:
    """The process-wide registry, loaded on first use from the entry points."""
    disabled = [name.strip() for name in os.environ.get(DISABLE, "").split(",")]
    found = sorted(entry_points(group=PROJECT), key=lambda entry: (entry.name, entry.value))
    unique = {(entry.name, entry.value): entry for entry in found}
    return Registry(unique.values(), disabled)


def register(plugin: object, name: str | None = None) -> PluginReport:
    """Add a plugin to the running program, as an installed one would be."""
    return registry().register(plugin, name)


def unregister(name: str) -> None:
    """Remove a plugin from the running program."""
    registry().unregister(name)
