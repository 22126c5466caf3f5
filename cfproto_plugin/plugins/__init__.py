"""Plugins: finding and loading them, deciding which adapter a model belongs to, and what an adapter can do."""

from cfproto_plugin.plugins.answers import (
    category_distances,
    checked_labels,
    checked_proba,
    checked_vjp,
    fitted_provider,
    nearest_prototypes,
)
from cfproto_plugin.plugins.capabilities import Adapted, of_any_size, own_copy, space_of
from cfproto_plugin.plugins.claims import adapt, adapted, claimed
from cfproto_plugin.plugins.factories import Origin, make, taken, type_name
from cfproto_plugin.plugins.members import wrong
from cfproto_plugin.plugins.registry import PluginReport, Registry, how_to_block, register, registry, unregister
from cfproto_plugin.plugins.specs import KINDS

__all__ = [
    "KINDS",
    "Adapted",
    "Origin",
    "PluginReport",
    "Registry",
    "adapt",
    "adapted",
    "category_distances",
    "checked_labels",
    "checked_proba",
    "checked_vjp",
    "claimed",
    "fitted_provider",
    "how_to_block",
    "make",
    "nearest_prototypes",
    "of_any_size",
    "own_copy",
    "register",
    "registry",
    "space_of",
    "taken",
    "type_name",
    "unregister",
    "wrong",
]
