"""What the answers of a cell are scored by, row by row; kept until the answers or this code change.

The scores are those of `benchmarks/answers`, and IM1: the error of a small autoencoder of the new class divided by that
of the old one, both taught by the training rows with that label. A class of fewer than ten rows has none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, load
from cells import PLACE
from score import Scorer
from tables import Judged

from cfproto_plugin.metrics import im1

FEWEST = 10
LARGE = 4000  # training rows; five refits of these, and of networks, instead of ten
NEAREST = "nearest training row"
FIELDS = ("en", "l1", "l0", "nn5", "outlier", "typicality", "survival")
CODE = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("measure.py", "matrices.py"))

Scores = dict[str, Any]
AutoEncoder = Callable[[np.ndarray], np.ndarray]


class Measured:
    """A table and a model; what is learnt of them is learnt when it is first needed, and kept."""

    def __init__(self, data: str, kind: str) -> None:
        self.data, self.kind = data, kind

    @cached_property
    def case(self) -> Case:
        return load(PLACE.cases, self.data, self.kind)

    @cached_property
    def scorer(self) -> Scorer:
        case = self.case
        refits = 5 if self.kind == "mlp" or len(case.train) > LARGE else 10
        judged = Judged(self.data, self.kind, case.model, case.train, case.labels, case.rows, refits)
        judged.__dict__["refits"] = _kept(f"refits/{self.data}-{self.kind}", lambda: judged.refits)
        return Scorer(judged)

    @cached_property
    def autoencoders(self) -> dict[int, Any]:
        return _kept(f"autoencoders/{self.data}", lambda: _autoencoders(self.case))

    def scores(self, method: str) -> Scores | None:
        """Row by row, None where there is no answer; None for a method that was not asked."""
        file = PLACE.file((self.data, self.kind, method))
        if method != NEAREST and not file.exists():
            return None
        text = b"" if method == NEAREST else file.read_bytes()
        key = hashlib.sha256(CODE + text).hexdigest()
        kept = PLACE.folder / "scores" / file.name
        known = json.loads(kept.read_text()) if kept.exists() else {}
        if known.get("key") != key:
            record = {"cells": self.nearest(), "cpu": [], "errors": []} if method == NEAREST else json.loads(text)
            known = {"key": key, **self.scored(record)}
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(known))
        return known

    def scored(self, record: dict[str, Any]) -> Scores:
        cells = record["cells"]
        found = self.scorer(cells)
        x = np.array([row if cell is None else cell for row, cell in zip(self.case.rows, cells, strict=False)], float)
        ratios = self.im1(x)
        return {
            "valid": found["valid"],
            **{name: found[name] for name in FIELDS},
            "im1": [v if ok and v == v else None for v, ok in zip(ratios, found["valid"], strict=True)],  # noqa: PLR0124
            "late": [(error or "").startswith("TooSlowError") for error in record["errors"]],
            "cpu": record["cpu"],
            "fifty": in_fifty(record),
            "same": record.get("same"),
            "errors": sorted(set(filter(None, record["errors"]))),
            "code": record.get("code", ""),
            "versions": record.get("versions", {}),
        }

    def im1(self, x: np.ndarray) -> list[float]:
        """NaN where a class has no autoencoder."""
        judged, found = self.scorer.judged, np.full(len(x), np.nan)
        new, own = np.asarray(judged.model.predict(x)), judged.own[: len(x)]
        for label, old in {(a, b) for a, b in zip(new.tolist(), own.tolist(), strict=True) if a != b}:
            if label in self.autoencoders and old in self.autoencoders:
                rows = (new == label) & (own == old)
                found[rows] = im1(x[rows], self.autoencoders[label].predict, self.autoencoders[old].predict)
        return found.tolist()

    def nearest(self) -> list[list[float] | None]:
        """The nearest training row that the model gives another class, by the Euclidean distance."""
        from scipy.spatial.distance import cdist

        judged = self.scorer.judged
        distances = cdist(judged.rows, judged.train)
        distances[judged.own[:, None] == judged.given[None]] = np.inf
        found = [judged.train[at].tolist() for at in distances.argmin(axis=1)]
        known = np.isfinite(distances.min(axis=1))
        return [row if ok else None for row, ok in zip(found, known, strict=True)]

    @property
    def texts(self) -> int:
        """How many columns of the table are text."""
        with np.load(PLACE.cases / f"{self.data}.npz") as file:
            return int(file["texts"])

    @property
    def classes_given(self) -> int:
        """How many classes the model gives its training rows."""
        return len(np.unique(self.scorer.judged.given))


def in_fifty(record: dict[str, Any]) -> list[float | None]:
    """Milliseconds of every row in one call with all; of a tool that has no such call those of the row alone."""
    return [record["batch_ms"]] * len(record["cells"]) if "batch_ms" in record else record["cpu"]


def _autoencoders(case: Case) -> dict[int, Any]:
    """By class: columns -> half -> a quarter -> half -> columns."""
    from sklearn.neural_network import MLPRegressor

    columns = case.train.shape[1]
    layers = (max(2, columns // 2), max(2, columns // 4), max(2, columns // 2))
    found = {}
    for label in np.unique(case.labels).tolist():
        rows = case.train[case.labels == label]
        if len(rows) >= FEWEST:
            found[label] = MLPRegressor(hidden_layer_sizes=layers, max_iter=500, random_state=0).fit(rows, rows)
    return found


def _kept(name: str, make: Callable[[], Any]) -> Any:
    """What was made before, or is made now and kept."""
    import joblib

    file = PLACE.folder / f"{name}.joblib"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(make(), file)
    return joblib.load(file)
