"""The checks for whatever one has: what `cfproto check` and a parametrized test run."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any, NamedTuple

from cfproto_plugin.errors import InputError
from cfproto_plugin.plugins import adapted, claimed, registry, type_name
from cfproto_plugin.protocols import Role
from cfproto_plugin.testing.adapters import adapter_checks
from cfproto_plugin.testing.distances import distance_checks
from cfproto_plugin.testing.kit import Check
from cfproto_plugin.testing.providers import provider_checks
from cfproto_plugin.testing.specs import Spec, spec_checks

_EXPECTED = """expected one of
  model, rows                                      a model that an installed plugin claims, or an adapter
  provider, z, labels                              a prototype provider, points and their classes 0 to K-1
  distance, codes, n_categories, context, labels   a categorical distance and a table
  spec, ...                                        an AdapterSpec, PrototypeSpec or DistanceSpec and the same data"""


class Examined(NamedTuple):
    """What is looked at, in words, and its checks."""

    what: str
    checks: list[Check]


def checks(subject: Any, *data: Any, role: Role = "classifier", atol: float = 1e-5) -> list[Check]:
    """The checks that apply, for a test of a few lines.

    >>> @pytest.mark.parametrize("check", checks(model, rows), ids=str)
    ... def test_the_plugin_conforms(check):
    ...     check()

    Takes (model, rows), (adapter, rows), (provider, z, labels), (distance, codes, n_categories, context, labels), or a
    spec in place of what it makes. A model is looked up among the installed plugins, as the explainer does.
    """
    return [check for check in examine(subject, *data, role=role, atol=atol).checks if not check.skipped]


def examine(subject: Any, *data: Any, role: Role = "classifier", atol: float = 1e-5) -> Examined:
    """All checks, those that do not apply included, and what they look at."""
    if isinstance(subject, Spec | ModuleType):
        options = {"role": role} if hasattr(subject, "claims") or isinstance(subject, ModuleType) else {}
        name = subject.__name__ if isinstance(subject, ModuleType) else f"{type(subject).__name__} {subject.name!r}"
        return Examined(name, spec_checks(subject, *data, atol=atol, **options))
    if len(data) == 1:
        return _examine_model(subject, data[0], role, atol)
    if callable(getattr(subject, "nearest", None)) and len(data) == 2:  # noqa: PLR2004
        return Examined(f"prototype provider {type(subject).__name__}", provider_checks(subject, *data))
    if callable(subject) and len(data) == 4:  # noqa: PLR2004
        return Examined(f"distance {type(subject).__name__}", distance_checks(subject, *data))
    raise InputError(f"{type_name(subject)} came with {len(data)} items; {_EXPECTED}")


def _examine_model(model: Any, x: Any, role: Role, atol: float) -> Examined:
    claim = None if inspect.isclass(model) else claimed(model, registry())
    if claim is not None:
        report, spec = claim
        what = f"adapter {spec.name!r} of plugin {report} for {type_name(model)}"
        return Examined(what, spec_checks(spec, model, x, role=role, atol=atol, module=report.module))
    if callable(getattr(model, "predict", None)) and not inspect.isclass(model):
        return Examined(f"adapter {type_name(model)}", adapter_checks(model, x, role=role, atol=atol))
    found = adapted(model, role=role)
    checks = adapter_checks(found.adapter, x, role=role, atol=atol, model=model)
    return Examined(f"adapter {found.name!r} for {type_name(model)}", checks)
