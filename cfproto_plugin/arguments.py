"""The arguments of the explainer and the index of a result, checked: each error says what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from cfproto_plugin.checks import as_plain, is_count, is_number, shown
from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, LineError, ModelError, did_you_mean
from cfproto_plugin.features import Features
from cfproto_plugin.protocols import Array

_Kind = TypeVar("_Kind", Features, SearchConfig)
_MOST = 1_000_000  # counterfactuals per row; more would be a slip


def check_models(model: Any, adapter: Any, *others: Any) -> None:
    """Refuse what cannot be a model, before anything is asked of the plugins."""
    if model is None and (adapter is None or isinstance(adapter, str)):
        raise ModelError("model is None; expected a trained model, or a function x -> probabilities")
    for each in (model, *others):
        if inspect.isclass(each):
            raise ModelError(f"{each.__name__} is a class; pass a trained model, an object of that class")


def check_seed(seed: Any) -> None:
    """It is handed to plugins that draw random numbers."""
    if not is_count(seed, 0):
        raise ConfigError(f"seed is {shown(seed)}; expected a whole number of at least 0")


def check_parts(prototypes: Any, distance: Any) -> None:
    """Each is a name or an object that does the work."""
    methods = all(callable(getattr(prototypes, name, None)) for name in ("fit", "nearest"))
    if not isinstance(prototypes, str) and (inspect.isclass(prototypes) or not methods):
        raise ConfigError(
            f"prototypes is {shown(prototypes)}; expected a name such as 'kdtree', or an object with the methods fit "
            "and nearest"
        )
    if not isinstance(distance, str) and (inspect.isclass(distance) or not callable(distance)):
        raise ConfigError(
            f"distance is {shown(distance)}; expected a name such as 'abdm', or a function of codes, n_categories, "
            "context and labels"
        )


def check_class_names(names: Any) -> Any:
    """A dict of label to name as it is, names one after the other as a tuple; the model says later which labels it has.

    None for None.
    """
    if names is None:
        return None
    known = isinstance(names, Mapping)
    if not known and (isinstance(names, str) or not isinstance(names, (Sequence, np.ndarray))):
        raise ConfigError(
            f"class_names is {shown(names)}; expected a dict of label to name, such as {{0: 'good', 1: 'bad'}}, or a "
            "list of names in the order of the model's classes"
        )
    texts = list(names.values()) if known else [as_plain(name) for name in names]
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"class_names holds the name {shown(text)}; expected a text that is not empty")
        if texts.count(text) > 1:
            raise ConfigError(
                f"class_names gives the name {text!r} to two classes; expected a name of its own for each"
            )
    return dict(names) if known else tuple(texts)


def settings(given: Any, name: str, kind: type[_Kind]) -> _Kind:
    """The settings, those of the defaults for None."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    made = f"{kind.__name__}(...)"
    if isinstance(given, Mapping):
        known = [each.name for each in fields(kind)]
        unknown = next((key for key in given if key not in known), None)
        hint = "" if unknown is None else f" It has no {unknown!r}.{did_you_mean(unknown, known)}"
        raise ConfigError(f"{name} is a dict; write {name}={kind.__name__}(**{shown(given)}).{hint}")
    swapped = {Features: "features", SearchConfig: "search"}.get(type(given))
    hint = f": pass it as {swapped}=" if swapped else ""
    raise ConfigError(f"{name} is {shown(given)}; expected {made}{hint}")


def check_call(n: Any, time_budget: Any, progress: Any) -> None:
    """The numbers of a call of `explain`, and who hears of its progress."""
    if time_budget is not None and not (is_number(time_budget) and time_budget > 0):
        raise InputError(f"time_budget is {shown(time_budget)}; expected a positive number of seconds, or None")
    if not is_count(n) or n > _MOST:
        raise InputError(
            f"n is {shown(n)}; expected how many counterfactuals per row, a whole number from 1 to {_MOST:,}"
        )
    if not (progress is None or isinstance(progress, (bool, np.bool_))) and (
        inspect.isclass(progress) or not callable(progress)
    ):
        raise InputError(
            f"progress is {shown(progress)}; expected True, False, None, or a function that takes the fraction done"
        )
    if callable(progress) and not _takes_one(progress):
        raise InputError(
            f"progress is {shown(progress)}, which cannot be called with one argument; expected a function that takes "
            "the fraction done"
        )


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument, as far as that can be told."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not say
        return True
    try:
        signature.bind(0.0)
    except TypeError:
        return False
    return True


def lines_of(index: Any, n: int, labels: Callable[[], Sequence[str]] = tuple) -> Array:
    """The lines (m,) of n that a number, a slice, a list or array of numbers, or a mask (n,) stands for.

    labels: gives those (n,) of the rows in the index of their frame, for messages.
    """
    lines = np.arange(n)
    if isinstance(index, slice):
        return np.asarray(lines[index])
    wanted = None if isinstance(index, tuple) else _as_index(index)
    if wanted is None:
        hint = ". A result has lines only: columns are chosen in e.counterfactual" if isinstance(index, tuple) else ""
        raise LineError(
            f"{shown(index)} stands for no lines; expected a whole number, a slice, a list of whole numbers, or a mask "
            f"of {n} truth values{hint}"
        )
    if wanted.dtype.kind == "b":
        if len(wanted) != n:
            raise LineError(f"the mask has {len(wanted)} truth values; expected {n}, one for each line")
        return np.asarray(lines[wanted])
    outside = wanted[(wanted < -n) | (wanted >= n)]
    if len(outside):
        known = f"{-n} to {n - 1}" if n else "none: it is empty"
        raise LineError(f"there is no line {outside[0]}; expected {known}{_of_label(str(outside[0]), labels())}")
    return np.asarray(lines[wanted])


def _of_label(label: str, labels: Sequence[str]) -> str:
    """The line that belongs to a label; "" where there is none."""
    if label not in labels:
        return ""
    line = list(labels).index(label)
    return (
        f". The row with the label {label} in the index is line {line}: write e[{line}]. Lines are counted from 0, and "
        "x.index[e.row] are their labels"
    )


def _as_index(index: Any) -> Array | None:
    """Whole numbers or truth values (m,); None for anything else."""
    if isinstance(index, (bool, np.bool_)):
        return None
    try:
        wanted = np.asarray(index)
    except ValueError:  # items of different lengths
        return None
    wanted = wanted.astype(int) if wanted.shape == (0,) else wanted
    return np.atleast_1d(wanted) if wanted.dtype.kind in "iub" and wanted.ndim <= 1 else None
