"""The tables as matrices of numbers, one for all tools, and three models of each.

Most peers take numbers only. So every table becomes one standardised matrix: a text column its codes in alphabetical
order (missing is a code of its own), a missing number the median of the training rows. A category's code is a number
like any other, for every tool alike. Tables of more than 7,500 rows are cut to a random 7,500. A third of the rows is
held back, at least fifty, and the first fifty of those are explained. `build` trains each model once and writes it
down as `cases.load` of `benchmarks/peers` reads it in the environment of any tool.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from tables import fit

SEED, ROWS, MOST = 11, 50, 7500
OWN = ("breast_cancer", "digits", "iris", "wine")  # they come with scikit-learn
MODELS = ("xgboost", "mlp", "forest")
FOLDER = Path(os.environ.get("CFPROTO_DATA", "")) / "tables"


def names() -> list[str]:
    """scikit-learn's tables and those in the folder `tables` of CFPROTO_DATA."""
    return sorted([*OWN, *(file.name.removesuffix(".csv.gz") for file in FOLDER.glob("*.csv.gz"))])


def build(data: str, folder: Path) -> None:
    """The matrix of a table and its models, unless they are there."""
    file = folder / f"{data}.npz"
    if file.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    train, rows, labels, texts = split(data)
    answers = {}
    for kind in MODELS:
        model = fit(kind, train, labels, SEED)
        answers[kind] = model.predict_proba(rows)
        _write(model, kind, folder / f"{data}-{kind}")
    part = file.with_suffix(".part.npz")
    np.savez(part, train=train, labels=labels, rows=rows, many=rows, texts=texts, **answers)
    part.rename(file)


def split(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Training rows, the rows to explain, training labels from 0, and the number of text columns."""
    from sklearn.model_selection import train_test_split

    x, y, texts = _read(data)
    if len(y) > MOST:
        at = np.random.default_rng(SEED).permutation(len(y))[:MOST]
        x, y = x[at], y[at]
    share = max(1 / 3, ROWS / len(y))
    enough = np.bincount(y)[np.unique(y)].min() > 1
    train, rest, labels, _ = train_test_split(x, y, test_size=share, random_state=SEED, stratify=y if enough else None)
    labels = np.unique(labels, return_inverse=True)[1]
    middle = [np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else 0.0 for column in train.T]
    train, rest = (np.where(np.isnan(part), middle, part) for part in (train, rest))
    mean, scale = train.mean(axis=0), train.std(axis=0)
    scale[scale == 0] = 1
    return (train - mean) / scale, ((rest - mean) / scale)[:ROWS], labels, texts


def _read(data: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers and codes, NaN for a missing number; classes from 0; the number of text columns."""
    if data in OWN:
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
        return np.asarray(x, dtype=float), np.asarray(y), 0
    import pandas as pd

    frame = pd.read_csv(FOLDER / f"{data}.csv.gz")
    y = np.unique(frame.pop("target").astype(str), return_inverse=True)[1]
    numbers = frame.select_dtypes("number").columns
    texts = [name for name in frame.columns if name not in numbers]
    for name in texts:
        frame[name] = np.unique(frame[name].fillna("").astype(str), return_inverse=True)[1]
    return frame.to_numpy(dtype=float), y, len(texts)


def _write(model: Any, kind: str, file: Path) -> None:
    import joblib

    if kind == "xgboost":
        model.save_model(file.with_name(f"{file.name}.json"))
        return
    if kind == "mlp":  # generators of NumPy 2 cannot be read by NumPy 1, and predicting needs none
        for name in ("_random_state", "_optimizer"):
            vars(model[-1]).pop(name, None)
    joblib.dump(model, file.with_name(f"{file.name}.joblib"))
