"""Models from files, which plugins read, or from a function named `package.module:function`."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.plugins import Adapted, registry

_FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")
_LONGEST = 400


def load_model(name: str, warn: Callable[[str], None]) -> Any:
    """The model of a file or a function. warn: gets what the user should know about it."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does: pickled classes and functions may be defined beside the data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)  # such as a model of another version of its framework
        path = Path(name)
        function = not path.exists() and _FUNCTION.match(name)
        model = _from_function(name) if function else _from_file(path, warn)
    for text in dict.fromkeys(one_paragraph(warning.message) for warning in caught):
        warn(text)
    return model


def feature_names(model: Any, adapted: Adapted, columns: list[str]) -> list[str] | None:
    """The columns of the model, if it says; `feature_names_in_` is what scikit-learn and its followers have.

    The names that the adapter has count if the table has them all: an adapter may spell them in its own way.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        return [str(name) for name in names]
    own = adapted.feature_names
    return list(own) if own is not None and set(own) <= set(columns) else None


def folder_of(module: ModuleType) -> str:
    """For messages: that a folder was found where a module was expected; nothing for modules and packages."""
    if getattr(module, "__file__", None) is not None:
        return ""
    places = ", ".join(getattr(module, "__path__", ()))
    file = f"{module.__name__.rpartition('.')[2]}.py"
    return f" (the folder {places}; a file {file} was not found)" if places else ""


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
            f"{name}: there is no function {attribute!r} in {module_name!r}{folder_of(module)}."
            f"{did_you_mean(attribute, vars(module))} Expected a function without arguments that returns the model"
        )
    try:
        return function()
    except Exception as error:
        raise InputError(f"{name}() failed: {reason(error)}") from error


def _from_file(path: Path, warn: Callable[[str], None]) -> Any:
    if not path.is_file():
        raise InputError(
            f"there is no model file {str(path)!r}; expected a file, or package.module:function for a function that "
            "returns the model"
        )
    formats = registry().file_formats()
    if path.suffix.lower() not in formats:
        raise InputError(
            f"{path}: models are read from {', '.join(formats)}{registry().in_words_broken()}; for other files install "
            "a plugin that reads them, or write a function that returns the model and pass package.module:function"
        )
    report, spec, file = registry().file_format(path.suffix)
    if not file.safe:
        warn(f"loading {path} runs code from the file; use only files you trust")
    try:
        return file.load(path)
    except InputError as error:
        error.plugin = error.plugin or report.name
        raise
    except Exception as error:
        lost = isinstance(error, (ImportError, AttributeError))
        hint = ". The code of its classes must be installed, or lie in this folder" if lost else ""
        raise InputError(
            f"{path} cannot be loaded as a model by {spec.name}: {reason(error)}{hint}", plugin=report.name
        ) from error
