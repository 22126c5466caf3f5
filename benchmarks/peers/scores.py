"""What a counterfactual is judged by, computed in one place for all peers, with the model it was found for.

EN = beta·L1 + L2, the distance to the row; L0, how many features changed; 5NN, the mean distance to the five nearest
training rows that the model gives the new class. Valid: the model gives it another class than the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import BETA, Case

UNCHANGED = 1e-5  # standard deviations; some peers return float32


def judge(case: Case, found: list[list[float] | None]) -> dict[str, list[Any]]:
    """One entry per row; None where there is no valid counterfactual."""
    own = case.proba(case.rows[: len(found)]).argmax(axis=1)
    known = case.proba(case.train).argmax(axis=1)
    scores: dict[str, list[Any]] = {"valid": [], "en": [], "l0": [], "nn5": []}
    for row, label, answer in zip(case.rows, own, found, strict=False):
        point = row if answer is None else np.asarray(answer)
        new = int(case.proba(point[None]).argmax())
        valid = new != label
        delta = np.abs(point - row)
        near = np.sort(np.linalg.norm(case.train[known == new] - point, axis=1))[:5].mean()
        values = (BETA * delta.sum() + np.square(delta).sum(), int((delta > UNCHANGED).sum()), near)
        scores["valid"].append(bool(valid))
        for name, value in zip(("en", "l0", "nn5"), values, strict=True):
            scores[name].append(float(value) if valid else None)
    return scores


def merge(case: Case, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """One line from the rounds of one method: times are medians over them, counterfactuals those of the first."""
    first = rounds[0]
    line = {name: first[name] for name in ("data", "model", "method")}
    if "error" in first:
        return line | {"error": first["error"]}
    line["ms"] = np.median([one["ms"] for one in rounds], axis=0).tolist()
    line["calls"] = first["calls"]
    if None not in first["proved"]:
        line["proved"] = first["proved"]
    if "batch_ms" in first:
        line["batch_ms"] = float(np.median([one["batch_ms"] for one in rounds]))
    if "many_ms" in first:
        line["many_ms"] = first["many_ms"]
    return line | judge(case, first["found"])


def middle(values: list[Any]) -> float:
    """The median over the rows that have a value."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else float("nan")
