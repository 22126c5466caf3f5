"""Run the benchmarks and write their results: `make bench`, or `python benchmarks/run.py adult trees` for some of them.

Writes benchmarks/results/<name>.json, then the page docs/benchmarks.md from all the results there are, and the figures
of docs/settings.md.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import adult
import complete
import constants
import encoder
import fitting
import functions
import many_rows
import million
import network
import passes
import presets
import proofs
import reference
import scaling
import settings
import trees

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = ("cfproto-plugin", "numpy", "scipy", "scikit-learn", "torch", "tensorflow", "keras", "xgboost-cpu")
BENCHMARKS = {
    "reference": reference,
    "passes": passes,
    "network": network,
    "trees": trees,
    "functions": functions,
    "adult": adult,
    "complete": complete,
    "encoder": encoder,
    "proofs": proofs,
    "presets": presets,
    "settings": settings,
    "constants": constants,
    "scaling": scaling,
    "fitting": fitting,
    "million": million,
    "many_rows": many_rows,
}


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown, numbers to three digits."""
    head = list(lines[0])
    body = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in line.values()] for line in lines]
    rows = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def page(results: dict[str, Any]) -> str:
    """The page of the docs."""
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Times were taken on a shared two-core machine.",
        "",
    ]
    for name, result in results.items():
        text = (BENCHMARKS[name].__doc__ or "").strip().split("\n\n")
        parts += [f"## {text[0]}", "", *text[1:], "", table(result["lines"]), "", footer(result), ""]
    return "\n".join(parts)


def footer(result: dict[str, Any]) -> str:
    """When it was measured, and with what; `note` is written by hand into results that later code would change."""
    versions = ", ".join(f"{package} {number}" for package, number in result["versions"].items())
    return f"{result['date']}; {versions}." + (f" {result['note']}" if "note" in result else "")


def run(name: str) -> None:
    """Measure one and keep its result; what was measured before stays if there is nothing to measure."""
    print(f"{name} ...", flush=True)
    lines = BENCHMARKS[name].measure()
    if not lines:
        return
    result = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": f"OMP_NUM_THREADS=1 python benchmarks/run.py {name}",
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "lines": lines,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(table(lines), flush=True)


def main(names: list[str]) -> None:
    """Run those named, all without a name, and write the page."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        run(name)
    files = {name: RESULTS / f"{name}.json" for name in BENCHMARKS}
    results = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    (HERE.parent / "docs" / "benchmarks.md").write_text(page(results))
    if "presets" in results:
        result = results["presets"]
        presets.write_page(result, table(result["lines"]), f"`{result['command']}`, {footer(result)}")


if __name__ == "__main__":
    main(sys.argv[1:])
