"""What stands below an answer: how far it can be trusted, and what its message says beyond how it was found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cfproto_plugin.report.purposes import NAMED
from cfproto_plugin.report.ranking import number_of, ranked, scales_of
from cfproto_plugin.report.sentences import FURTHER, route_of
from cfproto_plugin.report.words import both, counted, feature_name, percent
from cfproto_plugin.tables.cells import is_missing

if TYPE_CHECKING:
    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.records import Line

_HALF = 0.5  # of a whole number: a smaller step is mostly rounded away
_WEAKER = "A weaker answer: the search found none, so this one was made from a training row of that class."
_NO_FURTHER = _WEAKER.replace("found none", "found no further one")
_NEAREST = "A weaker answer: the time ran out before a search, so this is the nearest training row of that class."


def quality(line: Line) -> str:
    """How far the answer of one line can be trusted, in words; "" where it was not measured."""
    if not line.found[0] or math.isnan(line.stability[0]) or math.isnan(line.typicality[0]):
        return ""
    stable, typical = percent(float(line.stability[0])), percent(float(line.typicality[0]))
    label, noise = line.class_name(line.counterfactual_class[0]), _noise(line)
    size = "" if noise is None else f" (of about {noise:g} standard deviations each)"
    return (
        f"The model still says {label} after {stable} of small random changes of the answer's numbers{size}"
        f"{_apart(line, noise)}. The answer is at least as typical of {label} as {typical} of its training rows."
    )


def message_in_words(line: Line) -> str:
    """What the message of an answer says beyond how it was found, and that a fallback is a weaker answer."""
    how, message = line.how[0], str(line.message[0])
    if how is not None and how.method == "nearest":
        at, weaker = message.find("the time budget left no search"), _NEAREST
    else:
        at = -1 if how is None else message.find(route_of(how))
        weaker = weakness(line)
    rest = message if at < 0 else message[at:].partition("; ")[2]
    rest = rest.removeprefix(FURTHER[2:]).removeprefix("; ")
    rest = f"{rest[:1].upper()}{rest[1:]}." if rest else ""
    return " ".join(part for part in (weaker, rest) if part)


def alike(explanation: Explanation) -> str:
    """That all answers of a row change the same columns; "" where none do so."""
    if explanation.column_names is None or len(explanation) == len(set(explanation.row.tolist())):
        return ""
    diversity, rows = explanation.diversity, explanation.row
    most = {row: float(np.nanmax(diversity[rows == row])) for row in set(rows[~np.isnan(diversity)].tolist())}
    same = [str(row) for row in sorted(row for row, different in most.items() if different == 0)]
    if not same:
        return ""
    named = both([*same[:NAMED], *([counted(len(same) - NAMED, "other")] if len(same) > NAMED else [])])
    which = f"row {named}" if len(same) == 1 else f"rows {named}"
    return (
        f"All answers to {which} change the same columns and differ only in the values. If more columns may change, "
        "answers may differ more."
    )


def weakness(line: Line) -> str:
    """Why the answer of a line is a weaker one: the search found none, or no further one; "" if it is not."""
    if line.status[0] != "fallback":
        return ""
    return _NO_FURTHER if FURTHER in str(line.message[0]) else _WEAKER


def _apart(line: Line, noise: float | None) -> str:
    """Which of the changed columns small random changes hardly move."""
    scales = scales_of(line)
    if noise is None or scales is None:
        return ""
    steps = {name: noise * scale for name, scale in scales.items()}
    still = [c for c in ranked(line) if _is_still(c, steps.get(str(c.feature), math.inf))]
    if not still:
        return ""
    names, kinds = [feature_name(c) for c in still], [math.isnan(steps[str(c.feature)]) for c in still]
    named = both([*names[:NAMED], *(["others"] if len(names) > NAMED else [])])
    reasons = ["whole numbers are rounded"] * (not all(kinds)) + ["categories stay"] * any(kinds)
    return f"; these hardly move {named}: {both(reasons)}"


def _noise(line: Line) -> float | None:
    """The size of the random changes in standard deviations; None where it is not known."""
    config = line.meta.get("config")
    noise = config.get("noise") if isinstance(config, dict) else None
    return noise if isinstance(noise, (int, float)) else None


def _is_still(change: Change, step: float) -> bool:
    """Whether steps of this size mostly leave a value as it is. step: NaN for a category."""
    values = [number_of(value) for value in (change.before, change.after) if not is_missing(value)]
    return math.isnan(step) or (step < _HALF and all(value.is_integer() for value in values))
