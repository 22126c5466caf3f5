"""Models from files, or from a function named `package.module:function`.

The core imports no framework: the suffix of a file names the package that reads it, which is imported when such a file
is given. Anything else comes through a function.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cfproto_plugin.errors import InputError, did_you_mean

_FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")
_LONGEST = 400


def load_model(name: str) -> tuple[Any, list[str]]:
    """The model of a file or a function, and what was warned of while it was loaded."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow says less about the machine
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does: pickled classes and functions may be defined beside the data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)  # such as a model of another version of its framework
        path = Path(name)
        function = not path.exists() and _FUNCTION.match(name)
        model = _from_function(name) if function else _from_file(path)
    return model, list(dict.fromkeys(one_paragraph(warning.message) for warning in caught))


def feature_names(model: Any) -> list[str] | None:
    """The columns of the model, if it says: `feature_names_in_` is scikit-learn's word, `feature_names` XGBoost's."""
    for attribute in ("feature_names_in_", "feature_names"):
        names = getattr(model, attribute, None)
        if names is not None and not callable(names) and all(isinstance(name, str) for name in names):
            return [str(name) for name in names]
    return None


def reason(error: Exception) -> str:
    """The kind of an error and its text."""
    return f"{type(error).__name__}: {one_paragraph(error)}"


def one_paragraph(error: object) -> str:
    """The text in one line and not longer than a paragraph, without time, place and stack trace of a C++ library."""
    text = " ".join(_PLACE.sub("", str(error).partition("\nStack trace:")[0]).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _from_function(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise InputError(
            f"{name}: {module_name!r} cannot be imported ({reason(error)}); it must be installed, or lie in this folder"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(
            f"{name}: there is no function {attribute!r} in {module_name!r}.{did_you_mean(attribute, vars(module))} "
            "Expected a function without arguments that returns the model"
        )
    try:
        return function()
    except Exception as error:
        raise InputError(f"{name}() failed: {reason(error)}") from error


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(
            f"there is no model file {str(path)!r}; expected a file, or package.module:function for a function that "
            "returns the model"
        )
    if path.suffix.lower() not in _READERS:
        raise InputError(
            f"{path}: models are read from {', '.join(_READERS)}; for other files write a function that returns the "
            "model and pass package.module:function"
        )
    package, read = _READERS[path.suffix.lower()]
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise InputError(f"{path} needs {package} ({error}): pip install 'cfproto-plugin[{package}]'") from error
    try:
        return read(module, path)
    except InputError:
        raise
    except Exception as error:
        lost = isinstance(error, (ImportError, AttributeError))
        hint = ". The code of its classes must be installed, or lie in this folder" if lost else ""
        raise InputError(f"{path} cannot be loaded as a model by {package}: {reason(error)}{hint}") from error


def _xgboost(xgboost: Any, path: Path) -> Any:
    """An XGBClassifier if one was saved, else the Booster."""
    booster = xgboost.Booster(model_file=str(path))
    if '"classifier"' not in (booster.attr("scikit_learn") or ""):
        return booster
    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model


def _joblib(joblib: Any, path: Path) -> Any:
    return _checked(joblib.load(path), path)


def _torch(torch: Any, path: Path) -> Any:
    """TorchScript, which has constants of its own, or a pickled module; on the CPU wherever it was trained."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(name.endswith("/constants.pkl") for name in archive.namelist()):
                return torch.jit.load(path, map_location="cpu")
    return _checked(torch.load(path, map_location="cpu", weights_only=False), path)


def _exported(torch: Any, path: Path) -> Any:
    return torch.export.load(path).module()


def _keras(keras: Any, path: Path) -> Any:
    return keras.saving.load_model(path, compile=False)


def _checked(model: Any, path: Path) -> Any:
    if isinstance(model, dict):
        raise InputError(
            f"{path} holds a dictionary with {', '.join(map(repr, list(model)[:3]))}, ... instead of a model. If these "
            "are weights, write a function that builds the model and loads them, and pass package.module:function"
        )
    return model


_READERS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    ".json": ("xgboost", _xgboost),
    ".ubj": ("xgboost", _xgboost),
    ".joblib": ("joblib", _joblib),
    ".pkl": ("joblib", _joblib),
    ".pickle": ("joblib", _joblib),
    ".pt": ("torch", _torch),
    ".pth": ("torch", _torch),
    ".pt2": ("torch", _exported),
    ".keras": ("keras", _keras),
}
