"""Changes that the class does not need: what each is there for, in a word and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.words import both, counted, feature_name, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.records import Line

NAMED = 4  # changes of a kind that a sentence names
SHORT = {  # by `needed_for`: in a word, for tables
    "probability": "the probability",
    "rule": "the rules",
    "difference": "difference",
    "prototype": "closeness",
    "typicality": "typicality",
    "stability": "stability",
}
OTHER = "* not needed for the class, but for how typical, stable or sure the answer is, or for a rule or the like."
MARK = " *"  # of a change that the class does not need, where there is no room for what it is there for
_PURPOSES = {
    "probability": "to reach the probability asked for",
    "rule": "to keep the rules",
    "difference": "to differ from the other answers",
    "prototype": "to come closer to the class",
    "typicality": "to be typical of the class",
    "stability": "so that the class mostly holds if values are hit only roughly",
}
_MISSED_PURPOSES = {  # where the answer has less of it than was asked for
    "probability": "to come closer to the probability asked for",
    "typicality": "to be more typical of the class",
    "stability": "so that the class holds more often if values are hit only roughly",
}
_BOTH = " or wished for"  # where confidence was wished for as well, which may take more
_SURE = "so that the model is sure of the class"  # where no probability was asked for, but confidence was
_SURER = "so that the model is surer of the class"
BEST = "; the best that was found has "  # begins what a message says of wishes that an answer misses


def _purpose(line: Line, reason: str) -> str:
    """What changes of a kind are there for; no more is said than the answer reaches, by its message."""
    missed = str(line.message[0]).partition(BEST)[2].partition("; ")[0]
    reached = f"{reason} " not in missed
    purpose = (_PURPOSES if reached else _MISSED_PURPOSES)[reason]
    if reason != "probability" or not line.meta.get("confidence"):
        return purpose
    if _asked_for(line):
        return purpose.removesuffix(" for") + _BOTH
    return _SURE if reached else _SURER


def _asked_for(line: Line) -> bool:
    """Whether a probability was asked for, besides any confidence."""
    config = line.meta.get("config") or {}
    return config.get("min_proba") is not None or bool(config.get("kappa"))


def only_for(change: Change) -> str:
    """`only for typicality`; "" for a change that the class needs, or of which that is not known."""
    purpose = SHORT.get(change.needed_for)
    return f"only for {purpose}" if purpose else ""


def by_purpose(line: Line) -> dict[str, list[Change]]:
    """The changes that the class does not need, by what they are there for; in the order of `ranked`."""
    found: dict[str, list[Change]] = {}
    for change in ranked(line) if line.column_names is not None else []:
        if change.needed_for in SHORT:
            found.setdefault(change.needed_for, []).append(change)
    return found


def others_in_words(line: Line, first: str = "Also changed") -> list[str]:
    """A sentence for every purpose other than the class, with the values of the changes."""
    return [
        f"{first}, {_purpose(line, reason)}: {both(limited([difference(change) for change in changes]))}."
        for reason, changes in by_purpose(line).items()
    ]


def names_by_purpose(line: Line) -> str:
    """`a and b to be typical of the class; c to keep the rules`, for pictures, which show the values themselves."""
    parts = (
        f"{both(limited([feature_name(change) for change in changes]))} {_purpose(line, reason)}"
        for reason, changes in by_purpose(line).items()
    )
    return "; ".join(parts)


def difference(change: Change, been: str = "") -> str:
    """`a 1 instead of 2`."""
    return f"{feature_name(change)} {been}{value_text(change.after)} instead of {value_text(change.before)}"


def limited(parts: Sequence[str]) -> list[str]:
    """The first of them, and how many more there are."""
    hidden = len(parts) - NAMED
    return [*parts[:NAMED], *([counted(hidden, "more change")] if hidden > 0 else [])]
