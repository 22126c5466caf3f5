"""Data and networks that several test files share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks here are tiny: a second thread only waits for the first

import networks
import numpy as np
import pytest

from cfproto_plugin import Features

IMPORTED = {  # by a test file as it is collected: without them it cannot even be read
    "test_torch_adapter.py": ("torch",),
    "test_keras_adapter.py": ("keras",),
    "test_paper_mnist.py": ("torch", "matplotlib"),
    "test_paper_benchmarks.py": ("torch", "matplotlib"),
    "test_asking.py": ("pyarrow",),
    "test_contributions.py": ("pyarrow",),
    "test_cohorts.py": ("pyarrow",),
}


def absent(packages: Iterable[str]) -> list[str]:
    return [package for package in packages if find_spec(package) is None]


def pytest_ignore_collect(collection_path):
    return True if absent(IMPORTED.get(collection_path.name, ())) else None


def pytest_terminal_summary(terminalreporter):
    for name, packages in IMPORTED.items():
        if missing := absent(packages):
            terminalreporter.write_line(f"left out: {name} needs {', '.join(missing)}, which is not installed")


def pytest_collection_modifyitems(items):
    no_data = pytest.mark.skip(reason="needs MNIST, Adult or tables: set CFPROTO_DATA to the folder that holds them")
    for item in items:
        if "data" in item.keywords and not os.environ.get("CFPROTO_DATA"):
            item.add_marker(no_data)
        missing = absent(package for mark in item.iter_markers("needs") for package in mark.args)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}, which is not installed"))


class Golden(NamedTuple):
    """Outputs of the reference implementation on Breast Cancer."""

    arrays: dict[str, np.ndarray]
    layers: networks.Layers
    x: np.ndarray
    x_train: np.ndarray
    features: Features


@pytest.fixture(scope="session")
def golden() -> Golden:
    with np.load(Path(__file__).parent / "golden" / "bcw_fista.npz") as file:
        arrays = {name: file[name] for name in file}
    layers = [(arrays[f"w{i}"], arrays[f"b{i}"]) for i in (1, 2, 3)]
    low, high = arrays["feature_min"][0], arrays["feature_max"][0]
    ranges = {i: (float(low[i]), float(high[i])) for i in range(len(low))}
    return Golden(arrays, layers, arrays["x"], arrays["x_train"], Features(scale=None, ranges=ranges))


class Digits(NamedTuple):
    """scikit-learn's 8x8 digits in [-0.5, 0.5] and networks trained on them, as weights."""

    x: np.ndarray
    y: np.ndarray
    classifier: networks.Layers
    encoder: networks.Layers
    autoencoder: networks.Layers


@pytest.fixture(scope="session")
def digits() -> Digits:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = (x / 16 - 0.5).astype(np.float32)
    autoencoder = networks.trained(x, None, (64, 48, 12, 48, 64))
    return Digits(x, y, networks.trained(x, y, (64, 32, 10)), autoencoder[:2], autoencoder)


@pytest.fixture(scope="session")
def cancer() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="session")
def forest(cancer):
    from sklearn.ensemble import RandomForestClassifier

    x, y = cancer
    return RandomForestClassifier(50, random_state=0).fit(x[:450], y[:450])
