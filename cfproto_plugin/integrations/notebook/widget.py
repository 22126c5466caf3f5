"""The widget: what the browser sends is a row, what it gets back is what the model says about it."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, InputError, MissingPackageError
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.integrations.notebook.controls import Control, controls_of, row_with
from cfproto_plugin.report.texts import asset


def what_if(explanation: Any, line: int = 0, features: Any = None) -> Any:
    """A widget for one line of an explanation: its changed features, and others by name or "all"."""
    chosen = explanation[line]
    if len(chosen) != 1:
        raise InputError(f"line is {line!r}, which are {len(chosen)} lines; expected the number of one")
    if chosen.original_class[0] is None:
        raise InputError(f"row {chosen.row[0]} was not explained: {chosen.message[0]}")
    return _widget_class()(chosen, controls_of(chosen, features))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _widget_class() -> Any:
    """The class, made when it is first used: its base comes from anywidget."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MissingPackageError(
            "this needs anywidget, which is not installed: pip install 'cfproto-plugin[notebook]'"
        ) from error

    class WhatIf(anywidget.AnyWidget):
        """Sliders for the features of a row, and the model's answer.

        asked: the question of the browser, {"number": n, "values": one per control}. result: the answer to question
        `number`: the class, whether it is another than the row's own, the probability of the new class, or an error.
        """

        _esm = asset("dom.js") + _text("what_if.js")
        _css = _text("what_if.css")
        controls: Any = traitlets.List().tag(sync=True)
        about: Any = traitlets.Dict().tag(sync=True)
        asked: Any = traitlets.Dict().tag(sync=True)
        result: Any = traitlets.Dict().tag(sync=True)

        def __init__(self, line: Any, controls: list[Control]) -> None:
            self._line, self._controls = line, controls
            new = line.counterfactual_class[0] if line.found[0] else line.original_class[0]
            self._new = [label == new for label in line.classes].index(True)
            super().__init__(
                controls=[control.as_data() for control in controls],
                about={
                    "row": f"Row {line.row[0]}",
                    "from": line.class_name(line.original_class[0]),
                    "to": line.class_name(new),
                    "before": float(line.original_proba[0, self._new]),
                },
            )
            self.asked = {"number": 0, "values": [control.shown(control.after) for control in controls]}

        @traitlets.observe("asked")
        def _on_asked(self, _change: Any) -> None:
            number = self.asked.get("number")
            try:
                self.result = {"number": number, "error": "", **self._answer(self.asked.get("values"))}
            except CfprotoError as error:
                self.result = {"number": number, "error": str(error)}

        def _answer(self, sent: Any) -> dict[str, Any]:
            """What the model says about the row with these values."""
            if not isinstance(sent, list) or len(sent) != len(self._controls):
                raise InputError(f"values are {sent!r}; expected {len(self._controls)} of them")
            line = self._line
            values = [control.read(value) for control, value in zip(self._controls, sent, strict=True)]
            row = row_with(take(line.original, slice(0, 1)), self._controls, values, line.column_names)
            proba, label = line.source.probabilities(row)[0], int(line.source.labels(row)[0])
            return {
                "label": line.class_name(line.classes[label]),
                "other": bool(line.classes[label] != line.original_class[0]),
                "proba": float(np.asarray(proba)[self._new]),
            }

    return WhatIf
