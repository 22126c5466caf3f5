"""The lines of a report as JSON: everything that its script shows, as text and numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.changes import row_name, shown_changes
from cfproto_plugin.report.notes import message_in_words, quality
from cfproto_plugin.report.page import values_changed
from cfproto_plugin.report.pictures import figures
from cfproto_plugin.report.sentences import as_sentence
from cfproto_plugin.report.words import classes_text, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.records import Record
    from cfproto_plugin.report.what_if import Stored


def data_of(explanation: Explanation, lines: Sequence[Record], stored: Sequence[Stored | None]) -> dict[str, Any]:
    """What the script is given. stored: for every line what is known of its subsets, None if nothing changes."""
    several = len(set(explanation.row.tolist())) < len(explanation)
    made = [_line(line, None if known is None else known.as_data()) for line, known in zip(lines, stored, strict=True)]
    if several:
        seen: Counter[int] = Counter()
        for line in made:
            seen[line["row"]] += 1
            line["name"] += f", answer {seen[line['row']]}"
    return {
        "columns": [str(name) for name in explanation.column_names or ()],
        "classes": [explanation.class_name(label) for label in explanation.classes],
        "deviations": explanation.deviations is not None,
        "noun": "answer" if several else "row",
        "lines": made,
    }


def _line(line: Record, what_if: dict[str, Any] | None) -> dict[str, Any]:
    images, answered = figures(line), bool(line.found[0])
    before, after = (rounded(float(proba[0])) for proba in line.new_class_proba)
    changes = [] if images else shown_changes(line)
    notes = [quality(line), message_in_words(line)] if line.n_changes[0] else []
    if images and answered:
        notes.insert(0, values_changed(line))
    return {
        "row": int(line.row[0]),
        "name": row_name(line),
        "status": str(line.status[0]),
        "classes": classes_text(line, "→"),
        "from": None if line.original_class[0] is None else line.class_name(line.original_class[0]),
        "to": line.class_name(line.counterfactual_class[0]) if answered else None,
        "before": before if answered else None,
        "after": after if answered else None,
        "distance": float(line.distance[0]) if math.isfinite(line.distance[0]) else None,
        "n_changes": int(line.n_changes[0]),
        "said": as_sentence(line).replace(" %)", "\xa0%)"),
        "notes": [note for note in notes if note],
        "changes": [change._asdict() for change in changes],
        "cells": [value_text(cell) for cell in line.cells],
        "figures": images,
        "what_if": what_if,
    }


def rounded(proba: float) -> float:
    """A probability with six digits; one that is not certain stays so."""
    short = round(proba, 6)
    if 0 < proba < 1 and short in {0, 1}:
        return abs(short - 1e-6)
    return short if math.isfinite(short) else 0.0
