"""Finding and loading plugins. Each loads alone: a broken one is recorded with its cause, the others keep working."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Literal

import pluggy

from cfproto_plugin import hookspecs
from cfproto_plugin.checks import shown
from cfproto_plugin.errors import PluginError, UnknownNameError, did_you_mean
from cfproto_plugin.hookspecs import PROJECT
from cfproto_plugin.plugins.factories import make
from cfproto_plugin.plugins.specs import HOOKS, KINDS, Kind, checked, in_words
from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, ModelFile, PrototypeSpec

log = logging.getLogger(__name__)
SLOW_SECONDS = 1.0  # the built-in plugins take some 10 ms; a plugin that imports a framework takes seconds
DISABLE = "CFPROTO_DISABLE_PLUGINS"


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
        known: set[str] = set()
        for entry in entries:
            dist = entry.dist
            source = f"{dist.name} {dist.version}" if dist else entry.value
            names = {entry.name, dist.name if dist else entry.name}
            known |= names
            blocked = not self._disabled.isdisjoint(names)
            self._add(PluginReport(entry.name, "disabled" if blocked else "ok", source, entry.value), entry.load)
        self.advice = _misspelt(self._disabled, known)
        for text in self.advice:
            log.warning("%s", text)

    def register(self, plugin: object, name: str | None = None) -> PluginReport:
        """Add a plugin of the running program: a module or object with hook implementations."""
        if name is None:
            name = str(getattr(plugin, "__name__", type(plugin).__name__))
        if not isinstance(name, str) or not name:
            raise PluginError(f"the name of a plugin is {shown(name)}; expected a word to name it by")
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
        if not isinstance(name, str):
            raise UnknownNameError(f"no plugin is named {shown(name)}; pass its name, as `cfproto plugins` lists it")
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


def names_of(owners: Iterable[PluginReport]) -> str:
    """The names of several plugins, for the field `plugin` of an error."""
    return ", ".join(report.name for report in owners)


def how_to_block(owners: Iterable[PluginReport]) -> str:
    """The settings of the environment that block one of these plugins; by distribution if they share their name."""
    names = [report.name for report in owners]
    if len(set(names)) < len(names):
        names = [report.source.partition(" ")[0] for report in owners]
    return " or ".join(f"{DISABLE}={name}" for name in names)


def _misspelt(disabled: Iterable[str], known: Iterable[str]) -> list[str]:
    """What to say of names to block that no installed plugin and no distribution has."""
    return [
        f"{DISABLE} names {name!r}, and no installed plugin is called so.{did_you_mean(name, known)}"
        for name in sorted(set(disabled) - set(known))
    ]


def _collect(report: PluginReport, plugin: object) -> PluginReport:
    """Call the plugin's hooks in a manager of its own, so that its mistakes stay its own."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, report.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(in_words(error)) from error
    report = replace(
        report,
        adapters=checked("cfproto_adapters", AdapterSpec, manager.hook.cfproto_adapters()),
        prototypes=checked("cfproto_prototypes", PrototypeSpec, manager.hook.cfproto_prototypes()),
        distances=checked("cfproto_distances", DistanceSpec, manager.hook.cfproto_distances()),
    )
    if not report.offers:
        raise PluginError(f"it offers nothing: expected one of the hooks {', '.join(HOOKS)}, marked with @hookimpl")
    return report


@functools.cache
def registry() -> Registry:
    """The process-wide registry, loaded on first use from the entry points."""
    disabled = [name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()]
    found = sorted(entry_points(group=PROJECT), key=lambda entry: (entry.name, entry.value))
    unique = {(entry.name, entry.value): entry for entry in found}
    return Registry(unique.values(), disabled)


def register(plugin: object, name: str | None = None) -> PluginReport:
    """Add a plugin to the running program, as an installed one would be."""
    return registry().register(plugin, name)


def unregister(name: str) -> None:
    """Remove a plugin from the running program."""
    registry().unregister(name)
