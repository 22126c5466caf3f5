"""The result of `explain`: a frozen record of arrays that can be sliced, tabulated, printed and written as JSON.

pandas is imported only where the rows came as a data frame, of any kind, or a frame is asked for.
"""

from __future__ import annotations

import copy
import json
import math
import os
import shutil
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from cfproto_plugin.arguments import lines_of
from cfproto_plugin.errors import InputError
from cfproto_plugin.files.exact_json import as_lists, decode, encode
from cfproto_plugin.files.schemas import explanation_schema
from cfproto_plugin.helpers.kinds import cells_of, library_of, load_pandas, take, to_pandas
from cfproto_plugin.helpers.native import Kind
from cfproto_plugin.integrations.notebook import what_if
from cfproto_plugin.integrations.shap import as_shap
from cfproto_plugin.report import as_html, as_sentence, as_text, number_dtypes, plain_cell
from cfproto_plugin.report.cohorts import Actions, Summary, found_actions, summarised
from cfproto_plugin.report.contributions import ORDERS, Contribution, as_records, contributions_of
from cfproto_plugin.report.document import report_html, write_report
from cfproto_plugin.report.source import check_source
from cfproto_plugin.tables.cells import is_missing, key_of
from cfproto_plugin.tables.geometry import changed, diversity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cfproto_plugin.features import Features
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Source

FORMAT = "cfproto-explanation/1"
_SHARED = ("classes", "feature_names", "deviations", "meta", "_source")  # one for all lines; the others have n entries
_UNKNOWN: Any = None  # stands for one missing value per line; older JSON lacks some fields


