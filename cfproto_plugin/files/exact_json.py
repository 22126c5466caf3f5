"""Arrays, frames of every kind, labels and settings as strict JSON, and back exactly.

pandas, polars and pyarrow are imported only where the data needs them. A frame of polars or pyarrow is read as a pandas
frame where its library is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.files.exact_cells import CELLS, name_of, zone_text
from cfproto_plugin.files.exact_tables import arrow_text, arrow_type, dictionary_column, levels_of, type_of, type_text
from cfproto_plugin.helpers.kinds import cells_of, library_of, load_pandas, names_of
from cfproto_plugin.helpers.native import native_column, native_frame, types_of
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.how import How

_MOST_TEXT = 2**29  # bytes of an array of text: its cells are as wide as its dtype says, however short they are


def encode(value: Any, where: str) -> Any:
    """JSON for a value: plain where JSON has the type, else an object whose "$type" is in `_READ` or `CELLS`.

    where: what the value is, for messages. Arrays of numbers and dates stay arrays: `as_lists` makes JSON of them, or
    they are written apart.
    """
    kind, data, more = "", value, {}
    if library_of(value) in {"polars", "pyarrow"}:
        return _encode_table(value, where)
    if hasattr(value, "iloc"):
        kind, data = "frame", [_encode_named(value.iloc[:, j], where) for j in range(value.shape[1])]
        more = {axis: _encode_index(getattr(value, axis), where) for axis in ("columns", "index")}
    elif isinstance(value, (np.ndarray, np.generic)):
        return _encode_array(np.asarray(value), where)
    elif isinstance(value, float) and not math.isfinite(value):
        kind, data = "float", str(value)
    elif name_of(value) in CELLS:
        kind = name_of(value)
        data = encode(CELLS[kind].write(value), where)
    elif isinstance(value, How):
        kind, data = "how", encode(vars(value), where)
    elif isinstance(value, (list, tuple)):
        kind, data = "tuple" if isinstance(value, tuple) else "", [encode(item, where) for item in value]
    elif isinstance(value, dict):
        simple = not {"$type", "$npy"} & value.keys() and all(isinstance(key, str) for key in value)
        items = [(encode(key, where), encode(item, f"{where}[{key!r}]")) for key, item in value.items()]
        kind, data = ("", dict(items)) if simple else ("dict", items)
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise InputError(f"{where} holds {value!r} of type {type(value).__name__}, which cannot be written as JSON")
    return {"$type": kind, "data": data, **more} if kind else data


def _encode_array(x: Array, where: str) -> dict[str, Any]:
    """Numbers as they are, dates as counts of their unit, strings as nested lists, objects one by one."""
    kind = x.dtype.kind
    data: Any = x
    if kind in "OS":
        data = [encode(item, where) for item in x.ravel().tolist()]
    elif kind == "U":
        data = x.tolist()
    elif kind in "mM":
        data = x.view(np.int64)
    elif kind not in "biuf" or x.dtype == np.longdouble:
        raise InputError(f"{where} is an array of {x.dtype}, which JSON cannot hold exactly; use float64 or smaller")
    return {"$type": "array", "dtype": x.dtype.str, "shape": list(x.shape), "data": data}


def as_lists(x: Array) -> Any:
    """An array of numbers as nested lists, with text for what is not finite; what json.dumps takes as `default`."""
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        return np.where(np.isfinite(x), x.astype(object), x.astype(str).astype(object)).tolist()
    return x.tolist()


def _encode_table(frame: Any, where: str) -> dict[str, Any]:
    """A frame of polars or pyarrow: its cells by column, and their types."""
    library, names, cells = str(library_of(frame)), names_of(frame), cells_of(frame)
    kinds = types_of(frame)
    levels = [levels_of(frame[name]) for name in names] if library == "pyarrow" else []
    return {
        "$type": "table",
        "library": library,
        "names": names,
        "types": [type_text(library, kind, f"{where}[{name!r}]") for name, kind in zip(names, kinds, strict=True)],
        "data": [[encode(cell, f"{where}[{name!r}]") for cell in cells[:, at]] for at, name in enumerate(names)],
        **({"levels": encode(levels, where)} if any(known is not None for known in levels) else {}),
    }


def _encode_named(column: Any, where: str) -> dict[str, Any]:
    """A column of a DataFrame; errors say which."""
    try:
        return _encode_column(column, f"{where}[{column.name!r}]")
    except InputError as error:
        error.column = column.name
        raise


def _encode_column(column: Any, where: str) -> dict[str, Any]:
    """A Series or Index without its labels."""
    if isinstance(column.dtype, np.dtype):
        return _encode_array(column.to_numpy(), where)
    if str(column.dtype) == "category":
        codes = getattr(column, "cat", column).codes
        categories = _encode_index(column.dtype.categories, where)
        return {"$type": "category", "data": np.asarray(codes), "index": categories, "ordered": column.dtype.ordered}
    cells = [encode(cell, where) for cell in column.to_numpy(dtype=object)]
    return {"$type": "extension", "dtype": _encode_dtype(column.dtype), "data": cells}


def _encode_dtype(dtype: Any) -> Any:
    """The name of a pandas dtype; types of strings, Arrow and sparse columns, whose names say too little, in full."""
    if hasattr(dtype, "pyarrow_dtype"):
        return {"arrow": arrow_text(dtype.pyarrow_dtype)}
    if hasattr(dtype, "storage") and hasattr(dtype, "na_value"):
        return {"storage": dtype.storage, "na_value": encode(dtype.na_value, "dtype")}
    if hasattr(dtype, "fill_value"):
        return {"sparse": np.dtype(dtype.subtype).str, "fill_value": encode(dtype.fill_value, "dtype")}
    if hasattr(dtype, "tz"):
        zone_text(dtype.tz, lambda name: load_pandas().DatetimeTZDtype(dtype.unit, name))
    return str(dtype)


def _encode_index(index: Any, where: str) -> dict[str, Any]:
    names = [encode(name, where) for name in index.names]
    if index.nlevels > 1:
        levels = [_encode_index(index.get_level_values(i), where) for i in range(index.nlevels)]
        return {"$type": "multiindex", "data": levels, "names": names}
    if hasattr(index, "step"):
        return {"$type": "range", "data": [index.start, index.stop, index.step], "names": names}
    return {"$type": "index", "data": _encode_column(index, where), "names": names}


def decode(value: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        kind = value.get("$type")
        if kind in CELLS:
            return CELLS[kind].read(decode(value["data"]))
        return {key: decode(item) for key, item in value.items()} if kind is None else _READ[kind](value)
    return value


def _read_array(value: dict[str, Any]) -> Any:
    dtype = _dtype(value["dtype"], value["shape"])
    if dtype.kind in "OS":
        x = np.fromiter(decode(value["data"]), dtype)
    else:
        kept, data = np.dtype(np.int64) if dtype.kind in "mM" else dtype, value["data"]
        if isinstance(data, np.ndarray) and data.dtype != kept:
            raise InputError(f"an array of {dtype} holds numbers of {data.dtype}; expected {kept}")
        x = np.asarray(data, dtype=kept).view(dtype)
    return x.reshape(value["shape"])[()]


def _dtype(text: Any, shape: Any) -> np.dtype[Any]:
    """The dtype of that name, if an array of this shape can have it."""
    dtype = np.dtype(text) if isinstance(text, str) else np.dtype(object)
    if not isinstance(text, str) or dtype.kind not in "biufmMUSO" or dtype.fields or dtype.subdtype:
        raise InputError(f"an array has the dtype {str(text)[:40]!r}; expected numbers, truth values, dates or text")
    lengths = shape if isinstance(shape, list) else [-1]
    if not all(type(length) is int and length >= 0 for length in lengths):
        raise InputError(f"an array has the shape {str(shape)[:40]}; expected lengths of at least 0")
    if dtype.kind in "US" and math.prod(lengths) * dtype.itemsize > _MOST_TEXT:
        raise InputError(
            f"an array of text declares {math.prod(lengths)} x {dtype.itemsize} bytes; at most {_MOST_TEXT:,}"
        )
    return dtype


def _read_index(value: dict[str, Any]) -> Any:
    cells = decode(value["data"])
    return load_pandas().Index(cells, dtype=cells.dtype, name=decode(value["names"])[0])


def _read_extension(value: dict[str, Any]) -> Any:
    return load_pandas().array(decode(value["data"]), dtype=_read_dtype(value["dtype"]))


def _read_dtype(dtype: Any) -> Any:
    pd = load_pandas()
    if isinstance(dtype, str):
        found = pd.api.types.pandas_dtype(dtype)
        if isinstance(found, np.dtype):
            raise InputError(f"a column has the dtype {dtype[:40]!r}; expected one of pandas")
        return found
    if "arrow" in dtype:
        return pd.ArrowDtype(arrow_type(dtype["arrow"]))
    if "sparse" in dtype:
        return pd.SparseDtype(_dtype(dtype["sparse"], []), decode(dtype["fill_value"]))
    return _read_string(dtype)


def _read_string(dtype: dict[str, Any]) -> Any:
    """pandas before 2.3 knows no missing value of strings but NA."""
    pd, missing = load_pandas(), decode(dtype["na_value"])
    return pd.StringDtype(dtype["storage"], **({} if missing is pd.NA else {"na_value": missing}))


def _read_table(value: dict[str, Any]) -> Any:
    library, names, cells = value["library"], value["names"], decode(value["data"])
    if library not in {"polars", "pyarrow"}:
        raise InputError(f"a table is of the library {str(library)[:40]!r}; expected polars or pyarrow")
    if find_spec(library) is None:
        return load_pandas().DataFrame(dict(zip(names, cells, strict=True)))
    kinds = [type_of(library, kind) for kind in value["types"]]
    levels = decode(value.get("levels")) or [None] * len(names)
    columns = [
        native_column(library, *each, nan=True) if known is None else dictionary_column(each[1], known, each[2])
        for *each, known in zip(names, cells, kinds, levels, strict=True)
    ]
    return native_frame(library, names, columns)


def _read_frame(value: dict[str, Any]) -> Any:
    pd, index, cells = load_pandas(), decode(value["index"]), decode(value["data"])
    for each in cells:  # pandas would repeat a single value as often as the index says
        if np.ndim(each) != 1 or len(each) != len(index):
            raise InputError(f"a column of shape {np.shape(each)} stands in a frame of {len(index)} rows")
    columns = {j: pd.Series(each, dtype=each.dtype, index=index) for j, each in enumerate(cells)}
    return pd.DataFrame(columns, index=index).set_axis(decode(value["columns"]), axis=1)


_READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": _read_array,
    "float": lambda v: float(v["data"]),
    "tuple": lambda v: tuple(decode(v["data"])),
    "dict": lambda v: {decode(key): decode(item) for key, item in v["data"]},
    "frame": _read_frame,
    "category": lambda v: load_pandas().Categorical.from_codes(v["data"], decode(v["index"]), ordered=v["ordered"]),
    "extension": _read_extension,
    "table": _read_table,
    "index": _read_index,
    "multiindex": lambda v: load_pandas().MultiIndex.from_arrays(decode(v["data"]), names=decode(v["names"])),
    "range": lambda v: load_pandas().RangeIndex(*v["data"], name=decode(v["names"])[0]),
    "how": lambda v: How(**decode(v["data"])),
    "timestamp": lambda v: load_pandas().Timestamp(v["data"]),
    "NA": lambda _: load_pandas().NA,
}
