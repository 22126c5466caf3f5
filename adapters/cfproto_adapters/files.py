"""The files that the built-in adapters read models from. A framework is imported when a file of its own is read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_adapters.xgboost_parts.checked import check_json
from cfproto_plugin import ModelFile
from cfproto_plugin.errors import InputError

# ruff: noqa: ARG001 every reader has the signature that `ModelFile` asks for


def load_xgboost(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return an XGBClassifier if one was saved, else the Booster."""
    with _needs("xgboost", path):
        import xgboost
    if path.suffix.lower() == ".json":
        check_json(path)
    booster = xgboost.Booster(model_file=str(path))
    if '"classifier"' not in (booster.attr("scikit_learn") or ""):
        return booster
    classifier = xgboost.XGBClassifier()
    classifier.load_model(path)
    return classifier


def save_xgboost(model: Any, path: Path) -> None:
    """Write an XGBClassifier or a Booster."""
    model.save_model(path)


def load_skops(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return what skops wrote. Types that it does not know to be harmless must be trusted by name."""
    with _needs("skops", path, extra="files"):
        import skops.io
    unknown = [name for name in skops.io.get_untrusted_types(file=path) if name not in set(trusted)]
    if unknown:
        raise InputError(
            f"it holds types that could do harm when they are restored. If you know where it comes from, pass "
            f"trusted={unknown}"
        )
    return skops.io.load(path, trusted=list(trusted))


def save_skops(model: Any, path: Path) -> None:
    """Write an estimator."""
    with _needs("skops", path, extra="files"):
        import skops.io
    skops.io.dump(model, path, compression=zipfile.ZIP_DEFLATED)


def asks_skops(path: Path) -> list[str]:
    """The types of a file that must be trusted by name."""
    import skops.io

    return list(skops.io.get_untrusted_types(file=path))


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


def load_state(path: Path, *, model: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return the module that is given with the weights of the file: an npz of arrays, without pickle."""
    with _needs("torch", path):
        import torch
    if model is None:
        raise InputError(f"{path} holds weights only; give the module to put them into")
    with np.load(path, allow_pickle=False) as file:
        state = {name: torch.from_numpy(file[name]) for name in file}
    model.load_state_dict(state)
    return model


def save_state(model: Any, path: Path) -> None:
    """Write the state_dict of a module as arrays."""
    arrays = {}
    for name, value in model.state_dict().items():
        if not hasattr(value, "detach"):
            raise InputError(f"the state of the module holds {name!r}, which is no tensor")
        arrays[name] = value.detach().cpu().numpy()
    with zipfile.ZipFile(path, "w") as archive:  # np.savez takes a parameter named "file" for its own
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


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
SKLEARN = (
    ModelFile((".skops",), load_skops, save_skops, safe=True, asks=asks_skops),
    ModelFile((".joblib", ".pkl", ".pickle"), load_pickle),
)
TORCH = (
    ModelFile((".state",), load_state, save_state, safe=True, weights=True),
    ModelFile((".pt", ".pth"), load_torch),
    ModelFile((".pt2",), load_exported_torch),
)
KERAS = (ModelFile((".keras",), load_keras, save_keras, safe=True),)


@contextmanager
def _needs(package: str, path: Path, extra: str | None = None) -> Iterator[None]:
    """Importing inside says what to install if it fails."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"{path} needs {package} ({error}): pip install 'cfproto-plugin[{extra or package}]'"
        ) from error


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
