"""Thirty public tables as they come, each with a one-hot pipeline of a forest and of XGBoost, as cases.

The tables are gzipped CSV files with the column `target`, in the folder `tables` of CFPROTO_DATA.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from . import models
from .draw import Case

FOLDER = Path(os.environ.get("CFPROTO_DATA", "")) / "tables"
NAMES = sorted(path.name.removesuffix(".csv.gz") for path in FOLDER.glob("*.csv.gz"))
TRAIN = 2000
MODELS = {"forest": lambda: models.forest(20), "xgboost": models.xgb}


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The raw columns, shuffled, and the classes from 0."""
    frame = pd.read_csv(FOLDER / f"{name}.csv.gz").sample(frac=1, random_state=0)
    return frame.drop(columns="target"), np.unique(frame["target"].astype(str), return_inverse=True)[1]


def case_of(name: str, model: str, rows: int) -> Case:
    """The last rows of the table, explained by what was learned from its first 2,000."""
    x, y = table(name)
    train = x.iloc[:TRAIN]
    kind = models.sk(lambda: models.encoded(MODELS[model]()), takes="raw", named=False)
    return Case(
        1, f"{name}, {model}", kind, kind.make(train, y[:TRAIN], np.random.default_rng(0)), train, x.iloc[-rows:]
    )
