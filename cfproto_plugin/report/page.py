"""An explanation as HTML: in a notebook, and as a file of its own.

The HTML loads nothing: no scripts, no fonts, pictures are inline PNG. The user's text is always escaped.
"""

from __future__ import annotations

import os
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.report.pictures import pictures
from cfproto_plugin.report.ranking import ranked, scales_of, size_of
from cfproto_plugin.report.sentences import as_sentence, quality
from cfproto_plugin.report.style import CSS
from cfproto_plugin.report.words import (
    classes_text,
    counted,
    feature_name,
    number_dtypes,
    percent,
    plain_cell,
    value_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Change, Explanation

_NOTEBOOK_CARDS = 10
_SHOWN = 20  # changes in full
_CALLS = (
    ("n_predict_calls", "predict calls", "predict call"),
    ("n_predicted_rows", "rows predicted", "row predicted"),
)


def as_html(explanation: Explanation) -> str:
    """A snippet for notebooks: a card for each of the first ten lines."""
    cards = [_card(line) for line in explanation[:_NOTEBOOK_CARDS]]
    hidden = len(explanation) - len(cards)
    more = f'<p class="dim">… and {hidden:,} more</p>' if hidden > 0 else ""
    return f'<style>{CSS}</style><div class="cfp">{"".join(cards)}{more}</div>'


def write_report(
    explanation: Explanation, path: str | os.PathLike[str], title: str = "Counterfactual explanations"
) -> Path:
    """Write an HTML file with a summary and a card for every line; return its path."""
    if not hasattr(explanation, "meta"):
        raise InputError(f"explanation is {shown(explanation)}; expected an Explanation, what explain returns")
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path is {shown(path)}; expected the name of a file such as 'report.html'")
    if not isinstance(title, str):
        raise InputError(f"title is {shown(title)}; expected a text")
    path = Path(path)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = f"<style>:root{{color-scheme:light dark}}body{{margin:32px 20px}}.cfp{{margin:auto}}{CSS}</style>"
    body = f"<h1>{escape(title)}</h1>{_summary(explanation)}{''.join(_card(line) for line in explanation)}"
    page = (
        f'<!doctype html><html lang="en"><head>{head}{style}</head><body><main class="cfp">{body}</main></body></html>'
    )
    path.write_text(page, encoding="utf-8")
    return path


def _card(line: Explanation) -> str:
    """One line: its classes and probabilities, a sentence, then its changes, or the pictures before and after."""
    status = str(line.status[0])
    row = f'<span class="row">{escape(_row_name(line))}</span>'
    badge = f'<span class="badge {escape(status)}">{escape(status.replace("_", " "))}</span>'
    head = f'<div class="head">{row}<span class="class">{escape(classes_text(line, "→"))}</span>{badge}</div>'
    details = pictures(line) or _table(line)
    said = f'<p class="said">{escape(as_sentence(line)).replace(" %)", "&nbsp;%)")}</p>'
    notes = (quality(line), str(line.message[0])) if line.n_changes[0] else ()
    note = "".join(f'<p class="note">{escape(text)}</p>' for text in notes if text)
    return f'<section class="card">{head}{_proba(line)}{said}{details}{note}</section>'


def _row_name(line: Explanation) -> str:
    """Row 3, followed by its label in the DataFrame's index if that is not the same number."""
    name = f"Row {line.row[0]}"
    label = str(line.original.index[0]) if hasattr(line.original, "index") else name
    return name if label in {name, str(line.row[0])} else f"{name} · {label}"


def _proba(line: Explanation) -> str:
    """The probability of the new class: a grey bar for before, drawn over a green one for after."""
    if not line.found[0]:
        return ""
    before, after = (float(proba[0]) for proba in line.new_class_proba)
    bars = f'<i style="width:{after:.1%}"></i><i class="was" style="width:{before:.1%}"></i>'
    was, now = escape(percent(before)), escape(percent(after))
    label = f'<span class="dim">P({escape(str(line.counterfactual_class[0]))})</span>'
    return f'<div class="proba">{label}<div class="track">{bars}</div><span>{was} → <b>{now}</b></span></div>'


def _table(line: Explanation) -> str:
    """The changed features, before and after, with a bar; the smallest and the unchanged ones are folded away."""
    changes, scales = ranked(line), scales_of(line)
    sizes = [size_of(change, scales) for change in changes]
    full = 1.0 if scales is None else max(1.0, *map(abs, sizes)) if sizes else 1.0
    rows = [_table_row(change, size, size / full, scales) for change, size in zip(changes, sizes, strict=True)]
    heads = "<tr><th>feature</th><th>before</th><th>after</th><th>change</th><th class='bar'></th></tr>"
    shown, rest = (f'<table class="changes">{heads}{"".join(r)}</table>' for r in (rows[:_SHOWN], rows[_SHOWN:]))
    smaller = _folded(counted(len(changes) - _SHOWN, "smaller change"), rest) if len(rows) > _SHOWN else ""
    changed = {change.feature for change in changes}
    cells, dtypes = cells_of(line.original)[0], number_dtypes(line.original)
    values = zip(line.column_names or (), cells, dtypes or [None] * len(cells), strict=False)
    same = [(name, value_text(plain_cell(value, dtype))) for name, value, dtype in values if name not in changed]
    noun = "unchanged feature" if line.found[0] else "feature"
    return f"{shown if rows else ''}{smaller}{_folded(counted(len(same), noun), _list(same)) if same else ''}"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _list(items: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>' for k, v in items)}</dl>"


def _table_row(change: Change, size: float, width: float, scales: dict[str, float] | None) -> str:
    """A change, its size and a bar: width is -1 to 1 of the room to either side."""
    before, after = value_text(change.before), value_text(change.after)
    side = f"left:50%;width:{width / 2:.1%}" if size > 0 else f"right:50%;width:{-width / 2:.1%}"
    bar = f'<span class="swing"><i class="{"more" if size > 0 else "less"}" style="{side}"></i></span>' if size else ""
    cells = f'<td>{escape(feature_name(change))}</td><td>{escape(before)}</td><td class="after">{escape(after)}</td>'
    return f'<tr>{cells}<td class="dim">{_how_much(change, size, scales)}</td><td class="bar">{bar}</td></tr>'


def _how_much(change: Change, size: float, scales: dict[str, float] | None) -> str:
    """The change in standard deviations, without these in percent of the value before; nothing if it is no number."""
    if not size:
        return ""
    if scales is not None:
        digits = ".2g" if abs(size) < 1 else ".1f"
        return f"{size:+,{digits}} sd".replace("-", "−")  # noqa: RUF001 a minus sign as wide as the plus
    share = round(100 * (change.after - change.before) / abs(change.before)) if change.before else 0
    return f"{share:+,} %".replace("-", "−") if share else ""  # noqa: RUF001


def _summary(explanation: Explanation) -> str:
    """Tiles with the counts; the model, versions and settings are folded away below them."""
    meta = explanation.meta
    counts = Counter(str(status).replace("_", " ") for status in explanation.status)
    done, rows = (len(set(lines.tolist())) for lines in (explanation.row[explanation.found], explanation.row))
    lines = len(explanation)
    tiles = [(f"row{'s' * (rows != 1)} explained", f"{done:,} of {rows:,}")]
    if lines > rows:  # several counterfactuals were asked for
        tiles += [(f"lines {k}", f"{v:,} of {lines:,}") for k, v in counts.items()]
    else:
        tiles += [(k, f"{v:,}") for k, v in counts.items()]
    if "seconds" in meta:
        tiles.append(("seconds", f"{float(meta['seconds']):.3g}"))
    tiles += [(label if meta[key] != 1 else one, f"{meta[key]:,}") for key, label, one in _CALLS if key in meta]
    shown = "".join(
        f'<div class="tile"><b>{value}</b><span class="dim">{escape(label)}</span></div>' for label, value in tiles
    )
    rest = _flat({key: value for key, value in meta.items() if key not in {"seconds", *(key for key, *_ in _CALLS)}})
    model = f'<p class="dim">Adapter {escape(str(meta["adapter"]))}</p>' if "adapter" in meta else ""
    return (
        f'{model}<div class="tiles">{shown}</div>{_folded("Model, versions and settings", _list(rest)) if rest else ""}'
    )


def _flat(values: dict[str, Any]) -> list[tuple[str, str]]:
    """A dictionary of dictionaries as lines "versions numpy", "2.4"."""
    nested = [(k, v if isinstance(v, dict) else {"": v}) for k, v in values.items()]
    return [(f"{k} {name}".strip(), value_text(v)) for k, inner in nested for name, v in inner.items()]
