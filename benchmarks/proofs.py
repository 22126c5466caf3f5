"""How far answers of tree models are from the best possible, by certify="optimal".

Twenty held-back rows each of Breast Cancer, sonar and Wine (three classes), for XGBoost and for forests,
`SearchConfig.close()` with `Features(decimals=None)`, at most 20 s a row, one thread. `proved` counts answers that are
proved to be the best; `s` is the median time of a row, search and proof, `cpu` the same in seconds of the processor,
which other work on the machine does not lengthen, `slowest` the longest time of a row. `ratio` is J of the search
alone, without certify, divided by the best J known: the optimum where it is proved; `worst` is the largest. `open` is
the median gap of rows that are not proved. `default gap` is the median gap of default answers to the bound of
certify="bound" in 5 s a row, which counts neither typicality nor stability.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

ROWS = 20
SECONDS, BOUND_SECONDS = 20.0, 5.0


def measure() -> list[dict[str, Any]]:
    """One line per data set and model."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from xgboost import XGBClassifier

    lines = []
    for name, (x, y) in _tables().items():
        train, test, labels, _ = train_test_split(x, y, test_size=1 / 3, random_state=0, stratify=y)
        for model in (
            XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1),
            RandomForestClassifier(100, random_state=0),
        ):
            line = _line(model.fit(train, labels), train, test[:ROWS])
            lines.append({"data": name, "model": type(model).__name__, **line})
            print(lines[-1], flush=True)
    return lines


def _line(model: Any, train: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """What is proved of the rows, and how far the answers of the search alone are from that."""
    searched = _explainer(model, SearchConfig.close()).fit(train).explain(rows)
    explainer = _explainer(model, SearchConfig.close(certify="optimal")).fit(train)
    proofs, seconds, processor = [], [], []
    for row in rows:
        start, begin = time.perf_counter(), time.process_time()
        proofs.append(explainer.explain(row, time_budget=SECONDS))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - begin)
    best = np.array([float(e.objective[0]) for e in proofs])
    gap = np.array([float(e.gap[0]) for e in proofs])
    ratio = searched.objective / best
    bounding = CounterfactualExplainer(model, search=SearchConfig(certify="bound")).fit(train)
    default = bounding.explain(rows, time_budget=BOUND_SECONDS * len(rows))
    return {
        "rows": len(rows),
        "proved": int((gap == 0).sum()),
        "s": float(np.median(seconds)),
        "cpu": float(np.median(processor)),
        "slowest": max(seconds),
        "ratio": float(np.median(ratio)),
        "worst": float(ratio.max()),
        "open": float(np.median(gap[gap > 0])) if (gap > 0).any() else 0.0,
        "default gap": float(np.nanmedian(default.gap)),
    }


def _explainer(model: Any, search: SearchConfig) -> CounterfactualExplainer:
    return CounterfactualExplainer(model, search=search, features=Features(decimals=None))


def _tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The data sets; sonar is left out without the folder that CFPROTO_DATA names."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer, load_wine

    found = {"breast_cancer": load_breast_cancer(return_X_y=True)}
    file = Path(os.environ.get("CFPROTO_DATA", "")) / "tables" / "sonar.csv.gz"
    if file.exists():
        frame = pd.read_csv(file)
        found["sonar"] = frame.iloc[:, :-1].to_numpy(float), pd.factorize(frame.iloc[:, -1])[0]
    return {**found, "wine": load_wine(return_X_y=True)}
