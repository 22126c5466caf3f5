"""Finding and loading plugins. Each loads alone: a broken one is recorded with its cause, the others keep working."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias, TypeVar

import pluggy

from cfproto_plugin import hookspecs
from cfproto_plugin.errors import PluginError, UnknownNameError, did_you_mean
from cfproto_plugin.hookspecs import PROJECT
from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, PrototypeSpec

log = logging.getLogger(__name__)
Spec = TypeVar("Spec", AdapterSpec, PrototypeSpec, DistanceSpec)
Kind: TypeAlias = Literal["adapters", "prototypes", "distances"]
KINDS: tuple[Kind, ...] = ("adapters", "prototypes", "distances")


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
        return {kind: [spec.name for spec in getattr(self, kind)] for kind in KINDS if getattr(self, kind)}


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
        name = name or str(getattr(plugin, "__name__", type(plugin).__name__))
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

    def named(self, kind: Kind, name: str) -> Any:
        """The spec of that kind and name."""
        specs = [(report, spec) for report in self.reports for spec in getattr(report, kind)]
        found = [(report, spec) for report, spec in specs if spec.name == name]
        if len(found) > 1:
            owners = " and ".join(f"{report.name} ({report.source})" for report, _ in found)
            raise PluginError(
                f"{kind} named {name!r} come from {owners}.\n  Pass an instance, or block one plugin by name in "
                "CFPROTO_DISABLE_PLUGINS."
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
            except (Exception, SystemExit) as error:  # noqa: BLE001 whatever a plugin does, the others keep working
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
    report = replace(
        report,
        adapters=_checked("cfproto_adapters", AdapterSpec, manager.hook.cfproto_adapters()),
        prototypes=_checked("cfproto_prototypes", PrototypeSpec, manager.hook.cfproto_prototypes()),
        distances=_checked("cfproto_distances", DistanceSpec, manager.hook.cfproto_distances()),
    )
    if not report.offers:
        hooks = ", ".join(f"cfproto_{kind}" for kind in KINDS)
        raise PluginError(f"it offers nothing: expected one of the hooks {hooks}, marked with @hookimpl")
    return report


def _checked(hook: str, kind: type[Spec], results: list[Iterable[Spec]]) -> tuple[Spec, ...]:
    """What the hook returned, if it is what was asked for."""
    for result in results:
        if not isinstance(result, Iterable):
            raise PluginError(f"{hook} returned {result!r}; expected a list of {kind.__name__} objects")
    specs = tuple(spec for result in results for spec in result)
    for spec in specs:
        if not isinstance(spec, kind):
            raise PluginError(f"{hook} returned {spec!r}; expected {kind.__name__} objects")
        if not callable(spec.factory):
            raise PluginError(f"the factory of {spec.name!r} is {spec.factory!r}; expected a function or class")
        if isinstance(spec, AdapterSpec):
            _check_claims(spec)
    return specs


def _check_claims(spec: AdapterSpec) -> None:
    if not spec.claims:
        raise PluginError(f"adapter {spec.name!r} claims nothing; expected names such as 'package.module:Class'")
    for claim in spec.claims:
        module, _, qualname = claim.partition(":")
        if not (module and qualname):
            raise PluginError(f"adapter {spec.name!r} claims {claim!r}; expected a name such as 'package.module:Class'")


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
