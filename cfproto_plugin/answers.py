"""A frozen record of arrays, one line per counterfactual: it can be sliced, and says which cells differ.

pandas is imported only where the rows came as a data frame, of any kind.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from cfproto_plugin.arguments import lines_of
from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import cells_of, library_of, take, to_pandas
from cfproto_plugin.helpers.native import Kind
from cfproto_plugin.report.words import number_dtypes, plain_cell
from cfproto_plugin.tables.cells import is_missing, key_of
from cfproto_plugin.tables.geometry import changed, diversity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Source

# one for all lines; the others have n entries
_SHARED = ("classes", "class_names", "feature_names", "deviations", "meta", "_source")
_UNKNOWN: Any = None  # stands for one missing value per line; older JSON lacks some fields


class Change(NamedTuple):
    """One cell that differs: `row` is the row of x, `feature` the name of the column or the index of the pixel.

    needed_for: "class", or what else the change is there for; "" where that is not known. `Answers` names them.
    """

    row: int
    feature: str | tuple[int, ...]
    before: Any
    after: Any
    needed_for: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Counterfactuals and how they were found, one line each; line i of every field belongs together.

    original, counterfactual: in the user's own type; a row of missing values where there is no counterfactual.
    status: "found", "fallback", "not_found", "infeasible", or "error" for a row that cannot be read or predicted;
        message says why in words. The original of such a row is the user's own, and it has no original_class.
    original_class, counterfactual_class, prototype_class: labels; None where there is none.
    distance: (n,) beta·L1 + L2 in search space. margin: (n,) the probability of the new class minus the largest other
        one. objective: (n,) what was minimised: the distance, few_changes for every change and theta·L_proto. NaN where
        there is no counterfactual.
    lower_bound: (n,) with SearchConfig(certify=...): no admissible counterfactual has a smaller objective; infinite if
        there is none at all. gap: (n,) (objective - lower_bound) / objective, 0 if the answer is proved to be the best.
        NaN without certify, and the gap where there is no counterfactual.
    typicality: (n,) the share of the new class's training rows that are at least as isolated among their like as the
        counterfactual is among them. stability: (n,) the share of its copies with noise that keep the class. NaN where
        that is not measured: images, encoders, rows returned unchanged, and when the time budget is spent.
    needed_for: (n, columns) what the change of a column is needed for: "class"; or else the model gives the new class
        even without all such changes together, and what is lost without it is "typicality", "stability", "probability"
        or a "rule" that was asked for, "difference" from the other answers of the row, or "prototype", closeness to the
        class by theta. "" where nothing changes, and where it was not tried: without polishing, and when the
        time budget is spent; (n, 0) for images.
    how: (n,) a `How` record of how each counterfactual was found; None where there is none.
    original_proba, counterfactual_proba: (n, k), columns in the order of `classes`.
    n_steps, seconds: the gradient steps as the paper counts them, and the time of the line.
    row: the row of x that the line belongs to.
    class_names: names for `classes` that texts, reports and pictures show; None where they have none of their own.
    deviations: (columns,) standard deviations of the training data, NaN for categories; None for images.

    Arrays are read-only. DataFrames are not, but they are copies: writing into them does not reach the user's rows.
    """

    original: Any
    counterfactual: Any
    status: Array
    message: Array
    original_class: Array
    counterfactual_class: Array
    prototype_class: Array
    distance: Array = field(default=_UNKNOWN, kw_only=True)
    margin: Array = field(default=_UNKNOWN, kw_only=True)
    objective: Array = field(default=_UNKNOWN, kw_only=True)
    lower_bound: Array = field(default=_UNKNOWN, kw_only=True)
    gap: Array = field(default=_UNKNOWN, kw_only=True)
    typicality: Array = field(default=_UNKNOWN, kw_only=True)
    stability: Array = field(default=_UNKNOWN, kw_only=True)
    needed_for: Array = field(default=_UNKNOWN, kw_only=True)
    how: Array = field(default=_UNKNOWN, kw_only=True)
    original_proba: Array
    counterfactual_proba: Array
    classes: Array
    class_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    n_steps: Array
    seconds: Array
    row: Array
    feature_names: tuple[str, ...] | None
    deviations: Array | None = field(default=None, kw_only=True)
    meta: dict[str, Any]
    _source: Source | None = field(default=None, kw_only=True)  # neither in JSON nor in pickles

    def __post_init__(self) -> None:
        n, own = len(self.original), vars(self)
        numbers = ("distance", "margin", "objective", "lower_bound", "gap", "typicality", "stability")
        for name, given in own.items():
            value = given
            if given is None and name in numbers:
                value = np.full(n, math.nan)
            elif given is None and name == "how":
                value = np.full(n, None)
            elif given is None and name == "needed_for":
                value = np.full((n, len(self.column_names or ())), "", dtype="U11")
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            own[name] = value
        lengths = {name: len(value) for name, value in own.items() if name not in _SHARED}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the fields of an Explanation differ in length: {lengths}")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_source": None}

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        own = [f.name for f in fields(self) if f.name != "_source"]
        return replace(self, **{name: copy.deepcopy(getattr(self, name), memo) for name in own})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # a pickle does not keep that arrays are read-only

    def __len__(self) -> int:
        return len(self.original)

    def __getitem__(self, index: Any) -> Self:
        """Lines by number, slice, list or boolean mask. The result is an Explanation, for one number too."""
        lines = lines_of(index, len(self), lambda: self.index_labels)
        chosen = {f.name: take(getattr(self, f.name), lines) for f in fields(self) if f.name not in _SHARED}
        return replace(self, **chosen)

    def __iter__(self) -> Iterator[Self]:
        return (self[line] for line in range(len(self)))

    @property
    def found(self) -> Array:
        """(n,) bool: the lines that have a counterfactual, from the search or from the fallback."""
        return np.isin(self.status, ("found", "fallback"))

    @property
    def is_changed(self) -> Array:
        """(n, *shape) bool: the cells that differ, in lines that have a counterfactual."""
        lines = np.flatnonzero(self.found)
        differ = np.zeros(np.shape(self.original), dtype=bool)
        before, after = (to_pandas(take(x, lines)) for x in (self.original, self.counterfactual))
        told_apart = _holds_objects(before) & _holds_objects(after)  # None and NaN, which only objects can be
        differ[lines] = changed(_comparable(after, told_apart), _comparable(before, told_apart))
        return differ

    @property
    def n_changes(self) -> Array:
        """(n,) int: how many cells differ; 0 where there is no counterfactual."""
        differ = self.is_changed
        return np.asarray(differ.sum(axis=tuple(range(1, differ.ndim))))

    @property
    def diversity(self) -> Array:
        """(n,) how different a counterfactual is from the others of its row, from 0 to 1; NaN where there is no other.

        The mean over the others of the share of changed columns that the two do not have in common: 0 if they change
        the same columns, to other values; 1 if they have none in common.
        """
        differ = self.is_changed
        return diversity(differ.reshape(len(self), math.prod(differ.shape[1:])), self.row)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns: x0, x1, ... where the user gave none; None if a row is not a vector."""
        shape = np.shape(self.original)[1:]
        if len(shape) != 1:
            return None
        return self.feature_names or tuple(f"x{j}" for j in range(shape[0]))

    @property
    def index_labels(self) -> tuple[str, ...]:
        """The labels of the lines in the index of their pandas frame, as texts.

        Empty without an index, and where they are the positions `row`.
        """
        index = getattr(self.original, "index", None)
        if index is None or callable(index):
            return ()
        labels = tuple(map(str, index))
        return () if labels == tuple(map(str, self.row.tolist())) else labels

    @property
    def new_class_proba(self) -> tuple[Array, Array]:
        """(n,) each: the probability of the counterfactual's class before and after, NaN where there is none."""
        chosen = self.is_new_class()
        probas = (self.original_proba, self.counterfactual_proba)
        before, after = (
            np.where(chosen.any(axis=1), np.where(chosen, proba, 0).sum(axis=1), math.nan) for proba in probas
        )
        return before, after

    def class_name(self, label: Any) -> str:
        """The name of a class by its label; the label itself as a text where `class_names` has none."""
        known = zip(self.classes, self.class_names or (), strict=False)
        return next((name for each, name in known if each == label), str(label))

    def is_new_class(self) -> Array:
        """(n, k) bool: the class of the counterfactual among `classes`; none of them where there is none."""
        is_new = [[new == label for label in self.classes] for new in self.counterfactual_class]
        return np.array(is_new, dtype=bool).reshape(len(self), len(self.classes))

    def raise_for_status(self) -> Self:
        """Raise an InputError for the first line with status "error"; return self if there is none."""
        lines = np.flatnonzero(self.status == "error")
        if len(lines):
            row, message = int(self.row[lines[0]]), str(self.message[lines[0]])
            others = len(set(self.row[lines].tolist())) - 1
            more = f" ({others} more with status error)" if others else ""
            raise InputError(message + more if message.startswith("row ") else f"row {row}: {message}{more}", row=row)
        return self

    @property
    def delta(self) -> Any:
        """Counterfactual minus original: the numeric columns of a data frame; NaN where a cell is no number."""
        if library_of(self.original) is not None:
            before, after = to_pandas(self.original), to_pandas(self.counterfactual)
            numeric = [getattr(dtype, "kind", "O") in "iuf" for dtype in before.dtypes]
            return self.in_own_kind(_signed_frame(after.loc[:, numeric]) - _signed_frame(before.loc[:, numeric]))
        return _signed(self.counterfactual) - _signed(self.original)

    def in_own_kind(self, frame: Any) -> Any:
        """A pandas frame in the kind of the rows."""
        kind = Kind.of(self.original)
        if kind is None:
            return frame
        types = dict(zip(self.column_names or (), kind.types, strict=True))
        sides = {f"{name}_{side}": each for name, each in types.items() for side in ("before", "after")}
        return kind.frame(frame, [sides.get(name) for name in frame.columns])

    def changes(self) -> list[Change]:
        """Every cell that differs, line by line in the order of the features. Two missing values do not differ.

        A float32 is given as its shortest decimal, which is the same float32 again.
        """
        before, after, names = cells_of(self.original), cells_of(self.counterfactual), self.column_names
        dtypes = number_dtypes(self.original)

        def change(at: tuple[int, ...]) -> Change:
            dtype = dtypes[at[1]] if dtypes else None
            feature = at[1:] if names is None else names[at[1]]
            why = "" if names is None else str(self.needed_for[at])
            return Change(
                int(self.row[at[0]]), feature, plain_cell(before[at], dtype), plain_cell(after[at], dtype), why
            )

        return [change(tuple(at)) for at in np.argwhere(self.is_changed).tolist()]


