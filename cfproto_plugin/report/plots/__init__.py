"""Pictures of explanations with matplotlib: `Explanation.plot` picks one."""

from cfproto_plugin.report.plots.choice import KINDS, plot

__all__ = ["KINDS", "plot"]
