"""How to read the report, in words: what a counterfactual is, and what a card shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfproto_plugin.report.changes import UNITS
from cfproto_plugin.report.pictures import image_of
from cfproto_plugin.report.purposes import SHORT

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.what_if import Known

_STATUSES = {
    "found": "the search found it, and the model confirmed the class of exactly this row.",
    "fallback": "the search along prototypes found nothing{more}; the answer was made from training rows, and the "
    "model confirmed it too.",
    "not_found": "no counterfactual was found. That does not prove that there is none.",
    "infeasible": "no counterfactual can exist: the rules rule it out.",
    "error": "the row could not be read, or the model could not predict it.",
}
_COUNTERFACTUAL = """is the same row with a few values changed, so that the model gives it another class. It tells what
the model goes by. It does not say that changing these values in the world would cause anything."""
_TITLE = """is the class before → the class after. Below it is the probability of the class after: grey for the row as
it is, green for what the changes add.
<span class="proba"><span class="track"><i class="was w1"></i><i class="gain w2"></i></span></span>"""
_TABLE = """holds the values that change: first those that the class needs, then those that have another purpose, each
the largest change first. All others stay as they are. Sizes are {unit}. A bar
to the left <span class="key less"></span>is lower, a bar to the right <span class="key more"></span>is higher; another
category has no bar."""

_ONLY = """are not needed for the class: the model gives it even without all of them together. “Only for typicality”
makes the answer more like real rows of the class; “only for stability” makes the class hold more often if values are
hit only roughly; “only for the probability” makes the model surer of the class; “only for closeness” brings the answer
closer to the class, as settings with theta ask; “only for the rules” keeps a rule."""

_PICTURES = "show the row, the counterfactual, and the difference: blue where it is more, orange where it is less."


def guide(explanation: Explanation, known: Known) -> str:
    """The folded-out text above the rows."""
    items = {"A counterfactual": _COUNTERFACTUAL, "The title of a card": _TITLE}
    if explanation.column_names is not None:
        items["The table of a card"] = _TABLE.format(unit=UNITS[explanation.deviations is not None])
        if any(change.needed_for in SHORT for change in explanation.changes()):
            items["Changes “only for …”"] = _ONLY
    elif len(explanation) and image_of(explanation.original) is not None:
        items["The pictures of a card"] = _PICTURES
    if known.said:
        items["The switches of a card"] = known.said
    shown = {str(status) for status in explanation.status}
    several = len(explanation) > len(set(explanation.row.tolist()))
    items |= {
        f"“{s.replace('_', ' ')}”": text.format(more=", or nothing further" * several)
        for s, text in _STATUSES.items()
        if s in shown
    }
    rows = "".join(f"<dt>{head}</dt><dd>{text}</dd>" for head, text in items.items())
    return f'<details class="guide" open><summary>How to read this page</summary><dl>{rows}</dl></details>'
