"""What a file may make of little text is bounded before it is made: ranges, wide cells of text, cells of a fixed size.

All else that is made of a file takes memory in proportion to its bytes, which have a limit of their own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.files.exact_tables import cell_width

MOST = 2**29  # bytes, in one file
_STEP = 64  # bytes that pandas may take for a number of a range


def check_bounds(content: Any) -> None:
    """Raise InputError if the JSON of a file declares more than may be made of it, all of it together."""
    total, waiting = 0, [content]
    while waiting:
        value = waiting.pop()
        inner = value
        if isinstance(value, dict):
            what, count = _declared(value)
            total += count
            if total > MOST:
                raise InputError(
                    f"{what} declares {count:,} bytes, {total:,} with those before; at most {MOST:,} in all"
                )
            inner = [item for name, item in value.items() if not (name == "index" and _has_rows(value))]
        waiting += [item for item in inner if isinstance(item, (dict, list))]


def _has_rows(value: dict[str, Any]) -> bool:
    """Whether it is a frame, whose columns must be as long as its index."""
    return value.get("$type") == "frame" and bool(value.get("data")) and _is_range(value.get("index"))


def _is_range(value: Any) -> bool:
    return isinstance(value, dict) and value.get("$type") == "range"


def _declared(value: dict[str, Any]) -> tuple[str, int]:
    """What an object is, and the bytes that it asks for beyond those of its JSON."""
    kind = value.get("$type")
    data = value.get("data")
    if kind == "range":
        if not isinstance(data, list) or len(data) != 3 or not all(type(end) is int for end in data):  # noqa: PLR2004 start, stop, step
            raise InputError(f"a range is {str(data)[:80]}; expected start, stop and step")
        start, stop, step = data
        return "a range", _STEP * max(0, (stop - start) // step if step else 0)
    if kind == "array":
        return "an array of text", _text_bytes(value)
    if kind == "table" and isinstance(data, list) and isinstance(value.get("types"), list):
        widths = [cell_width(str(value.get("library")), each) for each in value["types"]]
        return "a table", sum(width * _cells(cells) for width, cells in zip(widths, data, strict=False))
    if kind == "extension" and isinstance(value.get("dtype"), dict) and "arrow" in value["dtype"]:
        return "a column", cell_width("pyarrow", value["dtype"]["arrow"]) * _cells(data)
    return "", 0


def _text_bytes(value: dict[str, Any]) -> int:
    """The cells of an array of text are as wide as its dtype says, however short they are."""
    text, shape, data = value.get("dtype"), value.get("shape"), value.get("data")
    try:
        dtype = np.dtype(text) if isinstance(text, str) else np.dtype(bool)
    except (TypeError, ValueError):
        dtype = np.dtype(bool)  # whoever reads the array says what is wrong
    if dtype.kind not in "OSU":
        return 0
    if not isinstance(data, (list, str)):
        raise InputError(f"an array of text holds {str(data)[:80]}; expected a list")
    lengths = shape if isinstance(shape, list) and all(type(each) is int and each >= 0 for each in shape) else []
    return dtype.itemsize * max(math.prod(lengths), _cells(data)) if dtype.kind != "O" else 0


def _cells(data: Any) -> int:
    """How many cells nested lists hold."""
    count, waiting = 0, [data]
    while waiting:
        value = waiting.pop()
        inner = [item for item in value if isinstance(item, list)] if isinstance(value, list) else []
        count += len(value) - len(inner) if isinstance(value, list) else 1
        waiting += inner
    return count
