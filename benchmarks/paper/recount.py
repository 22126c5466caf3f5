"""Tables and verdicts once more from the committed rows: `python benchmarks/paper/recount.py`.

For when the rule or the form of a table changed and nothing else: the sections of docs/paper-mnist.md and
docs/paper-breast-cancer.md that follow from benchmarks/results/paper/*_rows.csv are written anew, without a search.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import breast_cancer_report
import claims
import mnist_tables
import mnist_text
import numpy as np
from common import Places, wrapped
from protocol import TEXT

Columns = dict[str, Any]


def read(file: Path, key: str) -> dict[str, list[Columns]]:
    """By the name in the column `key`: a table of numbers, NaN where a cell is empty or "nan"."""
    with file.open() as opened:
        lines = list(csv.DictReader(opened))
    found: dict[str, list[Columns]] = {}
    for name in dict.fromkeys(line[key] for line in lines):
        mine = [line for line in lines if line[key] == name]
        found[name] = [{c: np.array([float(line[c] or "nan") for line in mine]) for c in mine[0] if c != key}]
    return found


def replaced(page: str, heading: str, parts: Sequence[str]) -> str:
    """The page with another text below a heading, up to the next one."""
    before, rest = page.split(f"\n## {heading}\n", 1)
    _, *after = rest.split("\n## ", 1)
    text = "\n\n".join(wrapped(part) for part in parts)
    return f"{before}\n## {heading}\n\n{text}\n" + "".join(f"\n## {part}" for part in after)


def mnist_table(rows: Path) -> list[str]:
    """The section with table 1."""
    table = mnist_tables.pooled(read(rows, "setting"))
    products = [name for name in dict.fromkeys(r.name for r in table.records) if name.startswith("default")]
    return [
        f"By the text of the paper: {TEXT.words}.",
        mnist_tables.table_one(table, TEXT, products),
        mnist_text.TABLE.format(iterations=TEXT.steps),
        mnist_text.LOSSES_PICTURE,
    ]


def mnist_claims(rows: Path) -> list[str]:
    """The section with the claims."""
    found = mnist_tables.all_claims(read(rows, "setting"))
    return [
        claims.RULE + mnist_text.GROUPS + " The verdicts are of the table by the text: " + claims.tally(found) + ".",
        claims.table(found),
    ]


def breast_cancer_claims(rows: Path) -> list[str]:
    """The section with the claims."""
    found = []
    for name, (columns,) in read(rows, "method").items():
        for seed in np.unique(columns["seed"]):
            at = columns["seed"] == seed
            found.append((int(seed), name, {c: v[at] for c, v in columns.items() if c not in {"seed", "row"}}))
    names = [name for _, name, _ in found]
    thetas = sorted({float(n.split("=")[1]) for n in names if n.startswith("B theta=")} | {100.0})
    ks = sorted({int(n.split("=")[1]) for n in names if n.startswith("B k=")} | {1})
    size: Any = SimpleNamespace(rows=len(found[0][2]["im1"]), thetas=thetas, ks=ks)
    return breast_cancer_report.judged(found, size)


SECTIONS = (
    ("mnist", "Table 1", mnist_table),
    ("mnist", "The paper's claims", mnist_claims),
    ("breast_cancer", "The paper's claims", breast_cancer_claims),
)


def main(places: Places) -> None:
    """Both pages."""
    for name, heading, section in SECTIONS:
        page = places.docs / f"paper-{name.replace('_', '-')}.md"
        parts = section(places.results / f"{name}_rows.csv")
        page.write_text(replaced(page.read_text(), heading, parts))


if __name__ == "__main__":
    main(Places())
