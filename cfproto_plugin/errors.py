"""The exceptions of cfproto-plugin. Each is also the built-in that callers already catch.

CfprotoError
├── InputError (ValueError)            rows, training data, targets or settings that cannot be used
│   ├── ConfigError                    a value of SearchConfig or Features
│   ├── FileError                      a saved explainer that is damaged, newer, or not what it says
│   │   └── WriteError (OSError)       a saved explainer that cannot be written: no space, no permission
│   └── LineError (IndexError)         a line that an explanation does not have
├── ModelError (ValueError)            a model whose output is not what a classifier or an encoder gives
│   └── ModelGoneError                 a model that answers nothing more, such as one behind a URL: an adapter raises it
├── NotFittedError (RuntimeError)      explain() before fit(), or a model that was not trained
├── MissingPackageError (ImportError)  an optional package that is not installed
└── PluginError (LookupError)          a plugin, adapter, provider or distance
    ├── NoAdapterError                 nothing claims the model
    ├── AmbiguousAdapterError          two plugins claim it equally
    └── UnknownNameError               no such adapter, provider or distance
SearchEndsError                        never leaves `explain`: no time is left, or no model
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

_ALIKE = 0.75  # of difflib's ratio: two of three letters alike, 0.67, is another word


class CfprotoError(Exception):
    """Base of all errors raised on purpose by this package.

    row: the number of the row it is about. column: the name or index of the column. plugin: the name of the plugin, as
    `cfproto plugins` lists it; several with commas. Each is None where the error has none.
    """

    def __init__(self, message: str, *, row: int | None = None, column: Any = None, plugin: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.column = column
        self.plugin = plugin

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), str(self), self.row, self.column, self.plugin))


class InputError(CfprotoError, ValueError):
    """Rows, training data or targets that cannot be used."""


class ConfigError(InputError):
    """A value of SearchConfig or Features that makes no sense."""


class FileError(InputError):
    """A saved explainer that cannot be written or read: damaged, newer, too large, or not what it says."""


class WriteError(FileError, OSError):
    """A saved explainer or a report that the system does not write: there is no space, or no permission."""


class LineError(InputError, IndexError):
    """A line that an explanation does not have."""


class ModelError(CfprotoError, ValueError):
    """A model whose output is not what its role promises."""


class SearchEndsError(Exception):
    """Ends a search, which goes on to its answers with what it has."""


class ModelGoneError(ModelError, SearchEndsError):
    """A model that will answer nothing more, as an adapter knows: a service that is down, a quota that is used up.

    It is not asked again in the same search. Lines whose answer it confirmed before keep it, the others get the status
    `error` and this message.
    """


class NotFittedError(CfprotoError, RuntimeError):
    """Used before it was fitted or trained."""


class MissingPackageError(CfprotoError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it."""


class PluginError(CfprotoError, LookupError):
    """A plugin, or something that should have come from one."""


class NoAdapterError(PluginError):
    """No installed plugin claims the model."""


class AmbiguousAdapterError(PluginError):
    """Two plugins claim the model equally well."""


class UnknownNameError(PluginError):
    """No adapter, prototype provider or distance of that name."""


def _restored(kind: type[CfprotoError], message: str, row: int | None, column: Any, plugin: str | None) -> CfprotoError:
    """An error out of a pickle, as process pools hand them on."""
    return kind(message, row=row, column=column, plugin=plugin)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return " Did you mean 'x'?" for a known name that is a slip away, or nothing."""
    named = {str(k): k for k in known}
    close = _closest(str(name), named)
    return f" Did you mean {named[close]!r}?" if close is not None else ""


def is_meant(name: object, given: Iterable[object]) -> str:
    """Return " If 'x' is meant, rename it to 'name'." for a missing name and the closest one given, or nothing."""
    close = _closest(str(name), [str(k) for k in given])
    return f" If {close!r} is meant, rename it to {name!r}." if close is not None else ""


def _closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a reader would take for this one: other capitals or spaces, a letter or two off."""
    plain, word = {_plain(each): each for each in known}, _plain(name)
    close = difflib.get_close_matches(word, plain, n=1, cutoff=_ALIKE)
    close = close or [each for each in plain if word.isalpha() and sorted(each) == sorted(word)]  # two letters swapped
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name
