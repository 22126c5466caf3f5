"""The result of an explanation: a frozen record of arrays that can be sliced, tabulated, printed and written as JSON.

pandas is used only where the rows came as a DataFrame or a frame is asked for, and is imported there.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfproto_plugin.protocols import Array

FORMAT = "cfproto-explanation/1"
_SHARED = ("classes", "feature_names", "meta")  # the same for every line; all other fields have one entry per line


class Change(NamedTuple):
    """One cell that differs: `row` counts the rows that were explained, `feature` is a name or the index of a pixel."""

    row: int
    feature: str | tuple[int, ...]
    before: Any
    after: Any


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Counterfactuals and how they were found, one line each; line i of every field belongs together.

    original, counterfactual: in the user's own type; a row of missing values where there is no counterfactual.
    status: "found", "fallback" (a training row), "not_found" or "infeasible"; message says it in words.
    original_class, counterfactual_class, prototype_class: labels; None where there is none.
    original_proba, counterfactual_proba: (n, k), columns in the order of `classes`.
    n_steps, seconds: the gradient steps as the paper counts them, and the time of the line.
    row: the row of x that the line belongs to.
    """

    original: Any
    counterfactual: Any
    status: Array
    message: Array
    original_class: Array
    counterfactual_class: Array
    prototype_class: Array
    original_proba: Array
    counterfactual_proba: Array
    classes: Array
    n_steps: Array
    seconds: Array
    row: Array
    feature_names: tuple[str, ...] | None
    meta: dict[str, Any]

    def __post_init__(self) -> None:
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self) if f.name not in _SHARED}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the fields of an Explanation differ in length: {lengths}")

    def __len__(self) -> int:
        return len(self.original)

    def __getitem__(self, index: Any) -> Explanation:
        """Lines by number, slice, list or boolean mask. The result is an Explanation, for one number too."""
        if isinstance(index, (int, np.integer)):
            index = [index]
        if not isinstance(index, (slice, tuple)):  # a tuple would be an index of two dimensions
            index = np.asarray(index, dtype=int if len(index) == 0 else None)
        lines = np.arange(len(self))[index]
        chosen = {f.name: _take(getattr(self, f.name), lines) for f in fields(self) if f.name not in _SHARED}
        return replace(self, **chosen)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[line] for line in range(len(self)))

    @property
    def delta(self) -> Any:
        """What was added, where numeric: the number columns of a DataFrame; NaN for other cells of an array."""
        if _is_frame(self.original):
            numeric = list(self.original.dtypes.map(lambda dtype: getattr(dtype, "kind", "O") in "iuf"))
            return self.counterfactual.loc[:, numeric] - self.original.loc[:, numeric]
        return _signed(self.counterfactual) - _signed(self.original)

    def changes(self) -> list[Change]:
        """Every cell that differs, line by line in the order of the features. Two missing values do not differ."""
        (before, _), (after, _) = _cells(self.original), _cells(self.counterfactual)
        names = column_names(self)
        return [
            Change(
                int(self.row[at[0]]), at[1:] if names is None else names[at[1]], _plain(before[at]), _plain(after[at])
            )
            for at in map(tuple, np.argwhere(self._changed()).tolist())
        ]

    def changes_frame(self) -> Any:
        """`changes` as a DataFrame with the columns row, feature, before and after."""
        return _pandas().DataFrame(self.changes(), columns=list(Change._fields))

    def to_frame(self) -> Any:
        """One line per counterfactual, with the index of x.

        The probabilities are those of the new class, before and after. Tables add `<feature>_before` and
        `<feature>_after` for every feature, side by side; images do not.
        """
        before, after = new_class_proba(self)
        summary = {
            "row": self.row,
            "status": self.status,
            "original_class": self.original_class,
            "counterfactual_class": self.counterfactual_class,
            "proba_before": before,
            "proba_after": after,
            "n_changes": self._changed().reshape(len(self), -1).sum(axis=1),
        }
        pandas = _pandas()
        parts = [pandas.DataFrame(summary)]
        names = column_names(self)
        if names is not None:
            sides = {"before": self.original, "after": self.counterfactual}
            frames = {side: pandas.DataFrame(x).reset_index(drop=True) for side, x in sides.items()}
            parts += [
                frames[side].iloc[:, j].rename(f"{name}_{side}") for j, name in enumerate(names) for side in sides
            ]
        frame = pandas.concat(parts, axis=1)
        return frame.set_index(self.original.index) if _is_frame(self.original) else frame

    def to_json(self) -> str:
        """Strict JSON that `from_json` reads back exactly: dtypes, missing and infinite values, labels and frames."""
        content = {f.name: _encode(getattr(self, f.name), f.name) for f in fields(self)}
        return json.dumps({"format": FORMAT, **content}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Read what `to_json` wrote."""
        try:
            content = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"this is not JSON ({error}); expected the text that Explanation.to_json() returns"
            ) from error
        found = content.pop("format", None) if isinstance(content, dict) else None
        if found != FORMAT:
            raise InputError(
                f"this JSON has the format {found!r}; expected {FORMAT!r}, as Explanation.to_json() writes it"
            )
        try:
            return cls(**{name: _decode(value) for name, value in content.items()})
        except (TypeError, ValueError, LookupError) as error:
            raise InputError(
                f"this explanation is damaged ({error}); write it again with Explanation.to_json()"
            ) from error

    def __repr__(self) -> str:
        from cfproto_plugin.report import as_text

        return as_text(self, shutil.get_terminal_size().columns)

    def _repr_html_(self) -> str:
        from cfproto_plugin.report import as_html

        return as_html(self)

    def _changed(self) -> Array:
        """(n, *shape) bool: the cells that differ, in lines that have a counterfactual."""
        (before, no_before), (after, no_after) = _cells(self.original), _cells(self.counterfactual)
        differ = np.asarray(no_before != no_after)
        both = ~no_before & ~no_after
        differ[both] = before[both] != after[both]
        differ[~np.isin(self.status, ("found", "fallback"))] = False
        return differ


def column_names(explanation: Explanation) -> tuple[str, ...] | None:
    """Names of the columns: x0, x1, ... where the user gave none; None if a row is not a vector."""
    shape = np.shape(explanation.original)[1:]
    if len(shape) != 1:
        return None
    return explanation.feature_names or tuple(f"x{j}" for j in range(shape[0]))


def new_class_proba(explanation: Explanation) -> tuple[Array, Array]:
    """(n,) each: the probability of the counterfactual's class before and after, NaN where there is none."""
    columns = [[new == label for label in explanation.classes] for new in explanation.counterfactual_class]
    chosen = np.array(columns, dtype=bool).reshape(len(explanation), len(explanation.classes))
    probas = (explanation.original_proba, explanation.counterfactual_proba)
    before, after = (np.where(chosen.any(axis=1), np.where(chosen, proba, 0).sum(axis=1), math.nan) for proba in probas)
    return before, after


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "data frames need pandas, which is not installed: pip install 'cfproto-plugin[pandas]'"
        ) from error
    return pd


