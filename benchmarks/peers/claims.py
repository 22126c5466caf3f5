"""The comparisons that the numbers are read for: ours against one peer, row by row on the rows that both solved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fronts import interval

SHORT = {"breast_cancer": "Breast Cancer", "wine": "Wine", "digits": "digits"}
MORE_IS_BETTER = ("survival", "typicality")
DEFAULT, CLOSE, FEW, TYPICAL, L1 = "ours", "ours, close", "ours, few", "ours, typical", "ours, close, beta=10"
FUNCTION = ", function"
GIVEN_A_FUNCTION = ("NICE none", "NICE sparsity", "NICE proximity", "NICE plausibility")
SAMPLERS = ("DiCE random", "DiCE genetic", "alibi L1+L2+proto")
NEAREST = ("NICE proximity", "treecf", "treecf exact", *SAMPLERS)

# what is compared, the measure, our method, the peers
PAIRS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("Distance, EN", "en", CLOSE, NEAREST),
    ("Distance, EN, ours on the plain function too", "en", CLOSE + FUNCTION, ("NICE proximity", *SAMPLERS)),
    ("L1, what treecf and NICE proximity minimise", "l1", L1, ("NICE proximity", "treecf", "treecf exact")),
    ("L1, ours on the plain function too", "l1", L1 + FUNCTION, ("NICE proximity",)),
    ("Columns changed, what NICE sparsity minimises", "l0", FEW, ("NICE sparsity", "treecf", "DiCE random")),
    ("Columns changed, ours on the plain function too", "l0", FEW + FUNCTION, ("NICE sparsity", "DiCE random")),
    ("5NN", "nn5", TYPICAL, ("NICE none", "NICE plausibility", "DiCE genetic", "alibi L1+L2+proto")),
    ("Error of the autoencoder, what NICE plausibility minimises", "ae", TYPICAL, ("NICE plausibility",)),
    ("EN + 100·prototype, what alibi minimises", "j100", "ours, theta=100", ("alibi L1+L2+proto",)),
    ("Refitted models that agree", "survival", DEFAULT, (*GIVEN_A_FUNCTION, "treecf", "treecf exact", *SAMPLERS)),
    ("Typicality", "typicality", DEFAULT, (*GIVEN_A_FUNCTION, "treecf", "treecf exact", *SAMPLERS)),
    ("Time", "cpu", CLOSE, NEAREST),
    ("Time, ours on the plain function too", "cpu", CLOSE + FUNCTION, ("NICE proximity", *SAMPLERS)),
    ("Time", "cpu", FEW, ("NICE sparsity",)),
    ("Time, ours on the plain function too", "cpu", FEW + FUNCTION, ("NICE sparsity",)),
)

Lines = dict[tuple[str, str, str], dict[str, Any]]


def index(lines: list[dict[str, Any]]) -> Lines:
    """By data set, model and method; without those that failed."""
    return {(line["data"], line["model"], line["method"]): line for line in lines if "error" not in line}


def both(ours: dict[str, Any], peer: dict[str, Any], name: str) -> np.ndarray:
    """(2, n) the values of the rows that both were given and solved."""
    rows = [at for at, valid in enumerate(zip(ours["valid"], peer["valid"], strict=False)) if all(valid)]
    return np.array([[line[name][at] for at in rows] for line in (ours, peer)], dtype=float)


def compared(ours: dict[str, Any], peer: dict[str, Any], name: str) -> dict[str, Any]:
    """Ours minus the peer's with its 95 % interval; of times the geometric mean of ours / peer's."""
    values = both(ours, peer, name)
    if not values.shape[1]:
        return {"n": 0}
    means, gap = values.mean(axis=1), values[0] - values[1]
    if name == "cpu":
        means, gap = np.median(values, axis=1), np.log(values[0] / values[1])
    middle, low, high = float(gap.mean()), *interval(gap)
    lower, higher = ("peer", "ours") if name in MORE_IS_BETTER else ("ours", "peer")
    verdict = lower if high < 0 else higher if low > 0 else "even"
    if name == "cpu":
        middle, low, high = math.exp(middle), math.exp(low), math.exp(high)
    return {
        "n": values.shape[1],
        "ours": float(means[0]),
        "peer": float(means[1]),
        "difference": [middle, low, high],
        "verdict": verdict,
    }


def compare(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per pair and case where the peer ran."""
    known, found = index(lines), []
    for text, name, mine, peers in PAIRS:
        for theirs in peers:
            for data, model in dict.fromkeys((line["data"], line["model"]) for line in lines):
                ours, peer = known.get((data, model, mine)), known.get((data, model, theirs))
                if ours is None or peer is None:
                    continue
                pair = {"what": text, "measure": name, "mine": mine, "peer_name": theirs, "data": data, "model": model}
                found.append(pair | compared(ours, peer, name))
    return [one for one in found if one["n"]]
