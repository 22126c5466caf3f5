"""Relations between columns, as texts or functions: read once, then asked of table rows, their answers checked."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, ConfigError
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import is_missing
from cfproto_plugin.tables.columns import Columns

_COMPARE = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_SIGNS = re.compile(r"[<>=!≤≥≠]+")
_MEANT = {"=<": "<=", "=>": ">=", "<>": "!=", "=": "==", "===": "==", "=!": "!=", "≤": "<=", "≥": ">=", "≠": "!="}


@dataclass(frozen=True)
class Comparison:
    """Two sides and what is between them; a side is the place of a column (int) or a number (float)."""

    name: str
    left: int | float
    sign: str
    right: int | float

    def __call__(self, x: Array) -> Array:
        """Compare in every table row of x (n, A)."""
        left, right = (x[:, side] if isinstance(side, int) else side for side in (self.left, self.right))
        return np.asarray(_COMPARE[self.sign](left, right))

    def on(self, columns: Columns) -> Comparison:  # noqa: ARG002 as the other
        """The same for rows that hold the columns otherwise."""
        return self


@dataclass(frozen=True)
class Condition:
    """A function of the user's, which gets rows as the training data came."""

    name: str
    function: Callable[[Any], Any]
    columns: Columns

    def __call__(self, x: Array) -> Array:
        """Ask the function about table rows x (n, A); rows whose answer is missing do not fulfil it."""
        try:
            found = np.asarray(self.function(self.columns.to_named(x.copy())))
        except CfprotoError:
            raise
        except Exception as error:
            raise ConfigError(f"relation {self.name!r} raised {type(error).__name__}: {error}") from error
        if found.dtype == object and found.ndim == 1:
            found = np.array(
                [False if is_missing(truth) else truth for truth in found], dtype=None if len(found) else bool
            )
        if found.shape != (len(x),) or found.dtype != bool:
            raise ConfigError(
                f"relation {self.name!r} returned {found.dtype} of shape {found.shape} for {len(x)} rows; expected "
                "True or False for each row"
            )
        return found

    def on(self, columns: Columns) -> Condition:
        """The same for rows that hold the columns in other dtypes, or hold further categories."""
        return replace(self, columns=columns)


Relation = Comparison | Condition


def read_relation(relation: Any, columns: Columns) -> Relation:
    """Look up the columns that a text names; a function is taken as it is."""
    if callable(relation):
        return Condition(getattr(relation, "__name__", repr(relation)), relation, columns)
    found = [(relation[: m.start()].strip(), m[0], relation[m.end() :].strip()) for m in _SIGNS.finditer(relation)]
    splits = [(left, sign, right) for left, sign, right in found if left and right]
    good = [
        (left, sign, right)
        for left, sign, right in splits  # the name of a column may hold a sign
        if sign in _COMPARE and _is_known(left, columns) and _is_known(right, columns)
    ]
    if not good:
        _check_signs(relation, [sign for _, sign, _ in splits])
    left, sign, right = (good or splits)[0]
    if _is_number(left, columns) and _is_number(right, columns):
        raise ConfigError(f"relation {relation!r} names no column; columns without a name need a function")
    return Comparison(relation, _side(left, columns, relation), sign, _side(right, columns, relation))


def _check_signs(relation: str, signs: list[str]) -> None:
    """Refuse a text without a comparison, with one that does not exist, or with several."""
    if not signs:
        raise ConfigError(f"relation {relation!r} cannot be read; expected such as 'a <= b' or 'a >= 3', or a function")
    wrong = next((sign for sign in signs if sign not in _COMPARE), None)
    if wrong is not None:
        meant = f" Did you mean {_MEANT[wrong]!r}?" if wrong in _MEANT else ""
        raise ConfigError(f"relation {relation!r} compares by {wrong!r}.{meant} There are: {', '.join(_COMPARE)}")
    if len(signs) > 1:
        raise ConfigError(f"relation {relation!r} has {len(signs)} comparisons; write a relation for each of them")


def _side(text: str, columns: Columns, relation: str) -> int | float:
    if _is_number(text, columns):
        return float(text)
    at = columns.find(text, f"relation {relation!r}")
    if at in columns.categories:
        raise ConfigError(f"relation {relation!r}: {text!r} is a category; pass a function instead", column=text)
    return at


def _is_known(text: str, columns: Columns) -> bool:
    named = text in (columns.names or ()) or any(attribute.name == text for attribute in columns.attributes)
    return named or _is_number(text, columns)


def _is_number(text: str, columns: Columns) -> bool:
    """Whether it stands for a number and not for a column of that name."""
    try:
        float(text)
    except ValueError:
        return False
    return text not in (columns.names or ())
