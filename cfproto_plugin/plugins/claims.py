"""Deciding which adapter a model belongs to and making it, without importing anything."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any, get_args

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import AmbiguousAdapterError, InputError, ModelError, NoAdapterError
from cfproto_plugin.plugins.capabilities import Adapted
from cfproto_plugin.plugins.factories import make, parameters_of, type_name
from cfproto_plugin.plugins.functions import FunctionAdapter
from cfproto_plugin.plugins.members import origin_of
from cfproto_plugin.plugins.registry import PluginReport, Registry, how_to_block, names_of, registry
from cfproto_plugin.protocols import AdapterSpec, ModelAdapter, Role


def adapt(model: Any, name: str | None = None, *, role: Role = "classifier", **options: Any) -> ModelAdapter:
    """Make the adapter for a model: of the plugin that claims it, or of the registered name.

    role: "classifier", or "transform" for encoders and autoencoders. options: what the adapter takes, such as
    output="logits" for networks; one that it does not know is an error. The adapter can be passed wherever a model can.
    """
    return adapted(model, name, role=role, options=options).adapter


def adapted(
    model: Any,
    adapter: str | ModelAdapter | None = None,
    *,
    role: Role = "classifier",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Adapted:
    """The model behind its adapter, and what that can do. adapter: a registered name or an adapter; skips detection."""
    given = dict(options or {})
    if not isinstance(role, str) or role not in get_args(Role):
        raise InputError(f"role is {shown(role)}; expected one of {', '.join(map(repr, get_args(Role)))}")
    if adapter is not None and not isinstance(adapter, str):
        return _as_it_is(_checked(adapter), role)
    if inspect.isclass(model):
        raise ModelError(f"{type_name(model)} is a class; pass a trained model, an object of that class.")
    found = registry().find("adapters", adapter) if adapter is not None else claimed(model, registry())
    if found is not None:
        report, spec = found
        _require_role(report, spec, role)
        return Adapted.of(make(report, spec, model, offered={"role": role, "seed": seed}, given=given), spec.name)
    if given:
        raise InputError(
            f"the option {next(iter(given))!r} is for the adapters of plugins, and none claims {type_name(model)}; an "
            "adapter or a function is used as it is"
        )
    return _unclaimed(model, role)


def _unclaimed(model: Any, role: Role) -> Adapted:
    """A model that no plugin claims: an adapter, an object with predict_proba, or a function.

    An adapter that has nothing but `predict` looks like any model, and is tried last.
    """
    if _is_adapter(model):
        return _as_it_is(model, role)
    if callable(getattr(model, "predict_proba", None)) and role == "classifier":
        labels, decide = getattr(model, "classes_", None), getattr(model, "predict", None)
        made = FunctionAdapter(model.predict_proba, classes=labels, decide=decide, source=model)
        return Adapted.of(made, "predict_proba")
    if callable(model):
        return Adapted.of(FunctionAdapter(model, role=role), "callable")
    if callable(getattr(model, "predict", None)):
        return Adapted.of(model)
    raise NoAdapterError(_nothing_claims(model, registry()))


def _is_adapter(model: Any) -> bool:
    """Whether it is an adapter beyond doubt: made by a plugin, or with a member that only adapters have."""
    members = ("cfproto_origin", "vjp", "quick", "trees", "thresholds")
    return callable(getattr(model, "predict", None)) and any(hasattr(model, name) for name in members)


def _as_it_is(adapter: Any, role: Role) -> Adapted:
    """An adapter that was passed in, if it was not made for the other role."""
    origin = origin_of(adapter)
    if origin is not None and origin.role not in {None, role}:
        raise ModelError(
            f"{origin} was made with role={origin.role!r} and is used as {role!r}; make it with "
            f"adapt(model, role={role!r})",
            plugin=origin.plugin,
        )
    return Adapted.of(adapter)


def _require_role(report: PluginReport, spec: AdapterSpec, role: Role) -> None:
    """A factory that takes no role makes classifiers."""
    names, any_other = parameters_of(spec.factory)
    if role != "classifier" and not any_other and "role" not in names:
        raise ModelError(
            f"adapter {spec.name!r} of plugin {report} is for classifiers; it cannot be used as {role!r}",
            plugin=report.name,
        )


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
        owners = names_of(report for report, _ in best)
        raise AmbiguousAdapterError(_claimed_by_several(model, best), plugin=owners)
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
    if inspect.isclass(adapter) or not callable(getattr(adapter, "predict", None)):
        raise ModelError(
            f"adapter={shown(adapter)} is no adapter; pass a registered name, or an object with the method predict(x)."
        )
    made: ModelAdapter = adapter
    return made


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
    if model is None or isinstance(model, (str, bytes, os.PathLike)):
        return (
            f"the model is {shown(model)}; expected a trained model or a function x -> probabilities.\n  A model in a "
            "file is loaded first, with its own library; `cfproto explain` on the command line takes files."
        )
    return (
        f"no adapter claims {type_name(model)}\n  installed: {installed}{plugins.in_words_broken()}"
        "\n  Pass adapter=<name>, pass a function x -> probabilities, or install or register a plugin that claims it."
    )
