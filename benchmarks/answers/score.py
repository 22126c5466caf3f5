"""What answers are judged by, one number per row, computed in one place for every tool.

valid: the model gives another class. l1, l2 (squared) and en = 0.1·l1 + l2 in standard deviations. l0: changed columns.
nn5: the mean distance to the five nearest training rows that the model gives the claimed class. typicality: the
conformal p-value that `e.typicality` reports, in the claimed class. outlier: the local outlier factor (20 neighbours)
calls it one among the standardised training rows that the model gives the claimed class. survival: the share of ten
refitted models that give the claimed class. typed: the model gives the same class to the row as NumPy prints it.
nearest: the Euclidean distance to the nearest training row of the claimed class, in standard deviations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tables import Judged

from cfproto_plugin.metrics import elastic_net
from cfproto_plugin.search.typicality import Typicality

BETA, NEIGHBOURS = 0.1, 20
UNCHANGED = 1e-5  # standard deviations; some peers return float32
FIELDS = ("l1", "l2", "en", "l0", "nn5", "typicality", "outlier", "survival", "typed", "nearest")


class Scorer:
    """Learns the training rows of a case once, then judges the answers of any tool."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.mean = judged, judged.train.mean(axis=0)
        z = self.standardised(judged.train)
        self.typicality = Typicality(z, judged.given, 0)
        self.z = z
        self.factors = {label: _factor(z[judged.given == label]) for label in np.unique(judged.given)}

    def standardised(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) / self.judged.scale

    def __call__(self, cells: list[list[float] | None]) -> dict[str, list[Any]]:
        """Scores of the answers to the first rows; None where there is no valid answer."""
        rows = self.judged.rows[: len(cells)]
        x = np.array([row if answer is None else answer for row, answer in zip(rows, cells, strict=True)], dtype=float)
        label = np.asarray(self.judged.model.predict(x))
        valid = label != self.judged.own[: len(cells)]
        z, delta = self.standardised(x), (x - rows) / self.judged.scale
        nearest, nn5 = self.near(z, label)
        scores = {
            "l1": np.abs(delta).sum(axis=1),
            "l2": np.square(delta).sum(axis=1),
            "nn5": nn5,
            "en": elastic_net(x / self.judged.scale, rows / self.judged.scale, beta=BETA),
            "l0": (np.abs(delta) > UNCHANGED).sum(axis=1).astype(float),
            "typicality": self.typicality(z, label),
            "outlier": self.outliers(z, label),
            "survival": np.mean([model.predict(x) == label for model in self.judged.refits], axis=0),
            "typed": (np.asarray(self.judged.model.predict(printed(x))) == label).astype(float),
            "nearest": nearest,
        }
        kept = {
            name: [float(v) if ok else None for v, ok in zip(values, valid, strict=True)]
            for name, values in scores.items()
        }
        return {"valid": valid.tolist(), **kept}

    def near(self, z: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) distances to the nearest training row of the claimed class, and the mean to the five nearest."""
        from scipy.spatial.distance import cdist

        found = np.full((2, len(z)), np.nan)
        for each in np.intersect1d(label, self.judged.given):
            five = np.sort(cdist(z[label == each], self.z[self.judged.given == each]), axis=1)[:, :5]
            found[:, label == each] = five[:, 0], five.mean(axis=1)
        return found[0], found[1]

    def of_rows(self) -> dict[str, list[Any]]:
        """What the held-back rows themselves get, with their own class: an answer without a change."""
        z, own = self.standardised(self.judged.rows), self.judged.own
        survival = np.mean([model.predict(self.judged.rows) == own for model in self.judged.refits], axis=0)
        scores = {"typicality": self.typicality(z, own), "outlier": self.outliers(z, own), "survival": survival}
        nothing: list[Any] = [None] * len(own)
        return dict.fromkeys(FIELDS, nothing) | {
            "valid": [False] * len(own),
            **{name: values.tolist() for name, values in scores.items()},
        }

    def outliers(self, z: np.ndarray, label: np.ndarray) -> np.ndarray:
        """(n,) 1 where the local outlier factor calls the row an outlier of the class that it claims."""
        found = np.zeros(len(z))
        for each in np.unique(label):
            if self.factors.get(each) is not None:
                found[label == each] = self.factors[each].predict(z[label == each]) < 0
        return found


def printed(x: np.ndarray) -> np.ndarray:
    """The rows (n, D) as NumPy prints them, read back."""

    def again(row: np.ndarray) -> list[float]:
        return [float(text) for text in np.array2string(row, separator=" ", threshold=len(row) + 1).strip("[]").split()]

    return np.array([again(row) for row in x], dtype=float).reshape(x.shape)


def _factor(z: np.ndarray) -> Any:
    """None for a class of fewer rows than neighbours."""
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(NEIGHBOURS, novelty=True).fit(z) if len(z) > NEIGHBOURS else None
