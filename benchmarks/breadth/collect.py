"""From scores row by row to what is committed: a line per cell, and average ranks in groups of cases.

A group has the tools that are compared, and the cases in which all of them were asked: ours and NICE; the same on
tables without text columns; with DiCE; trees of two classes with treecf; a few tables with alibi.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from cells import A_FEW, METHODS, OURS
from matrices import MODELS
from measure import NEAREST, Measured, Scores
from ranks import averaged, ranks

TIMES = ("cpu", "fifty")  # milliseconds of a row alone, and of a row in one call with all fifty
LESS = ("en", "l1", "l0", "nn5", "im1", *TIMES)
MEASURES = dict.fromkeys(LESS, False) | {"survival": True}  # whether more is better
MEDIANS = ("im1",)  # of the rows of a case; the others are means
FIRST = dict.fromkeys(TIMES, 1)  # the first row pays for what is loaded on first use; its time is not counted
EVERYWHERE = (*OURS, "NICE none", "NICE sparsity", "NICE proximity", NEAREST)


@dataclass(frozen=True)
class Group:
    """Cases that are compared, and the tools."""

    name: str
    tools: tuple[str, ...]
    models: tuple[str, ...] = MODELS
    tables: tuple[str, ...] = ()  # all without a name
    two_classes: bool = False
    numbers: bool = False  # tables without text columns

    def has(self, line: dict[str, Any], asked: Collection[str]) -> bool:
        """Whether the case of a line, in which these tools were asked, belongs to the group."""
        known = not self.tables or line["data"] in self.tables
        known &= not self.numbers or line["texts"] == 0
        known &= line["model"] in self.models and (not self.two_classes or line["classes"] == 2)
        return bool(known and all(tool in asked for tool in self.tools))


GROUPS = (
    Group("all", EVERYWHERE),
    Group("numbers only", EVERYWHERE, numbers=True),
    Group("with NICE plausibility", (*EVERYWHERE, "NICE plausibility")),
    Group("with DiCE", (*EVERYWHERE, *METHODS["dice"])),
    Group("two classes, trees", (*EVERYWHERE, "treecf"), models=("xgboost", "forest"), two_classes=True),
    Group("a few tables", (*EVERYWHERE, "alibi L1+L2+proto"), tables=A_FEW),
)

Case = tuple[str, str]


def lines_of(measured: Measured) -> tuple[list[dict[str, Any]], dict[str, Scores]]:
    """One line per method that was asked, and its scores."""
    names = [method for methods in METHODS.values() for method in methods]
    found = {name: measured.scores(name) for name in (*names, NEAREST)}
    scores = {name: each for name, each in found.items() if each is not None}
    case = measured.case
    about = {
        "data": measured.data,
        "model": measured.kind,
        "columns": case.train.shape[1],
        "train": len(case.train),
        "classes": case.classes,
        "classes given": measured.classes_given,
        "of": len(case.rows),
        "texts": measured.texts,
    }
    lines = [
        about | {"method": name, **summed(each), "beside the default": beside(scores.get("ours"), each)}
        for name, each in scores.items()
    ]
    return lines, scores


def beside(default: Scores | None, other: Scores) -> list[float] | None:
    """The number of rows that both solved, and the agreement of refitted models there: the default's, the other's."""
    if default is None:
        return None
    rows = [at for at, both in enumerate(zip(default["valid"], other["valid"], strict=False)) if all(both)]
    means = [float(np.mean([each["survival"][at] for at in rows])) for each in (default, other) if rows]
    return [len(rows), *map(short, means)] if rows else None


def summed(scores: Scores) -> dict[str, Any]:
    """The rows of one cell in a few numbers, over those that have an answer."""
    line = {
        "asked": len(scores["valid"]) - sum(scores["late"]),
        "solved": sum(scores["valid"]),
        "same": scores["same"],
        "errors": scores["errors"][:3],
    }
    return line | {name: short(value(scores[name], name)) for name in (*MEASURES, "outlier", "typicality")}


def value(rows: list[float | None], name: str) -> float | None:
    """The mean or median over the rows that have a value."""
    known = [row for row in rows[FIRST.get(name, 0) :] if row is not None]
    if not known:
        return None
    return float(np.median(known) if name in MEDIANS else np.mean(known))


def ranked(group: Group, scores: dict[Case, dict[str, Scores]]) -> dict[str, Any]:
    """By measure: the average ranks of the tools of the group over its cases."""
    tools = list(group.tools)
    result: dict[str, Any] = {
        "name": group.name,
        "tools": tools,
        "cases": [list(case) for case in scores],
        "measures": {},
    }
    for name, more in MEASURES.items():
        names = [tool for tool in tools if name not in TIMES or tool != NEAREST]
        middle = np.median if name in MEDIANS else np.mean
        found = {
            case: ranks({tool: _rows(each[tool], name) for tool in names}, more, middle)
            for case, each in scores.items()
        }
        by_case = {case: each for case, each in found.items() if each is not None}
        if by_case:
            result["measures"][name] = {"tools": names, **averaged(by_case)}
    return result


def _rows(scores: Scores, name: str) -> list[float | None]:
    """None where there is no valid answer, NaN where a limit cut the row off."""
    known = scores[name] or [None] * len(scores["valid"])
    late = scores["late"] or [False] * len(known)
    rows = enumerate(zip(known, scores["valid"], late, strict=False))
    return [math.nan if cut or at < FIRST.get(name, 0) else v if ok else None for at, (v, ok, cut) in rows]


def short(number: float | None) -> float | None:
    """Six digits."""
    return None if number is None else float(f"{number:.6g}")
