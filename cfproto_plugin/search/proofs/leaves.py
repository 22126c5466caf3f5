"""Which leaves of the trees can be reached by the choices of a row, and by which choices.

Sets of choices are the bits of a whole number. A tree is walked once, with the choices of every column that are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.choices import Choices
from cfproto_plugin.search.proofs.reading import Nodes, Reading

_MOST_CELLS = 4_000_000  # of the largest array
_MOST_BITS = 1_000_000_000  # of all sets of choices


class TooLargeError(Exception):
    """The trees have more leaves in reach than a program should have."""


class TooLateError(Exception):
    """The time ended while a program was being made."""


class Leaf(NamedTuple):
    """A leaf in reach, or several that say the same."""

    value: Array  # (m,) what it adds to the scores
    box: dict[int, int]  # the choices that lead there, of the columns that matter


class Splits(NamedTuple):
    """The splits of the model for the choices of a row."""

    column: dict[int, int]  # the attribute by the number of the split
    right: dict[int, int]  # the choices of that attribute that lie on its right
    every: list[int]  # all choices of every attribute


def splits_of(reading: Reading, choices: list[Choices]) -> Splits:
    """On which side of every split the choices lie. Raises TooLargeError if that takes too much memory."""
    column: dict[int, int] = {}
    right: dict[int, int] = {}
    size = 0
    for each in choices:
        numbers = reading.splits_of(each.at)
        size += len(numbers) * len(each.value)
        if size > _MOST_BITS:
            raise TooLargeError
        for part in np.array_split(numbers, 1 + len(numbers) * len(each.value) // _MOST_CELLS):
            sides = as_bits(reading.is_right(each.at, each.value, part))
            column.update(dict.fromkeys(part.tolist(), each.at))
            right.update(zip(part.tolist(), sides, strict=True))
    return Splits(column, right, [(1 << len(each.value)) - 1 for each in choices])


def as_bits(sides: Array) -> list[int]:
    """Rows (L, K) of bools as whole numbers; bit 0 is the first column."""
    packed = np.packbits(sides, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def leaves_in_reach(tree: Nodes, splits: Splits, most: int) -> list[Leaf]:
    """The leaves of one tree that the choices can reach. Raises TooLargeError if these are more than `most`."""
    found: list[Leaf] = []
    box: dict[int, int] = {}

    def walk(node: int) -> None:
        split = tree.split[node]
        if split < 0:
            if len(found) >= most:
                raise TooLargeError
            found.append(Leaf(tree.value[node], dict(box)))
            return
        at, right = splits.column[split], splits.right[split]
        here = box.get(at, splits.every[at])
        begin, known = len(found), at in box
        for side, child in ((here & ~right, tree.left[node]), (here & right, tree.right[node])):
            if side:
                box[at] = side
                walk(child)
        if known:
            box[at] = here
        else:
            del box[at]
        if len(found) - begin > 1 and all(np.array_equal(leaf.value, found[begin].value) for leaf in found[begin:]):
            found[begin:] = [Leaf(found[begin].value, dict(box))]

    walk(0)
    return found
