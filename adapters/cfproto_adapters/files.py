"""The files that the built-in adapters read models from. A framework is imported when a file of its own is read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cfproto_plugin import ModelFile
from cfproto_plugin.errors import InputError

# ruff: noqa: ARG001 every reader has the signature that `ModelFile` asks for


def load_xgboost(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return an XGBClassifier if one was saved, else the Booster."""
    with _needs("xgboost", path):
        import xgboost
    booster = xgboost.Booster(model_file=str(path))
    if '"classifier"' not in (booster.attr("scikit_learn") or ""):
        return booster
    classifier = xgboost.XGBClassifier()
    classifier.load_model(path)
    return classifier


def save_xgboost(model: Any, path: Path) -> None:
    """Write an XGBClassifier or a Booster."""
    model.save_model(path)


def load_pickle(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return what joblib or pickle wrote."""
    import joblib  # type: ignore[import-untyped]

    return _model(joblib.load(path), path)


def load_torch(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return a pickled module or TorchScript, on the CPU wherever it was trained.

    model: a module to load the weights of a state_dict into; nothing else is then read from the file.
    """
    with _needs("torch", path):
        import torch
    if model is not None:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return model
    if _is_torchscript(path):
        return torch.jit.load(path, map_location="cpu")
    return _model(torch.load(path, map_location="cpu", weights_only=False), path)


def load_exported_torch(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return the module of what `torch.export.save` wrote."""
    with _needs("torch", path):
        import torch
    return torch.export.load(path).module()


def load_keras(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return a Keras model. Keras refuses files with code of their own, such as lambda layers."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow says less about the machine
    with _needs("keras", path):
        import keras
    return keras.saving.load_model(path, compile=False)


def save_keras(model: Any, path: Path) -> None:
    """Write a Keras model."""
    model.save(path)


XGBOOST = (ModelFile((".json", ".ubj"), load_xgboost, save_xgboost, safe=True),)
PICKLES = (ModelFile((".joblib", ".pkl", ".pickle"), load_pickle),)
TORCH = (ModelFile((".pt", ".pth"), load_torch), ModelFile((".pt2",), load_exported_torch))
KERAS = (ModelFile((".keras",), load_keras, save_keras, safe=True),)


@contextmanager
def _needs(package: str, path: Path) -> Iterator[None]:
    """Importing inside says what to install if it fails."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"{path} needs {package} ({error}): pip install 'cfproto-plugin[{package}]'") from error


def _is_torchscript(path: Path) -> bool:
    """TorchScript has constants of its own, a pickled module has none."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _model(found: Any, path: Path) -> Any:
    if isinstance(found, dict):
        raise InputError(
            f"{path} holds a dictionary with {', '.join(map(repr, list(found)[:3]))}, ... instead of a model. If these "
            "are weights, write a function that builds the model and loads them, and pass package.module:function"
        )
    return found
