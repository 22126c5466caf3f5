"""What stands in the way of a counterfactual, and what to do about it: what messages of proofs and searches share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfproto_plugin.report.words import either

if TYPE_CHECKING:
    from collections.abc import Sequence

PROVED = "proved: "  # begins the message of a row without any counterfactual
OTHERWISE = "otherwise "


def at_least(min_proba: float | None) -> str:
    """` with probability 0.8`, where one was asked for."""
    return "" if min_proba is None else f" with probability {min_proba:g}"


def what_to_relax(rules: Sequence[str], *, ranged: bool) -> str:
    """`relax vary or give wider ranges (Features(ranges=...))`; "" if there is nothing to relax.

    rules: those that bind, by name. ranged: numbers without a range of their own stay inside those of the training
    rows.
    """
    parts = [f"relax {either(rules)}"] if rules else []
    if ranged:
        parts.append(f"give {'more' if 'ranges' in rules else 'wider'} ranges (Features(ranges=...))")
    return " or ".join(parts)
