"""Text that reads as numbers, such as '7': what a file or a form gave where numbers were meant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from cfproto_plugin.tables.cells import is_missing


def reads_as_number(cell: Any) -> bool:
    """Whether a cell is text that spells a finite number."""
    if not isinstance(cell, str):
        return False
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def all_read_as_numbers(cells: Iterable[Any]) -> bool:
    """Whether all cells that are there are such text, and there is one."""
    there = [cell for cell in cells if not is_missing(cell)]
    return bool(there) and all(map(reads_as_number, there))
