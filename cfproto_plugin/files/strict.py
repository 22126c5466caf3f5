"""JSON out of files that anybody may have written: no NaN, no name twice, no depth that exhausts the stack."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from cfproto_plugin.errors import FileError

MOST_VALUES = 2**24  # in one JSON text; each takes about a hundred bytes of memory


def read_json(text: bytes, what: str, hook: Callable[[dict[str, Any]], Any] = lambda found: found) -> Any:
    """The value of a JSON text. what: its name, for messages. hook: makes something else of an object."""
    check_values(text, what)

    def once(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for twice, _ in pairs:
                if twice in seen:
                    raise FileError(f"{what} names {twice!r} twice in one object")
                seen.add(twice)
        return hook(found)

    try:
        return json.loads(text.decode(), object_pairs_hook=once, parse_constant=_no_number, parse_float=_finite)
    except FileError:
        raise
    except RecursionError:
        raise FileError(f"{what} is nested too deeply to be a saved explainer") from None
    except ValueError as error:  # UnicodeDecodeError is one
        raise FileError(f"{what} is not strict JSON: {error}") from error


def check_values(text: bytes, what: str) -> None:
    """Raise FileError if a JSON text has more values than are read. Commas and brackets count, also those in words."""
    count = sum(text.count(sign) for sign in (b",", b"[", b"{"))
    if count > MOST_VALUES:
        raise FileError(f"{what} has about {count:,} values; at most {MOST_VALUES:,} can be kept as JSON")


def _no_number(text: str) -> Any:
    raise ValueError(f"it holds {text}, which JSON does not have")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds {text[:40]}, which no float can hold")
    return number
