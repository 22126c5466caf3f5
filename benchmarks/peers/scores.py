"""What the answers of every tool are judged by: the scores of `benchmarks/answers`, and two tools' own objectives.

ae: the error of the autoencoder that NICE's plausibility was given. j100: alibi's objective here, 0.1·L1 + L2 plus 100
times the squared distance to the prototype, the training row of the new class that is nearest to the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case
from reconstruction import reconstruction
from score import Scorer
from tables import Judged

THETA = 100.0  # alibi's
MEASURES = ("l1", "l2", "en", "l0", "nn5", "outlier", "typicality", "survival", "ae", "j100")
Loss = Callable[[np.ndarray], np.ndarray]


def scorer_of(case: Case) -> tuple[Scorer, Loss]:
    """What judges the answers of a case; learnt once."""
    judged = Judged(case.data, case.kind, case.model, case.train, case.labels, case.rows)
    return Scorer(judged), reconstruction(case)


def line_of(case: Case, method: str, record: dict[str, Any], scorer: Scorer, loss: Loss) -> dict[str, Any]:
    """One method on one case: its scores row by row, its times and its errors."""
    line = {"data": case.data, "model": case.kind, "method": method, "of": len(case.rows)}
    cells = record["cells"]
    if not any(answer is not None for answer in cells):
        return line | {"error": next(error for error in record["errors"] if error)}
    scores = scorer(cells)
    x = np.array([row if answer is None else answer for row, answer in zip(case.rows, cells, strict=False)], float)
    own = {"ae": loss(x), "j100": scores_of_alibi(scorer, x, np.array(scores["en"], float))}
    scores |= {
        name: [float(v) if ok else None for v, ok in zip(values, scores["valid"], strict=True)]
        for name, values in own.items()
    }
    line |= {"valid": scores["valid"], **{name: short(scores[name]) for name in MEASURES}}
    line |= {name: short(record[name]) for name in ("ms", "cpu")}
    line["errors"] = sorted(set(filter(None, record["errors"])))
    line |= {name: record[name] for name in ("calls", "proved") if None not in record[name]}
    return line | {name: record[name] for name in ("batch_ms", "many_ms") if name in record}


def scores_of_alibi(scorer: Scorer, x: np.ndarray, en: np.ndarray) -> np.ndarray:
    """(n,) its objective, with the prototype of the class that the model gives the answer."""
    from scipy.spatial.distance import cdist

    judged, found = scorer.judged, np.full(len(x), np.nan)
    label = np.asarray(judged.model.predict(x))
    z, rows = scorer.standardised(x), scorer.standardised(judged.rows[: len(x)])
    for each in np.intersect1d(label, judged.given):
        known, here = scorer.z[judged.given == each], label == each
        prototype = known[cdist(rows[here], known).argmin(axis=1)]
        found[here] = en[here] + THETA * np.square(z[here] - prototype).sum(axis=1)
    return found


def short(values: list[Any]) -> list[Any]:
    """Six digits are enough for a result file."""
    return [None if value is None else float(f"{value:.6g}") for value in values]


def middle(values: list[Any]) -> float:
    """The median over the rows that have a value."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else float("nan")


def mean(values: list[Any]) -> float:
    """Over the rows that have a value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")
