"""A live what-if in notebooks: sliders for the values of a row, and the user's own model asked again.

`e.what_if()` and `explainer.what_if(x)` call this; anywidget is imported then. Below `explanation` in the order of
imports: it reads the members of the explanation it is given.
"""

from cfproto_plugin.integrations.notebook.widget import what_if

__all__ = ["what_if"]
