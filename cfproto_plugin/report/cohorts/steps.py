"""Changes that rows of a cohort have in common, taken from their answers: what actions are made of."""

from __future__ import annotations

import math
from collections import Counter
from numbers import Real
from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.cohorts.wording import signed
from cfproto_plugin.report.ranking import number_of, scales_of
from cfproto_plugin.report.source import Step
from cfproto_plugin.report.words import value_text
from cfproto_plugin.tables.cells import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.source import Source

_COLUMNS = 15  # those that change most often
_VALUES = 8  # categories of a column
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the changed values that a threshold reaches
_DIGITS = 2  # of an amount: +490, not +487.3


def steps_of(explanation: Explanation, source: Source) -> list[Step]:
    """Steps of the columns that change most often: thresholds and amounts for numbers, values for categories."""
    names, scales = explanation.column_names or (), scales_of(explanation)
    grouped = {at for places in source.groups.values() for at in places}
    changes: dict[int, list[Change]] = {}
    for change in explanation.changes():
        changes.setdefault(names.index(str(change.feature)), []).append(change)
    often = sorted(changes, key=lambda at: -len(changes[at]))[:_COLUMNS]
    found: list[Step] = []
    for at in often:
        scale = 0.0 if scales is None else scales[names[at]]
        known = [change for change in changes[at] if not math.isnan(number_of(change.after))]
        if at in grouped:
            found += [Step(at, "to", change.after) for change in changes[at] if change.after][:1]
        elif math.isnan(scale) or len(known) < len(changes[at]):
            found += _categories(at, changes[at])
        else:
            found += _numbers(at, known)
    return found


def in_words(step: Step, names: Sequence[str]) -> str:
    """Income at least 3000, income +500, education = Masters."""
    name = names[step.column]
    if step.kind == "by":
        return f"{name} {signed(step.value)}"
    return f"{name} = {value_text(step.value)}" if step.kind == "to" else f"{name} {step.kind} {value_text(step.value)}"


def _categories(at: int, changes: Sequence[Change]) -> list[Step]:
    """The values that most answers take."""
    first = {key_of(change.after): change.after for change in changes}
    often = Counter(key_of(change.after) for change in changes).most_common(_VALUES)
    return [Step(at, "to", first[key]) for key, _ in often]


def _numbers(at: int, changes: Sequence[Change]) -> list[Step]:
    """Thresholds that a share of the changed values reaches, and amounts by which such a share moves."""
    found = []
    for kind, sign in (("at least", 1), ("at most", -1)):
        moved = [c for c in changes if not sign * (number_of(c.after) - number_of(c.before)) <= 0]  # missing ones too
        values = sorted((c.after for c in moved), key=lambda value: sign * number_of(value))
        found += [Step(at, kind, value) for value in _at_shares(values)]
        amounts = sorted(sign * (c.after - c.before) for c in moved if _is_plain(c.before) and _is_plain(c.after))
        found += [Step(at, "by", sign * _rounded_up(amount)) for amount in _at_shares(amounts)]
    return list(dict.fromkeys(found))


def _at_shares(values: Sequence[Any]) -> list[Any]:
    return [values[max(math.ceil(share * len(values)) - 1, 0)] for share in _SHARES] if values else []


def _is_plain(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _rounded_up(amount: float) -> float:
    """A positive amount with two digits, not less than it; whole where it was whole."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - _DIGITS + 1)
    rounded = math.ceil(amount / unit - 1e-9) * unit
    return float(f"{rounded:.{_DIGITS}g}") if not float(amount).is_integer() or unit >= 1 else float(amount)