class Change(NamedTuple):
    """One cell that differs: `row` is the row of x, `feature` the name of the column or the index of the pixel."""

    row: int
    feature: str | tuple[int, ...]
    before: Any
    after: Any


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
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
    how: (n,) a `How` record of how each counterfactual was found; None where there is none.
    original_proba, counterfactual_proba: (n, k), columns in the order of `classes`.
    n_steps, seconds: the gradient steps as the paper counts them, and the time of the line.
    row: the row of x that the line belongs to.
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
    how: Array = field(default=_UNKNOWN, kw_only=True)
    original_proba: Array
    counterfactual_proba: Array
    classes: Array
    n_steps: Array
    seconds: Array
    row: Array
    feature_names: tuple[str, ...] | None
    deviations: Array | None = field(default=None, kw_only=True)
    meta: dict[str, Any]
    _source: Source | None = field(default=None, kw_only=True)  # neither in JSON nor in pickles

    def __post_init__(self) -> None:
        n = len(self.original)
        numbers = ("distance", "margin", "objective", "lower_bound", "gap", "typicality", "stability")
        unknown = {**{name: np.full(n, math.nan) for name in numbers}, "how": np.full(n, None)}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.name in unknown:
                value = unknown[each.name]
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, each.name, value)
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self) if f.name not in _SHARED}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the fields of an Explanation differ in length: {lengths}")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_source": None}

    def __copy__(self) -> Explanation:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Explanation:
        own = [f.name for f in fields(self) if f.name != "_source"]
        return replace(self, **{name: copy.deepcopy(getattr(self, name), memo) for name in own})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # a pickle does not keep that arrays are read-only

    def __len__(self) -> int:
        return len(self.original)

    def __getitem__(self, index: Any) -> Explanation:
        """Lines by number, slice, list or boolean mask. The result is an Explanation, for one number too."""
        lines = lines_of(index, len(self))
        chosen = {f.name: take(getattr(self, f.name), lines) for f in fields(self) if f.name not in _SHARED}
        return replace(self, **chosen)

    def __iter__(self) -> Iterator[Explanation]:
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
    def new_class_proba(self) -> tuple[Array, Array]:
        """(n,) each: the probability of the counterfactual's class before and after, NaN where there is none."""
        chosen = self.is_new_class()
        probas = (self.original_proba, self.counterfactual_proba)
        before, after = (
            np.where(chosen.any(axis=1), np.where(chosen, proba, 0).sum(axis=1), math.nan) for proba in probas
        )
        return before, after

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
            return self._native(_signed_frame(after.loc[:, numeric]) - _signed_frame(before.loc[:, numeric]))
        return _signed(self.counterfactual) - _signed(self.original)

    def changes(self) -> list[Change]:
        """Every cell that differs, line by line in the order of the features. Two missing values do not differ.

        A float32 is given as its shortest decimal, which is the same float32 again.
        """
        before, after, names = cells_of(self.original), cells_of(self.counterfactual), self.column_names
        dtypes = number_dtypes(self.original)

        def change(at: tuple[int, ...]) -> Change:
            dtype = dtypes[at[1]] if dtypes else None
            feature = at[1:] if names is None else names[at[1]]
            return Change(int(self.row[at[0]]), feature, plain_cell(before[at], dtype), plain_cell(after[at], dtype))

        return [change(tuple(at)) for at in np.argwhere(self.is_changed).tolist()]

    def changes_frame(self) -> Any:
        """`changes` as a pandas DataFrame with the columns row, feature, before and after."""
        return load_pandas().DataFrame(self.changes(), columns=list(Change._fields))

    def contributions(self, samples: int = ORDERS, seed: int = 0) -> list[Contribution]:
        """What each change adds to the probability of the new class, line by line in the order of the features.

        Shapley values over the changed features: what a change adds, averaged over all orders in which the changes can
        be made. Those of a line add up to the difference of `new_class_proba`. A one-hot group is one feature. Up to 8
        changes they are exact, from all subsets of the changes; beyond that from `samples` random orders drawn by
        `seed`, with their standard error. NaN in a line where the model fails for some changes without the others.
        """
        return as_records(self, contributions_of(self, samples, seed))

    def contributions_frame(self, samples: int = ORDERS, seed: int = 0) -> Any:
        """`contributions` as a pandas DataFrame with the columns of `Contribution`."""
        return load_pandas().DataFrame(self.contributions(samples, seed), columns=list(Contribution._fields))

    def to_shap(self, values: str = "contributions", *, samples: int = ORDERS, seed: int = 0) -> Any:
        """A `shap.Explanation` that SHAP's own plots draw, one line each.

        values: "contributions", from the probability of the new class at the original (base_values) to that at the
        counterfactual, or "delta", counterfactual minus original, 1 for a changed category or a missing cell that was
        filled. Lines without a counterfactual are zeros. data holds the originals as numbers, display_data as they are;
        of a single line it tells what changes. samples, seed: as in `contributions`.
        """
        return as_shap(self, values, samples, seed)

    def as_background(self) -> Any:
        """The counterfactuals as background data of a SHAP explainer: an array, or a pandas frame with the dtypes of x.

        Only lines that have one. SHAP values then tell how a row differs from the rows that the model decides
        otherwise about.
        """
        lines = np.flatnonzero(self.found)
        if not len(lines):
            raise InputError("no line has a counterfactual, and so there is no background")
        rows, original = (to_pandas(take(x, lines)) for x in (self.counterfactual, self.original))
        if library_of(original) is None:
            return rows.astype(original.dtype) if original.dtype.kind in "iufb" else rows
        numbers = {name: d for name, d in original.dtypes.items() if isinstance(d, np.dtype) and d.kind in "iufb"}
        return rows.astype(numbers)

    def to_frame(self) -> Any:
        """One line per counterfactual, as a frame of the kind of x and with its index; for arrays a pandas DataFrame.

        The probabilities are those of the new class, before and after. Tables add `<feature>_before` and
        `<feature>_after` for every feature, side by side; images do not.
        """
        before, after = self.new_class_proba
        summary = {
            "row": self.row,
            "status": self.status,
            "original_class": self.original_class,
            "counterfactual_class": self.counterfactual_class,
            "proba_before": before,
            "proba_after": after,
            "n_changes": self.n_changes,
            "distance": self.distance,
            "typicality": self.typicality,
            "stability": self.stability,
            **self._certified(),
            "message": self.message,
        }
        pandas = load_pandas()
        parts = [pandas.DataFrame(summary)]
        names = self.column_names
        if names is not None:
            sides = {"before": self.original, "after": self.counterfactual}
            frames = {side: pandas.DataFrame(to_pandas(x)).reset_index(drop=True) for side, x in sides.items()}
            parts += [
                frames[side].iloc[:, j].rename(f"{name}_{side}") for j, name in enumerate(names) for side in sides
            ]
        frame = pandas.concat(parts, axis=1)
        return frame.set_index(self.original.index) if library_of(self.original) == "pandas" else self._native(frame)

    def to_json(self) -> str:
        """Strict JSON that `from_json` reads back exactly: dtypes, missing and infinite values, labels and frames."""
        content = {f.name: encode(getattr(self, f.name), f.name) for f in fields(self) if f.name != "_source"}
        return json.dumps({"format": FORMAT, **content}, allow_nan=False, default=as_lists)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (2020-12) of what `to_json` writes."""
        return explanation_schema()

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Read what `to_json` wrote."""
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            name = f". {text!r} looks like the name of a file: pass its text" if _is_name(text) else ""
            raise InputError(
                f"this is not JSON ({error}); expected the text that Explanation.to_json() returns{name}"
            ) from error
        found = content.pop("format", None) if isinstance(content, dict) else None
        if found != FORMAT:
            raise InputError(
                f"this JSON has the format {found!r}; expected {FORMAT!r}, as Explanation.to_json() writes it"
            )
        try:
            return cls(**{name: decode(value) for name, value in content.items()}, _source=None)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise InputError(
                f"this explanation is damaged ({error}); write it again with Explanation.to_json()"
            ) from error

    def with_explainer(self, explainer: Any, features: Features | None = None) -> Explanation:
        """The same with the explainer that made it, which a file and a pickle do not keep.

        `contributions` and pictures ask its model again. features: the rules of the call, if `explain` was given some:
        they are not kept either. InputError if it has other columns or classes, or a model that gives the originals
        other probabilities, and if rules of the call are left out.
        """
        make = getattr(explainer, "source_for", None)
        if make is None:
            raise InputError(f"explainer is {type(explainer).__name__}; expected a fitted CounterfactualExplainer")
        if features is None and self.meta.get("rules_of_call"):
            raise InputError(
                "this explanation was made under rules of its own, explain(..., features=...), which a file and a "
                "pickle do not keep; give them again: e.with_explainer(explainer, features=...)"
            )
        source: Source = make(self.original, features)
        check_source(source, self)
        return replace(self, _source=source)

    @property
    def source(self) -> Source:
        """What can be asked of the explainer afterwards: `probabilities(rows)`, `labels(rows)`, `training()` and more.

        InputError if the explanation was read from a file or a pickle; see `with_explainer`.
        """
        if self._source is None:
            raise InputError(
                "this explanation was read from a file or a pickle, which keeps no model; give it back by "
                "e = e.with_explainer(explainer)"
            )
        return self._source

    def sentence(self, line: int = 0) -> str:
        """A line in words: Had income been 2811 instead of 2481, the model would have said granted (53 %)."""
        if len(chosen := self[line]) != 1:
            raise InputError(f"line is {line!r}, which are {len(chosen)} lines; expected the number of one")
        return as_sentence(chosen)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Counterfactual explanations",
        what_if: bool | int = 100,
    ) -> Path | str:
        """Write a report for a browser: one HTML file that loads nothing; return its path, or its text without a path.

        what_if: for how many lines readers can switch single changes on and off; True is all. The model is asked about
        2^k rows for each line of k changes, about k rows if k is above 8. Without a model, as after `from_json`, and
        for images that is left out.
        """
        if path is None:
            return report_html(self, title, what_if=what_if)
        return write_report(self, path, title, what_if=what_if)

    def what_if(self, line: int = 0, *, features: str | Sequence[str] | None = None) -> Any:
        """A widget for notebooks: sliders for the changed features of a line, and the model asked again.

        features: names of others to offer too, or "all". Needs anywidget: pip install 'cfproto-plugin[notebook]'.
        """
        return what_if(self, line, features)

    def summary(self, by: Any = None) -> Summary:
        """Which columns change, how often, how far and in which direction, for all rows and by class.

        by: a column of the rows, or an array or Series of one value per row: also for each of its groups, with the
        median distance and the share of rows without an answer. A Series is matched to a DataFrame by its index; by
        position if they have no label in common; it is refused if it has only some of the labels. More than ten
        different numbers are cut at their quartiles, missing values are a group of their own.
        """
        return summarised(self, by)

    def actions(self, k: int = 3, *, max_changes: int = 3, target: Any = None) -> Actions:
        """At most k actions that flip as many of the rows as possible, each confirmed by the model on every row.

        An action is made of at most max_changes changes that the answers have in common: a number at least, at most or
        by so much, a category to a value. The first flips the most rows, the next the most of the rest; rules hold on
        every row that counts. target: the classes that count; default: those of the answers. The rows are those
        explained that are not in the target: choose a cohort with e[e.original_class == "refused"].
        """
        return found_actions(self, self.source, k, max_changes, target)

    def plot(
        self,
        kind: str | None = None,
        *,
        by: Any = None,
        column: Any = None,
        shape: tuple[int, ...] | None = None,
        figure: Any = None,
    ) -> Any:
        """A picture as a matplotlib Figure, which needs no display; default: the one that fits.

        kind: "changes", one line of a table before and after, over what is typical of the new class; "images";
        "cohort", what changes in many rows, how often and which way (by: a group, as in `summary`); "comparison", the
        answers of one row side by side; "path", the model's probability on the way from one row to the prototype;
        "embedding", how alike the search takes the categories of a column to be (column: its name). shape: of an image
        whose rows are vectors. figure: a Figure or SubFigure to draw in.
        """
        from cfproto_plugin.report.plots import plot

        return plot(self, self._source, kind, by=by, column=column, shape=shape, figure=figure)

    def __repr__(self) -> str:
        return as_text(self, shutil.get_terminal_size().columns)

    def _repr_html_(self) -> str:
        return as_html(self)

    def _native(self, frame: Any) -> Any:
        """A pandas frame in the kind of the rows."""
        kind = Kind.of(self.original)
        if kind is None:
            return frame
        types = dict(zip(self.column_names or (), kind.types, strict=True))
        sides = {f"{name}_{side}": each for name, each in types.items() for side in ("before", "after")}
        return kind.frame(frame, [sides.get(name) for name in frame.columns])

    def _certified(self) -> dict[str, Array]:
        """The columns that a frame has if a bound was asked for."""
        if np.isnan(self.lower_bound).all():
            return {}
        return {"objective": self.objective, "lower_bound": self.lower_bound, "gap": self.gap}


def _is_name(text: Any) -> bool:
    """Whether it is a path, or a text that ends as the name of a JSON file does."""
    return isinstance(text, os.PathLike) or (isinstance(text, str) and text.lower().endswith(".json"))


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
