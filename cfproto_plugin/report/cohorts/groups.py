"""Groups of rows: by a column, or by one value per row."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.helpers.kinds import cells_of, library_of, names_of, objects, to_pandas
from cfproto_plugin.report.words import value_text
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
        texts = [None if is_missing(value) else str(value) for value in values]
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
    """A text per line: by a column of the rows, or by one value for each row or line.

    A Series is matched to the index of a DataFrame where it has all of its labels, so that it may be longer. More than
    ten different numbers are cut at their quartiles.
    """
    name, values = _values_by(explanation, by)
    return Groups.of_values(name, _cut(values))


def _values_by(explanation: Explanation, by: Any) -> tuple[str, list[Any]]:
    """The name and one value per line."""
    names, lines = explanation.column_names, len(explanation)
    if isinstance(by, (str, int, np.integer)) and not isinstance(by, bool):
        return _column(explanation, by if isinstance(by, str) else int(by))
    name = str(getattr(by, "name", None) or "group")
    index = getattr(explanation.original, "index", None)
    if hasattr(by, "reindex") and index is not None and by.index.is_unique and index.isin(by.index).all():
        return name, list(by.loc[index])
    rows, of_line = np.unique(explanation.row, return_inverse=True)
    if np.ndim(by) == 1 and len(by) in {len(rows), lines}:
        values = list(by)
        return name, values if len(values) == lines else [values[at] for at in of_line]
    expected = f"one value for each of {len(rows)} rows"
    raise InputError(f"by is {shown(by)}; expected {'a column, or ' if names else ''}{expected}")


def _column(explanation: Explanation, by: str | int) -> tuple[str, list[Any]]:
    names = explanation.column_names or ()
    at = names.index(by) if by in names else by
    if isinstance(at, str) or not -len(names) <= at < len(names):
        raise InputError(
            f"by is {by!r}, which is no column of the rows.{did_you_mean(by, names)} Name a column, or pass one value "
            "per row: an array, a list or a Series"
        )
    return names[at], list(cells_of(explanation.original)[:, at])


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


def _order(text: str) -> tuple[int, float, str]:
    """Numbers, and ranges by where they begin, before texts; missing values last."""
    try:
        return 0, float(text.partition(" to ")[0]), text
    except ValueError:
        return 2 if text in _MISSING else 1, 0.0, text
