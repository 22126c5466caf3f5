"""Models of a saved explainer: in a safe format of their own, through the plugin that has one, or by reference.

A stored model is read back before it is relied on. What the file says of a model decides nothing but which format is
asked for, and only formats that the installed plugin calls safe are read.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cfproto_plugin.errors import CfprotoError, FileError
from cfproto_plugin.files.reading import Package
from cfproto_plugin.files.writing import Part
from cfproto_plugin.files.zips import check_nested
from cfproto_plugin.plugins import claimed, registry, type_name
from cfproto_plugin.protocols import AdapterSpec, ModelFile

How = Literal["auto", "file", "reference"]
_LONGEST = 300


class Kept(NamedTuple):
    """A model as it is saved."""

    part: Part | None  # None: by reference
    note: dict[str, Any]  # JSON


def keep(role: str, model: Any, adapter: str | None, how: How, differs: Callable[[Any], str | None]) -> Kept:
    """Store a model in a safe format if there is one.

    adapter: its registered name, if the user gave one. differs: what a model that was read back says otherwise.
    """
    note: dict[str, Any] = {
        "class": type_name(model),
        "adapter": adapter,
        "suffix": None,
        "weights": False,
        "asks": [],
        "why": "",
    }
    if how == "reference":
        return Kept(None, {**note, "why": "it was asked for"})
    found = _writer(model, adapter)
    if isinstance(found, str):
        why = found
    else:
        spec, file = found
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{role}{file.suffixes[0]}"
            try:
                asks = _write(file, model, path, differs)
                told = {"adapter": spec.name, "suffix": path.suffix, "weights": file.weights, "asks": list(asks)}
                return Kept(Part(path.read_bytes(), path.suffix), {**note, **told})
            except Exception as error:  # noqa: BLE001 whatever a framework raises for a model that it cannot write
                why = _reason(error, path)
    if how == "file":
        raise FileError(f"the {role} {type_name(model)} cannot be stored safely: {why}. Save it by reference")
    return Kept(None, {**note, "why": why})


def _writer(model: Any, adapter: str | None) -> tuple[AdapterSpec, ModelFile] | str:
    """The safe format of a model, or why there is none."""
    found = registry().find("adapters", adapter) if adapter is not None else claimed(model, registry())
    if found is None:
        return "it is a function, or an object that no plugin claims"
    spec: AdapterSpec = found[1]
    for file in spec.files:
        if file.safe and file.save is not None:
            return spec, file
    return f"the adapter {spec.name!r} has no file format that runs no code when it is read"


def _write(file: ModelFile, model: Any, path: Path, differs: Callable[[Any], str | None]) -> Sequence[str]:
    """Write a model and read it back; return the types that must be trusted to do so."""
    if file.save is None:
        raise FileError(f"{path.suffix} files cannot be written")
    file.save(model, path)
    asks = tuple(file.asks(path)) if file.asks is not None else ()
    again = file.load(path, model=copy.deepcopy(model) if file.weights else None, trusted=asks)
    difference = differs(again)
    if difference is not None:
        raise FileError(f"read back from its {path.suffix} file it is another model: {difference}")
    return asks


def restore(role: str, note: Any, package: Package, given: Any, trusted: Sequence[str], max_bytes: int) -> Any:
    """The model that was saved, or the one that the user hands over."""
    if note is None:
        if given is not None:
            raise FileError(f"{package.what} was saved without an {role}; leave it out")
        return None
    if not isinstance(note, dict):
        raise FileError(f"{package.what} says {str(note)[:80]} of the {role}; expected an object")
    stored = role in package.manifest["files"]
    if given is not None and not (stored and note.get("weights")):
        return given
    named = f"the {role} of {package.what}, {str(note.get('class'))[:200]!r},"
    if not stored:
        raise FileError(f"{named} was saved by reference ({str(note.get('why'))[:_LONGEST]}): pass {role}=")
    file = _reader(note, package.suffix(role), named)
    if given is None and file.weights:
        raise FileError(f"{named} was saved as weights only: pass {role}=, an untrained one to put them into")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{role}{package.suffix(role)}"
        path.write_bytes(package.read(role))
        check_nested(path, f"{named} as an archive", max_bytes)
        try:
            return file.load(path, model=copy.deepcopy(given), trusted=tuple(trusted))
        except CfprotoError as error:
            raise FileError(f"{named} cannot be loaded: {_named(str(error), path)}") from error
        except Exception as error:
            why = _reason(error, path)
            raise FileError(f"{named} cannot be loaded: {why}. If you have it, pass {role}=") from error


def _reader(note: dict[str, Any], suffix: str, named: str) -> ModelFile:
    name = note.get("adapter")
    if not isinstance(name, str):
        raise FileError(f"{named} is of the adapter {str(name)[:80]!r}; expected the name of one")
    spec: AdapterSpec = registry().find("adapters", name)[1]
    for file in spec.files:
        if suffix == file.suffixes[0] and file.safe and file.save is not None:
            return file
    raise FileError(f"{named} is a {suffix} file, which the adapter {name!r} does not read safely; pass the model")


def _named(text: str, path: Path) -> str:
    """The text with other words for a temporary file, which is gone when it is read."""
    return text.replace(str(path), f"its {path.suffix} file")


def _reason(error: Exception, path: Path) -> str:
    text = " ".join(_named(str(error), path).split())
    return text[:_LONGEST] if isinstance(error, CfprotoError) else f"{type(error).__name__}: {text[:_LONGEST]}"
