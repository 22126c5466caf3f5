"""The cases: three numeric data sets, two tree models each, twenty held-back rows.

`build` trains every model once, in the environment of the product, by the `fit` of `benchmarks/answers`, and writes it
down; `load` reads it back in the
environment of any peer. XGBoost travels as its own JSON, the forest as a joblib file. `load` predicts the rows again
and refuses a model that does not answer as it did where it was trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA = ("breast_cancer", "wine", "digits")
MODELS = ("xgboost", "forest")
CASES = tuple((data, model) for data in DATA for model in MODELS)
ROWS, MANY = 20, 1000
BETA = 0.1


@dataclass(frozen=True)
class Case:
    """A model, its training rows, the rows to explain, and a thousand rows near them for batches."""

    data: str
    kind: str
    model: Any
    train: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    many: np.ndarray

    @property
    def classes(self) -> int:
        """How many there are; they are named 0, 1, ..."""
        return int(self.labels.max()) + 1

    @property
    def scale(self) -> np.ndarray:
        """Standard deviations of the columns, 1 for one that does not vary."""
        found = self.train.std(axis=0)
        return np.where(found > 0, found, 1.0)

    def proba(self, x: np.ndarray) -> np.ndarray:
        """The model as a plain function, for peers that take one."""
        return np.asarray(self.model.predict_proba(np.asarray(x)), dtype=float)


def build(folder: Path) -> None:
    """Write every data set and model."""
    import joblib
    from tables import fit

    folder.mkdir(parents=True, exist_ok=True)
    for data in DATA:
        train, rest, labels = _table(data)
        rng = np.random.default_rng(0)
        near = rest[rng.integers(len(rest), size=MANY)]
        many = np.clip(near + rng.normal(0, 0.1, near.shape), train.min(axis=0), train.max(axis=0))
        boosted, forest = (fit(kind, train, labels, 0) for kind in MODELS)
        boosted.save_model(folder / f"{data}-xgboost.json")
        joblib.dump(forest, folder / f"{data}-forest.joblib")
        answers = {"xgboost": boosted.predict_proba(rest[:ROWS]), "forest": forest.predict_proba(rest[:ROWS])}
        np.savez(folder / f"{data}.npz", train=train, labels=labels, rows=rest[:ROWS], many=many, **answers)


def load(folder: Path, data: str, kind: str) -> Case:
    """Read one case."""
    with np.load(folder / f"{data}.npz") as file:
        arrays = {name: file[name] for name in ("train", "labels", "rows", "many")}
        answers = file[kind]
    case = Case(data, kind, _model(folder, data, kind), **arrays)
    if not np.allclose(case.proba(case.rows), answers, atol=1e-6):
        raise RuntimeError(f"{kind} on {data} does not predict here what it predicted where it was trained")
    return case


def _table(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, held-back rows, training labels; standardised by the training rows.

    The digits become a binary problem of 16 columns, even against odd on 4x4 block means, so that the peers that know
    two classes only are measured on more than one data set.
    """
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    if data == "digits":
        x, y = x.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16), y % 2
    train, rest, labels, _ = train_test_split(x, y, test_size=1 / 3, random_state=0, stratify=y)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(rest), labels


def _model(folder: Path, data: str, kind: str) -> Any:
    if kind != "xgboost":
        import joblib

        return joblib.load(folder / f"{data}-{kind}.joblib")
    from xgboost import XGBClassifier

    model = XGBClassifier()
    model.load_model(folder / f"{data}-xgboost.json")
    return model
