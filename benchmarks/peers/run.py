"""Side by side with other libraries, on the same models and rows: `make bench-peers`.

Goes on where it was stopped: every answer is kept in .cache/peers, and ours is asked again after a change of the
package's code. `run.py --tools dice treecf` asks only those; lines of tools that have no answers on this machine stay
as they are in the result. `run.py --page` writes the page anew. Writes benchmarks/results/peers.json, docs/peers.md and
docs/pictures/peers.png.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "answers"))

from cases import CASES, build, load
from environments import ONE_THREAD, TOP, Cell, Place, ask
from report import write
from scores import line_of, scorer_of

PLACE = Place(TOP / ".cache" / "peers", row_seconds=40, cell_seconds=60)
RESULT = TOP / "benchmarks" / "results" / "peers.json"
TOOLS: dict[str, tuple[str, ...]] = {
    "ours": (
        "ours",
        "ours, close",
        "ours, few",
        "ours, few with floors",
        "ours, typical",
        "ours, stable",
        "ours, close, beta=10",
        "ours, theta=100",
        "ours, function",
        "ours, close, function",
        "ours, few, function",
        "ours, close, beta=10, function",
        "ours, certify",
    ),
    "nice": ("NICE none", "NICE sparsity", "NICE proximity", "NICE plausibility"),
    "treecf": ("treecf", "treecf exact"),
    "dice": ("DiCE random", "DiCE genetic"),
    "alibi": ("alibi L1+L2+proto",),
}


def cells(tool: str) -> list[Cell]:
    """All cases for every method of the tool."""
    return [(data, kind, method) for method in TOOLS[tool] for data, kind in CASES]


def judged() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """One line per case and method that was asked here, and the versions of the packages."""
    lines, versions = [], {"python": platform.python_version()}
    for data, kind in CASES:
        case = load(PLACE.cases, data, kind)
        scorer, loss = scorer_of(case)
        for tool, methods in TOOLS.items():
            for method in methods:
                file = PLACE.file((data, kind, method))
                if file.exists():
                    record = json.loads(file.read_text())
                    versions |= {f"{tool}: {package}": found for package, found in record["versions"].items()}
                    lines.append(line_of(case, method, record, scorer, loss))
    return lines, versions


def renewed(old: dict[str, Any], lines: list[dict[str, Any]], versions: dict[str, str]) -> dict[str, Any]:
    """The old result with what was judged again in its place, in the order of the cases and tools."""

    def key(line: dict[str, Any]) -> Cell:
        return line["data"], line["model"], line["method"]

    known = {key(line): line for line in (*old["lines"], *lines)}
    order = [(*case, method) for case in CASES for methods in TOOLS.values() for method in methods]
    missing = {method: sum(each not in known for each in order if each[2] == method) for *_, method in order}
    return {
        "missing": {method: cases for method, cases in missing.items() if cases},
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "limits": {"row": PLACE.row_seconds, "cell": PLACE.cell_seconds},
        "versions": old["versions"] | versions,
        "lines": [known[each] for each in order if each in known],
    }


def main() -> None:
    """Ask, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=list(TOOLS), help="ask only these")
    parser.add_argument("--page", action="store_true", help="ask and judge nothing")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    if not given.page:
        if not (PLACE.cases / "digits.npz").exists():
            build(PLACE.cases)
        for tool in given.tools:
            ask(tool, cells(tool), PLACE)
        old = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        old = old if "limits" in old else {"lines": [], "versions": {}}
        RESULT.write_text(json.dumps(renewed(old, *judged()), separators=(",", ":")) + "\n")
    write(json.loads(RESULT.read_text()), TOP / "docs")


if __name__ == "__main__":
    main()
