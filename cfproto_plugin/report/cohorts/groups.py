"""Groups of rows: by a column, or by one value per row."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from cfproto_plugin.checks import as_plain, shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.helpers.kinds import cells_of, library_of, names_of, objects, to_pandas
from cfproto_plugin.report.words import both, value_text
from cfproto_plugin.tables.cells import is_missing

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array

_MISSING = ("missing", "no value")  # the second where the first is a value of the column
_MANY = 10  # different numbers; more are cut at their quartiles


class Groups(NamedTuple):
    """A text per row."""

    name: str
    labels: Array  # (rows,)

    @classmethod
    def of(cls, group: Any, data: Any, what: str = "group") -> Self:
        """The groups of the rows of the data: by a column, or by an array or Series as long as the data.

        what: the argument that an error names.
        """
        if isinstance(group, str):
            columns = names_of(data) if library_of(data) is not None else []
            if group not in columns:
                raise InputError(
                    f"{what} is {group!r}, which is no column of the data.{did_you_mean(group, columns)} Name a "
                    "feature, or pass one value per row"
                )
            name, values = group, to_pandas(data)[group]
        else:
            name, values = str(getattr(group, "name", None) or "group"), group
        if np.ndim(values) != 1 or len(values) != len(data):
            raise InputError(f"{what} is {shown(group)}; expected a column, or one value for each of {len(data)} rows")
        return cls.of_values(name, list(values))

    @classmethod
    def of_values(cls, name: str, values: list[Any]) -> Self:
        """A text for each value; missing ones are a group of their own."""
        others = {str(value) for value in values if not (isinstance(value, str) or is_missing(value))}
        texts = [None if is_missing(value) else _text(value, others) for value in values]
        missing = next(word for word in _MISSING if word not in texts or word == _MISSING[-1])
        return cls(name, objects([missing if text is None else text for text in texts]))

    def take(self, rows: Array) -> Groups:
        """The groups of some of the rows."""
        return self._replace(labels=self.labels[rows])

    def values(self) -> list[str]:
        """The different texts, numbers in their order, then texts in theirs, missing values last."""
        return sorted(set(self.labels.tolist()), key=_order)

    def masks(self) -> list[tuple[str, Array]]:
        """Every value and which of the rows (n,) have it."""
        return [(value, self.labels == value) for value in self.values()]


def groups_of_lines(explanation: Explanation, by: Any) -> Groups:
    """A text per line: by a column of the rows or a list of columns, or by one value for each row or line.

    A Series is matched to a DataFrame by its index, so that it may be longer, and by position if the two indexes have
    no label in common or are the same; if it lacks some of the labels it is refused. More than ten different numbers
    are cut at their quartiles.
    """
    names = explanation.column_names or ()
    if isinstance(by, list) and len(by) > 1 and all(isinstance(each, str) and each in names for each in by):
        return _combined([groups_of_lines(explanation, each) for each in by])
    name, values = _values_by(explanation, by)
    return Groups.of_values(name, _cut(values))


def _combined(parts: list[Groups]) -> Groups:
    """`female, 17 to 28`: the groups of several columns together."""
    texts = [", ".join(labels) for labels in zip(*(part.labels.tolist() for part in parts), strict=True)]
    return Groups(both([part.name for part in parts]), objects(texts))


def _values_by(explanation: Explanation, by: Any) -> tuple[str, list[Any]]:
    """The name and one value per line."""
    at = _place(explanation, by)
    if at is not None:
        return (explanation.column_names or ())[at], list(cells_of(explanation.original)[:, at])
    if library_of(by) is not None and len(names_of(by)) == 1:
        only = names_of(by)[0]
        by, name = (by[only] if library_of(by) == "pandas" else cells_of(by)[:, 0]), str(only)
    else:
        name = str(getattr(by, "name", None) or "group")
    rows, first, of_line = np.unique(explanation.row, return_index=True, return_inverse=True)
    if _is_vector(by) and _by_index(by, explanation.original, first):
        return name, list(by.loc[explanation.original.index])
    if _is_vector(by) and len(by) in {len(rows), len(explanation)}:
        values = by.to_pylist() if hasattr(by, "to_pylist") else list(by)
        return name, values if len(values) == len(explanation) else [values[at] for at in of_line]
    expected = f"one value for each of {len(rows)} rows"
    raise InputError(f"by is {shown(by)}; expected {'a column, or ' if explanation.column_names else ''}{expected}")


def _place(explanation: Explanation, by: Any) -> int | None:
    """Where the column stands that `by` names: by its own label, by that as a text, or by a number; None for values."""
    if not isinstance(by, (str, int, np.integer, tuple)) or isinstance(by, bool):
        return None
    names, rows = explanation.column_names or (), explanation.original
    labels = names_of(rows) if library_of(rows) is not None else []
    if isinstance(by, tuple):
        return next((at for at, label in enumerate(labels) if isinstance(label, tuple) and label == by), None)
    if by in labels:
        return labels.index(by)
    if by in names:
        return names.index(str(by))
    if isinstance(by, str) or not -len(names) <= by < len(names):
        raise InputError(
            f"by is {by!r}, which is no column of the rows.{did_you_mean(by, names)} Name a column, or pass one value "
            "per row: an array, a list or a Series"
        )
    return int(by)


def _is_vector(by: Any) -> bool:
    try:
        return np.ndim(by) == 1
    except ValueError:  # lists of different lengths
        return False


def _by_index(by: Any, original: Any, first: Array) -> bool:
    """Whether values are matched to the rows by labels, and not by position. first: the first line of every row."""
    index = getattr(original, "index", None)
    if not hasattr(by, "reindex") or index is None:
        return False
    known = index.isin(by.index)
    if not known.any() or by.index.equals(index) or by.index.equals(index[first]):
        return False
    if known.all() and by.index.is_unique:
        return True
    label = index[~known][0] if not known.all() else by.index[by.index.duplicated()][0]
    what = "lacks" if not known.all() else "has twice"
    raise InputError(
        f"by is matched to the rows by its index, which {what} the label {shown(as_plain(label))}. Give it every label "
        "of the rows once, or pass by.to_numpy() to match it by position"
    )


def _cut(values: list[Any]) -> list[Any]:
    """Many different numbers as the quarter they are in, `17 to 28`; anything else as it is."""
    known = [value for value in values if not is_missing(value)]
    numbers = all(isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) for value in known)
    if not numbers or len(set(known)) <= _MANY:
        return values
    ends = np.unique(np.quantile(np.array(known, dtype=float), [0.25, 0.5, 0.75], method="lower"))
    parts: dict[int, list[Any]] = {}
    for value in known:
        parts.setdefault(int(np.searchsorted(ends, float(value))), []).append(value)
    names = {part: f"{value_text(min(each))} to {value_text(max(each))}" for part, each in parts.items()}
    return [value if is_missing(value) else names[int(np.searchsorted(ends, float(value)))] for value in values]


def _text(value: Any, others: set[str]) -> str:
    """The value as a text, in quotes where one that is no text reads the same: '1' beside 1."""
    return repr(str(value)) if isinstance(value, str) and value in others else str(value)


def _order(text: str) -> tuple[int, float, str]:
    """Numbers, and ranges by where they begin, before texts; missing values last."""
    try:
        return 0, float(text.partition(" to ")[0]), text
    except ValueError:
        return 2 if text in _MISSING else 1, 0.0, text
