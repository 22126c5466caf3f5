"""What `cfproto explain` prints: lines for the terminal, and records for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.report import aligned, as_sentence, number_dtypes, plain_cell, ranked, value_text
from cfproto_plugin.report.notes import alike
from cfproto_plugin.report.purposes import only_for
from cfproto_plugin.report.words import classes_text, counted, either, percent, row_text
from cfproto_plugin.tables.cells import is_missing

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation

_CHANGES = 20  # of one row that are listed
_LISTED = 8  # rows that are named for one reason


def explained(explanation: Explanation) -> Explanation:
    """The lines that have a counterfactual."""
    return explanation[explanation.found]


def as_lines(explanation: Explanation) -> list[str]:
    """An aligned table with a line per change, largest first; then a sentence for every counterfactual.

    The row and its classes stand on its first line. Beyond twenty changes the number of the others is named.
    """
    lines = [("row", "class", "p", "feature", "before", "", "after", "")]
    for line in explained(explanation):
        head = (row_text(line), classes_text(line, "->"), percent(float(line.new_class_proba[1][0])))
        changes = [(str(c.feature), value_text(c.before), "->", value_text(c.after), only_for(c)) for c in ranked(line)]
        hidden = len(changes) - _CHANGES
        if hidden > 0:
            changes = [*changes[:_CHANGES], (f"and {hidden} more", "", "", "", "")]
        for at, change in enumerate(changes or [("(no change)", "", "", "", "")]):
            lines.append((*(head if at == 0 else ("", "", "")), *change))
    if len(lines) == 1:
        return []
    said = [f"row {row_text(line)}: {as_sentence(line)}" for line in explained(explanation)]
    return [*aligned(lines, right=(0, 4, 6)), "", *said, *filter(None, [alike(explanation)])]


def counts_in_words(explanation: Explanation) -> str:
    """`1 of 4 rows explained in 0.12 s; 3 rows already in the target (benign): nothing to change`.

    A row in the target that keeps the rules has itself as its only answer. Several answers to a row are counted, too.
    """
    done = explained(explanation)
    changed, there = done[done.n_changes > 0], done[done.n_changes == 0]
    rows, count, settled = (len(set(each.row.tolist())) for each in (explanation, changed, there))
    text = f"{count:,} of {counted(rows, 'row')} explained"
    if len(explanation) > rows:
        text += f" by {counted(len(changed), 'counterfactual')}"
    names = either(sorted({explanation.class_name(label) for label in there.counterfactual_class}) or [""])
    unchanged = f"{counted(settled, 'row')} already in the target ({names}): nothing to change"
    parts = [f"{text} in {explanation.meta['seconds']:.2f} s"] * (settled < rows) + [unchanged] * bool(settled)
    return "; ".join(parts)


def failures(explanation: Explanation) -> list[str]:
    """Why rows have no counterfactual: one line of text per reason, with the rows it applies to."""
    done = set(explained(explanation).row.tolist())
    reasons: dict[str, list[str]] = {}
    for row, status, message in zip(explanation.row.tolist(), explanation.status, explanation.message, strict=True):
        rows = reasons.setdefault(f"{status}: {message}", [])
        if row not in done and str(row) not in rows:
            rows.append(str(row))
    return [f"{_rows(rows)}: {reason}" for reason, rows in reasons.items() if rows]


def table_of_changes(explanation: Explanation) -> Any:
    """A pandas DataFrame with a line per change, largest first, and one without a feature for a line that has none."""
    heads = ("row", "status", "original_class", "counterfactual_class")
    found = []
    for line in explanation:
        head = [getattr(line, name)[0] for name in heads]
        changes: list[Any] = [
            (c.feature, value_text(c.before), value_text(c.after), c.needed_for) for c in ranked(line)
        ]
        found += [(*head, *change) for change in changes or [(None, None, None, None)]]
    return load_pandas().DataFrame(found, columns=[*heads, "feature", "before", "after", "needed_for"])


def as_records(explanation: Explanation, *, only_changed: bool = False) -> list[dict[str, Any]]:
    """One dictionary per line, of types that JSON has; missing values are None.

    only_changed: the counterfactual has its changed columns alone.
    """
    before, after = explanation.new_class_proba
    rows, changed = explanation.counterfactual, explanation.is_changed
    columns = {
        name: [_plain(value, dtype) for value in rows[name].tolist()]
        for name, dtype in zip(rows.columns, number_dtypes(rows), strict=True)
    }
    return [
        {
            "row": int(line.row[0]),
            "status": line.status[0],
            "message": line.message[0],
            "original_class": _plain(line.original_class[0]),
            "counterfactual_class": _plain(line.counterfactual_class[0]),
            "proba_before": _plain(before[at]),
            "proba_after": _plain(after[at]),
            "distance": _plain(line.distance[0]),
            "typicality": _plain(line.typicality[0]),
            "stability": _plain(line.stability[0]),
            "sentence": as_sentence(line),
            "changes": [
                {
                    "feature": change.feature,
                    "before": _plain(change.before),
                    "after": _plain(change.after),
                    "needed_for": change.needed_for or None,
                }
                for change in ranked(line)
            ],
            "counterfactual": {
                name: values[at]
                for (name, values), differs in zip(columns.items(), changed[at], strict=True)
                if differs or not only_changed
            }
            if line.found[0]
            else None,
        }
        for at, line in enumerate(explanation)
    ]


def _plain(value: Any, dtype: Any = None) -> Any:
    if is_missing(value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else plain_cell(value, dtype)  # dates and durations


def _rows(rows: list[str]) -> str:
    more = f" and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
    return f"row{'s' * (len(rows) > 1)} {', '.join(rows[:_LISTED])}{more}"
