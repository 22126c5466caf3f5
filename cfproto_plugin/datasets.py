"""The data of the paper's experiments: Adult and MNIST.

Files in the folder that the environment variable CFPROTO_DATA names come first (adult.csv.gz, mnist.npz); without them
OpenML is asked through scikit-learn, which keeps a copy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cfproto_plugin.errors import InputError, MissingPackageError, did_you_mean
from cfproto_plugin.protocols import Array

if TYPE_CHECKING:
    import pandas as pd

_FOLDER = "CFPROTO_DATA"
_SPLITS = ("train", "test")
_MNIST_TRAIN = 60_000  # OpenML has all 70,000 images in the original order


def load_adult(*, split: Literal["train", "test"] | None = None) -> tuple[pd.DataFrame, pd.Series]:
    """Adult (Census income): a frame of the 14 raw columns, and the labels "<=50K" and ">50K".

    Without a split all 48,842 rows. A missing value is the category "?", as published: models take it without
    imputation, and `(X != "?").all(axis=1)` picks the complete rows. The published split (32,561 and 16,281 rows) is in
    the file only: OpenML's version is merged and does not say which row came from where.
    """
    if split is not None:
        _check_split(split)
    pandas, path = _pandas(), _local("adult.csv.gz")
    if path is None:
        if split is not None:
            raise InputError(
                f"split is {split!r}, but OpenML's Adult has no published split.\n"
                f"  Split the rows of load_adult() yourself, or name a folder with adult.csv.gz in {_FOLDER}."
            )
        found = _openml("adult", 2, "adult.csv.gz", as_frame=True)
        return found.data.apply(_plain), _plain(found.target).rename("income")
    frame = pandas.read_csv(path, keep_default_na=False)
    if split is not None:
        frame = frame[frame["split"] == split].reset_index(drop=True)
    return frame.drop(columns=["income", "split"]), frame["income"]


def load_mnist(split: Literal["train", "test"] = "train") -> tuple[Array, Array]:
    """MNIST: float32 images (n, 28, 28, 1) from -0.5 to 0.5 as in the paper, and their digits."""
    _check_split(split)
    path = _local("mnist.npz")
    if path is None:
        found = _openml("mnist_784", 1, "mnist.npz", as_frame=False)
        half = slice(None, _MNIST_TRAIN) if split == "train" else slice(_MNIST_TRAIN, None)
        pixels, labels = found.data[half], found.target[half]
    else:
        with np.load(path) as file:
            pixels, labels = file[f"x_{split}"], file[f"y_{split}"]
    images = np.asarray(pixels, dtype=np.float32).reshape(-1, 28, 28, 1) / 255 - 0.5
    return images, np.asarray(labels).astype(np.int64)


def _local(name: str) -> Path | None:
    """The file in the user's folder, if there is one."""
    folder = os.environ.get(_FOLDER)
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def _openml(name: str, version: int, file: str, *, as_frame: bool) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml(name, version=version, as_frame=as_frame, parser="auto")
    except OSError as error:
        folder = os.environ.get(_FOLDER)
        state = f"is {folder!r}, which holds no {file}" if folder else "is not set"
        raise InputError(
            f"{name} is not at hand: {_FOLDER} {state}, and OpenML cannot be reached ({error}).\n"
            f"  Name a folder that holds {file} in {_FOLDER}, or connect once: scikit-learn keeps what OpenML sends."
        ) from error


def _plain(column: pd.Series) -> pd.Series:
    """Categories as the strings they are, missing ones as "?"; numbers as given."""
    if column.dtype.kind in "iuf":
        return column
    return column.astype(object).where(column.notna(), "?").astype(str)


def _check_split(split: object) -> None:
    if split not in _SPLITS:
        raise InputError(f"split is {split!r}; expected one of {_SPLITS}.{did_you_mean(split, _SPLITS)}")


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError(
            "Adult needs pandas, which is not installed: pip install 'cfproto-plugin[pandas]'"
        ) from error
    return pd
