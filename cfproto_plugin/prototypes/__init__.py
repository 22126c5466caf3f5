"""The built-in prototype providers, a plugin like any other."""

from __future__ import annotations

from cfproto_plugin.hookspecs import hookimpl
from cfproto_plugin.protocols import PrototypeSpec
from cfproto_plugin.prototypes.encoder import EncoderPrototypes
from cfproto_plugin.prototypes.kdtree import KDTreePrototypes


@hookimpl
def cfproto_prototypes() -> list[PrototypeSpec]:
    return [PrototypeSpec("kdtree", KDTreePrototypes), PrototypeSpec("encoder", EncoderPrototypes)]
