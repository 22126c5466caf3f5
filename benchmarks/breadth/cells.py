"""What is asked, in which order and with which limits, and where every answer is kept.

A cell is a table, a model and a method. The answers of all cells are kept one by one in .cache/breadth/answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "answers"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

from environments import TOP, Cell, Place
from matrices import MODELS, names

PLACE = Place(TOP / ".cache" / "breadth", row_seconds=20, cell_seconds=60, alone=11)
SHORTER = {"dice": 3, "alibi": 30}  # seconds of processor time for a cell; the slow ones get less

OURS = (
    "ours",
    "ours, close",
    "ours, few",
    "ours, few with floors",
    "ours, typical",
    "ours, stable",
    "ours, close, function",
)
METHODS: dict[str, tuple[str, ...]] = {
    "nice": ("NICE none", "NICE sparsity", "NICE proximity", "NICE plausibility"),
    "treecf": ("treecf",),
    "dice": ("DiCE random",),
    "alibi": ("alibi L1+L2+proto",),
    "ours": OURS,
}
NOT_WITH = {"treecf": ("mlp",), "NICE plausibility": ("forest",)}  # treecf reads trees; the other takes minutes there
A_FEW = ("breast_cancer", "iris", "pima_diabetes", "wine")  # alibi is slow


def cells(tool: str) -> list[Cell]:
    """The cells of a tool, in the order in which they are asked: every table has its turn before the next model."""
    tables = A_FEW if tool == "alibi" else names()
    found = [(data, kind, name) for name in METHODS[tool] for kind in MODELS for data in tables]
    return [cell for cell in found if cell[1] not in NOT_WITH.get(cell[2], ())]
