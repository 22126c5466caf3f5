"""A saved explainer, read into a record: whatever is in the file is checked, and nothing of it is run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import FileError, InputError
from cfproto_plugin.features import Features
from cfproto_plugin.files.arrays import read_arrays
from cfproto_plugin.files.bounds import check_bounds
from cfproto_plugin.files.exact_json import decode
from cfproto_plugin.files.models import restore
from cfproto_plugin.files.reading import Package, PartMissingError, opened_package, version_of
from cfproto_plugin.files.record import ROLES, Record
from cfproto_plugin.files.references import Lookup
from cfproto_plugin.files.said import said_from
from cfproto_plugin.files.strict import read_json
from cfproto_plugin.files.versions import differences, versions_of

_Settings = TypeVar("_Settings", Features, SearchConfig)
_TRIES = 100  # to read a folder that is replaced again and again


@dataclass(frozen=True)
class Handed:
    """What the user hands over at load, in place of what was saved by reference."""

    model: Any = None
    adapter: Any = None
    encoder: Any = None
    autoencoder: Any = None
    prototypes: Any = None
    distance: Any = None
    functions: Mapping[str, Any] | None = None
    trusted: Sequence[str] = ()


def read_record(path: Path, handed: Handed, max_bytes: int) -> Record:
    """Read what `write_record` wrote; again if it is replaced meanwhile, by a save to the same folder."""
    for _ in range(_TRIES - 1):
        before = version_of(path)
        try:
            return _read_record(path, handed, max_bytes)
        except PartMissingError:
            if version_of(path) == before:
                raise
    return _read_record(path, handed, max_bytes)


def _read_record(path: Path, handed: Handed, max_bytes: int) -> Record:
    with opened_package(path, max_bytes) as package:
        arrays = read_arrays(package.read("arrays"), f"the arrays of {package.what}")
        used: set[int] = set()

        def joined(found: dict[str, Any]) -> Any:
            if "$npy" not in found:
                return found
            at = found["$npy"]
            if type(at) is not int or len(found) > 1 or not 0 <= at < len(arrays):
                raise FileError(f"{package.what} refers to the array {str(at)[:40]!r}; there are {len(arrays)}")
            if at in used:
                raise FileError(f"{package.what} refers to the array {at} twice; expected once")
            used.add(at)
            return arrays[at]

        content = read_json(package.read("explainer"), f"the part 'explainer' of {package.what}", joined)
        return _Reading(package, content, handed, max_bytes).record()


class _Reading:
    """The content of one file while it is read."""

    def __init__(self, package: Package, content: Any, handed: Handed, max_bytes: int) -> None:
        self._package, self._handed, self._max_bytes = package, handed, max_bytes
        self._content = self._entries(content, "its content", ("settings", "models", "data", "said", "examples"))
        try:
            check_bounds(self._content)
        except (InputError, ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
            raise self._damaged(f"its content cannot be read ({str(error)[:200]})") from error
        self._lookup = Lookup(handed.functions, handed.trusted)

    def record(self) -> Record:
        """All of it; the models last, when the rest is known to be sound."""
        settings = self._entries(
            self._content["settings"],
            "settings",
            ("seed", "adapter", "prototypes", "distance", "features", "search"),
            ("class_names",),
        )
        features = self._features(settings["features"])
        search = self._made(SearchConfig, self._decoded(settings["search"], "the settings of the search"))
        data = self._decoded(self._content["data"], "the training data")
        if not hasattr(data, "shape"):
            raise self._damaged(f"the training data is a {type(data).__name__}; expected an array or a frame")
        said = said_from(self._decoded(self._content["said"], "what the model said"), data.shape)
        notes = self._entries(self._content["models"], "models", ROLES)
        parts = {name: self._part(settings[name], name) for name in ("adapter", "prototypes", "distance")}
        record = Record(
            **{role: self._model(role, notes[role], parts["adapter"]) for role in ROLES},
            **parts,
            features=features,
            search=search,
            class_names=self._class_names(settings.get("class_names")),
            seed=settings["seed"],
            data=data,
            said=said,
            examples=self._examples(notes),
        )
        self._compare_versions(record)
        return record

    def _features(self, found: Any) -> Features:
        if not isinstance(found, dict) or not isinstance(found.get("relations"), list):
            raise self._damaged(f"the rules are {str(found)[:80]}; expected the fields of Features")
        relations = tuple(
            each if isinstance(each, str) else self._lookup.find(self._name(each), f"relation {at + 1}")
            for at, each in enumerate(found["relations"])
        )
        return self._made(Features, {**self._decoded(found, "the rules"), "relations": relations})

    def _class_names(self, found: Any) -> tuple[str, ...] | None:
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise self._damaged(f"the names of the classes are {str(found)[:80]}; expected texts")
        return tuple(found)

    def _part(self, found: Any, name: str) -> Any:
        """The adapter, prototypes or distance: a registered name, or what the user hands over."""
        given = getattr(self._handed, name)
        if given is not None:
            return given
        if isinstance(found, dict):
            key = self._name(found)
            try:
                return self._lookup.find(key, f"{name} of {self._package.what}")
            except FileError as error:
                raise FileError(f"{error}, or pass {name}=") from error
        if not isinstance(found, str) and not (found is None and name == "adapter"):
            raise self._damaged(f"{name} is {str(found)[:80]!r}; expected a registered name")
        return found

    def _model(self, role: str, note: Any, adapter: Any) -> Any:
        given = getattr(self._handed, role)
        if role == "model" and adapter is not None and not isinstance(adapter, str):
            return given  # the adapter holds the model
        return restore(role, note, self._package, given, self._handed.trusted, self._max_bytes)

    def _examples(self, notes: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        found = self._decoded(self._content["examples"], "the examples")
        wanted = {role for role in ROLES[1:] if notes[role] is not None}
        pairs = list(found.values()) if isinstance(found, dict) and set(found) == wanted else [None]
        for pair in pairs:
            arrays = pair if isinstance(pair, list) else []
            if [isinstance(each, np.ndarray) for each in arrays] != [True, True]:
                raise self._damaged(f"the examples of encoder and autoencoder are {str(found)[:80]}")
        return {role: (pair[0], pair[1]) for role, pair in found.items()}

    def _compare_versions(self, record: Record) -> None:
        saved = self._package.manifest.get("versions")
        if not isinstance(saved, dict):
            raise self._damaged("the manifest names no versions")
        now = versions_of(*(getattr(record, role) for role in ROLES), record.data)
        others = differences(saved, now)
        if others:
            warnings.warn(
                f"{self._package.what} was saved with other versions, so that counterfactuals may differ: "
                f"{'; '.join(others)}",
                stacklevel=4,
            )

    def _made(self, kind: type[_Settings], found: Any) -> _Settings:
        try:
            return kind(**found)
        except Exception as error:
            raise self._damaged(f"{kind.__name__} cannot be made of it ({str(error)[:200]})") from error

    def _decoded(self, found: Any, what: str) -> Any:
        try:
            return decode(found)
        except Exception as error:
            raise self._damaged(f"{what} cannot be read ({type(error).__name__}: {str(error)[:200]})") from error

    def _name(self, found: Any) -> Any:
        return self._entries(found, "a reference", ("reference",))["reference"]

    def _entries(self, found: Any, what: str, names: Sequence[str], may: Sequence[str] = ()) -> dict[str, Any]:
        """The entries of these names, and those that it may have."""
        if not isinstance(found, dict) or set(found) - set(may) != set(names):
            raise self._damaged(f"{what} is {str(found)[:80]}; expected {', '.join(names)}")
        return found

    def _damaged(self, text: str) -> FileError:
        return FileError(f"{self._package.what} is damaged: {text}")
