"""What an explanation can still ask after `explain`: the user's own model, the training rows, the way to a prototype.

A protocol and plain records. `cfproto_plugin.asking` answers; pictures, pages and contributions ask through here and
know nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import take

if TYPE_CHECKING:
    from cfproto_plugin.protocols import Array

_COMPARED = 16  # lines of a loaded explanation whose probabilities are compared with the model's
_TOLERANCE = 1e-3  # of a probability: another machine and a model that is a little random stay below


class Training(NamedTuple):
    """Training rows in the user's own columns, in the order of the explained rows."""

    rows: Any  # an array (n, *shape), or a pandas frame
    labels: Array  # (n,) the class that the model gives each: its place in `classes`


class Mixed(NamedTuple):
    """What the model says of rows that hold some of the changes of a counterfactual."""

    proba: Array  # (q, k), NaN where the model fails
    raised: str | None  # what it raised last
    label: Array  # (q,) the place in `classes` of what it decides for, -1 where it fails; (0,) if that was not asked


class PrototypePath(NamedTuple):
    """Points on the paper's path from a row to the nearest prototype of a class, the row itself first."""

    t: Array  # (s,) theta / (1 + theta): 0 at the row, 1 at the prototype
    rows: Any  # (s, ...) in the user's own columns and kind
    label: int  # the class of the prototype: its place in `classes`


class Categories(NamedTuple):
    """The categories of a column and the numbers by which the search moves between them."""

    name: str
    column: int | None  # its place in the explained rows; None for a one-hot group
    levels: list[Any]
    places: Array  # (K,) in standard deviations, times the weight of the column
    counts: Array  # (K,) training rows


class Step(NamedTuple):
    """A change that can be made to any row: of the column at that place of the explained rows.

    kind: "at least" and "at most" a value, which rows beyond it have already; "by" an amount; "to" a value.
    """

    column: int
    kind: str
    value: Any


class Outcome(NamedTuple):
    """What actions, each of them some steps, make of rows."""

    labels: Array  # (actions, n) the class that the model decides for: its place in `classes`; -1 where not `kept`
    proba: Array  # (actions, n, k), NaN where not `kept`
    kept: Array  # (actions, n) bool: every rule holds
    moved: Array  # (actions, n) how far in the search, summed over the columns: in standard deviations for tables


class FloorsMet(NamedTuple):
    """Which rows (n,) reach the typicality and stability that answers are asked for, and whether these are rules."""

    met: Array
    is_rule: bool


class Source(Protocol):
    """Answers to what an explanation does not hold. Rows are the user's: an array, or a frame of any library."""

    @property
    def classes(self) -> Array:
        """(k,) the labels, in the order of the probabilities."""
        ...

    @property
    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """The columns of every one-hot group, by their places in the explained rows."""
        ...

    def probabilities(self, rows: Any) -> Array:
        """(n, k) by the model itself, asked as answers are confirmed; an error names the row that it fails for."""
        ...

    def labels(self, rows: Any) -> Array:
        """(n,) the places in `classes` of the classes that the model decides for."""
        ...

    def mixed(self, original: Any, counterfactual: Any, line: Array, taken: Array, *, labels: bool = False) -> Mixed:
        """The probabilities of originals with some cells of their counterfactuals.

        line: (q,) rows of the two. taken: (q, *shape) bool: the cells of the counterfactual; one cell of a one-hot
        group takes all of it. labels: whether the model is asked for its decisions too.
        """
        ...

    def training(self, most: int = 2000) -> Training:
        """At most so many training rows; a class with few of them keeps what it has."""
        ...

    def toward_prototype(self, original: Any, label: int | None = None, points: int = 33) -> PrototypePath:
        """The path of one row to its nearest prototype of a class; by default of any class but its own."""
        ...

    def categories(self, column: Any = None) -> Categories:
        """Those of a column or one-hot group, by name or place; None: of the only one that has categories."""
        ...

    def reconstructed(self, rows: Any) -> Array | None:
        """What the autoencoder makes of rows; None without one."""
        ...

    def outcome(self, original: Any, actions: Sequence[Sequence[Step]]) -> Outcome:
        """What the model itself says of rows after each of the actions, and whether the rules of the call allow it."""
        ...

    def floors(self, original: Any, action: Sequence[Step], labels: Array) -> FloorsMet:
        """Whether rows after an action are as typical of their new classes, labels (n,), and as stable as was asked."""
        ...


def check_source(source: Source, explanation: Any) -> None:
    """Refuse a source that another explanation belongs to: other columns, classes or probabilities."""
    known, named = explanation.classes.tolist(), source.classes.tolist()
    if known != named:
        raise InputError(f"the explainer has the classes {named}; the explanation has {known}: pass its own explainer")
    lines = np.flatnonzero(~np.isnan(explanation.original_proba).any(axis=1))[:_COMPARED]
    if not len(lines):
        return
    said, before = source.probabilities(take(explanation.original, lines)), explanation.original_proba[lines]
    gap = np.abs(said - before).max(axis=1)
    if gap.max() > _TOLERANCE:
        at = int(gap.argmax())
        raise InputError(
            f"row {explanation.row[lines[at]]}: the model of this explainer gives {said[at].round(4).tolist()}; the "
            f"explanation has {before[at].round(4).tolist()}: pass the explainer that made it"
        )
