"""The report: one HTML file for many rows that loads nothing, with search, filters, sorting and a what-if view.

The page is fixed text. What differs between reports is data in a script element that is not run; a small script of our
own shows it, and the Content-Security-Policy of the page allows this script and no other, and no connection.
"""

from __future__ import annotations

import os
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, WriteError
from cfproto_plugin.report.changes import row_name
from cfproto_plugin.report.cohorts.summary import changed_columns
from cfproto_plugin.report.cohorts.wording import most_often
from cfproto_plugin.report.data import data_of
from cfproto_plugin.report.guide import guide
from cfproto_plugin.report.notes import alike
from cfproto_plugin.report.records import records
from cfproto_plugin.report.sentences import as_sentence
from cfproto_plugin.report.texts import as_data, asset, hash_of, without_surrogates
from cfproto_plugin.report.what_if import checked_limit, stored_for
from cfproto_plugin.report.words import both, classes_text, percent, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.cohorts.summary import FeatureRecord
    from cfproto_plugin.report.records import Record

_SCRIPTS = ("dom.js", "card.js", "switches.js", "cohort.js", "report.js")
_STYLES = ("cards.css", "report.css")
_PLAIN = 1000  # lines that are listed where scripts do not run
_NAMED = 3  # columns that change as often as each other
TITLE = "Counterfactual explanations"
WHAT_IF = 100  # lines


def report_html(explanation: Explanation, title: str = TITLE, *, what_if: bool | int = WHAT_IF) -> str:
    """The text of the report."""
    if not hasattr(explanation, "meta"):
        raise InputError(f"explanation is {shown(explanation)}; expected an Explanation, what explain returns")
    if not isinstance(title, str):
        raise InputError(f"title is {shown(title)}; expected a text")
    limit = checked_limit(what_if)
    lines = records(explanation)
    stored = stored_for(explanation, lines, limit)
    data = as_data(data_of(explanation, lines, stored.lines))
    body = "".join(
        [
            f'<a class="skip" href="#lines">Skip to the rows</a><main class="cfp"><h1>{escape(title)}</h1>',
            _lead(explanation),
            _tiles(explanation),
            guide(explanation, stored),
            asset("body.html"),
            f"<noscript>{_plain(lines)}</noscript>",
            _settings(explanation),
            "</main>",
            f'<script type="application/json" id="data">{data}</script>',
        ]
    )
    return without_surrogates(_document(title, body))


def write_report(
    explanation: Explanation, path: str | os.PathLike[str], title: str = TITLE, *, what_if: bool | int = WHAT_IF
) -> Path:
    """Write the report to a file; return its path."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path is {shown(path)}; expected the name of a file such as 'report.html'")
    if not os.fspath(path):
        raise InputError("path is empty; expected the name of a file such as 'report.html'")
    text, path = report_html(explanation, title, what_if=what_if), Path(path)
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise WriteError(
            f"{str(path)!r} cannot be written ({reason}); expected the name of a file in a folder that is there"
        ) from error
    return path


def _document(title: str, body: str) -> str:
    """The head with the policy, the body, and the script after the data that it reads."""
    script, style = ("\n".join(map(asset, names)) for names in (_SCRIPTS, _STYLES))
    policy = (
        f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body>{body}<script>{script}</script></body></html>\n"
    )


def _lead(explanation: Explanation) -> str:
    """What the page is, in one sentence."""
    model = explanation.meta.get("adapter")
    by = f" Model: {escape(str(model))}." if model else ""
    return f'<p class="lead">What would have had to be different for the model to decide otherwise?{by}</p>'


def _tiles(explanation: Explanation) -> str:
    """Counts of rows and lines, what answers change, and the time."""
    meta, counts = explanation.meta, Counter(map(str, explanation.status))
    there = explanation.found & (explanation.n_changes == 0)  # in the target already
    rows = len(set(explanation.row.tolist()))
    settled, done = (len(set(explanation.row[each].tolist())) for each in (there, explanation.found & ~there))
    lines, several = len(explanation), len(explanation) > rows  # several counterfactuals were asked for
    tiles = [(f"row{'s' * (rows != 1)} explained", f"{done:,} of {rows:,}")]
    tiles += [(f"row{'s' * (settled != 1)} already in the target", f"{settled:,}")] * bool(settled)
    for status, count in counts.items():
        name = status.replace("_", " ")
        tiles.append((f"lines {name}", f"{count:,} of {lines:,}") if several else (name, f"{count:,}"))
    tiles += _of_changes(explanation)
    if "seconds" in meta:
        tiles.append(("seconds", f"{float(meta['seconds']):.3g}"))
    parts = (f'<div class="tile"><b>{value}</b><span class="dim">{escape(name)}</span></div>' for name, value in tiles)
    said = alike(explanation)
    note = f'<p class="note">{escape(said)}</p>' if said else ""
    return f'<div class="tiles">{"".join(parts)}</div>{note}'


def _of_changes(explanation: Explanation) -> list[tuple[str, str]]:
    """How many changes a typical answer has, and the column that most answers change; nothing for images."""
    differ = explanation.is_changed[explanation.found]
    if explanation.column_names is None or not differ.any():
        return []
    middle, often = float(np.median(differ.sum(axis=1))), most_often(changed_columns(explanation))
    return [
        (f"change{'s' * (middle != 1)} in a typical answer", f"{middle:g}"),
        (f"of answers change {_named(often)}", percent(often[0].share)),
    ]


def _named(often: Sequence[FeatureRecord]) -> str:
    """`“a”, more than any other`; columns that change as often are named or counted."""
    first, *others = [f"“{record.feature}”" for record in often]
    if not others:
        return f"{first}, more than any other"
    as_many = both(others) if len(others) < _NAMED else f"each of {len(others)} others"
    return f"{first}, and as many {as_many}"


def _plain(lines: Sequence[Record]) -> str:
    """The lines as sentences, for readers without scripts."""
    heads = (f"{row_name(line)}, {classes_text(line, '→')}" for line in lines[:_PLAIN])
    items = (
        f"<li><b>{escape(head)}</b> {escape(as_sentence(line))}</li>" for head, line in zip(heads, lines, strict=False)
    )
    hidden = len(lines) - _PLAIN
    more = f"<p>… and {hidden:,} more.</p>" if hidden > 0 else ""
    return (
        "<h2>Row by row</h2><p>Scripts do not run here: search, filters and what-if are left out.</p>"
        f"<ol>{''.join(items)}</ol>{more}"
    )


def _settings(explanation: Explanation) -> str:
    """The model, versions and settings, folded away."""
    rest = {key: value for key, value in explanation.meta.items() if key != "seconds"}
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in _flat(rest))
    if not items:
        return ""
    return f"<details class='meta'><summary>Model, versions and settings</summary><dl>{items}</dl></details>"


def _flat(values: dict[str, Any]) -> list[tuple[str, str]]:
    """A dictionary of dictionaries as lines "versions numpy", "2.4"."""
    nested = [(k, v if isinstance(v, dict) else {"": v}) for k, v in values.items()]
    return [(f"{k} {name}".strip(), value_text(v)) for k, inner in nested for name, v in inner.items()]
