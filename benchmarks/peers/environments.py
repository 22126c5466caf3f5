"""Every peer has an environment of its own under .venv-peers and is asked in a process of its own, on one thread."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
ENVIRONMENTS = TOP / ".venv-peers"
# one thread for all: BLAS and OpenMP, treecf's Rust, alibi's TensorFlow
THREADS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1") | {"TF_CPP_MIN_LOG_LEVEL": "3"}

Cell = tuple[str, str, str]  # a data set, a model, a method


@dataclass(frozen=True)
class Place:
    """Where the cases of a comparison are, where its answers go, and the limits in seconds of processor time."""

    folder: Path
    row_seconds: float
    cell_seconds: float
    alone: int | None = None  # rows that ours is asked one by one, for its times; the answers are those of one call

    @property
    def cases(self) -> Path:
        return self.folder / "cases"

    @property
    def answers(self) -> Path:
        return self.folder / "answers"

    def file(self, cell: Cell) -> Path:
        """The answers of one cell."""
        return self.answers / f"{'-'.join(cell)}.json"


def environment(peer: str) -> Path:
    """The Python of a peer, made anew when its requirements changed; ours is the one that runs this."""
    if peer == "ours":
        return Path(sys.executable)
    folder, needs = ENVIRONMENTS / peer, HERE / f"requirements-{peer}.txt"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists() or ready.stat().st_mtime < needs.stat().st_mtime:
        print(f"installing {peer} ...", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", "-r", needs], check=True)
        ready.touch()
    return python


def code_of_ours() -> str:
    """A short name of the package's code: answers of other code are asked again."""
    files = sorted(file for folder in ("cfproto_plugin", "adapters") for file in (TOP / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def ask(tool: str, cells: list[Cell], place: Place) -> None:
    """Every cell of the tool that has no file yet; ours also where the file is of other code."""
    place.answers.mkdir(parents=True, exist_ok=True)
    code = code_of_ours() if tool == "ours" else ""
    for file in (place.file(cell) for cell in cells if code):
        if file.exists() and json.loads(file.read_text()).get("code") != code:
            file.unlink()
    todo = [cell for cell in cells if not place.file(cell).exists()]
    if not todo:
        return
    given = {
        "tool": tool,
        "folder": str(place.cases),
        "output": str(place.answers),
        "cells": todo,
        "row_seconds": place.row_seconds,
        "cell_seconds": place.cell_seconds,
        "alone": place.alone if tool == "ours" else None,
        "code": code,
    }
    subprocess.run([environment(tool), HERE / "worker.py", json.dumps(given)], check=True, env=os.environ | ONE_THREAD)
