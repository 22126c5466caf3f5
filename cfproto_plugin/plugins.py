"""Finding and loading plugins. Each loads alone: a broken one is recorded with its cause, the others keep working."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar

import pluggy

from cfproto_plugin import hookspecs
from cfproto_plugin.errors import PluginError, UnknownNameError, did_you_mean
from cfproto_plugin.hookspecs import PROJECT
from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, PrototypeSpec

log = logging.getLogger(__name__)
Spec = TypeVar("Spec", AdapterSpec, PrototypeSpec, DistanceSpec)
HOOKS: dict[str, type] = {
    "cfproto_adapters": AdapterSpec,
    "cfproto_prototypes": PrototypeSpec,
    "cfproto_distances": DistanceSpec,
}


@dataclass(frozen=True)
class PluginReport:
    """What became of one plugin."""

    name: str
    status: Literal["ok", "broken", "disabled"]
    source: str
    seconds: float = 0.0
    error: str = ""
    adapters: tuple[AdapterSpec, ...] = ()
    prototypes: tuple[PrototypeSpec, ...] = ()
    distances: tuple[DistanceSpec, ...] = ()

    @property
    def offers(self) -> dict[str, list[str]]:
        """Names by kind, for printing."""
        kinds = ("adapters", "prototypes", "distances")
        return {kind: [spec.name for spec in getattr(self, kind)] for kind in kinds if getattr(self, kind)}


class Registry:
    """The plugins of one process."""

    def __init__(self, entries: Iterable[EntryPoint] = (), disabled: Iterable[str] = ()) -> None:
        self.reports: list[PluginReport] = []
        self._disabled = frozenset(disabled)
        for entry in entries:
            dist = entry.dist
            source = f"{dist.name} {dist.version}" if dist else entry.value
            self._add(entry.name, source, entry.load)

    def register(self, plugin: object, name: str | None = None) -> PluginReport:
        """Add a plugin of the running program: a module or object with hook implementations."""
        name = name or getattr(plugin, "__name__", type(plugin).__name__)
        if any(report.name == name and report.status == "ok" for report in self.reports):
            raise PluginError(f"a plugin named {name!r} is already registered; unregister({name!r}) it first.")
        report = self._add(name, "registered at run time", lambda: plugin)
        if report.status == "broken":
            self.reports.remove(report)
            raise PluginError(f"plugin {name!r} cannot be registered: {report.error}")
        return report

    def unregister(self, name: str) -> None:
        """Forget a plugin."""
        kept = [report for report in self.reports if report.name != name]
        if len(kept) == len(self.reports):
            known = [report.name for report in self.reports]
            raise UnknownNameError(f"no plugin is named {name!r}.{did_you_mean(name, known)}")
        self.reports = kept

    def adapters(self) -> list[tuple[PluginReport, AdapterSpec]]:
        """Every adapter with the plugin it came from."""
        return [(report, spec) for report in self.reports for spec in report.adapters]

    def broken(self) -> list[PluginReport]:
        """Plugins that did not load."""
        return [report for report in self.reports if report.status == "broken"]

    def named(self, kind: Literal["adapters", "prototypes", "distances"], name: str) -> Any:
        """The spec of that kind and name."""
        specs = [(report, spec) for report in self.reports for spec in getattr(report, kind)]
        found = [(report, spec) for report, spec in specs if spec.name == name]
        if len(found) > 1:
            owners = " and ".join(f"{report.name} ({report.source})" for report, _ in found)
            raise PluginError(
                f"{kind} named {name!r} come from {owners}. Block one by name in CFPROTO_DISABLE_PLUGINS, or pass an instance."
            )
        if found:
            return found[0][1]
        known = sorted(spec.name for _, spec in specs)
        broken = ", ".join(f"{report.name} ({report.error})" for report in self.broken())
        raise UnknownNameError(
            f"no {kind} named {name!r}.{did_you_mean(name, known)}\n  there are: {', '.join(known) or 'none'}"
            + (f"   broken: {broken}" if broken else "")
        )

    def _add(self, name: str, source: str, load: Callable[[], object]) -> PluginReport:
        if name in self._disabled:
            report = PluginReport(name, "disabled", source)
        else:
            start = time.perf_counter()
            try:
                report = _collect(PluginReport(name, "ok", source), load())
            except Exception as error:  # noqa: BLE001 a plugin may fail in any way and must not take the others along
                log.warning("plugin %s (%s) is broken: %s: %s", name, source, type(error).__name__, error)
                report = PluginReport(name, "broken", source, error=f"{type(error).__name__}: {error}")
            report = replace(report, seconds=time.perf_counter() - start)
        self.reports.append(report)
        return report


def _collect(report: PluginReport, plugin: object) -> PluginReport:
    """Call the plugin's hooks in a manager of its own, so that its mistakes stay its own."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin, report.name)
    manager.check_pending()
    specs = {hook: _checked(hook, kind, getattr(manager.hook, hook)()) for hook, kind in HOOKS.items()}
    if not any(specs.values()):
        raise PluginError("it implements none of the hooks " + ", ".join(HOOKS))
    return replace(report, **{hook.removeprefix("cfproto_"): found for hook, found in specs.items()})


def _checked(hook: str, kind: type[Spec], results: list[Iterable[Spec]]) -> tuple[Spec, ...]:
    specs = tuple(spec for result in results for spec in result)
    for spec in specs:
        if not isinstance(spec, kind):
            raise PluginError(f"{hook} returned {spec!r}; expected {kind.__name__} objects")
        if isinstance(spec, AdapterSpec) and not all(":" in claim for claim in spec.claims):
            raise PluginError(f"adapter {spec.name!r} claims {spec.claims!r}; expected names such as 'package.module:Class'")
        if isinstance(spec, AdapterSpec) and not spec.claims:
            raise PluginError(f"adapter {spec.name!r} claims nothing")
    return specs


@functools.cache
def registry() -> Registry:
    """The process-wide registry, loaded on first use from the entry points."""
    disabled = [name.strip() for name in os.environ.get("CFPROTO_DISABLE_PLUGINS", "").split(",")]
    found = sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)
    unique = {(entry.name, entry.value): entry for entry in found}
    return Registry(unique.values(), disabled)


def register(plugin: object, name: str | None = None) -> PluginReport:
    """Add a plugin to the running program, as an installed one would be."""
    return registry().register(plugin, name)


def unregister(name: str) -> None:
    """Remove a plugin from the running program."""
    registry().unregister(name)
