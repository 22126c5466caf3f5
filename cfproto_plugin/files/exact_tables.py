"""The types of the columns of polars and pyarrow frames as plain JSON, and back exactly."""

from __future__ import annotations

import base64
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cfproto_plugin.errors import InputError

# What a type of polars is made with beside its name.
_MADE_WITH = {
    "Enum": lambda dtype: {"categories": dtype.categories.to_list()},
    "Decimal": lambda dtype: {"precision": dtype.precision, "scale": dtype.scale},
    "Datetime": lambda dtype: {"time_unit": dtype.time_unit, "time_zone": dtype.time_zone},
    "Duration": lambda dtype: {"time_unit": dtype.time_unit},
    "Array": lambda dtype: {"shape": dtype.size},
}
_UNKNOWN = {"Object", "Unknown"}
_MOST_CELLS = 2**20  # of a cell that is an array


def arrow_text(kind: Any) -> str:
    """A type of pyarrow in the bytes of its own schema format."""
    schema = import_module("pyarrow").schema([("", kind)])
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def arrow_type(text: str) -> Any:
    """The type that `arrow_text` wrote."""
    arrow = import_module("pyarrow")
    return arrow.ipc.read_schema(arrow.py_buffer(base64.b64decode(text))).types[0]


def levels_of(column: Any) -> list[Any] | None:
    """The categories of a dictionary column of pyarrow, also those that no cell has; None for other columns."""
    if not hasattr(column.type, "value_type") or not hasattr(column.type, "index_type"):
        return None
    parts = column.unify_dictionaries().chunks
    return list(parts[0].dictionary.to_pylist()) if parts else []


def dictionary_column(cells: list[Any], levels: list[Any], kind: Any) -> Any:
    """A dictionary column of pyarrow with these cells and categories."""
    arrow = import_module("pyarrow")
    place = {level: at for at, level in enumerate(levels)}
    if any(cell is not None and cell not in place for cell in cells):  # NaN, which equals nothing
        return arrow.array(cells, kind)
    codes = arrow.array([None if cell is None else place[cell] for cell in cells], kind.index_type)
    return arrow.DictionaryArray.from_arrays(codes, arrow.array(levels, kind.value_type), ordered=kind.ordered)


def type_text(library: str, kind: Any, where: str) -> Any:
    """JSON for the type of a column."""
    if library == "pyarrow":
        return arrow_text(kind)
    name = str(kind.base_type())
    if name in _UNKNOWN:
        raise InputError(f"{where} is a polars column of {kind}, which cannot be written as JSON; cast it to String")
    if name == "Struct":
        return {"name": name, "fields": [[each.name, type_text(library, each.dtype, where)] for each in kind.fields]}
    more = _MADE_WITH[name](kind) if name in _MADE_WITH else {}
    inner = {"inner": type_text(library, kind.inner, where)} if name in {"List", "Array"} else {}
    return {"name": name, **inner, **more}


def type_of(library: str, text: Any) -> Any:
    """The type that `type_text` wrote."""
    if library == "pyarrow":
        return arrow_type(text)
    made = {key: value for key, value in text.items() if key != "name"}
    if text.get("name") == "Array":
        _check_length(made.get("shape"))
    if "inner" in made:
        made["inner"] = type_of(library, made["inner"])
    if "fields" in made:
        made["fields"] = {name: type_of(library, kind) for name, kind in made["fields"]}
    polars, name = import_module("polars"), text["name"]
    kind = getattr(polars, name, None) if isinstance(name, str) else None
    if not (isinstance(kind, type) and issubclass(kind, polars.DataType)):
        raise InputError(f"a column has the polars type {str(name)[:40]!r}, which is none")
    return kind(**made) if made else kind()


def _check_length(length: Any) -> int:
    """polars ends the process, or raises what no program catches, for arrays of another length."""
    if type(length) is not int or not 0 <= length <= _MOST_CELLS:
        raise InputError(f"a column of arrays has the length {str(length)[:40]}; expected 0 to {_MOST_CELLS:,}")
    return length


def cell_width(library: str, text: Any) -> int:
    """The bytes that every cell of a column takes, be it missing; 0 where cells take what they hold."""
    if library == "pyarrow":
        return _arrow_width(arrow_type(text)) if find_spec("pyarrow") is not None else 0
    if not isinstance(text, dict):
        return 0
    if text.get("name") == "Array":
        return _check_length(text.get("shape")) * max(8, cell_width(library, text.get("inner")))
    fields = text.get("fields")
    return sum(cell_width(library, each[-1]) for each in fields if each) if isinstance(fields, list) else 0


def _arrow_width(kind: Any) -> int:
    types = import_module("pyarrow").types
    if types.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if types.is_fixed_size_list(kind):
        return int(kind.list_size) * max(8, _arrow_width(kind.value_type))
    if types.is_struct(kind):
        return sum(_arrow_width(kind.field(at).type) for at in range(kind.num_fields))
    return 0
