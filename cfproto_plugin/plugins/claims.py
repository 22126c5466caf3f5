"""Deciding which adapter a model belongs to, without importing anything."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from cfproto_plugin.errors import AmbiguousAdapterError, ModelError, NoAdapterError
from cfproto_plugin.plugins.functions import CallableAdapter
from cfproto_plugin.plugins.registry import PluginReport, Registry, how_to_block, make, registry, type_name
from cfproto_plugin.protocols import AdapterSpec, GradientAdapter, ModelAdapter, Role


def adapt(
    model: Any, adapter: str | ModelAdapter | None = None, *, role: Role = "classifier"
) -> tuple[str, ModelAdapter]:
    """Return the name of the adapter that fits the model, and the adapter made for it."""
    if adapter is not None and not isinstance(adapter, str):
        return type(adapter).__name__, _checked(adapter)
    if inspect.isclass(model):
        raise ModelError(f"{type_name(model)} is a class; pass a trained model, an object of that class.")
    if adapter is not None:
        return adapter, registry().make("adapters", adapter, model, role=role)
    claim = claimed(model, registry())
    if claim is not None:
        return claim[1].name, make(*claim, model, role=role)
    if isinstance(model, GradientAdapter):
        return type(model).__name__, model
    if callable(model):
        return "callable", CallableAdapter(model, role=role)
    raise NoAdapterError(_nothing_claims(model, registry()))


def claimed(model: Any, plugins: Registry) -> tuple[PluginReport, AdapterSpec] | None:
    """The spec whose class stands nearest in the model's MRO; then the highest priority; a tie is an error."""
    ranked: list[tuple[int, int, PluginReport, AdapterSpec]] = []
    for report, spec in plugins.adapters():
        distance = distance_in_mro(spec, model)
        if distance is not None:
            ranked.append((distance, -spec.priority, report, spec))
    if not ranked:
        return None
    ranked.sort(key=lambda item: item[:2])
    best = [item[2:] for item in ranked if item[:2] == ranked[0][:2]]
    if len(best) > 1:
        raise AmbiguousAdapterError(_claimed_by_several(model, best))
    return best[0]


def distance_in_mro(spec: AdapterSpec, model: Any) -> int | None:
    """How far above the model's own class the nearest claimed class stands; None if none does."""
    mro = type(model).__mro__
    return min((mro.index(cls) for claim in spec.claims if (cls := resolve(claim)) in mro), default=None)


def resolve(claim: str) -> Any:
    """The class behind "module:Class" if its module is already imported.

    Looked up in `__dict__`: `getattr` would call a module's `__getattr__`, and lazy packages import there.
    """
    module_name, _, qualname = claim.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def _checked(adapter: Any) -> ModelAdapter:
    if inspect.isclass(adapter) or not isinstance(adapter, ModelAdapter):
        raise ModelError(
            f"adapter={adapter!r} is no adapter; pass a registered name, or an object with the method predict(x)."
        )
    return adapter


def _claimed_by_several(model: Any, best: list[tuple[PluginReport, AdapterSpec]]) -> str:
    owners = " and ".join(f"{spec.name} of plugin {report}" for report, spec in best)
    names = [spec.name for _, spec in best]
    by_name = f"Pass adapter={' or adapter='.join(map(repr, names))}, or block" if len(set(names)) > 1 else "Block"
    return (
        f"{type_name(model)} is claimed equally by {owners}.\n  {by_name} one plugin: "
        f"{how_to_block([report for report, _ in best])}."
    )


def _nothing_claims(model: Any, plugins: Registry) -> str:
    installed = ", ".join(sorted(spec.name for _, spec in plugins.adapters())) or "none"
    return (
        f"no adapter claims {type_name(model)}\n  installed: {installed}{plugins.in_words_broken()}"
        "\n  Pass adapter=<name>, pass a function x -> probabilities, or install a plugin that claims it."
    )
