"""The types of the columns of polars and pyarrow frames as plain JSON, and back exactly."""

from __future__ import annotations

import base64
from importlib import import_module
from typing import Any

from cfproto_plugin.errors import InputError

# What a type of polars is made with beside its name.
_MADE_WITH = {
    "Enum": lambda dtype: {"categories": dtype.categories.to_list()},
    "Decimal": lambda dtype: {"precision": dtype.precision, "scale": dtype.scale},
    "Datetime": lambda dtype: {"time_unit": dtype.time_unit, "time_zone": dtype.time_zone},
    "Duration": lambda dtype: {"time_unit": dtype.time_unit},
}
_NESTED = {"List", "Array", "Struct", "Object", "Unknown"}


def arrow_text(kind: Any) -> str:
    """A type of pyarrow in the bytes of its own schema format."""
    schema = import_module("pyarrow").schema([("", kind)])
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def arrow_type(text: str) -> Any:
    """The type that `arrow_text` wrote."""
    arrow = import_module("pyarrow")
    return arrow.ipc.read_schema(arrow.py_buffer(base64.b64decode(text))).types[0]


def type_text(library: str, kind: Any, where: str) -> Any:
    """JSON for the type of a column."""
    if library == "pyarrow":
        return arrow_text(kind)
    name = str(kind.base_type())
    if name in _NESTED:
        raise InputError(f"{where} is a polars column of {kind}, which cannot be written as JSON; cast it to String")
    more = _MADE_WITH[name](kind) if name in _MADE_WITH else {}
    return {"name": name, **more}


def type_of(library: str, text: Any) -> Any:
    """The type that `type_text` wrote."""
    if library == "pyarrow":
        return arrow_type(text)
    made = {key: value for key, value in text.items() if key != "name"}
    kind = getattr(import_module("polars"), text["name"])
    return kind(**made) if made else kind()
