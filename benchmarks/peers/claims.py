"""The comparisons that the numbers are read for: ours against one peer, medians over the rows both were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scores import middle

PATH, POLISHED, FEW = "ours, no polish", "ours, close", "ours, few_changes=1"
SHORT = {"breast_cancer": "Breast Cancer", "wine": "Wine", "digits": "digits"}

Limit = Callable[[float, str], float]
Lines = dict[tuple[str, str, str], dict[str, Any]]


def times(most: float) -> Limit:
    """At most `most` times the peer's."""
    return lambda peer, _: most * peer


def against_alibi(peer: float, model: str) -> float:
    """A hundredth on the forest, a fiftieth on XGBoost."""
    return peer / (100 if model == "forest" else 50)


def one_more(peer: float, _: str) -> float:
    """At most one feature more."""
    return peer + 1


# what is claimed, our method, theirs, what is compared, the most that ours may be
CLAIMS: tuple[tuple[str, str, str, str, Limit], ...] = (
    ("time at most 1/100 of alibi's on the forest, 1/50 on XGBoost", PATH, "alibi L1+L2+proto", "ms", against_alibi),
    ("EN no worse than NICE none's", PATH, "NICE none", "en", times(1)),
    ("5NN within 1.3 times of NICE none's", PATH, "NICE none", "nn5", times(1.3)),
    ("EN below NICE proximity's", POLISHED, "NICE proximity", "en", times(1)),
    ("time below NICE proximity's", POLISHED, "NICE proximity", "ms", times(1)),
    ("EN below treecf's", POLISHED, "treecf", "en", times(1)),
    ("time below treecf's", POLISHED, "treecf", "ms", times(1)),
    ("EN against treecf's exact backend", POLISHED, "treecf exact", "en", times(1)),
    ("EN at most a third of DiCE random's", POLISHED, "DiCE random", "en", times(1 / 3)),
    ("time at most a fifth of DiCE random's", POLISHED, "DiCE random", "ms", times(1 / 5)),
    ("L0 no higher than NICE sparsity's", FEW, "NICE sparsity", "l0", times(1)),
    ("L0 within one feature of treecf's", FEW, "treecf", "l0", one_more),
    ("EN below NICE sparsity's", FEW, "NICE sparsity", "en", times(1)),
    ("a thousand rows in one call: time below treecf's", POLISHED, "treecf", "many_ms", times(1)),
)


def index(lines: list[dict[str, Any]]) -> Lines:
    """By data set, model and method; without those that failed."""
    return {(line["data"], line["model"], line["method"]): line for line in lines if "error" not in line}


def pair(ours: dict[str, Any], peer: dict[str, Any], name: str) -> tuple[float, float]:
    """The medians over the rows that both were given and solved, or the one number there is."""
    if not isinstance(ours[name], list):
        return ours[name], peer[name]
    both = [at for at, valid in enumerate(zip(ours["valid"], peer["valid"], strict=False)) if all(valid)]
    return middle([ours[name][at] for at in both]), middle([peer[name][at] for at in both])


def compare(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per claim and case where the peer ran. Nothing holds where ours left a row without an answer."""
    known, found = index(lines), []
    for text, mine, theirs, name, limit in CLAIMS:
        for data, model in dict.fromkeys((line["data"], line["model"]) for line in lines):
            ours, peer = known.get((data, model, mine)), known.get((data, model, theirs))
            if ours is None or peer is None or name not in peer or name not in ours:
                continue
            a, b = pair(ours, peer, name)
            holds = a <= limit(b, model) and all(ours["valid"])
            case = f"{SHORT[data]}, {model}"
            found.append({"claim": f"{mine}: {text}", "case": case, "ours": a, "peer": b, "holds": holds})
    return found
