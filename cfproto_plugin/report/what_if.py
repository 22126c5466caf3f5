"""What the model says about some of the changes of a line: predictions that a report stores.

A line of k changes has 2^k combinations. Up to `ALL` changes every one is predicted, beyond that the row without each
single change. The columns of a one-hot group change together.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import CfprotoError, InputError
from cfproto_plugin.report.data import rounded
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.subsets import MOST_EXACT, subsets
from cfproto_plugin.report.words import counted, feature_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.records import Record
    from cfproto_plugin.report.subsets import Subsets

ALL = MOST_EXACT


class Stored(NamedTuple):
    """The model's answers about the changes of one line.

    kind: "subsets" for every combination, by the number whose bits are the switches that are on; "single" for the row
    without each single one; "none" if there are no predictions, and why.
    """

    kind: str
    switches: tuple[int, ...] = ()  # of every change, in the order in which they are shown
    proba: tuple[float, ...] = ()  # of the new class
    labels: tuple[int, ...] = ()  # columns of `classes`
    why: str = ""

    def as_data(self) -> dict[str, Any]:
        if self.kind == "none":
            return {"kind": self.kind, "why": self.why}
        return {"kind": self.kind, "switches": self.switches, "proba": self.proba, "class": self.labels}


class Known(NamedTuple):
    """The stored answers of a report, and what they cost, in words."""

    lines: list[Stored | None]  # None where nothing changes, and for pictures
    said: str  # "" where there is nothing to switch


def checked_limit(what_if: Any) -> int | None:
    """How many lines get predictions: None for all."""
    if isinstance(what_if, (bool, np.bool_)):
        return None if what_if else 0
    if not isinstance(what_if, (int, np.integer)) or what_if < 0:
        raise InputError(
            f"what_if is {shown(what_if)}; expected True, False, or the largest number of lines that predictions are "
            "stored for"
        )
    return int(what_if)


def stored_for(explanation: Explanation, lines: Sequence[Record], limit: int | None) -> Known:
    """Ask the model about the changes of the first `limit` lines that have any."""
    changed = [at for at, line in enumerate(lines) if line.n_changes[0] and line.column_names is not None]
    found: list[Stored | None] = [None] * len(lines)
    has_model = explanation._source is not None  # noqa: SLF001 `source` would raise
    if not changed:
        return Known(found, "")
    if not has_model or limit == 0:
        why = "was asked to omit them" if has_model else "was written without the model, as after a file"
        return Known(found, f"are left out: this report {why}, so there are no predictions of single changes.")
    chosen = changed[:limit]
    for at in changed[len(chosen) :]:
        found[at] = Stored("none", why=f"No what-if: it was stored for the first {counted(len(chosen), 'row')} only.")
    try:
        known = subsets(explanation[chosen], ALL, labels=True)
    except CfprotoError as error:
        return Known(found, f"are left out: {escape(str(error))}")
    for at, each in zip(chosen, known, strict=True):
        found[at] = _stored(lines[at], each, explanation.classes)
    asked = sum(len(each.masks) - 2 for each in known)
    return Known(found, _said(asked, len(chosen), len(changed)))


def _said(rows: int, chosen: int, changed: int) -> str:
    some = "" if chosen == changed else f", for the first {chosen:,} of {changed:,} rows with changes"
    return (
        "undo single changes: see what the model says without them. These are the model's own answers, stored when the "
        f"report was written ({rows:,} rows predicted{some}): every combination of up to {ALL} changes; where there "
        "are more, each change undone by itself."
    )


def _stored(line: Record, known: Subsets, classes: Array) -> Stored:
    """What is known of a line, with a switch for every feature that changes."""
    new = [label == line.counterfactual_class[0] for label in classes].index(True)
    single = len(known.features) > ALL
    rows = slice(2, None) if single else slice(None)  # none and all of the changes come first
    proba = known.proba[rows, new]
    label = np.full(len(proba), -1) if known.label is None else known.label[rows]
    if not np.isfinite(proba).all() or (label < 0).any():
        raised = f", which raised {known.raised}" if known.raised else ""
        return Stored("none", why=f"No what-if: the model does not answer every combination of these changes{raised}.")
    switch_of = {place: switch for switch, feature in enumerate(known.features) for place in feature.places}
    places = {name: place for place, name in enumerate(line.column_names or ())}
    switches = tuple(switch_of[places[feature_name(change)]] for change in ranked(line))
    return Stored(
        "single" if single else "subsets", switches, tuple(map(rounded, proba.tolist())), tuple(label.tolist())
    )
