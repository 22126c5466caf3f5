"""What a person should be able to expect of an answer, and whether the measured lines reach it.

Every target names the cases it is judged on; a case that was not measured is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tables import SMOOTH, TREES

Line = dict[str, Any]
ENOUGH = 30  # rows that NICE solved too: it knows two classes, and raises on most rows of the others
NAMED = ("breast_cancer", "sonar")  # the survival and the number of columns are promised for these


def judged(lines: list[Line]) -> list[dict[str, Any]]:
    """One entry per target and case."""
    default = [line for line in lines if line["tool"] == "ours, default"]
    stable = [line for line in lines if line["tool"] == "ours, stable"]
    presets = [line for line in lines if line["tool"].startswith("ours")]
    trees = [line for line in default if line["model"] in TREES]
    smooth = [line for line in default if line["model"] in SMOOTH]
    numeric = [line for line in trees if line.get("outliers") is not None]
    beside = [line for line in numeric if line.get("both", 0) >= ENOUGH]
    named = [line for line in beside if line["data"] in NAMED]
    return [
        *_each("every preset: printed values typed back have the class, %", presets, "typed", "at least", 100, 100),
        *_each("outliers of the claimed class, %", numeric, "outliers", "at most", 12, 100),
        *_each("refitted models that agree, %", named, "survival", "at least", 55, 100),
        *_mean("refitted models that agree, mean of these, %", named, "survival", 65),
        *_each("refitted models that agree, other tables, %", _others(numeric), "survival", "at least", 55, 100),
        *_each("distance / NICE proximity's", beside, "distance / NICE", "at most", 1.25),
        *_each("changed columns / NICE proximity's", beside, "changed / NICE", "at most", 2),
        *_each("stable(): refitted models that agree, %", stable, "survival", "at least", 90, 100, TREES),
        *_each("changed columns, share of all, %", [_share(line) for line in smooth], "share", "at most", 100 / 3, 100),
        *_each("n=3: lines with an answer, %", default, "filled", "at least", 100, 100),
    ]


def _each(
    what: str, lines: Iterable[Line], field: str, way: str, limit: float, times: float = 1, models: Any = None
) -> list[dict[str, Any]]:
    """Every line by itself; values within a rounding error of the limit reach it."""
    reach: Callable[[float], bool] = (
        (lambda v: v >= limit - 1e-9) if way == "at least" else (lambda v: v <= limit + 1e-9)
    )
    found = []
    for line in lines:
        if line.get(field) is None or (models and line["model"] not in models):
            continue
        value = times * line[field]
        case = {"data": line["data"], "model": line["model"], "tool": line["tool"]}
        found.append({"what": what, "target": f"{way} {limit:.3g}", **case, "value": value, "met": reach(value)})
    return found


def _mean(what: str, lines: list[Line], field: str, limit: float) -> list[dict[str, Any]]:
    if not lines:
        return []
    value = 100 * sum(line[field] for line in lines) / len(lines)
    case = {"data": "all of them", "model": "", "tool": "ours, default"}
    return [{"what": what, "target": f"at least {limit:g}", **case, "value": value, "met": value >= limit}]


def _others(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["data"] not in NAMED]


def _share(line: Line) -> Line:
    return line | {"share": line["changed"] / line["columns"]}
