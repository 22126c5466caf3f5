"""An explanation as HTML in a notebook: cards that load nothing and run nothing. The user's text is always escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cfproto_plugin.report.changes import UNITS, Shown, full_width, row_name, shown_changes
from cfproto_plugin.report.notes import alike, message_in_words, quality
from cfproto_plugin.report.pictures import figures
from cfproto_plugin.report.records import Record, records
from cfproto_plugin.report.sentences import as_sentence
from cfproto_plugin.report.texts import asset
from cfproto_plugin.report.words import classes_text, counted, percent, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Explanation

_NOTEBOOK_CARDS = 10
_SHOWN = 20  # changes in full


def as_html(explanation: Explanation) -> str:
    """A snippet for notebooks: a card for each of the first ten lines."""
    shown = records(explanation[:_NOTEBOOK_CARDS])
    hidden = len(explanation) - len(shown)
    more = f'<p class="dim">… and {hidden:,} more</p>' if hidden > 0 else ""
    key = _key(explanation) if any(line.n_changes[0] for line in shown) else ""
    said = alike(explanation[:_NOTEBOOK_CARDS])
    note = f'<p class="note">{escape(said)}</p>' if said else ""
    return f'<style>{asset("cards.css")}</style><div class="cfp">{"".join(map(_card, shown))}{more}{note}{key}</div>'


def _key(explanation: Explanation) -> str:
    """What the bars mean, in one line."""
    if explanation.column_names is None:
        return ""
    unit = UNITS[explanation.deviations is not None]
    return f'<p class="note">Bars: lower to the left, higher to the right, {unit}. Green: probability after.</p>'


def _card(line: Record) -> str:
    """One line: its classes and probabilities, a sentence, then its changes, or the pictures before and after."""
    status = str(line.status[0])
    row = f'<span class="row">{escape(row_name(line))}</span>'
    badge = f'<span class="badge {escape(status)}">{escape(status.replace("_", " "))}</span>'
    head = f'<div class="head">{row}<span class="class">{escape(classes_text(line, "→"))}</span>{badge}</div>'
    details = _pictures(line) or _table(line)
    said = f'<p class="said">{escape(as_sentence(line)).replace(" %)", "&nbsp;%)")}</p>'
    notes = (quality(line), message_in_words(line)) if line.n_changes[0] else ()
    note = "".join(f'<p class="note">{escape(text)}</p>' for text in notes if text)
    return f'<section class="card">{head}{_proba(line)}{said}{details}{note}</section>'


def _proba(line: Record) -> str:
    """The probability of the new class: a grey bar for before, drawn over a green one for after."""
    if not line.found[0]:
        return ""
    before, after = (float(proba[0]) for proba in line.new_class_proba)
    bars = f'<i style="width:{after:.1%}"></i><i class="was" style="width:{before:.1%}"></i>'
    was, now = escape(percent(before)), escape(percent(after))
    label = f'<span class="dim">probability of {escape(line.class_name(line.counterfactual_class[0]))}</span>'
    return f'<div class="proba">{label}<div class="track">{bars}</div><span>{was} → <b>{now}</b></span></div>'


def _pictures(line: Record) -> str:
    """Original, counterfactual and difference of an image; nothing for other rows."""
    shown = figures(line)
    if not shown:
        return ""
    images = "".join(
        f'<figure><img alt="{name.partition(":")[0]}" src="{url}"><figcaption>{name}</figcaption></figure>'
        for name, url in shown
    )
    count = f'<p class="note">{values_changed(line)}</p>' if line.found[0] else ""
    return f'<div class="pictures">{images}</div>{count}'


def values_changed(line: Record) -> str:
    """12 of 784 values changed."""
    return f"{line.n_changes[0]:,} of {line.original.size:,} values changed"


def _table(line: Record) -> str:
    """The changed features, before and after, with a bar; the last and the unchanged ones are folded away."""
    changes = shown_changes(line)
    rows = [_table_row(change, change.size / full_width(line, changes)) for change in changes]
    heads = "<tr><th>feature</th><th>before</th><th>after</th><th class='how'>change</th><th class='bar'></th></tr>"
    shown, rest = (f'<table class="changes">{heads}{"".join(r)}</table>' for r in (rows[:_SHOWN], rows[_SHOWN:]))
    more = _folded(counted(len(changes) - _SHOWN, "more change"), rest) if len(rows) > _SHOWN else ""
    changed = {change.feature for change in changes}
    values = zip(line.column_names or (), line.cells, strict=False)
    same = [(name, value_text(value)) for name, value in values if name not in changed]
    noun = "unchanged feature" if line.found[0] else "feature"
    return f"{shown if rows else ''}{more}{_folded(counted(len(same), noun), _list(same)) if same else ''}"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _list(items: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>' for k, v in items)}</dl>"


def _table_row(change: Shown, width: float) -> str:
    """A change, where it goes and by how much, and a bar: width is -1 to 1 of the room to either side."""
    side = f"left:50%;width:{width / 2:.1%}" if width > 0 else f"right:50%;width:{-width / 2:.1%}"
    bar = (
        f'<span class="swing"><i class="{"more" if width > 0 else "less"}" style="{side}"></i></span>' if width else ""
    )
    before, after = escape(change.before), escape(change.after)
    cells = f'<td>{escape(change.feature)}</td><td>{before}</td><td class="after">{after}</td>'
    much = f' <span class="dim">{change.much}</span>' if change.much else ""
    much += f'<br><span class="only">{escape(change.only)}</span>' if change.only else ""
    return f'<tr>{cells}<td class="how">{change.direction}{much}</td><td class="bar">{bar}</td></tr>'
