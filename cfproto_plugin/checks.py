"""What a setting may be, asked in one way everywhere; NumPy's scalars count as the numbers and flags they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_LONGEST = 80
_WORD = 2**63


def is_number(value: Any) -> bool:
    """Whether it is a real number that a float can hold; infinite is one, NaN and True are not."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def is_count(value: Any, least: int = 1) -> bool:
    """Whether it is a whole number of at least `least`, of an integer type, that 64 bits hold."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(least <= value < _WORD)


def is_flag(value: Any) -> bool:
    """Whether it is True or False; 0 and 1 are taken for them."""
    return isinstance(value, (bool, np.bool_, int, np.integer)) and value in (0, 1)


def as_plain(value: Any) -> Any:
    """A scalar of NumPy as the Python value it stands for; anything else as it is."""
    return value.item() if isinstance(value, (np.bool_, np.integer, np.floating, np.str_, np.bytes_)) else value


def as_items(value: Any) -> tuple[Any, ...] | None:
    """The items of anything that holds several in one dimension; None for a text, a mapping, a table or one thing."""
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "ndim", 1) != 1 or not isinstance(value, Iterable):
        return None
    return tuple(map(as_plain, value))


def shown(value: Any) -> str:
    """The value in one short line, for messages."""
    if getattr(value, "ndim", 0):
        kind = type(value).__name__.replace("ndarray", "array")
        return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} of shape {getattr(value, 'shape', '?')}"
    text = " ".join(repr(value).split()) if not isinstance(value, int) or abs(value) < 10**_LONGEST else "a huge number"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
