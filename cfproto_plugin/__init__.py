"""Counterfactual explanations guided by class prototypes, for any classifier, as a suite of plugins."""

from importlib.metadata import version

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.hookspecs import hookimpl
from cfproto_plugin.plugins import adapt, register, unregister
from cfproto_plugin.protocols import (
    AdapterSpec,
    DistanceSpec,
    GradientAdapter,
    ModelAdapter,
    ModelFile,
    PrototypeSpec,
)

__all__ = [
    "AdapterSpec",
    "CounterfactualExplainer",
    "DistanceSpec",
    "Explanation",
    "Features",
    "GradientAdapter",
    "ModelAdapter",
    "ModelFile",
    "PrototypeSpec",
    "SearchConfig",
    "__version__",
    "adapt",
    "hookimpl",
    "register",
    "unregister",
]

__version__ = version("cfproto-plugin")
