"""The figures of the page about the answers, and its picture, from the result of `judge.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from picture import MODELS, NAMES, QUALITIES, draw
from targets import judged

DOCS = Path(__file__).resolve().parents[2] / "docs"
VERDICTS = {
    "ours": "our front is better",
    "even": "no difference beyond the interval",
    "peer": "**the peer is better**",
}


def write(result: dict[str, Any]) -> None:
    """Fill the marked parts of docs/answers.md, and draw its picture."""
    lines, fronts = result["lines"], result["fronts"]
    draw(fronts, DOCS / "pictures" / "answers.png")
    parts = {
        "targets": _targets(judged(lines)),
        "fronts": "\n".join([_counts(fronts), "", *_better(fronts), *_end(fronts), *_verdicts(fronts)]),
        "tools": "\n".join([*_tables(lines), _footer(result)]),
    }
    fill(parts)


def fill(parts: dict[str, str]) -> None:
    """Put texts into the marked parts of docs/answers.md of these names."""
    file = DOCS / "answers.md"
    text = file.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, rest = text.split(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{part}\n<!-- end of {name} -->" + rest.split(f"<!-- end of {name} -->")[1]
    file.write_text(text, encoding="utf-8")


def _targets(found: list[dict[str, Any]]) -> str:
    """One line per target: in how many cases it is met, and those where it is not."""
    rows = []
    for what in dict.fromkeys(each["what"] for each in found):
        these = [each for each in found if each["what"] == what]
        values = [each["value"] for each in these]
        missed = [f"{_case(each)} {each['value']:.3g}" for each in these if not each["met"]]
        span = f"{min(values):.3g} to {max(values):.3g}" if len(values) > 1 else f"{values[0]:.3g}"
        met = f"{len(these) - len(missed)} of {len(these)}"
        rows.append([what, these[0]["target"], span, met, "; ".join(missed)])
    return table(["what a person looks at", "target", "measured", "met", "missed in"], rows)


def _case(each: dict[str, Any]) -> str:
    preset = each["tool"].removeprefix("ours, ")
    model = f" {MODELS[each['model']]}" if each["model"] else ""
    return f"{NAMES.get(each['data'], each['data'])}{model}" + (f" {preset}()" if preset != "default" else "")


def _counts(fronts: list[dict[str, Any]]) -> str:
    """How often which side is better, by peer."""
    found = [(verdict["peer"], verdict["verdict"]) for front in fronts for verdict in front["verdicts"]]
    rows = [
        [peer, *(str(found.count((peer, side))) for side in VERDICTS)]
        for peer in dict.fromkeys(peer for peer, _ in found)
    ]
    return table(["peer", *VERDICTS.values()], rows)


def _better(fronts: list[dict[str, Any]]) -> list[str]:
    """The points that lie on the better side of our fronts, in words."""
    found = [(front, verdict) for front in fronts for verdict in front["verdicts"] if verdict["verdict"] == "peer"]
    if not found:
        return ["No point of a peer lies on the better side of a front of ours beyond the interval.", ""]
    words = [
        f"- {verdict['peer']}, {NAMES[front['data']]}, {MODELS[front['model']]}: {QUALITIES[front['quality']]}"
        for front, verdict in found
    ]
    return ["On the better side of our fronts beyond the interval:", "", *words, ""]


def _end(fronts: list[dict[str, Any]]) -> list[str]:
    """Whether the front ends at the prototype."""
    ends = [front["end"] for front in fronts if front["end"] is not None]
    if not ends:
        return []
    far = f"at most {max(ends):.2g} standard deviations" if max(ends) > 0 else "not at all"
    return [
        f"The fronts end at the prototype: with `theta` 1e6, unpolished, answers differ {far} from a training row.",
        "",
    ]


def _verdicts(fronts: list[dict[str, Any]]) -> Iterable[str]:
    for quality, title in QUALITIES.items():
        rows = [
            [
                NAMES[front["data"]],
                MODELS[front["model"]],
                verdict["peer"],
                str(verdict["rows"]),
                _range(verdict["quality"], "+.3g"),
                _range(verdict["distance"], ".3g"),
                VERDICTS[verdict["verdict"]],
            ]
            for front in fronts
            if front["quality"] == quality
            for verdict in front["verdicts"]
        ]
        yield f"### {title[0].upper()}{title[1:]}\n"
        yield table(["data", "model", "peer", "rows", "quality", "distance", "verdict"], rows)
        yield ""


def _range(values: list[float] | None, form: str) -> str:
    if values is None:
        return "none of ours"
    middle, low, high = (format(value, form) for value in values)
    return f"{middle} ({low} to {high})"


def _tables(lines: list[dict[str, Any]]) -> Iterable[str]:
    head = {
        "tool": "tool",
        "distance": "distance",
        "distance / NICE": "/ NICE",
        "changed": "changed",
        "changed / NICE": "/ NICE",
        "outliers": "outliers",
        "typicality": "typicality",
        "survival": "refits agree",
        "typed": "typed",
        "filled": "n=3",
        "ms": "ms",
    }
    for data, model in dict.fromkeys((line["data"], line["model"]) for line in lines):
        these = [line for line in lines if (line["data"], line["model"]) == (data, model)]
        used = [field for field in head if any(line.get(field) is not None for line in these)]
        rows = [[_cell(line, field) for field in used] for line in these]
        yield f"### {NAMES.get(data, data)}, {MODELS[model]}, {these[0]['columns']} columns\n"
        valid = [f"{line['valid']} of {line['rows']}" if line["valid"] else "" for line in these]
        filled = [[row[0], answered, *row[1:]] for row, answered in zip(rows, valid, strict=True)]
        yield table(["tool", "valid", *(head[field] for field in used[1:])], filled)
        yield ""


def _cell(line: dict[str, Any], field: str) -> str:
    value = line.get(field)
    if value is None or isinstance(value, str):
        return value or ""
    return f"{100 * value:.0f} %" if field in ("outliers", "survival", "typed", "filled") else f"{value:.3g}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def _footer(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{package} {number}" for package, number in result["versions"].items())
    codes = sorted({str(code) for code in result["code"].values()})
    mixed = f" Ours was asked with {len(codes)} states of the code; run it again." if len(codes) > 1 else ""
    return f"{result['date']}, `make bench-answers`; {versions}; code {', '.join(codes)}.{mixed}"
