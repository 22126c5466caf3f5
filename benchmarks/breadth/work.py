"""Ask one tool in its own environment: `python work.py` with the tool, the folders, the cells and the limits as JSON.

Every (table, model, method) is a file of its own, written when it is answered, and one that exists is not asked again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path += [str(BENCHMARKS / "peers"), str(BENCHMARKS / "answers")]

from ask import TooSlowError, _stop, asked
from cases import load


def main(given: dict[str, Any]) -> None:
    """All cells of the tool that have no file yet."""
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    module = importlib.import_module(f"peer_{given['tool']}")
    methods = {method.name: method for method in module.METHODS}
    versions = {package: version(package) for package in module.PACKAGES}
    for data, kind, name in given["cells"]:
        file = Path(given["output"]) / f"{data}-{kind}-{name}.json"
        if file.exists():
            continue
        start = time.perf_counter()
        found: dict[str, Any] = {}
        with contextlib.suppress(TooSlowError):  # one that arrives after its row
            case = load(Path(given["folder"]), data, kind)
            found = asked(methods[name], case, len(case.rows), given["row_seconds"], given["cell_seconds"])
        if not found:
            continue
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found | {"versions": versions}))
        part.rename(file)
        solved = sum(cells is not None for cells in found["cells"])
        print(f"{file.stem}: {solved} of {len(found['cells'])}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
