"""What the model says about some of the changes of a line: predictions that a report stores.

A line of k changes has 2^k combinations. Up to `ALL` changes every one is predicted, beyond that the row without each
single change. The columns of a one-hot group change together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import CfprotoError, InputError
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.report.data import rounded
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.words import counted, feature_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.records import Record
    from cfproto_plugin.report.source import Mixed, Source

ALL = 8  # changes up to which all combinations are predicted: 256 rows
_CELLS = 10_000_000  # of the rows of one call of the source, so that wide tables stay in memory


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
    said: str


class _Asked(NamedTuple):
    """The rows that are to be predicted for one line."""

    line: int
    switches: tuple[int, ...]
    on: Array  # (rows, switches) bool
    taken: Array  # (rows, columns) bool: cells of the counterfactual


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
    source = explanation._source  # noqa: SLF001 what explain put there
    if not changed:
        return Known(found, "have nothing to switch here: no line changes a column.")
    if source is None or limit == 0:
        why = (
            "was written without the model, as after reading a file" if source is None else "was asked to leave it out"
        )
        return Known(found, f"are left out: this report {why}, so there are no predictions of single changes.")
    chosen = changed[:limit]
    for at in changed[len(chosen) :]:
        why = f"No what-if: predictions are stored for the first {counted(len(chosen), 'line')} with changes only."
        found[at] = Stored("none", why=why)
    asked = [_asked(lines[at], at, source.groups) for at in chosen]
    for part in _parts(asked):
        for each, answer in zip(part, _answers(source, explanation, part), strict=True):
            found[each.line] = answer
    return Known(found, _said(sum(len(each.on) for each in asked), len(chosen), len(changed)))


def _said(rows: int, chosen: int, changed: int) -> str:
    some = "" if chosen == changed else f", for the first {chosen:,} of {changed:,} lines with changes"
    return (
        "undo single changes: see what the model says without them. These are the model's own answers, stored when the "
        f"report was written ({rows:,} rows predicted{some}): every combination of up to {ALL} changes; where there "
        "are more, each change undone by itself."
    )


def _asked(line: Record, at: int, groups: Mapping[str, tuple[int, ...]]) -> _Asked:
    """The combinations of the switches of a line; a switch is a column, or a one-hot group."""
    names = line.column_names or ()
    place_of = {name: place for place, name in enumerate(names)}
    places = [place_of[feature_name(change)] for change in ranked(line)]
    group_of = {place: (name, *group) for name, group in groups.items() for place in group}
    keys = [group_of.get(place, place) for place in places]
    order = list(dict.fromkeys(keys))
    switches = tuple(order.index(key) for key in keys)
    k = len(order)
    on = np.arange(2**k)[:, None] >> np.arange(k) & 1 == 1 if k <= ALL else ~np.eye(k, dtype=bool)
    taken = np.zeros((len(on), len(names)), dtype=bool)
    taken[:, places] = on[:, switches]
    return _Asked(at, switches, on, taken)


def _parts(asked: Sequence[_Asked]) -> Iterator[list[_Asked]]:
    """Lines whose rows fit into one call."""
    part: list[_Asked] = []
    for each in asked:
        if part and sum(one.taken.size for one in part) + each.taken.size > _CELLS:
            yield part
            part = []
        part.append(each)
    yield part


def _answers(source: Source, explanation: Explanation, part: Sequence[_Asked]) -> list[Stored]:
    """What the model says about the rows of these lines."""
    lines = np.array([each.line for each in part])
    before, after = (take(x, lines) for x in (explanation.original, explanation.counterfactual))
    line = np.repeat(np.arange(len(part)), [len(each.on) for each in part])
    try:
        mixed = source.mixed(before, after, line, np.concatenate([each.taken for each in part]), labels=True)
    except CfprotoError as error:
        return [Stored("none", why=f"No what-if: {error}") for _ in part]
    new = [
        [label == new for label in explanation.classes].index(True) for new in explanation.counterfactual_class[lines]
    ]
    return [_answer(each, mixed, np.flatnonzero(line == at), new[at]) for at, each in enumerate(part)]


def _answer(asked: _Asked, mixed: Mixed, rows: Array, new: int) -> Stored:
    proba, labels = mixed.proba[rows, new], mixed.label[rows]
    if not np.isfinite(proba).all() or (labels < 0).any():
        raised = f", which raised {mixed.raised}" if mixed.raised else ""
        return Stored("none", why=f"No what-if: the model does not answer every combination of these changes{raised}.")
    kind = "subsets" if len(asked.on[0]) <= ALL else "single"
    return Stored(kind, asked.switches, tuple(map(rounded, proba.tolist())), tuple(labels.tolist()))
