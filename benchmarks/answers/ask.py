"""Ask one peer in its own environment: `python ask.py` with the case, the methods and the output as JSON.

Writes the cells of every answer and the time it took; nothing is judged here. A row on which a method raises or takes
more processor time than its limit has no answer, and the error is kept.
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

from asking import TooSlowError, _stop, asked, watch
from cases import load

__all__ = ["TooSlowError", "_stop", "asked"]


def main(peer: str, folder: Path, data: str, kind: str, methods: dict[str, int], seconds: int, output: Path) -> None:
    """All methods named, on one case."""
    watch()
    module = importlib.import_module(f"peer_{peer}")
    case = load(folder, data, kind)
    by_name = {method.name: method for method in module.METHODS}
    found = {name: asked(by_name[name], case, rows, seconds) for name, rows in methods.items()}
    versions = {package: version(package) for package in module.PACKAGES}
    output.write_text(json.dumps({"versions": versions, "methods": found}))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(
        given["peer"],
        Path(given["folder"]),
        given["data"],
        given["kind"],
        given["methods"],
        given["seconds"],
        Path(given["output"]),
    )
