"""Every tool on many tables: `make bench-breadth`, which goes on where it was stopped.

Asks what has no answer yet, cell by cell; ours is asked again after a change of the package's code. Then scores
everything and writes benchmarks/results/breadth.json, the answers in a folder beside it, docs/breadth.md and its
picture. `--tools` asks only those (none with `--tools` alone), `--page` only writes the page.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import warnings
from dataclasses import replace
from typing import Any

from cells import METHODS, PLACE, SHORTER, cells
from collect import EVERYWHERE, GROUPS, lines_of, ranked
from environments import ONE_THREAD, TOP, ask
from matrices import MODELS, SEED, build, names
from measure import NEAREST, Measured
from pack import pack, unpack
from sheet import write

RESULT = TOP / "benchmarks" / "results" / "breadth.json"


def scored(ready: bool) -> dict[str, Any]:
    """All cells that were answered; with `ready` only those of complete cases."""
    lines, scores, versions = [], {}, {"python": platform.python_version()}
    for data in names():
        for kind in MODELS if not ready else [kind for kind in MODELS if complete(data, kind)]:
            found, scores[data, kind] = lines_of(Measured(data, kind))
            lines += found
            for tool, methods in METHODS.items():
                for each in (scores[data, kind].get(method, {"versions": {}}) for method in methods):
                    versions |= {f"{tool}: {package}": number for package, number in each["versions"].items()}
    by_case = {(line["data"], line["model"]): line for line in lines}
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "limits": {"row": PLACE.row_seconds, "cell": PLACE.cell_seconds, "alone": PLACE.alone, **SHORTER},
        "seed": SEED,
        "versions": versions,
        "groups": [
            ranked(group, {case: scores[case] for case, line in by_case.items() if group.has(line, scores[case])})
            for group in GROUPS
        ],
        "lines": lines,
    }


def complete(data: str, kind: str) -> bool:
    """Whether ours and NICE answered the case, and its refitted models are at hand."""
    refits = PLACE.folder / "refits" / f"{data}-{kind}.joblib"
    asked = [name for name in EVERYWHERE if name != NEAREST]
    return refits.exists() and all(PLACE.file((data, kind, name)).exists() for name in asked)


def main() -> None:
    """Build the cases, ask, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="*", choices=METHODS, default=list(METHODS), help="ask only these")
    parser.add_argument("--page", action="store_true", help="ask and score nothing")
    parser.add_argument("--ready", action="store_true", help="score only the cases that are complete")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    if not given.page:
        for data in names():
            build(data, PLACE.cases)
        unpack()
        for tool in given.tools:
            most = SHORTER.get(tool, PLACE.cell_seconds)
            ask(tool, cells(tool), replace(PLACE, cell_seconds=most, row_seconds=min(PLACE.row_seconds, most)))
        pack()
        RESULT.write_text(json.dumps(scored(given.ready), separators=(",", ":")) + "\n")
    write(json.loads(RESULT.read_text()), TOP / "docs")


if __name__ == "__main__":
    main()
