"""Between an explainer and its file: what is saved of it, and how a loaded one is made sure to be the same."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cfproto_plugin.arguments import check_models, check_parts, check_seed
from cfproto_plugin.checks import is_count, shown
from cfproto_plugin.errors import CfprotoError, FileError, InputError, ModelError
from cfproto_plugin.files.loading import Handed, read_record
from cfproto_plugin.files.models import How
from cfproto_plugin.files.record import Record, Saved, write_record
from cfproto_plugin.fitted import Fitted, Models
from cfproto_plugin.plugins import adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.targets import names_for

_SETTINGS = (
    *("model", "adapter", "encoder", "autoencoder", "prototypes", "distance", "features", "search"),
    *("class_names", "seed"),
)
_TRANSFORMS = ("encoder", "autoencoder")
_EXAMPLES = 8  # training rows by which an encoder or autoencoder is known
_ROUNDING = 1e-5  # relative difference of their outputs that another machine or version may make


def as_path(path: Any) -> Path:
    """The path of a file or folder."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise InputError(f"path is {shown(path)}; expected text or a pathlib.Path")
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise InputError(f"path is {shown(path)}; expected the name of a file or folder")
    return Path(path)


def check_handed(functions: Any, trusted: Any, max_bytes: Any) -> tuple[str, ...]:
    """Check what `load` is given; return the names that are trusted."""
    names = (trusted,) if isinstance(trusted, str) else trusted
    if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise InputError(f"trusted is {shown(trusted)}; expected names of types or functions, such as ['module:name']")
    known = {} if functions is None else functions
    if not isinstance(known, Mapping) or not all(isinstance(key, str) for key in known):
        raise InputError(f"functions is {shown(functions)}; expected a dict of name to function")
    if not is_count(max_bytes, 1):
        raise InputError(f"max_bytes is {shown(max_bytes)}; expected a whole number of at least 1")
    return tuple(names)


def settings_of(explainer: Any) -> dict[str, Any]:
    """The arguments that make an explainer like this one."""
    return {name: getattr(explainer, name) for name in _SETTINGS}


def save(settings: dict[str, Any], fitted: Fitted, path: Path, how: How) -> Saved:
    """Write an explainer of these settings."""
    if how not in get_args(How):
        raise InputError(f"model is {shown(how)}; expected one of {', '.join(map(repr, get_args(How)))}")
    difference = fitted.difference(fitted.classifier)
    if difference is not None:
        raise ModelError(f"the model changed after explainer.fit: {difference}. Call explainer.fit again, then save")
    settings = {**settings, "class_names": fitted.class_names}
    record = Record(**settings, data=fitted.data, said=fitted.said, examples={})
    record = replace(record, examples=_examples(record, fitted))
    saved = write_record(path, record, how, _differences(record, fitted))
    for role, where in saved.models.items():
        if how == "auto" and where.startswith("by reference"):
            warnings.warn(f"the {role} was saved {where}. Pass it to load as {role}=", stacklevel=3)
    return saved


def load(path: Path, handed: Handed, max_bytes: int) -> tuple[dict[str, Any], Fitted]:
    """The settings of a saved explainer, and what it knows."""
    record = read_record(path, handed, max_bytes)
    settings = settings_of(record)
    check_models(record.model, record.adapter, record.encoder, record.autoencoder)
    check_parts(record.prototypes, record.distance)
    check_seed(record.seed)
    models = Models.of(record.model, record.adapter, record.encoder, record.autoencoder, record.seed)
    for role in record.examples:
        difference = _other_codes(record, role, getattr(record, role))
        if difference is not None:
            raise ModelError(f"this is not the {role} that the explainer was fitted with: {difference}. Pass that one.")
    learn = partial(Fitted.learn, record.data, models, record.features, record.search, record.prototypes)
    try:
        fitted = learn(record.distance, record.seed, record.said)
        return settings, replace(fitted, class_names=names_for(record.class_names, fitted.classes))
    except CfprotoError:
        raise
    except Exception as error:
        raise FileError(f"{path} is damaged: no explainer can be made of it ({str(error)[:200]})") from error


def _examples(record: Record, fitted: Fitted) -> dict[str, tuple[Array, Array]]:
    """Training rows and what encoder and autoencoder make of them."""
    found = {}
    for role in _TRANSFORMS:
        if getattr(record, role) is not None:
            rows = fitted.guide.train[:_EXAMPLES].reshape(-1, *fitted.space.shape)
            found[role] = (rows, _codes(getattr(record, role), rows, record.seed))
    return found


def _codes(model: Any, rows: Array, seed: int) -> Array:
    return np.asarray(adapted(model, role="transform", seed=seed).predict(rows))


def _differences(record: Record, fitted: Fitted) -> dict[str, Callable[[Any], str | None]]:
    """By role: what another model says otherwise than the one of the record."""

    def classifier(model: Any) -> str | None:
        return fitted.difference(adapted(model, record.adapter, seed=record.seed))

    return {"model": classifier, **{role: partial(_other_codes, record, role) for role in record.examples}}


def _other_codes(record: Record, role: str, model: Any) -> str | None:
    """What an encoder or autoencoder makes of the examples otherwise; None if it makes the same."""
    rows, then = record.examples[role]
    now = _codes(model, rows, record.seed)
    if now.shape != then.shape:
        return f"its outputs have the shape {now.shape}, then {then.shape}"
    scale = max(1.0, float(np.abs(then).max(initial=0.0)))
    away = np.abs(now - then).reshape(len(then), -1).max(axis=1, initial=0.0)
    if (away <= _ROUNDING * scale).all():
        return None
    row = int(np.argmax(~(away <= _ROUNDING * scale)))
    return f"it made {then[row].ravel()[:3]} of one row at fit, and makes {now[row].ravel()[:3]} now"
