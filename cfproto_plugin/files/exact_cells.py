"""Single values that JSON has no type for, such as dates, decimals and intervals, as plain JSON and back exactly.

A value is known by the package and name of its type, so nothing is imported to write one.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import load_pandas


class Cell(NamedTuple):
    """How values of a type are written, as JSON or as values that are written in turn, and read again."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def name_of(value: Any) -> str:
    """The type of a value as `CELLS` names it, such as "pandas.Period"."""
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def zone_text(zone: Any, read: Callable[[str], Any]) -> str:
    """The name of a time zone, if it can be read back: those of zoneinfo, pytz and datetime can, dateutil's cannot."""
    try:
        read(str(zone))
    except Exception as error:  # whatever pandas and zoneinfo raise for what is no name
        raise InputError(
            f"the time zone {zone!r} has no name by which it could be read again; use one of zoneinfo, such as "
            "ZoneInfo('Europe/Berlin')"
        ) from error
    return str(zone)


def _zone(value: dt.datetime) -> str | None:
    return None if value.tzinfo is None else zone_text(value.tzinfo, _zone_of)


def _pandas_zone(value: Any) -> str | None:
    return None if value.tz is None else zone_text(value.tz, load_pandas().Timestamp(0, tz="UTC").tz_convert)


def _zone_of(text: str) -> Any:
    """None: the offset of the moment says all."""
    from zoneinfo import ZoneInfo

    return ZoneInfo(text) if "/" in text else None


def _read_datetime(data: list[Any]) -> dt.datetime:
    moment, zone = dt.datetime.fromisoformat(data[0]), None if data[1] is None else _zone_of(data[1])
    return moment if zone is None else moment.astimezone(zone)


def _read_timestamp(data: list[Any]) -> Any:
    count, unit, zone = data
    moment = load_pandas().Timestamp(count, unit=unit)
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)


def _read_fraction(data: Any) -> Fraction:
    """Two whole numbers, or the text that older files have; never an exponent, which could fill the memory."""
    if isinstance(data, str):
        data = [*data.split("/"), 1][:2]
    return Fraction(int(data[0]), int(data[1]))


CELLS: dict[str, Cell] = {
    "builtins.bytes": Cell(lambda v: base64.b64encode(v).decode(), base64.b64decode),
    "datetime.date": Cell(dt.date.isoformat, dt.date.fromisoformat),
    "datetime.time": Cell(dt.time.isoformat, dt.time.fromisoformat),
    "datetime.datetime": Cell(lambda v: [v.isoformat(), _zone(v)], _read_datetime),
    "datetime.timedelta": Cell(lambda v: [v.days, v.seconds, v.microseconds], lambda data: dt.timedelta(*data)),
    "decimal.Decimal": Cell(str, Decimal),
    "fractions.Fraction": Cell(lambda v: [v.numerator, v.denominator], _read_fraction),
    "uuid.UUID": Cell(str, UUID),
    "pandas.Timestamp": Cell(lambda v: [int(v.asm8.view("i8")), v.unit, _pandas_zone(v)], _read_timestamp),
    "pandas.Timedelta": Cell(
        lambda v: [int(v.asm8.view("i8")), v.unit], lambda data: load_pandas().Timedelta(data[0], unit=data[1])
    ),
    "pandas.Period": Cell(
        lambda v: [v.ordinal, v.freqstr], lambda data: load_pandas().Period(ordinal=data[0], freq=data[1])
    ),
    "pandas.Interval": Cell(lambda v: [v.left, v.right, v.closed], lambda data: load_pandas().Interval(*data)),
    "pandas.NAType": Cell(lambda _: None, lambda _: load_pandas().NA),
    "pandas.NaTType": Cell(lambda _: None, lambda _: load_pandas().NaT),
}
