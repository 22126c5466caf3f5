"""How to read the report, in words: what a counterfactual is, and what a card shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfproto_plugin.report.changes import UNITS

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.what_if import Known

_STATUSES = {
    "found": "the search found it, and the model confirmed the class of exactly this row.",
    "fallback": "the search along prototypes found nothing; the answer was made from training rows, and the model "
    "confirmed it too.",
    "not_found": "no counterfactual was found. That does not prove that there is none.",
    "infeasible": "no counterfactual can exist: the rules rule it out.",
    "error": "the row could not be read, or the model could not predict it.",
}
_BAR = '<span class="proba"><span class="track"><i class="was w1"></i><i class="gain w2"></i></span></span>'
_SWING = '<span class="swing"><i class="less w3"></i></span> <span class="swing"><i class="more w4"></i></span>'


def guide(explanation: Explanation, known: Known) -> str:
    """The folded-out text above the lines."""
    items = [
        (
            "A counterfactual",
            "is the same row with a few values changed, so that the model gives it another class. It tells what the "
            "model goes by. It does not say that changing these values in the world would cause anything.",
        ),
        (
            "The title of a card",
            "is the class before → the class after. Below it is the probability of the class after: grey for the row "
            f"as it is, green for what the changes add. {_BAR}",
        ),
    ]
    if explanation.column_names is not None:
        unit = UNITS[explanation.deviations is not None]
        items.append(
            (
                "The table of a card",
                f"holds the values that change, the largest change first; all others stay as they are. Sizes are {unit}. "
                f"A bar to the left is lower, one to the right is higher; another category has no bar. {_SWING}",
            )
        )
    items.append(("The switches of a card", known.said))
    shown = {str(status) for status in explanation.status}
    items += [(f"“{s.replace('_', ' ')}”", text) for s, text in _STATUSES.items() if s in shown]
    rows = "".join(f"<dt>{head}</dt><dd>{text}</dd>" for head, text in items)
    return f'<details class="guide" open><summary>How to read this page</summary><dl>{rows}</dl></details>'
