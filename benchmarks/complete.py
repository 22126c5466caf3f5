"""How much of what can be reached is missed, on a grid over two free columns.

All columns but two are immutable; 60 x 60 values over the training range of these say whether a row has another class
within reach. `solvable` rows are those where more than 0.2 % of the cells have another class, `missed` those of them
without an answer. Four pairs of columns for every data set and model, 50 held-back rows each. Sonar, phoneme and Pima
diabetes are read from the folder that CFPROTO_DATA names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Features

CELLS, LEAST, PAIRS, ROWS = 60, 0.002, 4, 50
TABLES = ("sonar", "phoneme", "pima_diabetes")


def measure(pairs: int = PAIRS, rows: int = ROWS) -> list[dict[str, Any]]:
    """One line per data set and model, and one for all of them."""
    lines = [_line(name, kind, model, x, y, pairs, rows) for name, x, y in _data() for kind, model in _models().items()]
    rows_in_all, solvable, missed = (sum(line[key] for line in lines) for key in ("rows", "solvable", "missed"))
    total = {
        "data": "all",
        "model": "all",
        "rows": rows_in_all,
        "solvable": solvable,
        "missed": missed,
        "missed_percent": 100 * missed / solvable,
        "ms_per_row": sum(line["rows"] * line["ms_per_row"] for line in lines) / rows_in_all,
    }
    return [*lines, total]


def _data() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine), ("digits", load_digits)):
        yield name, *load(return_X_y=True)
    folder = Path(os.environ.get("CFPROTO_DATA", "")) / "tables"
    if not folder.exists():
        return
    import pandas as pd

    for name in TABLES:
        frame = pd.read_csv(folder / f"{name}.csv.gz")
        yield name, frame.iloc[:, :-1].to_numpy(float), pd.factorize(frame.iloc[:, -1], sort=True)[0]


def _models() -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from xgboost import XGBClassifier

    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "MLP": make_pipeline(StandardScaler(), MLPClassifier((30,), max_iter=300, random_state=0)),
        "forest": RandomForestClassifier(50, random_state=0),
        "XGBoost": XGBClassifier(n_estimators=50, random_state=0),
        "kNN": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "SVC": make_pipeline(StandardScaler(), SVC()),
    }


def _line(data: str, kind: str, model: Any, x: np.ndarray, y: np.ndarray, pairs: int, rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))[:2000]
    held, train = x[order[:rows]], x[order[rows:]]
    model.fit(train, y[order[rows:]])
    varies = np.flatnonzero(np.ptp(train, axis=0) > 0)
    explainer, seconds, solvable, missed = CounterfactualExplainer(model).fit(train), 0.0, 0, 0
    for _ in range(pairs):
        pair = rng.choice(varies, 2, replace=False)
        reachable = np.array([_share(model, row, train, pair) > LEAST for row in held])
        start = time.perf_counter()
        rules = Features(immutable=tuple(np.delete(np.arange(x.shape[1]), pair).tolist()))
        e = explainer.explain(held, features=rules, progress=False)
        seconds += time.perf_counter() - start
        solvable += int(reachable.sum())
        missed += int((reachable & ~e.found).sum())
    return {
        "data": data,
        "model": kind,
        "rows": pairs * len(held),
        "solvable": solvable,
        "missed": missed,
        "missed_percent": 100 * missed / max(solvable, 1),
        "ms_per_row": 1000 * seconds / (pairs * len(held)),
    }


def _share(model: Any, row: np.ndarray, train: np.ndarray, pair: np.ndarray) -> float:
    """The share of the cells that have another class than the row."""
    axes = [np.linspace(train[:, at].min(), train[:, at].max(), CELLS) for at in pair]
    points = np.repeat(row[None], CELLS**2, axis=0)
    points[:, pair] = np.stack([part.ravel() for part in np.meshgrid(*axes)], axis=1)
    return float((model.predict(points) != model.predict(row[None])[0]).mean())
