"""A fitted explainer as a plain record, and how it is written.

What is kept: the settings, the training rows as the user gave them, and all that the model said of them at fit. The
rest of what an explainer knows follows from these without asking the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import FileError, InputError
from cfproto_plugin.features import Features
from cfproto_plugin.files.arrays import write_arrays
from cfproto_plugin.files.bounds import check_bounds
from cfproto_plugin.files.exact_json import encode
from cfproto_plugin.files.models import How, keep
from cfproto_plugin.files.references import Names
from cfproto_plugin.files.said import said_to
from cfproto_plugin.files.strict import check_values
from cfproto_plugin.files.versions import versions_of
from cfproto_plugin.files.writing import Part, check_place, write_package
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.training import Said

ROLES = ("model", "encoder", "autoencoder")


@dataclass(frozen=True)
class Record:
    """What an explainer is made of, and what its model said."""

    model: Any
    adapter: Any
    encoder: Any
    autoencoder: Any
    prototypes: Any
    distance: Any
    features: Features
    search: SearchConfig
    class_names: tuple[str, ...] | None
    seed: int
    data: Any  # the training rows
    said: Said
    examples: dict[str, tuple[Array, Array]]  # by role: rows (m, ...) and what an encoder or autoencoder made of them


class Saved(NamedTuple):
    """What `save` wrote.

    models: by role, the name of its file, or "by reference" and why. trusted: types that `load` must be told to trust.
    """

    path: Path
    models: dict[str, str]
    trusted: tuple[str, ...]


def write_record(path: Path, record: Record, how: How, differs: Mapping[str, Callable[[Any], str | None]]) -> Saved:
    """Save a record. differs: by role, what a model that was read back says otherwise than the one that is saved."""
    check_place(path)
    names = Names()
    parts: dict[str, Part] = {}
    notes: dict[str, dict[str, Any] | None] = {}
    adapter = record.adapter if isinstance(record.adapter, str) else None
    for role in ROLES:
        model = getattr(record, role)
        notes[role] = None
        if model is not None:
            name = adapter if role == "model" else None
            kept = keep(role, model, name, "reference" if _given_adapter(record, role) else how, differs[role])
            notes[role] = kept.note
            if kept.part is not None:
                parts[role] = kept.part
    arrays: list[Array] = []
    content = {
        "settings": _settings(record, names),
        "models": notes,
        "data": encode(record.data, "the training data"),
        "said": said_to(record.said),
        "examples": encode({role: list(pair) for role, pair in record.examples.items()}, "examples"),
    }

    def apart(array: Any) -> dict[str, int]:
        arrays.append(array)
        return {"$npy": len(arrays) - 1}

    try:
        check_bounds(content)
    except InputError as error:
        raise FileError(f"the training data could not be read again: {error}. Fit on fewer rows") from error
    text = json.dumps(content, allow_nan=False, default=apart).encode()
    check_values(text, "the text of the training data")
    parts = {"explainer": Part(text, ".json"), "arrays": Part(write_arrays(arrays), ".npz"), **parts}
    write_package(path, parts, {"versions": versions_of(*(getattr(record, role) for role in ROLES), record.data)})
    return Saved(path, _in_words(notes, parts), tuple(name for note in notes.values() if note for name in note["asks"]))


def _given_adapter(record: Record, role: str) -> bool:
    return role == "model" and record.adapter is not None and not isinstance(record.adapter, str)


def _in_words(notes: Mapping[str, Any], parts: Mapping[str, Part]) -> dict[str, str]:
    return {
        role: f"{role}{note['suffix']}" if role in parts else f"by reference: {note['why']}"
        for role, note in notes.items()
        if note is not None
    }


def _settings(record: Record, names: Names) -> dict[str, Any]:
    """The settings; functions and objects by name."""
    found: dict[str, Any] = {"seed": record.seed}
    if record.class_names is not None:  # left out else: older versions read the file too
        found["class_names"] = list(record.class_names)
    for name in ("adapter", "prototypes", "distance"):
        value = getattr(record, name)
        found[name] = value if value is None or isinstance(value, str) else {"reference": names.of(value)}
    features = {each.name: getattr(record.features, each.name) for each in fields(Features)}
    relations = [each if isinstance(each, str) else {"reference": names.of(each)} for each in features.pop("relations")]
    found["features"] = {**encode(features, "features"), "relations": relations}
    found["search"] = encode({each.name: getattr(record.search, each.name) for each in fields(SearchConfig)}, "search")
    return found