def _holds_objects(x: Any) -> Array:
    """(columns,) bool for a pandas frame, () for an array."""
    dtypes = x.dtypes if library_of(x) is not None else x.dtype
    return np.asarray(dtypes == np.dtype(object))


def _comparable(x: Any, told_apart: Array) -> Array:
    """(n, *shape) cells. What stands for a missing object equals itself, which NaN and NA do not.

    told_apart: () or (columns,) bool: None and NaN are two values.
    """
    cells = cells_of(x)
    if cells.dtype != object:
        return cells
    keys = np.empty(cells.size, dtype=object)
    for at, (cell, apart) in enumerate(zip(cells.ravel(), np.broadcast_to(told_apart, cells.shape).flat, strict=True)):
        keys[at] = key_of(None if not apart and is_missing(cell) else cell)
    return keys.reshape(cells.shape)


def _signed(x: Array) -> Array:
    """Numbers that can be subtracted: unsigned integers would wrap around, objects may hold anything."""
    if x.dtype.kind in "OUS":
        numbers = [float(v) if isinstance(v, (int, float, np.number)) else math.nan for v in x.ravel()]
        return np.array(numbers, dtype=float).reshape(x.shape)
    return np.asarray(x, dtype=np.int64 if x.dtype.kind in "ub" else x.dtype)


def _signed_frame(frame: Any) -> Any:
    """Likewise for the columns of a pandas frame."""
    unsigned = {name: dtype for name, dtype in frame.dtypes.items() if dtype.kind == "u"}
    return frame.astype({name: "int64" if isinstance(d, np.dtype) else "Int64" for name, d in unsigned.items()})
