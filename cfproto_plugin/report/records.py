"""The lines of an explanation as light records: a slice of the explanation for each would look at every cell again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.report.words import number_dtypes, plain_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array


class Line(Protocol):
    """What sentences and rankings read of one line: an Explanation of length one, or a `Record`."""

    @property
    def original(self) -> Any: ...
    @property
    def row(self) -> Array: ...
    @property
    def status(self) -> Array: ...
    @property
    def message(self) -> Array: ...
    @property
    def original_class(self) -> Array: ...
    @property
    def counterfactual_class(self) -> Array: ...
    @property
    def typicality(self) -> Array: ...
    @property
    def stability(self) -> Array: ...
    @property
    def found(self) -> Array: ...
    @property
    def n_changes(self) -> Array: ...
    @property
    def new_class_proba(self) -> tuple[Array, Array]: ...
    @property
    def column_names(self) -> tuple[str, ...] | None: ...
    @property
    def deviations(self) -> Array | None: ...
    @property
    def meta(self) -> dict[str, Any]: ...
    @property
    def how(self) -> Array: ...
    @property
    def index_labels(self) -> tuple[str, ...]: ...
    def changes(self) -> Sequence[Change]: ...
    def class_name(self, label: Any) -> str: ...


class Record(NamedTuple):
    """One line; arrays have the shape (1,), pictures (1, *shape), and a frame is left out of original."""

    row: Array
    status: Array
    message: Array
    original_class: Array
    counterfactual_class: Array
    distance: Array
    typicality: Array
    stability: Array
    how: Array
    found: Array
    n_changes: Array
    new_class_proba: tuple[Array, Array]
    column_names: tuple[str, ...] | None
    deviations: Array | None
    meta: dict[str, Any]
    original: Any
    counterfactual: Any
    label: str  # of the row in the index of its frame; "" where there is none
    cells: Sequence[Any]  # the row's own values; empty if it is no vector
    own_changes: Sequence[Change]
    class_names: Callable[[Any], str]  # by label

    @property
    def index_labels(self) -> tuple[str, ...]:
        return () if self.label in {"", str(self.row[0])} else (self.label,)

    def changes(self) -> Sequence[Change]:
        return self.own_changes

    def class_name(self, label: Any) -> str:
        return self.class_names(label)


_SLICED = (
    "row",
    "status",
    "message",
    "original_class",
    "counterfactual_class",
    "distance",
    "typicality",
    "stability",
    "how",
)


def records(explanation: Explanation) -> list[Record]:
    """Every line of the explanation as a `Record`."""
    names, counts = explanation.column_names, explanation.n_changes
    changes, ends = explanation.changes(), np.cumsum(counts)
    found, (before, after) = explanation.found, explanation.new_class_proba
    index = getattr(explanation.original, "index", None)
    cells = [] if names is None else _plain_cells(explanation.original)
    sides = [x if names is None else None for x in (explanation.original, explanation.counterfactual)]

    def record(at: int) -> Record:
        here = slice(at, at + 1)
        return Record(
            **{name: getattr(explanation, name)[here] for name in _SLICED},
            found=found[here],
            n_changes=counts[here],
            new_class_proba=(before[here], after[here]),
            column_names=names,
            deviations=explanation.deviations,
            meta=explanation.meta,
            original=None if sides[0] is None else sides[0][here],
            counterfactual=None if sides[1] is None else sides[1][here],
            label="" if index is None or callable(index) else str(index[at]),
            cells=cells[at] if cells else (),
            own_changes=changes[ends[at] - counts[at] : ends[at]],
            class_names=explanation.class_name,
        )

    return [record(at) for at in range(len(explanation))]


def _plain_cells(original: Any) -> list[list[Any]]:
    """Every cell of a table as a plain Python object, one list per row."""
    cells = cells_of(original)
    dtypes = number_dtypes(original) or [None] * cells.shape[1]
    return [[plain_cell(cell, dtype) for cell, dtype in zip(row, dtypes, strict=True)] for row in cells]
