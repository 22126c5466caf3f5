"""Checks of what a plugin says about itself: the classes it claims, its factories, and what loading it costs."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from cfproto_plugin.errors import InputError
from cfproto_plugin.plugins import Registry, taken, type_name
from cfproto_plugin.plugins.claims import distance_in_mro, resolve
from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, PrototypeSpec
from cfproto_plugin.testing.adapters import adapter_checks
from cfproto_plugin.testing.distances import distance_checks
from cfproto_plugin.testing.kit import Check, bind, require, run_all
from cfproto_plugin.testing.loading import loading_imports_no_framework
from cfproto_plugin.testing.providers import provider_checks
from cfproto_plugin.testing.untouched import modes_restored, state, switch, switches

Spec = AdapterSpec | PrototypeSpec | DistanceSpec


def check_spec(plugin: Any, *data: Any, atol: float = 1e-5, **options: Any) -> None:
    """Run every check of a spec, and of what its factory makes.

    plugin: a spec, or the plugin that offers it (a module or object with hooks) if it is an adapter.
    data: what the spec is to be tried on: a model and rows for an adapter, points and their classes for a prototype
    provider, codes, numbers of categories, context and labels for a distance. options: handed to the factory.
    """
    run_all(spec_checks(plugin, *data, atol=atol, **options))


def spec_checks(plugin: Any, *data: Any, atol: float = 1e-5, module: str = "", **options: Any) -> list[Check]:
    """The checks of a spec, one by one. module: what loading the plugin imports, as in its entry point."""
    if isinstance(plugin, ModuleType):
        module = plugin.__name__
    spec = plugin if isinstance(plugin, Spec) else _offered(plugin, *data)
    _require_data(spec, data)
    if isinstance(spec, AdapterSpec):
        return _adapter_spec_checks(spec, *data, atol=atol, module=module, **options)
    if isinstance(spec, PrototypeSpec):
        return _made_checks(spec, provider_checks, "nearest", data, options)
    return _made_checks(spec, distance_checks, "__call__", data, options)


def the_spec_claims_its_own_model(spec: AdapterSpec, model: Any) -> None:
    """A claim is looked up among the modules already imported and must stand in the MRO of the model's class."""
    reasons = "; ".join(f"{claim!r} {_why_not(claim)}" for claim in spec.claims)
    classes = ", ".join(f"'{cls.__module__}:{cls.__qualname__}'" for cls in type(model).__mro__[:-1])
    require(
        distance_in_mro(spec, model) is not None,
        f"adapter {spec.name!r} does not claim {type_name(model)}: {reasons}. It could claim {classes}",
    )


def the_factory_makes_what_it_promises(spec: Spec, *args: Any, method: str = "predict", **options: Any) -> None:
    made = _called(spec, *args, **options)
    sound = not inspect.isclass(made) and callable(getattr(made, method, None))
    require(sound, f"the factory of {spec.name!r} returned {made!r}, which has no method {method}")


def the_factory_leaves_the_model_untouched(spec: AdapterSpec, model: Any, **options: Any) -> None:
    """Parameters and training mode are as they were, also of a model that is in training mode."""
    with modes_restored(model):
        switch(model, True)
        before = state(model)
        _called(spec, model, **options)
        modes, after = [part.training for part in switches(model)], state(model)
    changed = [name for name, value in before.items() if after.get(name) != value]
    require(all(modes), f"the factory of {spec.name!r} took the model out of training mode")
    require(not changed, f"the factory of {spec.name!r} changed the model: {', '.join(changed)}")


def _adapter_spec_checks(
    spec: AdapterSpec, model: Any, x: Any, *, atol: float, module: str, **options: Any
) -> list[Check]:
    nowhere = "" if module and module != "__main__" else "the plugin has no module that can be imported anew"
    made = _made_or_none(spec, model, **options)
    fails = _fails(made)
    checks = [
        bind(the_spec_claims_its_own_model, spec, model),
        bind(the_factory_makes_what_it_promises, spec, model, **options),
        bind(the_factory_leaves_the_model_untouched, spec, model, skipped=fails, **options),
        bind(loading_imports_no_framework, module, skipped=nowhere),
    ]
    if callable(getattr(made, "predict", None)):
        role = options.get("role", "classifier")
        checks += adapter_checks(made, x, role=role, atol=atol, model=model)
    return checks


def _made_checks(spec: Spec, checks: Any, method: str, data: Any, options: dict[str, Any]) -> list[Check]:
    made = _made_or_none(spec, **options)
    found = [bind(the_factory_makes_what_it_promises, spec, method=method, **options)]
    return found + (checks(made, *data) if callable(getattr(made, method, None)) else [])


def _called(spec: Spec, *args: Any, **options: Any) -> Any:
    """What the factory makes if it is given those of the options that it takes, as the core does."""
    options = taken(spec.factory, options)
    try:
        return spec.factory(*args, **options)
    except Exception as error:
        named = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise AssertionError(
            f"the factory of {spec.name!r}, called with ({named}), failed: {type(error).__name__}: {error}"
        ) from error


def _made_or_none(spec: Spec, *args: Any, **options: Any) -> Any:
    """What the factory makes; None if it fails, which is for a check to say."""
    try:
        return _called(spec, *args, **options)
    except AssertionError:
        return None


def _fails(made: Any) -> str:
    return "the factory fails" if made is None else ""


def _offered(plugin: Any, model: Any, *_rest: Any) -> AdapterSpec:
    """The adapter of the plugin for this model: the one that claims it, else its only one."""
    offered = Registry().register(plugin, "plugin").adapters
    fitting = [spec for spec in offered if distance_in_mro(spec, model) is not None]
    if len(fitting or offered) != 1:
        names = ", ".join(spec.name for spec in fitting or offered) or "none"
        raise InputError(f"the plugin offers several adapters, or none, for {type_name(model)}: {names}. Pass a spec.")
    return (fitting or offered)[0]


def _require_data(spec: Spec, data: tuple[Any, ...]) -> None:
    wanted = {AdapterSpec: "model, rows", PrototypeSpec: "z, labels"}
    words = next((text for kind, text in wanted.items() if isinstance(spec, kind)), None)
    words = words or "codes, n_categories, context, labels"
    if len(data) != len(words.split(", ")):
        raise InputError(f"{type(spec).__name__} {spec.name!r} came with {len(data)} items; expected {words}")


def _why_not(claim: str) -> str:
    module = claim.partition(":")[0]
    if module not in sys.modules:
        return f"is no class of an imported module: nothing imported {module!r}"
    return "is no class of that module" if resolve(claim) is None else "is no base class of it"
