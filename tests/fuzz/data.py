"""Tables to learn from, and the types in which users bring them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

ARRAY_DTYPES = ("float64", "float64", "float32", "float16", "int64", "int32", "uint8", "bool", ">f8", ">i4")
COLUMN_DTYPES = ("float64", "float64", "float32", "int64", "int8", "Int64", "Float64", "bool")


class Table(NamedTuple):
    """x: an array or a frame, y: (n,) classes from 0, `held` further rows that no model was trained on."""

    x: Any
    y: np.ndarray
    held: Any


def numbers(rng: np.random.Generator, classes: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A real or synthetic table of floats, at most eight columns and 260 rows."""
    if classes == 2 or (classes is None and rng.random() < 0.5):
        x, y = [_cancer, _diabetes, _moons][rng.integers(3)](rng)
    else:
        x, y = [_wine, _iris, _digits, _blobs][rng.integers(4)](rng)
    columns = np.flatnonzero(x.std(axis=0) > 0)
    columns = rng.permutation(columns)[: rng.integers(2, 9)]
    rows = rng.permutation(len(x))[:260]
    return x[np.ix_(rows, columns)].astype(float), y[rows]


def _cancer(_rng):
    return datasets.load_breast_cancer(return_X_y=True)


def _wine(_rng):
    return datasets.load_wine(return_X_y=True)


def _iris(_rng):
    return datasets.load_iris(return_X_y=True)


def _diabetes(_rng):
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    return x, (y > np.median(y)).astype(int)


def _digits(_rng):
    x, y = datasets.load_digits(n_class=4, return_X_y=True)
    return x, y


def _moons(rng):
    x, y = datasets.make_moons(300, noise=0.25, random_state=int(rng.integers(1000)))
    return np.column_stack([x * 10 ** rng.uniform(-3, 3, 2), rng.normal(size=(300, 2))]), y


def _blobs(rng):
    x, y = datasets.make_blobs(300, 5, centers=3, cluster_std=3, random_state=int(rng.integers(1000)))
    return x * 10 ** rng.uniform(-2, 3, 5) + 10 ** rng.uniform(-2, 3, 5), y


def as_dtype(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats in another dtype: whole numbers are levels of the column's range, a bool is the upper half."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return x.astype(dtype)
    if kind == "b":
        return x > np.median(x, axis=0)
    low, high = x.min(axis=0), x.max(axis=0)
    levels = 255 if dtype == "uint8" else 100
    return np.round((x - low) / np.where(high > low, high - low, 1) * levels).astype(dtype)


def with_codes(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """Sometimes an array gets a column of codes, or a group of one-hot columns; and the rules that say so."""
    luck, at = rng.random(), x.shape[1]
    codes = np.searchsorted(np.quantile(x[:, 0], [0.3, 0.6]), x[:, 0])
    if luck < 0.1:
        return np.column_stack([x, codes.astype(x.dtype)]), {"categorical": (at,)}
    if luck < 0.2:
        ones = (codes[:, None] == np.arange(3)).astype(x.dtype)
        return np.column_stack([x, ones]), {"one_hot": {"bin": (at, at + 1, at + 2)}}
    return x, {}


def numeric_frame(x: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Columns of several dtypes, nullable ones included, and an index that is not 0, 1, ..."""
    frame = pd.DataFrame(index=index(len(x), rng))
    for at in range(x.shape[1]):
        dtype = COLUMN_DTYPES[rng.integers(len(COLUMN_DTYPES))]
        cells = x[:, [at]]
        whole = dtype.lower().startswith("int") or dtype == "bool"
        frame[f"column {at}"] = as_dtype(cells, dtype.lower() if whole else "float64")[:, 0].astype(
            dtype.lower() if dtype != "Float64" else "float64"
        )
        frame = frame.astype({f"column {at}": dtype})
    return frame


def index(n: int, rng: np.random.Generator) -> pd.Index:
    return [
        pd.RangeIndex(n),
        pd.RangeIndex(5, 5 + n),
        pd.Index([f"r{i}" for i in range(n)]),
        pd.Index(rng.integers(0, 5, n)),
        pd.MultiIndex.from_arrays([np.arange(n) % 3, np.arange(n)]),
    ][rng.integers(5)]


def raw_frame(rng: np.random.Generator, *, missing: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, whole numbers, strings, categories and truths, some of them missing; two or three classes."""
    n = 260
    x, y = numbers(rng)
    picked = rng.integers(0, len(x), n)
    x, y = x[picked], y[picked]
    frame = pd.DataFrame({f"num{at}": x[:, at] for at in range(min(3, x.shape[1]))}, index=index(n, rng))
    frame["num0"] = frame["num0"].round(int(rng.integers(0, 5)))
    noise = rng.random((n, 4)) < 0.2
    level = np.where(noise[:, 0], rng.integers(0, 3, n), y % 3)
    job = np.array(["clerk", "nurse", "", "pilot ü"], dtype=object)[np.where(noise[:, 1], 3, level)]
    frame["job"] = pd.Series(job, index=frame.index, dtype=object if rng.random() < 0.5 else "str")
    levels = ["low", "mid", "high"]
    frame["grade"] = pd.Categorical.from_codes(np.where(noise[:, 2], 0, level), levels, ordered=rng.random() < 0.5)
    frame["own"] = np.where(noise[:, 3], rng.random(n) < 0.5, level > 0)
    frame["age"] = (18 + 20 * level + rng.integers(0, 30, n)).astype(["int64", "int16", "uint8"][rng.integers(3)])
    if missing:
        _drop_cells(frame, rng)
    return frame[list(rng.permutation(frame.columns))], y


def _drop_cells(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    gone = rng.random((len(frame), 3)) < 0.08
    frame.loc[gone[:, 0], "num0"] = np.nan
    if frame["job"].dtype == object:
        frame.loc[gone[:, 1], "job"] = [None, np.nan][rng.integers(2)]
    else:
        frame.loc[gone[:, 1], "job"] = np.nan
    frame.loc[gone[:, 2], "grade"] = np.nan


def split(x: Any, y: np.ndarray, held: int) -> Table:
    """The last rows are held back. Every class stays in the training rows."""
    if isinstance(x, pd.DataFrame):
        return Table(x.iloc[:-held].copy(), y[:-held], x.iloc[-held:].copy())
    return Table(x[:-held].copy(), y[:-held], x[-held:].copy())
