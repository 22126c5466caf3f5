"""Plugins: finding and loading them, deciding which adapter a model belongs to, and what an adapter can do."""

from cfproto_plugin.plugins.registry import (
    KINDS,
    PluginReport,
    Registry,
    how_to_block,
    make,
    register,
    registry,
    type_name,
    unregister,
)

__all__ = [
    "KINDS",
    "PluginReport",
    "Registry",
    "how_to_block",
    "make",
    "register",
    "registry",
    "type_name",
    "unregister",
]
