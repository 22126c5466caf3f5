"""The tables, models and rows that the answers are judged on.

Every table is split by one seed that had no part in choosing a constant; sixty held-back rows are explained, in the
units of the table. Tables with categories have a one-hot pipeline around the model. Beside scikit-learn's own data, the
tables are read from the folder `tables` of CFPROTO_DATA; one that is not there is left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

SEED, ROWS, REFITS = 11, 60, 10
OWN = ("breast_cancer", "wine")  # they come with scikit-learn
NUMERIC = ("breast_cancer", "sonar", "spambase", "wine", "vehicle", "breast_w", "banknote")
CATEGORIES = ("credit_a", "lymph", "vote", "cmc", "dermatology", "autos")
TREES, SMOOTH = ("xgboost", "forest"), ("logistic", "mlp", "svc")


@dataclass(frozen=True)
class Judged:
    """A model, its training rows with their labels, and the held-back rows to explain."""

    data: str
    kind: str
    model: Any
    train: Any  # (N, D) array, or a DataFrame for tables with categories
    labels: np.ndarray
    rows: Any
    n_refits: int = REFITS
    seed: int = SEED

    @cached_property
    def own(self) -> np.ndarray:
        """(n,) the classes that the model gives the rows."""
        return np.asarray(self.model.predict(self.rows))

    @cached_property
    def given(self) -> np.ndarray:
        """(N,) the classes that the model gives its training rows."""
        return np.asarray(self.model.predict(self.train))

    @cached_property
    def scale(self) -> np.ndarray:
        """(D,) standard deviations of the training rows; 1 for a column that does not vary."""
        found = np.asarray(self.train, dtype=float).std(axis=0)
        return np.where(found > 0, found, 1.0)

    @cached_property
    def refits(self) -> list[Any]:
        """Models of the same kind, ten if not said otherwise, each fitted to a bootstrap with another seed."""
        rng = np.random.default_rng(self.seed)
        samples = [rng.integers(len(self.train), size=len(self.train)) for _ in range(self.n_refits)]
        rows = self.train if isinstance(self.train, np.ndarray) else None
        return [
            fit(self.kind, self.train.iloc[at] if rows is None else rows[at], self.labels[at], 100 + number)
            for number, at in enumerate(samples)
        ]


def available() -> list[str]:
    """The tables that are at hand."""
    return [name for name in (*NUMERIC, *CATEGORIES) if name in OWN or _file(name).is_file()]


def load(data: str, kind: str, seed: int = SEED) -> Judged:
    """Split the table and train the model."""
    from sklearn.model_selection import train_test_split

    x, y = _table(data)
    share = max(1 / 3, ROWS / len(y))
    enough = np.bincount(y).min() > 1
    train, rest, labels, _ = train_test_split(x, y, test_size=share, random_state=seed, stratify=y if enough else None)
    known, labels = np.unique(labels, return_inverse=True)
    if len(known) <= y.max():
        raise RuntimeError(f"{data} has a class without training rows; split it by another seed")
    return Judged(data, kind, fit(kind, train, labels, seed), train, labels, rest[:ROWS], seed=seed)


def fit(kind: str, x: Any, y: np.ndarray, seed: int) -> Any:
    """A model of the kind, on the columns as they are or behind a one-hot pipeline."""
    known, codes = np.unique(y, return_inverse=True)
    classifier = _classifier(kind, seed)
    if not isinstance(x, np.ndarray):
        from sklearn.pipeline import make_pipeline

        classifier = make_pipeline(_encoder(x), classifier)
    elif kind in SMOOTH:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        classifier = make_pipeline(StandardScaler(), classifier)
    fitted = classifier.fit(x, codes)
    return fitted if np.array_equal(known, np.arange(len(known))) else _Relabelled(fitted, known)


class _Relabelled:
    """A refit to a bootstrap that lacks a class: XGBoost wants classes from 0 without a gap."""

    def __init__(self, model: Any, known: np.ndarray) -> None:
        self.model, self.known = model, known

    def predict(self, x: Any) -> np.ndarray:
        return np.asarray(self.known[self.model.predict(x)])


def write(judged: Judged, folder: Path) -> None:
    """For the peers, as `cases.load` reads it in their environments."""
    import joblib

    folder.mkdir(parents=True, exist_ok=True)
    name = f"{judged.data}-{judged.kind}"
    if judged.kind == "xgboost":
        judged.model.save_model(folder / f"{name}.json")
    else:
        joblib.dump(judged.model, folder / f"{name}.joblib")
    arrays = {"train": judged.train, "labels": judged.labels, "rows": judged.rows, "many": judged.rows}
    file = folder / f"{judged.data}.npz"
    before = dict(np.load(file)) if file.exists() else {}
    np.savez(file, **{**before, **arrays, judged.kind: judged.model.predict_proba(judged.rows)})


def _table(data: str) -> tuple[Any, np.ndarray]:
    """Rows and classes from 0; an array if all columns are numbers."""
    if data in OWN:
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
        return np.asarray(x, dtype=float), np.asarray(y)
    import pandas as pd

    frame = pd.read_csv(_file(data))
    if data in NUMERIC:
        frame = frame.dropna()  # the peers take no missing numbers
    y = np.unique(frame.pop("target").astype(str), return_inverse=True)[1]
    return (frame.to_numpy(dtype=float) if data in NUMERIC else frame), y


def _file(data: str) -> Path:
    return Path(os.environ.get("CFPROTO_DATA", "")) / "tables" / f"{data}.csv.gz"


def _classifier(kind: str, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=100, max_depth=4, random_state=seed)
    return {
        "forest": RandomForestClassifier(100, random_state=seed),
        "logistic": LogisticRegression(max_iter=2000),
        "mlp": MLPClassifier(hidden_layer_sizes=(50,), max_iter=1000, random_state=seed),
        "svc": SVC(),
    }[kind]


def _encoder(frame: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = list(frame.select_dtypes("number").columns)
    texts = [name for name in frame.columns if name not in numbers]
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
    )