def _is_frame(x: Any) -> bool:
    return hasattr(x, "iloc")


def _take(x: Any, lines: Array) -> Any:
    return x.iloc[lines] if _is_frame(x) else x[lines]


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _cells(x: Any) -> tuple[Array, Array]:
    """The cells of a table or an array, and which of them are missing."""
    if _is_frame(x):
        columns = [x.iloc[:, j].to_numpy(dtype=object) for j in range(x.shape[1])]
        return np.stack(columns, axis=1), np.asarray(x.isna())
    return x, np.asarray(x != x, dtype=bool)  # noqa: PLR0124 only NaN differs from itself


def _signed(x: Array) -> Array:
    """Numbers that can be subtracted: unsigned integers would wrap around, objects may hold anything."""
    if x.dtype.kind in "OUS":
        numbers = [float(v) if isinstance(v, (int, float, np.number)) else math.nan for v in x.ravel()]
        return np.array(numbers, dtype=float).reshape(x.shape)
    return np.asarray(x, dtype=np.int64 if x.dtype.kind in "ub" else x.dtype)


def _encode(value: Any, where: str) -> Any:
    """JSON for a value: plain where JSON has it, else an object whose "$type" says how `_READ` gets it back."""
    kind, data, more = "", value, {}
    if _is_frame(value):
        kind, data = "frame", [_encode_column(value.iloc[:, j], where) for j in range(value.shape[1])]
        more = {axis: _encode_index(getattr(value, axis), where) for axis in ("columns", "index")}
    elif isinstance(value, (np.ndarray, np.generic)):
        return _encode_array(np.asarray(value), where)
    elif isinstance(value, float) and not math.isfinite(value):
        kind, data = "float", str(value)
    elif type(value).__name__ == "NAType":
        kind, data = "NA", None
    elif isinstance(value, dt.datetime):
        kind, data = "timestamp", value.isoformat()
    elif isinstance(value, (list, tuple)):
        kind, data = "tuple" if isinstance(value, tuple) else "", [_encode(item, where) for item in value]
    elif isinstance(value, dict):
        simple = "$type" not in value and all(isinstance(key, str) for key in value)
        items = [(_encode(key, where), _encode(item, f"{where}[{key!r}]")) for key, item in value.items()]
        kind, data = ("", dict(items)) if simple else ("dict", items)
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise InputError(f"{where} holds {value!r} of type {type(value).__name__}, which cannot be written as JSON")
    return {"$type": kind, "data": data, **more} if kind else data


