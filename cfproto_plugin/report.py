"""How an explanation looks: as text in a terminal, as HTML in a notebook, and as a report file of its own.

The HTML needs nothing from outside: no scripts, no fonts, pictures are inline PNG. Text of the user is always escaped.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.explanation import column_names, new_class_proba

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from cfproto_plugin.explanation import Change, Explanation
    from cfproto_plugin.protocols import Array

_TEXT_LINES = 12
_TEXT_ROOM = 64  # with less room for the changes they go below their row
_NOTEBOOK_CARDS = 10
_SHOWN = 12
_DIGITS = 4
_CALLS = (("n_predict_calls", "predict calls"), ("n_predicted_rows", "rows predicted"))
_LARGEST_PLAIN = 9  # numbers of more digits before the point are written with an exponent, and those below 1e-4

# Greys are translucent and text inherits its colour, so that it reads on light and dark pages alike.
_CSS = """
.cfp{font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;max-width:880px}
.cfp *{box-sizing:border-box}
.cfp h1{font-size:26px;line-height:1.2;letter-spacing:-.01em;margin:0 0 4px}
.cfp .dim{opacity:.66}.cfp p{margin:0}
.cfp .tiles{display:flex;flex-wrap:wrap;gap:10px;margin:20px 0}
.cfp .tile{flex:1 1 100px;padding:10px 12px;white-space:nowrap;font-size:13px;
  border:1px solid #80808040;border-radius:10px;background:#8080800d}
.cfp .tile b{display:block;font-size:22px;font-weight:600;font-variant-numeric:tabular-nums}
.cfp .card{margin:14px 0;padding:14px 18px;border:1px solid #80808040;border-radius:12px;background:#8080800d}
.cfp .head{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 12px}
.cfp .head .row{opacity:.66;min-width:58px}.cfp .head .class{font-size:17px;font-weight:600}
.cfp .badge{margin-left:auto;padding:1px 10px;border-radius:99px;font-size:12px;background:#2a9d6f2e}
.cfp .badge.fallback{background:#d9962a38}.cfp .badge.not_found,.cfp .badge.infeasible{background:#d2495538}
.cfp .proba{display:grid;grid-template-columns:auto 1fr auto;gap:10px;align-items:center;margin:8px 0 2px}
.cfp .track{position:relative;height:8px;border-radius:4px;background:#80808030;overflow:hidden}
.cfp .track i{position:absolute;top:0;bottom:0;background:#2a9d6f}.cfp .track i.was{background:#8c8c8c}
.cfp .changes{width:100%;table-layout:fixed;border-collapse:collapse;margin:8px 0 4px;font-variant-numeric:tabular-nums}
.cfp .changes td,.cfp .changes th{padding:4px 8px;border:0;background:none;
  border-top:1px solid #80808030;text-align:right}
.cfp .changes th{font-weight:400;font-size:12px;opacity:.66;border-top:0}
.cfp .changes :first-child{text-align:left;padding-left:0}.cfp .changes td.after{font-weight:600}
.cfp .changes th{width:14%}.cfp .changes th:first-child{width:30%}
.cfp .changes .bar{width:30%;padding-right:0}.cfp .changes td{overflow-wrap:anywhere}
.cfp .note{opacity:.66;margin-top:8px;font-size:13px}.cfp .note:empty{display:none}
.cfp .swing{display:block;position:relative;height:12px;
  background:linear-gradient(#80808070,#80808070) 50%/1px 100% no-repeat}
.cfp .swing i{position:absolute;top:2px;bottom:2px;border-radius:2px;background:#3f7fd0}
.cfp .swing i.less{background:#dd7a3b}
.cfp details{margin-top:6px}.cfp summary{cursor:pointer;opacity:.66;font-size:13px}
.cfp dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));
  gap:2px 24px;margin:8px 0 2px;font-size:13px}
.cfp dl div{display:flex;justify-content:space-between;gap:12px;min-width:0}.cfp dt{opacity:.66;font-weight:400}
.cfp dd{margin:0;text-align:right;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.cfp .pictures{display:flex;flex-wrap:wrap;gap:18px;margin:12px 0 4px}.cfp figure{margin:0;text-align:center}
.cfp img{display:block;width:128px;image-rendering:pixelated;border-radius:4px;background:#80808020}
.cfp figcaption{font-size:12px;opacity:.66;margin-top:4px}
"""


def as_text(explanation: Explanation, width: int) -> str:
    """A table of at most `width` columns: one line per counterfactual; a single one lists its changes one per line."""
    counts = Counter(str(status) for status in explanation.status)
    title = f"Explanation of {_count(len(explanation), 'row')}"
    if not counts:
        return title
    title += ": " + ", ".join(f"{count} {status}" for status, count in counts.items())
    if len(explanation) == 1:
        return "\n".join([title, *_single(explanation, width)])
    shown = explanation[:_TEXT_LINES]
    cells = [("row", "status", "class", "p", "changes"), *(_cells(line) for line in shown)]
    columns = aligned(cells, right=(0, 3, 4))
    room = width - max(map(len, columns)) - 2
    if room < _TEXT_ROOM:
        below = [f"     {_largest(line, width - 5)}".rstrip() for line in shown]
        lines = [columns[0], *(text for both in zip(columns[1:], below, strict=True) for text in both if text)]
    else:
        notes = ["largest changes", *(_largest(line, room) for line in shown)]
        lines = aligned(list(zip(columns, notes, strict=True)))
    hidden = len(explanation) - len(shown)
    return "\n".join([title, *(_clip(text, width) for text in lines), *([f"... and {hidden} more"] if hidden else [])])


def as_html(explanation: Explanation) -> str:
    """A snippet for notebooks: a card per row, the first ten of them."""
    cards = [_card(line) for line in explanation[:_NOTEBOOK_CARDS]]
    hidden = len(explanation) - len(cards)
    more = f'<p class="dim">… and {hidden:,} more</p>' if hidden > 0 else ""
    return f'<style>{_CSS}</style><div class="cfp">{"".join(cards)}{more}</div>'


def write_report(
    explanation: Explanation, path: str | os.PathLike[str], title: str = "Counterfactual explanations"
) -> Path:
    """Write one HTML file that shows everything, and return its path."""
    path = Path(path)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = f"<style>:root{{color-scheme:light dark}}body{{margin:32px 20px}}.cfp{{margin:auto}}{_CSS}</style>"
    body = f"<h1>{escape(title)}</h1>{_summary(explanation)}{''.join(_card(line) for line in explanation)}"
    page = (
        f'<!doctype html><html lang="en"><head>{head}{style}</head><body><main class="cfp">{body}</main></body></html>'
    )
    path.write_text(page, encoding="utf-8")
    return path


def pair(before: Any, after: Any) -> tuple[str, str]:
    """Both values with four significant digits, or as many as it takes to tell them apart."""
    texts = [(_value(before, digits), _value(after, digits)) for digits in range(_DIGITS, 18)]
    return next((text for text in texts if text[0] != text[1]), texts[-1])


def _value(value: Any, digits: int = _DIGITS) -> str:
    if not isinstance(value, Real) or isinstance(value, (bool, Integral)) or not math.isfinite(value) or value == 0:
        return f"{value:g}" if isinstance(value, float) else str(value)
    exponent = math.floor(math.log10(abs(value)))
    if not -_DIGITS <= exponent < _LARGEST_PLAIN:
        return f"{value:.{digits}g}"
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines of equal columns two spaces apart; the columns in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if j in right else "<" for j in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip() for row in rows]


def ranked(explanation: Explanation) -> list[Change]:
    """The changes, largest first; pixels share a unit, columns are compared relative to their size, words lead."""
    if column_names(explanation) is None:
        return sorted(explanation.changes(), key=lambda change: -abs(change.after - change.before))
    return sorted(explanation.changes(), key=lambda change: -abs(_swing(change) or math.inf))


def _swing(change: Change) -> float:
    """The change relative to the larger of the two values, from -1 to 1; 0 if they are not finite numbers."""
    before, after = change.before, change.after
    numbers = isinstance(before, Real) and isinstance(after, Real) and not isinstance(before, bool)
    if not numbers or not (math.isfinite(before) and math.isfinite(after)):
        return 0.0
    return min(max(float(after - before) / float(max(abs(before), abs(after))), -1.0), 1.0)


def _feature(change: Change) -> str:
    return change.feature if isinstance(change.feature, str) else str(list(change.feature))


def _classes(line: Explanation, arrow: str) -> str:
    new = line.counterfactual_class[0]
    return f"{line.original_class[0]} {arrow} {'?' if new is None else new}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _cells(line: Explanation) -> tuple[str, ...]:
    """Row, status, classes, probability of the new class and number of changes, for the table."""
    proba = float(new_class_proba(line)[1][0])
    found = math.isfinite(proba)
    changes = str(len(line.changes())) if found else ""
    return str(line.row[0]), str(line.status[0]), _classes(line, "->"), f"{proba:.2f}" if found else "", changes


def _single(line: Explanation, width: int) -> list[str]:
    """One counterfactual in full: its classes and message, then a table of its changes."""
    proba = float(new_class_proba(line)[1][0])
    heading = f"row {line.row[0]}: {_classes(line, '->')}" + (f" (p = {proba:.2f})" if math.isfinite(proba) else "")
    changes = ranked(line)
    rows = [(_feature(c), b, "->", a) for c in changes[:_TEXT_LINES] for b, a in [pair(c.before, c.after)]]
    hidden = len(changes) - len(rows)
    lines = [heading, str(line.message[0]), *(["  " + row for row in aligned(rows, right=(1, 3))] if rows else [])]
    return [_clip(text, width) for text in lines if text] + ([f"  ... and {hidden} more"] if hidden else [])


def _largest(line: Explanation, width: int) -> str:
    """As many changes as fit, largest first; the message where there is none."""
    changes = ranked(line)
    if not changes:
        return _clip(str(line.message[0]), width)
    text = ""
    for i, change in enumerate(changes):
        before, after = pair(change.before, change.after)
        longer = text + ", " * bool(i) + f"{_feature(change)} {before} -> {after}"
        rest = len(changes) - i - 1
        if i and len(longer) + (len(f", +{rest} more") if rest else 0) > width:
            return f"{text}, +{len(changes) - i} more"
        text = longer
    return text


def _card(line: Explanation) -> str:
    """One counterfactual: its classes, probabilities and changes, or the pictures before and after."""
    status = str(line.status[0])
    row = f'<span class="row">{escape(_row_name(line))}</span>'
    badge = f'<span class="badge {escape(status)}">{escape(status.replace("_", " "))}</span>'
    head = f'<div class="head">{row}<span class="class">{escape(_classes(line, "→"))}</span>{badge}</div>'
    details = _pictures(line) or _table(line)
    note = f'<p class="note">{escape(str(line.message[0]))}</p>'
    return f'<section class="card">{head}{_proba(line)}{details}{note}</section>'


def _row_name(line: Explanation) -> str:
    """Row 3, with the label of the index if that says more."""
    name = f"Row {line.row[0]}"
    label = str(line.original.index[0]) if hasattr(line.original, "index") else name
    return name if label in {name, str(line.row[0])} else f"{name} · {label}"


def _proba(line: Explanation) -> str:
    """The probability of the new class before (grey) and after (up to the end of the green)."""
    before, after = (float(proba[0]) for proba in new_class_proba(line))
    if not (math.isfinite(before) and math.isfinite(after)):
        return ""
    bars = f'<i style="width:{after:.1%}"></i><i class="was" style="width:{before:.1%}"></i>'
    label = f'<span class="dim">P({escape(str(line.counterfactual_class[0]))})</span>'
    return (
        f'<div class="proba">{label}<div class="track">{bars}</div><span>{before:.1%} → <b>{after:.1%}</b></span></div>'
    )


def _table(line: Explanation) -> str:
    """The changed features as before -> after with a bar; the smallest and the unchanged ones folded away."""
    changes = ranked(line)
    rows = [_table_row(change) for change in changes]
    heads = "<tr><th>feature</th><th>before</th><th>after</th><th>change</th><th class='bar'></th></tr>"
    shown, rest = (f'<table class="changes">{heads}{"".join(r)}</table>' for r in (rows[:_SHOWN], rows[_SHOWN:]))
    smaller = _folded(_count(len(changes) - _SHOWN, "smaller change"), rest) if len(rows) > _SHOWN else ""
    changed = {change.feature for change in changes}
    values = zip(column_names(line) or (), np.asarray(line.original, dtype=object)[0], strict=False)
    same = [(name, _value(value)) for name, value in values if name not in changed]
    noun = "unchanged feature" if line.status[0] in {"found", "fallback"} else "feature"
    return f"{shown if rows else ''}{smaller}{_folded(_count(len(same), noun), _list(same)) if same else ''}"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _list(items: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>' for k, v in items)}</dl>"


def _table_row(change: Change) -> str:
    before, after = pair(change.before, change.after)
    swing = _swing(change)
    side = f"left:50%;width:{swing / 2:.1%}" if swing > 0 else f"right:50%;width:{-swing / 2:.1%}"
    bar = (
        f'<span class="swing"><i class="{"more" if swing > 0 else "less"}" style="{side}"></i></span>' if swing else ""
    )
    cells = f'<td>{escape(_feature(change))}</td><td>{escape(before)}</td><td class="after">{escape(after)}</td>'
    return f'<tr>{cells}<td class="dim">{_percent(change) if swing else ""}</td><td class="bar">{bar}</td></tr>'


def _percent(change: Change) -> str:
    """The change in percent of the value before, unless that is 0 or the change rounds to nothing."""
    percent = round(100 * (change.after - change.before) / abs(change.before)) if change.before else 0
    return f"{percent:+,}%".replace("-", "−") if percent else ""  # noqa: RUF001 a minus sign as wide as the plus


def _pictures(line: Explanation) -> str:
    """Original, counterfactual and difference (blue is more, orange is less), if a row is an image."""
    before, after = _image(line.original), _image(line.counterfactual)
    if before is None or after is None:
        return ""
    low, high = np.nanmin([before, after]), np.nanmax([before, after])
    figures = [("original", _grey(before, low, high))]
    if np.isfinite(after).all():
        figures += [("counterfactual", _grey(after, low, high)), ("difference", _blue_orange(after - before))]
    shown = "".join(f"<figure>{_png(image, name)}<figcaption>{name}</figcaption></figure>" for name, image in figures)
    count = f'<p class="note">{len(line.changes()):,} of {before.size:,} values changed</p>' if len(figures) > 1 else ""
    return f'<div class="pictures">{shown}</div>{count}'


def _image(x: Any) -> Array | None:
    """(h, w, 1 or 3) floats for a batch of one image, channels first or last; None for anything else."""
    image = np.asarray(x)[0] if np.ndim(x) > 2 else np.empty(0)  # noqa: PLR2004 rows of a table
    if image.ndim == 2:  # noqa: PLR2004 height and width
        image = image[..., None]
    if image.ndim == 3 and image.shape[-1] not in {1, 3} and image.shape[0] in {1, 3}:  # noqa: PLR2004 channels first
        image = np.moveaxis(image, 0, -1)
    return image.astype(float) if image.ndim == 3 and image.shape[-1] in {1, 3} else None  # noqa: PLR2004 channels


def _grey(image: Array, low: float, high: float) -> Array:
    return np.asarray(np.clip((image - low) / (high - low or 1), 0, 1) * 255)


def _blue_orange(delta: Array) -> Array:
    """White where nothing changed; the hues of the bars at the largest change."""
    part = delta.mean(axis=-1, keepdims=True) / (np.abs(delta).max() or 1)
    hue = np.where(part > 0, np.array([63, 127, 208]), np.array([221, 122, 59]))
    return np.asarray(255 + np.abs(part) * (hue - 255))


def _png(image: Array, name: str) -> str:
    """An <img> with the PNG of (h, w, 1 or 3) values from 0 to 255 inside."""
    height, width, channels = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image.round().astype(np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)  # noqa: PLR2004 colour
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks]
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(packed)).decode()
    return f'<img alt="{name}" src="data:image/png;base64,{data}">'


def _summary(explanation: Explanation) -> str:
    """Tiles with the counts, then the model, versions and settings folded away."""
    meta = explanation.meta
    counts = Counter(str(status).replace("_", " ") for status in explanation.status)
    tiles = [("rows explained", f"{len(set(explanation.row.tolist())):,}"), *((k, f"{v:,}") for k, v in counts.items())]
    if "seconds" in meta:
        tiles.append(("seconds", _value(float(meta["seconds"]), 3)))
    tiles += [(label, f"{meta[key]:,}") for key, label in _CALLS if key in meta]
    shown = "".join(
        f'<div class="tile"><b>{value}</b><span class="dim">{escape(label)}</span></div>' for label, value in tiles
    )
    rest = _flat({key: value for key, value in meta.items() if key not in {"seconds", *dict(_CALLS)}})
    model = f'<p class="dim">Adapter {escape(str(meta["adapter"]))}</p>' if "adapter" in meta else ""
    return (
        f'{model}<div class="tiles">{shown}</div>{_folded("Model, versions and settings", _list(rest)) if rest else ""}'
    )


def _flat(values: dict[str, Any]) -> list[tuple[str, str]]:
    """A dictionary of dictionaries as lines "versions numpy", "2.4"."""
    nested = [(k, v if isinstance(v, dict) else {"": v}) for k, v in values.items()]
    return [(f"{k} {name}".strip(), _value(v)) for k, inner in nested for name, v in inner.items()]
