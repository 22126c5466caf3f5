"""Counterfactual explanations guided by class prototypes, for any classifier, as a suite of plugins."""

from cfproto_plugin.hookspecs import hookimpl
from cfproto_plugin.plugins import register, unregister
from cfproto_plugin.protocols import (
    AdapterSpec,
    DistanceSpec,
    GradientAdapter,
    ModelAdapter,
    PrototypeSpec,
)

__all__ = [
    "AdapterSpec",
    "DistanceSpec",
    "GradientAdapter",
    "ModelAdapter",
    "PrototypeSpec",
    "hookimpl",
    "register",
    "unregister",
]
