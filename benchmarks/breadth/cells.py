"""What is asked, in which order and with which limits, and where every answer is kept.

A cell is a table, a model and a method. The answers of all cells are kept one by one in .cache/breadth/answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path += [str(BENCHMARKS / "answers"), str(BENCHMARKS / "peers")]

from matrices import MODELS, names
from run import ONE_THREAD, environment

CACHE = BENCHMARKS.parent / ".cache" / "breadth"
CASES, ANSWERS = CACHE / "cases", CACHE / "answers"
ROW_SECONDS, CELL_SECONDS = 20, 60  # of processor time

OURS = ("ours", "ours, close", "ours, few", "ours, typical", "ours, close, function", "ours, few, function")
METHODS: dict[str, tuple[str, ...]] = {
    "nice": ("NICE none", "NICE sparsity", "NICE proximity", "NICE plausibility"),
    "treecf": ("treecf",),
    "dice": ("DiCE random",),
    "alibi": ("alibi L1+L2+proto",),
    "ours": OURS,
}
A_FEW = ("breast_cancer", "iris", "pima_diabetes", "wine")  # alibi is slow

Cell = tuple[str, str, str]


def cells(tool: str) -> list[Cell]:
    """The cells of a tool, in the order in which they are asked: every table has its turn before the next model."""
    tables = A_FEW if tool == "alibi" else names()
    models = [kind for kind in MODELS if tool != "treecf" or kind != "mlp"]
    return [(data, kind, name) for name in METHODS[tool] for kind in models for data in tables]


def ask(tool: str) -> None:
    """Everything that has no file yet, in the tool's own environment."""
    ANSWERS.mkdir(parents=True, exist_ok=True)
    given = {
        "tool": tool,
        "folder": str(CASES),
        "output": str(ANSWERS),
        "cells": cells(tool),
        "row_seconds": ROW_SECONDS,
        "cell_seconds": CELL_SECONDS,
    }
    command = [environment(tool), Path(__file__).with_name("work.py"), json.dumps(given)]
    subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
