"""What is proved of an answer or a row, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.relaxing import OTHERWISE, PROVED, at_least, what_to_relax
from cfproto_plugin.report.words import both

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOO_LARGE = "no proof: the trees have too many leaves in reach"  # of the choices of a row
_NO_TIME = "no proof within the time"
_WRONG = "no proof: the program of the trees and the model do not agree about a row that the model confirmed"


def proof_in_words(
    bound: float,
    gap: float,
    *,
    proved: bool,
    complete: bool,
    too_large: bool,
    wrong: bool = False,
    left_out: Sequence[str] = (),
    prototype: bool = False,
) -> str:
    """What is proved of an answer, as the end of its message.

    bound: below it no counterfactual exists. gap: how much of the answer's objective that leaves open; NaN without an
    answer. complete: the time sufficed. too_large: the model was, for a proof. wrong: what was to prove it contradicts
    the model. left_out: rules and settings that the bound knows nothing of. prototype: J has a part that depends on the
    prototype, here that of the answer.
    """
    measure = "by e.objective, with its prototype" if prototype else "by e.objective"
    if proved:
        return f"; proved: no smaller change ({measure}) that keeps the rules leads there"
    if not bound:
        return f"; {_no_proof(too_large=too_large, wrong=wrong)}"
    below = "" if math.isnan(gap) else f", {100 * gap:.3g} % below this one,"
    end = "" if complete else "; the time ended before a proof"
    end = f"; {_TOO_LARGE}" if too_large else end
    kept = f"that keeps the rules leads there{_without(left_out)}"
    return f"; no change smaller than {bound:.3g} ({measure}){below} {kept}{end}"


def none_in_words(
    wanted: Sequence[Any], min_proba: float | None, rules: Sequence[str] = (), *, ranged: bool = False
) -> str:
    """The message of a row that is proved to have no counterfactual of the classes `wanted`.

    rules: the rules and settings that bind, by name. ranged: numbers without a range of their own stay inside those of
    the training rows.
    """
    kept = [f"keeps {both(rules)}"] if rules else []
    kept += [f"{OTHERWISE * ('ranges' in rules)}stays inside the ranges of the training rows"] if ranged else []
    which = f" that {both(kept)}" if kept else ""
    todo = what_to_relax(rules, ranged=ranged)
    classes = f"{' or '.join(map(str, wanted))}{at_least(min_proba)}"
    return f"{PROVED}no row{which} has class {classes}{'; ' * bool(todo)}{todo}"


def certificate_in_words(
    wanted: Sequence[Any],
    bound: float,
    *,
    exact: bool,
    complete: bool,
    too_large: bool,
    wrong: bool = False,
    left_out: Sequence[str],
    min_proba: float | None,
    rules: Sequence[str] = (),
    ranged: bool = False,
) -> str:
    """What is proved of a row: no change smaller than the bound leads to one of the classes `wanted`."""
    if math.isinf(bound):
        return none_in_words(wanted, min_proba, rules, ranged=ranged)
    if not bound:
        return _no_proof(too_large=too_large, wrong=wrong)
    names = " or ".join(map(str, wanted))
    proba = at_least(min_proba)
    end = ", and one of that size does" if exact else ""
    end += "" if complete else "; more time may prove more"
    return (
        f"no change smaller than {bound:.3g} (measured like e.objective) that keeps the rules leads to class {names}"
        f"{proba}{_without(left_out)}{end}"
    )


def _no_proof(*, too_large: bool, wrong: bool) -> str:
    if wrong:
        return _WRONG
    return _TOO_LARGE if too_large else _NO_TIME


def _without(left_out: Sequence[str]) -> str:
    return f", {both(left_out)} not counted" if left_out else ""
