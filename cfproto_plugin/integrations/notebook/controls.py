"""The sliders and lists of a what-if: which values a feature can take, and a row that has them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import cells_of, library_of, take, to_pandas
from cfproto_plugin.protocols import Array
from cfproto_plugin.report import number_dtypes, plain_cell, ranked, value_text
from cfproto_plugin.report.ranking import number_of
from cfproto_plugin.report.subsets import active_column
from cfproto_plugin.tables.cells import code_of, is_missing, key_of, lookup, missing_kind

_CHOICES = 200  # values of a category that a list offers
_NONE = "none of them"  # of the columns of a one-hot group, one of which may have been dropped
_UNCHANGED = 12  # features of a row without counterfactual that are offered


class Control(NamedTuple):
    """A feature of the row: a number with its range, or one of several values. A one-hot group is one feature."""

    name: str
    places: tuple[int, ...]  # of its columns
    before: Any
    after: Any
    low: float = math.nan  # of a number, in the training data and the row
    high: float = math.nan
    whole: bool = False  # only whole numbers
    choices: tuple[Any, ...] = ()  # empty for a number
    date: bool = False  # low and high are days since 1970

    def as_data(self) -> dict[str, Any]:
        """For the browser: numbers, texts, and places in the list of choices; None is a missing number."""
        common = {"name": self.name, "before": self.shown(self.before), "after": self.shown(self.after)}
        if self.choices:
            return {**common, "kind": "choice", "choices": _texts(self.choices)}
        if self.date:
            return {**common, "kind": "date", "low": math.floor(self.low), "high": math.ceil(self.high)}
        step = _step(self.high - self.low, whole=self.whole)
        low, high = (float(f"{end:.10g}") for end in (math.ceil(self.low / step) * step, self.high // step * step))
        return {**common, "kind": "number", "low": low, "high": high, "step": step, "whole": self.whole}

    def shown(self, value: Any) -> Any:
        """A value as the browser holds it."""
        if self.choices:
            return code_of(lookup(self.choices), value)
        if is_missing(value):
            return None
        return number_of(value) if self.date else plain_cell(value)

    def read(self, sent: Any) -> Any:
        """The value that the browser sent; InputError if there is no such value."""
        if self.choices:
            if not isinstance(sent, int) or isinstance(sent, bool) or not 0 <= sent < len(self.choices):
                raise InputError(f"{self.name} is {sent!r}; expected the place of one of {len(self.choices)} values")
            return self.choices[sent]
        if sent is None:
            return self.before if self.date else math.nan
        if isinstance(sent, bool) or not isinstance(sent, Real) or not math.isfinite(sent):
            raise InputError(f"{self.name} is {sent!r}; expected a number{' of days' * self.date}")
        for known in (self.before, self.after):  # exactly: a browser has no integers beyond 2^53
            if not is_missing(known) and (number_of(known) if self.date else float(known)) == sent:
                return known
        if self.date:
            base = self.after if is_missing(self.before) else self.before
            return base + timedelta(days=float(sent) - number_of(base))
        return round(sent) if self.whole else float(sent)


def controls_of(line: Any, features: Any) -> list[Control]:
    """The changed features of an explanation of one line, then the others that were asked for.

    features: names, "all", or None. A row without changes offers its first features.
    """
    names = line.column_names
    if names is None:
        raise InputError("what_if is for rows of a table; an image has no features to move one by one")
    groups = {str(name): places for name, places in line.source.groups.items()}
    of_place = {place: name for name, places in groups.items() for place in places}
    known = list(dict.fromkeys(of_place.get(place, name) for place, name in enumerate(names)))
    place_of = {name: place for place, name in enumerate(names)}
    changed = [of_place.get(place_of[str(change.feature)], str(change.feature)) for change in ranked(line)]
    asked = _asked(features, known) if features is not None else [] if changed else known[:_UNCHANGED]
    training = line.source.training().rows
    before, after = (cells_of(take(x, slice(0, 1)))[0] for x in (line.original, line.counterfactual))
    after = after if line.found[0] else before
    chosen = list(dict.fromkeys([*changed, *asked]))
    dtypes = number_dtypes(line.original) or [getattr(line.original, "dtype", None)] * len(names)
    return [
        _control(name, groups.get(name) or (place_of[name],), names, (before, after), training, dtypes)
        for name in chosen
    ]


def _asked(features: Any, known: Sequence[str]) -> list[str]:
    if isinstance(features, str):
        features = known if features == "all" and "all" not in known else [features]
    if not isinstance(features, Iterable):
        raise InputError(f"features is {shown(features)}; expected 'all' or a list of names")
    names: list[str] = list(features)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"features names {unknown[0]!r}; expected 'all' or names among {', '.join(map(repr, known))}")
    return names


def _control(
    name: str, places: tuple[int, ...], names: Sequence[str], cells: tuple[Array, Array], training: Any, dtypes: Any
) -> Control:
    if len(places) > 1:
        old, new = (active_column(side, places, names) or _NONE for side in cells)
        return Control(name, places, old, new, choices=tuple(dict.fromkeys([*(names[at] for at in places), old, new])))
    (at,) = places
    before, after = (plain_cell(side[at], dtypes[at]) for side in cells)
    column = cells_of(training)[:, at]
    values = [value for value in (*column, before, after) if not is_missing(value)]
    if values and all(isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) for value in values):
        low, high = float(min(values)), float(max(values))
        return Control(name, places, before, after, low, high, all(float(value).is_integer() for value in values))
    if values and all(isinstance(value, datetime) for value in values):
        days = [number_of(value) for value in values]
        return Control(name, places, before, after, min(days), max(days), date=True)
    return Control(name, places, before, after, choices=_choices(column, before, after))


def _choices(column: Array, before: Any, after: Any) -> tuple[Any, ...]:
    """The values before and after and those of the training data, in the order of their texts."""
    found = list({key_of(value): value for value in column.tolist()}.values())
    for value in (before, after):
        if code_of(lookup(found), value) < 0:
            found.append(value)
    found.sort(key=value_text)
    if len(found) > _CHOICES:
        places = [code_of(lookup(found), value) for value in (before, after)]
        found = [found[at] for at in list(dict.fromkeys([*places, *range(len(found))]))[:_CHOICES]]
    return tuple(found)


def _texts(choices: Sequence[Any]) -> list[str]:
    """The values as texts that tell them apart, such as two kinds of missing values."""
    texts = [value_text(value) for value in choices]
    several = Counter(texts)
    return [
        f"{text} ({missing_kind(value)})" if several[text] > 1 and is_missing(value) else text
        for text, value in zip(texts, choices, strict=True)
    ]


def _step(width: float, *, whole: bool) -> float:
    """1, 2 or 5 times a power of ten: about a hundredth of the width."""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width / 100))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width / 100 * (1 - 1e-9))
    return max(1.0, step) if whole else step


def row_with(original: Any, controls: Sequence[Control], values: Sequence[Any], names: Sequence[str]) -> Any:
    """The row with these values: an array (1, columns), or a pandas frame."""
    row = to_pandas(original)
    if library_of(row) is None:
        made = np.array(row[:1], dtype=object)
        for control, value in zip(controls, values, strict=True):
            made[0, list(control.places)] = _cells(control, value, names)
        return made if row.dtype == object else made.astype(_wide(row.dtype, values))
    row = row.iloc[:1].copy()
    for control, value in zip(controls, values, strict=True):
        for place, cell in zip(control.places, _cells(control, value, names), strict=True):
            row.isetitem(place, _column(row.iloc[:, place], cell))
    return row


def _wide(dtype: Any, values: Sequence[Any]) -> Any:
    """The dtype of an array that holds the values too."""
    return np.result_type(dtype, float) if dtype.kind in "iu" and any(isinstance(v, float) for v in values) else dtype


def _column(column: Any, cell: Any) -> Any:
    """A pandas column of one row that holds another cell, in its own dtype where that can hold it."""
    made = type(column)([cell], index=column.index, dtype=object, name=column.name)
    try:
        return made.astype(column.dtype)
    except (TypeError, ValueError):
        return made.infer_objects()


def _cells(control: Control, value: Any, names: Sequence[str]) -> list[Any]:
    """The cells of a feature: of a one-hot group a 1 where the chosen column is."""
    return [value] if len(control.places) == 1 else [int(names[at] == value) for at in control.places]
