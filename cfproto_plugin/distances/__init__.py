"""How different the categories of a column are: the built-in distances, a plugin like any other."""

from __future__ import annotations

from cfproto_plugin.distances.abdm import ABDM
from cfproto_plugin.distances.binning import bin_context
from cfproto_plugin.distances.mix import Mix
from cfproto_plugin.distances.mvdm import MVDM
from cfproto_plugin.hookspecs import hookimpl
from cfproto_plugin.protocols import DistanceSpec

__all__ = ["ABDM", "MVDM", "Mix", "bin_context", "cfproto_distances"]


@hookimpl
def cfproto_distances() -> list[DistanceSpec]:
    return [DistanceSpec("abdm", ABDM), DistanceSpec("mvdm", MVDM), DistanceSpec("abdm-mvdm", Mix)]
