"""Rows whose rules contradict each other, or leave nothing to change."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.tables.impossible import impossible_relations
from cfproto_plugin.tables.rules import Rules
from cfproto_plugin.tables.space import FeatureSpace, Rows


def contradictions(space: FeatureSpace, rows: Rows) -> dict[int, str]:
    """The reason by row."""
    reasons: dict[int, str] = {}
    name, shown, rules = space.columns.describe, space.columns.shown, space.rules
    for i, at in zip(*(rows.lower > rows.upper).nonzero(), strict=True):
        step = rules.grid.step[at]
        grid = f" in steps of {step:g}{' days' * bool(space.columns.attributes[at].dates)}" if step > 0 else ""
        grid = " among the values allowed" if at in rules.grid.listed else grid
        reasons[i] = (
            f"{_named(rules, at)} no value for column {name(at)}: at least {shown(at, rows.lower[i, at])} and at most "
            f"{shown(at, rows.upper[i, at])}{grid}"
        )
    for at in rules.fixed.nonzero()[0].tolist():
        if at in rules.allowed:
            for i in (~rules.allowed[at][rows.table[:, at].astype(int)]).nonzero()[0].tolist():
                why = "is immutable" if "vary" not in rules.fixed_by else "may not change"
                reasons[i] = f"column {name(at)} {why}, and its category is not among those allowed"
    for at in rules.allowed:
        codes = rows.table[:, at].astype(int)
        none = ~rules.keepable(at)[codes] & ~rules.choices_of(at, codes).any(axis=1)
        for i in none.nonzero()[0].tolist():
            reasons.setdefault(i, f"{_named(rules, at)} no category for column {name(at)}")
    for i, reason in impossible_relations(rules, rows):
        reasons.setdefault(i, reason)
    still = (rows.z_lower == rows.z_upper) & (rows.z_lower == rows.z)
    for i in still.all(axis=1).nonzero()[0].tolist():
        reasons.setdefault(i, _all_fixed(rules))
    return reasons


def _all_fixed(rules: Rules) -> str:
    """Why no column can change: the rules that were declared, or the training data."""
    if rules.fixed.all():
        return f"every column is fixed by {' and '.join(rules.fixed_by) or 'training data without values'}"
    given = {
        **dict.fromkeys(rules.fixed_by, True),
        "increasing": rules.rising.any(),
        "decreasing": rules.falling.any(),
        "ranges": np.delete(rules.declared, list(rules.grid.listed)).any(),
        "allowed": bool(rules.allowed or rules.grid.listed),
    }
    names = [rule for rule, is_given in given.items() if is_given]
    by = [" and ".join(names)] * bool(names) + ["the training data, which knows one value of it"]
    return f"every column is fixed by {', or by '.join(by)}"


def _named(rules: Rules, at: int) -> str:
    """`increasing and ranges leave`: the rules that bind a column."""
    given = {
        **dict.fromkeys(rules.fixed_by, bool(rules.fixed[at])),
        "increasing": rules.rising[at],
        "decreasing": rules.falling[at],
        "ranges": rules.declared[at] and at not in rules.grid.listed,
        "allowed": at in rules.allowed or at in rules.grid.listed,
    }
    names = [rule for rule, binds in given.items() if binds]
    return f"{' and '.join(names) or 'the rules'} leave{'s' if len(names) == 1 else ''}"
