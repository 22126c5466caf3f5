"""An explainer that other processes load once: what `save` writes, as bytes."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.files.package import MAX_BYTES
from cfproto_plugin.files.reading import opened_package
from cfproto_plugin.files.record import Saved
from cfproto_plugin.integrations.serving import ServedExplainer, known

_IDENTIFYING = ("explainer", "arrays")  # settings, training rows and what the model said of each of them
_loaded: dict[str, ServedExplainer] = {}  # of this process, by identity; one job needs one


@dataclass(frozen=True)
class Stored:
    """A saved explainer.

    content: the bytes of the file. identity: a checksum of the settings, the training rows and what the model said of
    them. trusted: names that `load` is told to trust. apart: why the model is not in the file; None if it is.
    """

    content: bytes
    identity: str
    trusted: tuple[str, ...]
    apart: str | None

    def check_complete(self) -> None:
        """Refuse an explainer that another process cannot load."""
        if self.apart is not None:
            raise InputError(
                f"other processes cannot load this explainer: its model is saved {self.apart}. Use workers=1 and "
                "engine='local', or a model that can be stored"
            )

    def load(self) -> ServedExplainer:
        """The explainer, loaded once in a process."""
        if self.identity not in _loaded:
            self.check_complete()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "explainer.zip"
                path.write_bytes(self.content)
                found = CounterfactualExplainer.load(path, trusted=self.trusted)
            _loaded.clear()
            _loaded[self.identity] = ServedExplainer(found)
        return _loaded[self.identity]


def explainer_of(given: Any, trusted: Sequence[str] = ()) -> CounterfactualExplainer:
    """A fitted explainer, or the one that was saved at this path."""
    if isinstance(given, (str, os.PathLike)):
        return CounterfactualExplainer.load(given, trusted=trusted)
    if not isinstance(given, CounterfactualExplainer):
        raise InputError(f"explainer is {shown(given)}; expected a fitted CounterfactualExplainer, or the path of one")
    known(given)
    return given


def store(explainer: CounterfactualExplainer, trusted: Sequence[str] = ()) -> Stored:
    """Save a fitted explainer for other processes."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of models that are not stored: an error where it matters
        path = Path(folder) / "explainer.zip"
        saved = explainer.save(path)
        with opened_package(path, MAX_BYTES) as package:
            files = package.manifest["files"]
        content = path.read_bytes()
    identity = hashlib.sha256("".join(files[part]["sha256"] for part in _IDENTIFYING).encode()).hexdigest()
    return Stored(content, identity, tuple(dict.fromkeys((*saved.trusted, *trusted))), _apart(saved))


def _apart(saved: Saved) -> str | None:
    return next((where for where in saved.models.values() if where.startswith("by reference")), None)
