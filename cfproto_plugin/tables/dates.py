"""Columns of dates and durations: numbers of days in the table, and back in their own dtype and time zone."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfproto_plugin.helpers.kinds import load_pandas, objects, values_of
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import is_missing, zone_of

_DAY = 86_400_000_000  # microseconds
_STEPS = (1.0, 1 / 24, 1 / 1440, 1 / 86_400)  # days, hours, minutes, seconds
_FIRST, _LAST = -719_162.0, 2_932_896.0  # days since 1970 of the years 1 and 9999, all that Python's dates can be
_LONGEST = 1e8  # days
_FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y%m%d", "%Y/%m/%d", "%m/%d/%Y", "%d.%m.%Y")  # of texts


def is_date(dtype: Any) -> bool:
    """Whether a column of this dtype holds dates or durations."""
    return getattr(dtype, "kind", "O") in "mM"


@dataclass(frozen=True)
class Dates:
    """What the dates of a column are counted in.

    Days since 1970, in UTC; of a column with a time zone that holds nothing but midnights there, in its local time.
    Where the time zone is some minutes off whole hours, UTC moved by these: whole hours there are whole hours here.
    """

    durations: bool
    zone: Any  # None without
    local: bool
    step: float  # the coarsest of days, hours, minutes and seconds that all training values are multiples of; else 0
    shift: int = 0  # microseconds by which UTC is moved

    @classmethod
    def of(cls, column: Any) -> Dates:
        """What a pandas column holds."""
        zone = zone_of(column.dtype)
        durations = column.dtype.kind == "m"
        plain = cls(durations, zone, local=False, step=0.0)
        if zone is None:
            return replace(plain, step=plain.step_of(column))
        local = replace(plain, local=True)
        if local.step_of(column) == 1:
            return replace(local, step=1.0)
        ahead = local.days(column)[0] - plain.days(column)[0]
        ahead = ahead[~np.isnan(ahead)][:1] * 86_400  # seconds
        moved = [replace(plain, shift=round(off) % 3600 * 1_000_000) for off in ahead.tolist()]
        return max((replace(made, step=made.step_of(column)) for made in (plain, *moved)), key=lambda made: made.step)

    def step_of(self, column: Any) -> float:
        """The coarsest step that all values of a pandas column are multiples of, 0 if they are of none."""
        days = self.days(column)[0]
        known = np.rint(days[~np.isnan(days)] * _DAY).astype(np.int64)
        return next((step for step in _STEPS if not (known % round(step * _DAY)).any()), 0.0)

    def days(self, column: Any) -> tuple[Array, Array]:
        """The cells of a pandas column as days (n,), NaN where missing, and which of them (n,) bool are no dates."""
        strange = self.zone is None and zone_of(column.dtype) is not None
        if is_date(column.dtype) and (column.dtype.kind == "m") == self.durations and not strange:
            whole = load_pandas().Series(column.array)
            if hasattr(column.dtype, "pyarrow_dtype"):
                whole = whole.astype(object)
            return self._counted(whole), np.zeros(len(column), dtype=bool)
        numbers = [self.number(cell) for cell in column.tolist()]
        bad = np.array([number is None for number in numbers], dtype=bool)
        return np.array([np.nan if number is None else number for number in numbers], dtype=float), bad

    def number(self, value: Any) -> float | None:
        """A date, a duration or the text of a date as days; NaN if it is missing, None if it is none of these."""
        if is_missing(value) or (isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value)):
            return float("nan")
        kinds = (dt.timedelta, np.timedelta64) if self.durations else (dt.date, np.datetime64, str)
        if not isinstance(value, kinds):
            return None
        pandas = load_pandas()
        try:
            moment = (pandas.Timedelta if self.durations else pandas.Timestamp)(value)
            return float(self._counted(pandas.Series([moment]))[0])
        except (ValueError, TypeError, OverflowError):
            return None

    def _counted(self, column: Any) -> Array:
        """Days (n,) of a pandas Series of dates or durations."""
        pandas = load_pandas()
        if self.durations:
            return np.asarray(pandas.to_timedelta(column) / pandas.Timedelta(days=1), dtype=float)
        moments = pandas.DatetimeIndex(pandas.to_datetime(column))
        if (moments.tz is None) != (self.zone is None):
            if moments.tz is not None:
                raise ValueError("a date with a time zone in a column without")
            moments = moments.tz_localize(self.zone, ambiguous=True, nonexistent="shift_forward")
        if self.zone is not None:
            moments = moments.tz_convert(self.zone if self.local else "UTC").tz_localize(None)
        stamps = moments.to_numpy()
        return np.where(np.isnat(stamps), np.nan, (stamps.astype("M8[us]").astype(np.int64) + self.shift) / _DAY)

    def cells(self, days: Array) -> Any:
        """Dates or durations of days (n,), to the microsecond, as a pandas array; missing where NaN."""
        pandas = load_pandas()
        low, high = (-_LONGEST, _LONGEST) if self.durations else (_FIRST, _LAST)
        missing = np.isnan(days)
        count = np.rint(np.clip(np.where(missing, 0, days), low, high).astype(float) * _DAY).astype(np.int64)
        if self.durations:
            spans = count.astype("m8[us]")
            spans[missing] = np.timedelta64("NaT")
            return pandas.array(spans)
        stamps = (count - self.shift).astype("M8[us]")
        stamps[missing] = np.datetime64("NaT")
        if self.zone is None:
            return pandas.array(stamps)
        moments = pandas.DatetimeIndex(stamps)
        if self.local:
            return moments.tz_localize(self.zone, ambiguous=True, nonexistent="shift_forward").array
        return moments.tz_localize("UTC").tz_convert(self.zone).array

    def like(self, dates: Any, column: Any, line: Array) -> Any:
        """Dates (m,) of a pandas array as a column of the user's holds dates at these lines (m,).

        Without a time zone where the column has none; text and `datetime.date` where the cells that they replace are.
        """
        kind = column.dtype if hasattr(column, "dtype") else column.type
        if self.durations or str(kind).lower().startswith(("date", "timestamp")):
            return dates if self.zone is None or zone_of(kind) is not None else dates.tz_localize(None)
        held = column.tolist() if isinstance(column, np.ndarray) else values_of(column)
        usual = next((cell for cell in held if not is_missing(cell) and self.number(cell) is not None), None)
        replaced = [usual if is_missing(held[at]) else held[at] for at in line.tolist()]
        return objects([self._like(date, cell) for date, cell in zip(dates, replaced, strict=True)])

    def _like(self, date: Any, cell: Any) -> Any:
        """A date as text, as a `datetime.date` or without a time zone, as a cell is, if that still says the same."""
        local = date.tz_localize(None)
        forms = [date] if getattr(cell, "tzinfo", None) else [local]
        if isinstance(cell, str):
            forms = [_written_like(cell, date), str(local), str(date)]
        elif type(cell) is dt.date:
            forms = [local.date(), local]
        number = self.number(date)
        return next((form for form in forms if self.number(form) == number), date)

    def in_words(self, days: float) -> str:
        """A number of days as a date, for messages."""
        if not np.isfinite(days):
            return f"{days:g}"
        text = str(self.cells(np.array([days]))[0])
        return text.removesuffix(" 00:00:00")


def _written_like(text: str, date: Any) -> str:
    """A date in the form in which a text gives one, with a time zone if the text has one."""
    own = load_pandas().Timestamp(text)
    date = date.tz_localize(None) if own.tz is None else date.tz_convert(own.tz)
    form = next((form for form in _FORMS if own.strftime(form) == text), None)
    return str(date.isoformat("T" if "T" in text else " ") if form is None else date.strftime(form))
