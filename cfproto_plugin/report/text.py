"""An explanation in a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from cfproto_plugin.report.notes import alike, message_in_words, quality
from cfproto_plugin.report.purposes import BEST, MARK, OTHER, only_for
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.sentences import FURTHER, as_sentence
from cfproto_plugin.report.words import aligned, classes_text, counted, feature_name, percent, row_text, value_text

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation

_TEXT_LINES = 12  # rows of a table
_CHANGES = 20  # of one row, in full
_INDENT = " " * 5  # of what stands below a row
_FALLBACK = "fallback: a weaker answer, from a training row or by trying combinations, because the search found"
_TEXT_ROOM = 64  # characters; with less room beside a row its changes go below it


def as_text(explanation: Explanation, width: int) -> str:
    """A table of at most `width` columns: one line per counterfactual; a single one lists its changes one per line."""
    titles = [_title(explanation), *_time_is_up(explanation, width)]
    if not len(explanation):
        return titles[0]
    if len(explanation) == 1:
        return "\n".join([*titles, *_single(explanation, width)])
    shown = explanation[:_TEXT_LINES]
    cells = [("row", "status", "class", "p", "changes"), *(_cells(line) for line in shown)]
    columns = aligned(cells, right=(0, 3, 4))
    room = width - max(map(len, columns)) - 2
    if room < _TEXT_ROOM:
        below = [[f"{_INDENT}{text}" for text in note] for note in _notes(shown, width - len(_INDENT))]
        lines = [columns[0], *(text for head, note in zip(columns[1:], below, strict=True) for text in (head, *note))]
    else:
        notes = [["what changes"], *(note or [""] for note in _notes(shown, room))]
        beside = [
            ("" if at else head, text)
            for head, note in zip(columns, notes, strict=True)
            for at, text in enumerate(note)
        ]
        lines = aligned(beside)
    hidden = len(explanation) - len(shown)
    ends = [f"... and {hidden} more"] if hidden else []
    ends += _wrapped(alike(shown), width)
    if any(MARK in text for text in lines) and any(map(only_for, shown.changes())):
        ends += _wrapped(OTHER, width)
    missed = sum(BEST in str(message) for message in shown.message)
    if missed:
        ends += _wrapped(f"{counted(missed, 'answer')} reached less than is wished for; e.message says what.", width)
    if "fallback" in shown.status:
        further = {FURTHER in str(line.message[0]) for line in shown if line.status[0] == "fallback"}
        none = {False: "none", True: "no further one"}
        ends += _wrapped(f"{_FALLBACK} {', or '.join(none[each] for each in sorted(further))}", width)
    return "\n".join([*titles, *(_clip(text, width) for text in lines), *ends])


def _title(explanation: Explanation) -> str:
    """Explanation of 2 rows in 6 lines: 5 found, 1 not_found; the lines only where a row has several."""
    rows, counts = len(set(explanation.row.tolist())), Counter(str(status) for status in explanation.status)
    lines = f" in {counted(len(explanation), 'line')}" if len(explanation) > rows else ""
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"Explanation of {counted(rows, 'row')}{lines}{': ' if statuses else ''}{statuses}"


def _time_is_up(explanation: Explanation, width: int) -> list[str]:
    """That the time budget ended the search of the call; "" if it did not."""
    budget = explanation.meta.get("budget")
    if not isinstance(budget, dict) or not budget.get("spent"):
        return []
    text = f"The time budget of {budget.get('seconds', 0):g} s ran out: more time may find more and better answers."
    return _wrapped(text, width)


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _cells(line: Explanation) -> tuple[str, ...]:
    """Row, status, classes, probability of the new class and number of changes, for the table."""
    answer = (percent(float(line.new_class_proba[1][0])), str(line.n_changes[0])) if line.found[0] else ("", "")
    return row_text(line), str(line.status[0]), classes_text(line, "->"), *answer


def _single(line: Explanation, width: int) -> list[str]:
    """One counterfactual in full: its classes, a sentence, a table of its changes, and how it was found."""
    proba = f" ({percent(float(line.new_class_proba[1][0]))})" if line.found[0] else ""
    heading = f"row {row_text(line)}: {classes_text(line, '->')}{proba}"
    changes = ranked(line)
    rows = [(feature_name(c), value_text(c.before), "->", value_text(c.after), only_for(c)) for c in changes[:_CHANGES]]
    hidden = len(changes) - len(rows)
    table = ["  " + row for row in aligned(rows, right=(1, 3))] if rows else []
    lines = [heading, *_wrapped(as_sentence(line), width), *table, *([f"  and {hidden} more"] if hidden else [])]
    lines += [*_wrapped(quality(line), width), *_wrapped(message_in_words(line), width)] if changes else []
    return [_clip(text, width) for text in lines if text]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of the text; a number and its % stay together."""
    lines = textwrap.wrap(text.replace(" %", "\0%"), max(width, 1), break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _notes(explanation: Explanation, width: int) -> list[list[str]]:
    """The lines of text of every line; one that only repeats what was said of its row refers to that."""
    found: list[list[str]] = []
    for at, line in enumerate(explanation):
        again = at and line.row[0] == explanation.row[at - 1] and line.message[0] == explanation.message[at - 1]
        found.append(["as above"] if again and not line.n_changes[0] else _largest(line, width))
    return found


def _largest(line: Explanation, width: int) -> list[str]:
    """One line of text with as many changes as fit, in the order of `ranked`; the whole message if nothing changed."""
    changes = ranked(line)
    if not changes:
        return _wrapped(str(line.message[0]), width)
    text = ""
    for i, change in enumerate(changes):
        values = f"{value_text(change.before)} -> {value_text(change.after)}"
        longer = text + ", " * bool(i) + f"{feature_name(change)} {values}{MARK * bool(only_for(change))}"
        rest = len(changes) - i - 1
        if i and len(longer) + (len(f", +{rest} more") if rest else 0) > width:
            return [f"{text}, +{len(changes) - i} more"]
        text = longer
    return [text]