def _encode_array(x: Array, where: str) -> dict[str, Any]:
    """Numbers and strings as nested lists, dates as counts of their unit, objects one by one."""
    kind, data = x.dtype.kind, x.tolist()
    if kind == "O":
        data = [_encode(item, where) for item in x.ravel()]
    elif kind in "mM":
        data = x.view(np.int64).tolist()
    elif kind not in "biufU" or x.dtype == np.longdouble:
        raise InputError(f"{where} is an array of {x.dtype}, which JSON cannot hold exactly; use float64 or smaller")
    elif kind == "f" and not np.isfinite(x).all():
        data = np.where(np.isfinite(x), x.astype(object), x.astype(str).astype(object)).tolist()
    return {"$type": "array", "dtype": x.dtype.str, "shape": list(x.shape), "data": data}


def _encode_column(column: Any, where: str) -> dict[str, Any]:
    """A Series or Index without its labels."""
    if isinstance(column.dtype, np.dtype):
        return _encode_array(column.to_numpy(), where)
    if str(column.dtype) == "category":
        codes = getattr(column, "cat", column).codes
        categories = _encode_index(column.dtype.categories, where)
        return {"$type": "category", "data": codes.tolist(), "index": categories, "ordered": column.dtype.ordered}
    cells = [_encode(cell, where) for cell in column.to_numpy(dtype=object)]
    return {"$type": "extension", "dtype": str(column.dtype), "data": cells}


def _encode_index(index: Any, where: str) -> dict[str, Any]:
    names = [_encode(name, where) for name in index.names]
    if index.nlevels > 1:
        levels = [_encode_index(index.get_level_values(i), where) for i in range(index.nlevels)]
        return {"$type": "multiindex", "data": levels, "names": names}
    if hasattr(index, "step"):
        return {"$type": "range", "data": [index.start, index.stop, index.step], "names": names}
    return {"$type": "index", "data": _encode_column(index, where), "names": names}


def _decode(value: Any) -> Any:
    """The value that `_encode` was given."""
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, dict):
        return _READ[value["$type"]](value) if "$type" in value else {key: _decode(item) for key, item in value.items()}
    return value


def _read_array(value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind == "O":
        x = np.fromiter(_decode(value["data"]), dtype)
    else:
        x = np.array(value["data"], dtype=np.int64 if dtype.kind in "mM" else dtype).view(dtype)
    return x.reshape(value["shape"])[()]


def _read_index(value: dict[str, Any]) -> Any:
    cells = _decode(value["data"])
    return _pandas().Index(cells, dtype=cells.dtype, name=_decode(value["names"])[0])


def _read_frame(value: dict[str, Any]) -> Any:
    pd, index = _pandas(), _decode(value["index"])
    columns = {j: pd.Series(cells, dtype=cells.dtype, index=index) for j, cells in enumerate(_decode(value["data"]))}
    return pd.DataFrame(columns, index=index).set_axis(_decode(value["columns"]), axis=1)


_READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": _read_array,
    "float": lambda v: float(v["data"]),
    "tuple": lambda v: tuple(_decode(v["data"])),
    "dict": lambda v: {_decode(key): _decode(item) for key, item in v["data"]},
    "frame": _read_frame,
    "category": lambda v: _pandas().Categorical.from_codes(v["data"], _decode(v["index"]), ordered=v["ordered"]),
    "extension": lambda v: _pandas().array(_decode(v["data"]), dtype=v["dtype"]),
    "index": _read_index,
    "multiindex": lambda v: _pandas().MultiIndex.from_arrays(_decode(v["data"]), names=_decode(v["names"])),
    "range": lambda v: _pandas().RangeIndex(*v["data"], name=_decode(v["names"])[0]),
    "timestamp": lambda v: _pandas().Timestamp(v["data"]),
    "NA": lambda _: _pandas().NA,
}
