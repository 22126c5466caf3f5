"""Linear forms of the variables of a program, and sets of choices as the bits of whole numbers."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from cfproto_plugin.protocols import Array

_TOLERANCE = 1e-6  # of HiGHS

Row: TypeAlias = tuple[dict[int, float], float, float]  # coefficients by variable: low <= their sum <= high


class Form(NamedTuple):
    """A linear form of the variables: a constant and coefficients."""

    constant: float
    terms: dict[int, float]


def add(one: Form, other: Form, times: float = 1.0) -> Form:
    """One + times · other."""
    terms = dict(one.terms)
    for variable, value in other.terms.items():
        terms[variable] = terms.get(variable, 0.0) + times * value
    return Form(one.constant + times * other.constant, {v: c for v, c in terms.items() if c})


def holds(x: Array, row: Row) -> bool:
    """Whether a row of a program holds at x, as HiGHS sees it."""
    terms, low, high = row
    parts = np.array([c * x[variable] for variable, c in terms.items()])
    slack = _TOLERANCE * max(1.0, float(np.abs(parts).sum()))
    return bool(low - slack <= parts.sum() <= high + slack)


def sides(parts: list[tuple[int, int]], every: int, *, ordered: bool, k: int) -> list[int]:
    """The sets of k choices whose leaves are counted together; parts: the set and the variable of every leaf.

    Numbers: from each first choice of a leaf on, and up to each last one. Categories: each leaf's own set.
    """
    sets = {bits for bits, _ in parts}
    if not ordered:
        return sorted(sets)
    lows = {(bits & -bits).bit_length() - 1 for bits in sets} - {0}
    highs = {bits.bit_length() for bits in sets} - {k}
    return [every >> low << low for low in sorted(lows)] + [(1 << high) - 1 for high in sorted(highs)]


def is_upper(bits: int, k: int) -> bool:
    """Whether the set is empty, or holds the last choices of k and no others."""
    return not bits or bits + (bits & -bits) == 1 << k


def exact_unit(values: Array) -> float:
    """A power of two of which all values (n,) are multiples, if their sums round to nothing in float32; else 0."""
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return 0.0
    unit = float(2.0 ** np.floor(np.log2(sizes.min())))
    whole = bool((sizes % unit == 0).all()) and float(sizes.sum()) < unit / np.finfo(np.float32).eps
    return unit if whole else 0.0
