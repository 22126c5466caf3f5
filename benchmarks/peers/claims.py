"""The comparisons that the numbers are read for: ours against one peer, row by row on the rows that both solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from fronts import SAMPLES, interval

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
    ("Columns changed, with floors", "l0", "ours, few with floors", ("NICE sparsity", "treecf", "DiCE random")),
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
    """Ours minus the peer's with its 95 % interval; of times ours divided by the peer's."""
    values = both(ours, peer, name)
    if not values.shape[1]:
        return {"n": 0}
    found = {"n": values.shape[1], "ours": float(values[0].mean()), "peer": float(values[1].mean())}
    middle, low, high = ratio(values) if name == "cpu" else difference(values)
    equal = 1.0 if name == "cpu" else 0.0
    lower, higher = ("peer", "ours") if name in MORE_IS_BETTER else ("ours", "peer")
    verdict = lower if high < equal else higher if low > equal else "even"
    return found | {"difference": [middle, low, high], "verdict": verdict}


def difference(values: np.ndarray) -> tuple[float, float, float]:
    """The mean of ours minus the peer's, with the interval."""
    gap = values[0] - values[1]
    return float(gap.mean()), *interval(gap)


def ratio(values: np.ndarray) -> tuple[float, float, float]:
    """The mean of ours divided by that of the peer's, with 95 % of the ratios of resampled rows."""
    at = np.random.default_rng(0).integers(values.shape[1], size=(SAMPLES, values.shape[1]))
    means = values[:, at].mean(axis=2)
    low, high = np.quantile(means[0] / means[1], (0.025, 0.975))
    return float(values[0].mean() / values[1].mean()), float(low), float(high)


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
