"""Plugins: finding and loading them, deciding which adapter a model belongs to, and what an adapter can do."""

from cfproto_plugin.plugins.capabilities import Adapted, own_copy, space_of
from cfproto_plugin.plugins.claims import adapt, adapted, claimed
from cfproto_plugin.plugins.registry import (
    KINDS,
    Origin,
    PluginReport,
    Registry,
    how_to_block,
    make,
    register,
    registry,
    taken,
    type_name,
    unregister,
)

__all__ = [
    "KINDS",
    "Adapted",
    "Origin",
    "PluginReport",
    "Registry",
    "adapt",
    "adapted",
    "claimed",
    "how_to_block",
    "make",
    "own_copy",
    "register",
    "registry",
    "space_of",
    "taken",
    "type_name",
    "unregister",
]
