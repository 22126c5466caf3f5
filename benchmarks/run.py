"""Run the benchmarks and write their results: `make bench`.

Writes benchmarks/results/<name>.json and the page docs/benchmarks.md that is made from them.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import reference
import trees

HERE = Path(__file__).resolve().parent
PACKAGES = ("cfproto-plugin", "numpy", "scipy", "scikit-learn", "torch", "tensorflow", "keras", "xgboost-cpu")
BENCHMARKS = {"reference": reference, "trees": trees}


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
        versions = ", ".join(f"{package} {number}" for package, number in result["versions"].items())
        parts += [f"## {text[0]}", "", *text[1:], "", table(result["lines"]), "", f"{result['date']}; {versions}.", ""]
    return "\n".join(parts)


def main() -> None:
    """Run all, then write all."""
    results = {}
    for name, module in BENCHMARKS.items():
        print(f"{name} ...", flush=True)
        results[name] = {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "command": "make bench",
            "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
            "lines": module.measure(),
        }
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{name}.json").write_text(json.dumps(results[name], indent=2) + "\n")
        print(table(results[name]["lines"]), flush=True)
    (HERE.parent / "docs" / "benchmarks.md").write_text(page(results))


if __name__ == "__main__":
    main()
