"""What became of a row, in words: the one place where messages are made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.report.purposes import BEST, NAMED, SHORT, difference, limited, others_in_words
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.relaxing import PROVED, at_least, what_to_relax
from cfproto_plugin.report.words import both, counted, percent, value_text
from cfproto_plugin.search.how import How

if TYPE_CHECKING:
    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.records import Line

_ROUTES = {
    "path": "on the way to an example of it",
    "latent": "on the way to an example of it",
    "fista": "by gradient descent",
    "fallback": "on the way to a training row of that class",
    "beam": "by changes added one by one",
    "product": "among combinations of values of the columns that may change",
    "proof": "by a mixed-integer program",
}
_MOVED = ", moved inside the rules"
_REACHED = (  # how messages of `why_not_in_words` tell the class and the best probability
    re.compile(r"gave class (.+) a probability of ([-+.\de]+)"),
    re.compile(r"the best point has class (.+) with probability ([-+.\de]+), but"),
    re.compile(r"points with class (.+?)(?: with probability [-+.\de]+)? were tried.* has probability ([-+.\de]+);"),
)
FURTHER = "; the search found no further one"  # of a fallback whose row has an answer of the search
_ROUNDING = 1e-9


def as_sentence(line: Line) -> str:
    """What would have had to be different, or why there is no answer, for an explanation of one line."""
    if not line.found[0]:
        return _no_answer(line)
    label, proba = line.class_name(line.counterfactual_class[0]), percent(float(line.new_class_proba[1][0]))
    if not line.n_changes[0]:
        return f"The model says {label} already ({proba}): nothing has to change."
    still = line.original_class[0] == line.counterfactual_class[0]  # a rule was broken, or a probability was the target
    proba += f" instead of {percent(float(line.new_class_proba[0][0]))}" if still else ""
    would = f"would {'still ' if still else ''}have said {label}"
    needed = [change for change in ranked(line) if change.needed_for not in SHORT] if line.column_names else []
    others = others_in_words(line, "Also changed" if needed else "Changed")
    if not needed and not still:
        needed, others = ranked(line), []
    if not others:
        return f"Had {_differences(line, needed)}, the model {would} ({proba})."
    if not needed:
        return " ".join([f"The model says {label} already.", *others, f"The probability becomes {proba}."])
    without = "this change" if line.n_changes[0] == len(needed) + 1 else "these changes"
    last = f"Without {without} the model says {label} too; with all changes its probability is {proba}."
    return " ".join([f"Had {_differences(line, needed)}, the model {would}.", *others, last])


def _no_answer(line: Line) -> str:
    reason = str(line.message[0]).rstrip(".")
    if line.status[0] == "error":
        return f"This row was not explained: {reason}."
    says = f"The model says {line.class_name(line.original_class[0])}; "
    if line.status[0] == "infeasible":
        if reason.startswith(PROVED):
            return f"{says}it is proved that {reason.removeprefix(PROVED)}."
        return f"{says}there can be no counterfactual: {reason}."
    return f"{says}no counterfactual was found: {reason}."


def _differences(line: Line, changes: Sequence[Change]) -> str:
    """`a been 1 instead of 2 and b 3 instead of 4`, the first of the changes by name; images by a number."""
    if line.column_names is None:
        return f"{line.n_changes[0]:,} of {np.size(line.original):,} values been different"
    parts = limited([difference(change, "been " * (at == 0)) for at, change in enumerate(changes)])
    return both(parts) if len(changes) <= NAMED else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def how_in_words(how: How, *, label: Any, n_changes: int, cost: float, ruled: bool = False) -> str:
    """The message of a counterfactual of class `label`: how it was found, and whether polishing improved it.

    n_changes: the columns that differ. cost: what `how.polished_from` became. ruled: rules were declared.
    """
    if how.method == "unchanged":
        return "already in the target, returned unchanged"
    if how.method == "nearest":
        return f"the nearest training row of class {label}{_MOVED if ruled else ''}: the time budget left no search"
    route, before = route_of(how), how.polished_from
    if how.method == "proof":
        instead = "" if math.isnan(before) else ", a smaller change than the search found"
        return f"class {label} reached {route}{instead}"
    if math.isinf(before):
        return f"class {label} reached {route} with {counted(n_changes, 'change')}"
    if how.method == "fallback" and ruled:
        route += _MOVED
    if math.isnan(before) or before == cost:
        return f"class {label} reached {route}"
    return f"class {label} reached {route}, then improved"


def stranger_in_words(column: Any, value: Any) -> str:
    """That a row has a category that training did not have, as the end of its message."""
    return (
        f"column {str(column)!r} is {value_text(value)!r}, which no training row has: the search cannot tell how near"
    )


def wishes_in_words(
    typicality: float, stability: float, proba: float, *, typical: float, stable: float, probable: float = 0.0
) -> str:
    """What an answer misses of what is wished for: "" for nothing. No point that was tried came nearer to it."""
    missed = []
    if typicality < typical - _ROUNDING:
        missed.append(f"typicality {typicality:.2g}, not {typical:.2g}")
    if stability < stable - _ROUNDING:
        missed.append(f"stability {stability:.2g}, not {stable:.2g}")
    if proba < probable - _ROUNDING:
        missed.append(f"probability {proba:.3g}, not {probable:.3g}")
    return f"{BEST}{' and '.join(missed)}" if missed else ""


def route_of(how: How) -> str:
    """The route that the search took; a method without words of its own is named. `how` itself has the numbers."""
    if how.method in {"path", "latent"} and math.isinf(how.theta) and math.isnan(how.polished_from):
        return "at an example of it"
    return _ROUTES.get(how.method, f"by {how.method}")


def ended_in_words(*, in_time: bool, refused: bool, further: bool) -> str:
    """Why a row has no counterfactual, where no more can be said than how its search ended; else "".

    refused: the model did not confirm what was found. further: the row has others already.
    """
    if refused:
        return "the model did not confirm the class of what the search found"
    if not in_time:
        return "the time budget ran out before a counterfactual was found"
    return "no further counterfactual that differs from the others was found" if further else ""


def why_not_in_words(
    wanted: Sequence[Any],
    *,
    absent: bool,
    min_proba: float | None,
    fallback: bool,
    reached: float = math.nan,
    raised: str | None = None,
    least: float = 0.0,
    blocked: Sequence[str] | None = None,
    only_of_class: bool = False,
    relax: Sequence[str] = (),
    ranged: bool = False,
    floors: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    estimated: Sequence[str] = (),
) -> str:
    """Why a row has no counterfactual of the classes `wanted`, although the search came to its end.

    absent: the model gives none
    of these classes to a training row. reached: the highest probability of such a class at a point that keeps the
    rules. raised: what the model raised at points of the search. least: the lead that a class must exceed: kappa, and
    what the model's answers vary by. blocked: the relations that no point satisfied, or none together; only_of_class:
    none of the points of the classes wanted. relax: the rules and settings that could be. ranged: numbers without a
    range of their own stay inside those of the training rows. floors: the best typicality and stability of points of
    such a class, by the names of the settings, and what these ask for; estimated: those of them that are estimates.
    """
    names = " or ".join(map(str, wanted))
    if blocked:
        return _blocked_in_words(blocked, f"class {names}{at_least(min_proba)}" if only_of_class else "", reached)
    if short := [
        f"{name} {'about ' * (name in estimated)}{best:.2g}, not {least:g}"
        for name, (best, least) in floors.items()
        if best < least
    ]:
        return f"points of class {names} were found, but the best reach {' and '.join(short)}; ask for less"
    return "; ".join(
        _nothing_valid(
            names,
            kept="the rules and the ranges of the training rows" if ranged else "the rules",
            absent=absent,
            min_proba=min_proba,
            reached=reached,
            raised=raised,
            least=least,
            more=[
                *([todo] if (todo := what_to_relax(relax, ranged=ranged)) else []),
                *([] if fallback else ["fallback=True would try training rows"]),
            ],
        )
    )


def _blocked_in_words(relations: Sequence[str], wanted: str, reached: float) -> str:
    """Which relations stand in the way, of points of the class `wanted` if that is given, and what to do."""
    several = len(relations) > 1
    named = f"the relation{'s' * several} {both([repr(name) for name in relations])}{' together' * several}"
    relax = "relax one of them, or the rules of their columns" if several else "relax it, or the rules of its columns"
    if not wanted:
        return f"no point that was tried satisfies {named}; {relax}"
    best = "" if math.isnan(reached) else f"; the best point that keeps all rules has probability {reached:.3g}"
    return f"points with {wanted} were tried, but none of them satisfies {named}{best}; {relax}"


def best_reached(message: str) -> tuple[str, float] | None:
    """The class that was sought and its best probability at a point that keeps the rules; None if it is not told."""
    found = next((found for pattern in _REACHED if (found := pattern.search(message))), None)
    return None if found is None else (found[1], float(found[2]))


def _nothing_valid(
    names: str,
    *,
    kept: str,
    absent: bool,
    min_proba: float | None,
    reached: float,
    raised: str | None,
    least: float,
    more: list[str],
) -> list[str]:
    """The parts of the message where no point was valid: what there was, how near it came, what to do."""
    proba = at_least(min_proba)
    parts = [f"no point of the search that keeps {kept} had class {names}{proba}"]
    if absent:
        parts = [f"the model predicts class {names} for no training row, so nothing leads there"]
    if raised is not None and math.isnan(reached):
        return [f"the model answered no point of the search that keeps {kept}; it raised {raised}"]
    if not math.isnan(reached):
        parts.append(f"the closest point gave class {names} a probability of {reached:.3g}")
    if 0 < 2 * reached - 1 <= least and (min_proba or 0) <= reached:
        parts = [f"the best point has class {names} with probability {reached:.3g}, but too small a lead"]
        parts.append(f"it must exceed {least:.3g}: kappa, and what the model's own answers to one row vary by")
    return [*parts, *more]
