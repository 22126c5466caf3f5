"""What became of a row, in words: the one place where messages are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cfproto_plugin.search.how import How


def how_in_words(how: How, *, label: Any, n_changes: int, distance: float) -> str:
    """How a counterfactual of class `label` was found."""
    if how.method == "unchanged":
        return "already in the target, returned unchanged"
    start = f"class {label} reached"
    if math.isinf(how.polished_from):
        return f"{start} on the way to a prototype with {n_changes} change{'' if n_changes == 1 else 's'}"
    polished = not math.isnan(how.polished_from)
    after = f", polished from {how.polished_from:.3g} to {distance:.3g}" if polished else ""
    if how.method == "fallback":
        return f"{start} on the way to a training row of that class, moved inside the rules{after}"
    if how.method == "beam":
        return f"{start} by changes added one by one{after}"
    if how.method == "fista":
        weight = f" with c = {how.c:g}" if how.c > 0 else ""
        return f"{start} at step {how.step}{weight}{after}"
    where = " at the prototype itself" if math.isinf(how.theta) else f" at theta={how.theta:.3g}"
    return f"{start} on the path to a prototype{after or where}"


def why_not_in_words(
    wanted: Sequence[Any], *, in_time: bool, further: bool, absent: bool, min_proba: float | None, fallback: bool
) -> str:
    """Why a row has no counterfactual of the classes `wanted`.

    further: it has others already. absent: the model gives none of these classes to a training row.
    """
    if not in_time:
        return "the time budget ran out before a counterfactual was found"
    if further:
        return "no further counterfactual that differs from the others was found"
    names = " or ".join(map(str, wanted))
    if absent:
        return f"the model predicts class {names} for no training row, so nothing leads there"
    proba = "" if min_proba is None else f" with probability {min_proba:g}"
    hint = "" if fallback else "; fallback=True would try training rows"
    return f"no point of the search that keeps the rules had class {names}{proba}{hint}"
