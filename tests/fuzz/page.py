"""The figures of docs/promises.md, from the results of the fuzz and of the thirty tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "promises.md"
RESULTS = TOP / "benchmarks" / "results"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def page() -> str:
    """The page with the figures of the results that are there."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return head + BEGIN + figures() + END + rest.partition(END)[2]


def figures() -> str:
    if not all((RESULTS / f"{name}.json").exists() for name in ("fuzz", "tables")):
        return ""
    fuzz, tables = (json.loads((RESULTS / f"{name}.json").read_text()) for name in ("fuzz", "tables"))
    rows = [
        ("command", "`python -m tests.fuzz --rows 20000`", "`python -m tests.fuzz --tables`"),
        ("date", fuzz["date"], tables["date"]),
        ("rows explained", *(f"{r['rows']:,}" for r in (fuzz, tables))),
        ("cases", *(f"{r['cases']:,}" for r in (fuzz, tables))),
        ("kinds of models, or tables with a model", len(fuzz["kinds"]), len(tables["kinds"])),
        ("lines by status", *(_listed(r["statuses"]) for r in (fuzz, tables))),
        ("findings", *(len(r["findings"]) for r in (fuzz, tables))),
    ]
    lines = ["", "| | fuzz | thirty tables |", "| --- | --- | --- |"]
    lines += [f"| {name} | {first} | {second} |" for name, first, second in rows]
    return "\n".join([*lines, "", f"Versions: {_listed(fuzz['versions'])}.", "", *_kinds(fuzz), ""])


def _listed(counts: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {count:,}" if isinstance(count, int) else f"{name} {count}" for name, count in counts.items()
    )


def _kinds(fuzz: dict[str, Any]) -> list[str]:
    return [f"Kinds of models and the rows of each: {_listed(fuzz['kinds'])}."]
