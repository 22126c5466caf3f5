"""What a file cannot hold safely, such as functions: only its name is written, and the user hands it over at load.

A file names modules; none of them is imported unless the user trusts that very name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cfproto_plugin.errors import FileError, did_you_mean

_IMPORTABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Names:
    """The names of functions and objects of one file, each once."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def of(self, value: Any) -> str:
        """module:name of a function or class, module:type of another object; a second one of that name gets #2."""
        owner = value if hasattr(value, "__qualname__") else type(value)
        name = f"{owner.__module__}:{owner.__qualname__}"
        self._count[name] = self._count.get(name, 0) + 1
        return name if self._count[name] == 1 else f"{name}#{self._count[name]}"


class Lookup:
    """Finds what a name stands for: among what the user handed over, or by an import that the user allowed."""

    def __init__(self, functions: Mapping[str, Any] | None, trusted: Iterable[str]) -> None:
        self._functions = {} if functions is None else dict(functions)
        self._trusted = set(trusted)

    def find(self, name: Any, what: str) -> Any:
        """The object. what: what it is in the explainer, for messages."""
        if not isinstance(name, str):
            raise FileError(f"{what} is named {str(name)[:80]!r}; expected such as 'module:function'")
        short = name.partition(":")[2]
        for key in (name, short):
            if key in self._functions:
                return self._functions[key]
        if name in self._trusted and _IMPORTABLE.fullmatch(name):
            return _imported(name, what)
        also = f", or trusted=[{name!r}] to import it" if _IMPORTABLE.fullmatch(name) else ""
        raise FileError(
            f"{what} is {name[:200]!r}, which was saved by its name only: nothing that a file names is run unasked."
            f"{did_you_mean(short, self._functions)} Pass functions={{{short[:200]!r}: ...}}{also}"
        )


def _imported(name: str, what: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise FileError(
            f"{what} is {name!r}, which cannot be imported ({error}); pass it by functions={{...}}"
        ) from error
    return found
