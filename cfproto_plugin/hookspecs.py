"""The three hooks a plugin may implement.

A plugin is a module (or object) named by an entry point of the group ``cfproto_plugin``::

    [project.entry-points.cfproto_plugin]
    acme = "acme_cf.plugin"

    # acme_cf/plugin.py
    from cfproto_plugin import AdapterSpec, hookimpl

    @hookimpl
    def cfproto_adapters():
        return [AdapterSpec("acme", claims=("acme.models:Net",), factory=AcmeAdapter)]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from cfproto_plugin.protocols import AdapterSpec, DistanceSpec, PrototypeSpec

PROJECT = "cfproto_plugin"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def cfproto_adapters() -> Iterable[AdapterSpec]:  # type: ignore[empty-body]
    """Return the model adapters this plugin offers. Called on first use; must not import a framework."""


@hookspec
def cfproto_prototypes() -> Iterable[PrototypeSpec]:  # type: ignore[empty-body]
    """Return the prototype providers this plugin offers."""


@hookspec
def cfproto_distances() -> Iterable[DistanceSpec]:  # type: ignore[empty-body]
    """Return the categorical distances this plugin offers."""
