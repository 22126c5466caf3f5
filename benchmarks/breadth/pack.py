"""The answers of every method as one committed file: the changed cells of all rows of all cases.

With it a run needs the environment of no peer: cells that are not in .cache are taken from the files, if the models
here predict what they predicted where the answers were found.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from cells import METHODS, PLACE, cells
from environments import TOP, Cell
from store import part, whole

FOLDER = TOP / "benchmarks" / "results" / "breadth"
KEPT = ("cpu", "batch_ms", "same", "errors", "versions", "code")


def pack(folder: Path = FOLDER) -> None:
    """Write what is answered."""
    folder.mkdir(parents=True, exist_ok=True)
    for method, chosen in _by_method():
        found = {f"{data}-{kind}": _packed((data, kind, name)) for data, kind, name in chosen}
        if found:
            text = json.dumps(found, separators=(",", ":")).encode()
            _file(folder, method).write_bytes(gzip.compress(text, 9, mtime=0))


def unpack(folder: Path = FOLDER) -> None:
    """Fill .cache with the answers of the peers that it lacks; ours is asked again instead."""
    PLACE.answers.mkdir(parents=True, exist_ok=True)
    for method, _ in _by_method():
        file = _file(folder, method)
        if method in METHODS["ours"] or not file.exists():
            continue
        stored = json.loads(gzip.decompress(file.read_bytes()))
        for name, record in stored.items():
            data, kind = name.rsplit("-", 1)
            target = PLACE.file((data, kind, method))
            if not target.exists() and (PLACE.cases / f"{data}.npz").exists():
                rows, model = _rows(data, kind)
                if np.allclose(model, record.pop("model"), atol=1e-3):
                    answers = [whole(row, each) for row, each in zip(rows, record["cells"], strict=False)]
                    target.write_text(json.dumps(record | {"cells": answers}))


def _by_method() -> Iterable[tuple[str, list[Cell]]]:
    for tool, methods in METHODS.items():
        for method in methods:
            yield method, [cell for cell in cells(tool) if cell[2] == method and PLACE.file(cell).exists()]


def _packed(cell: Cell) -> dict[str, Any]:
    record = json.loads(PLACE.file(cell).read_text())
    rows, model = _rows(*cell[:2])
    record["cpu"] = [None if ms is None else round(ms, 2) for ms in record["cpu"]]
    changed = [part(row, answer) for row, answer in zip(rows, record["cells"], strict=False)]
    return {"model": model, "cells": changed, **{name: record[name] for name in KEPT if name in record}}


def _rows(data: str, kind: str) -> tuple[np.ndarray, list[float]]:
    """The rows of a case and what tells one model from another: its largest probability of every row."""
    with np.load(PLACE.cases / f"{data}.npz") as file:
        return file["rows"], np.round(file[kind].max(axis=1).astype(float), 4).tolist()


def _file(folder: Path, method: str) -> Path:
    return folder / f"{method.replace(', ', '-').replace(' ', '-')}.json.gz"
