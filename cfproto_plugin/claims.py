"""Deciding which adapter a model belongs to, without importing anything."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from cfproto_plugin.callables import CallableAdapter
from cfproto_plugin.errors import AmbiguousAdapterError, CfprotoError, ModelError, NoAdapterError, PluginError
from cfproto_plugin.plugins import PluginReport, Registry, registry
from cfproto_plugin.protocols import AdapterSpec, GradientAdapter, ModelAdapter, Role


def adapt(
    model: Any, adapter: str | ModelAdapter | None = None, *, role: Role = "classifier"
) -> tuple[str, ModelAdapter]:
    """Return the name of the adapter that fits the model, and the adapter made for it."""
    if adapter is not None and not isinstance(adapter, str):
        return type(adapter).__name__, _checked(adapter)
    if inspect.isclass(model):
        raise ModelError(f"{_name(model)} is a class; pass a trained model, an object of that class.")
    if adapter is not None:
        return adapter, _make(registry().named("adapters", adapter), model, role)
    spec = _claimed(model, registry())
    if spec is not None:
        return spec.name, _make(spec, model, role)
    if isinstance(model, GradientAdapter):
        return type(model).__name__, model
    if callable(model):
        return "callable", CallableAdapter(model, role=role)
    raise NoAdapterError(_nothing_claims(model, registry()))


def _claimed(model: Any, plugins: Registry) -> AdapterSpec | None:
    """The spec whose class stands nearest in the model's MRO; then the highest priority; a tie is an error."""
    mro = type(model).__mro__
    ranked: list[tuple[int, int, PluginReport, AdapterSpec]] = []
    for report, spec in plugins.adapters():
        distances = [mro.index(cls) for claim in spec.claims if (cls := _resolve(claim)) in mro]
        if distances:
            ranked.append((min(distances), -spec.priority, report, spec))
    if not ranked:
        return None
    ranked.sort(key=lambda item: item[:2])
    best = [item for item in ranked if item[:2] == ranked[0][:2]]
    if len(best) > 1:
        owners = " and ".join(f"{spec.name} of plugin {report.name} ({report.source})" for *_, report, spec in best)
        raise AmbiguousAdapterError(
            f"{_name(model)} is claimed equally by {owners}.\n  Pass adapter=<name>, or block one plugin by name in "
            "CFPROTO_DISABLE_PLUGINS."
        )
    return best[0][3]


def _resolve(claim: str) -> Any:
    """The class behind "module:Class" if its module is already imported.

    Looked up in `__dict__`: `getattr` would call a module's `__getattr__`, and lazy packages import there.
    """
    module_name, _, qualname = claim.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def _make(spec: AdapterSpec, model: Any, role: Role) -> ModelAdapter:
    try:
        made = spec.factory(model, role=role)
    except CfprotoError:
        raise
    except Exception as error:
        raise PluginError(f"adapter {spec.name!r} failed on {_name(model)}: {type(error).__name__}: {error}") from error
    if not isinstance(made, ModelAdapter):
        raise ModelError(f"adapter {spec.name!r} returned {type(made).__name__}, which has no predict(x) method")
    return made


def _checked(adapter: Any) -> ModelAdapter:
    if inspect.isclass(adapter) or not isinstance(adapter, ModelAdapter):
        raise ModelError(
            f"adapter={adapter!r} is no adapter; pass a registered name, or an object with the method predict(x)."
        )
    return adapter


def _name(model: Any) -> str:
    cls = model if inspect.isclass(model) else type(model)
    return f"{cls.__module__}.{cls.__qualname__}"


def _nothing_claims(model: Any, plugins: Registry) -> str:
    installed = ", ".join(sorted(spec.name for _, spec in plugins.adapters())) or "none"
    broken = ", ".join(f"{report.name} ({report.error})" for report in plugins.broken())
    return (
        f"no adapter claims {_name(model)}\n  installed: {installed}"
        + (f"   broken: {broken}" if broken else "")
        + "\n  Pass adapter=<name>, pass a function x -> probabilities, or install a plugin that claims it."
    )
