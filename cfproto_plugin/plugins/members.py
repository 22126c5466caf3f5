"""The optional members of an adapter, as its author gave them: checked, and a mistake named as that of the adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, ModelError
from cfproto_plugin.helpers.trees import tree_thresholds
from cfproto_plugin.plugins.factories import Origin
from cfproto_plugin.protocols import Array, TreeEnsemble


def origin_of(adapter: Any) -> Origin | None:
    """The plugin that made an adapter; None if it was made by hand."""
    found = getattr(adapter, "cfproto_origin", None)
    return found if isinstance(found, Origin) else None


def owner_of(adapter: Any) -> str:
    """What messages call the adapter: with its plugin, or by its type if it was made by hand."""
    return str(origin_of(adapter) or f"the adapter {type(adapter).__name__!r}")


def wrong(adapter: Any, member: str, what: str, expected: str) -> ModelError:
    """The error of a member. what: such as "is 5" or "returned None"."""
    origin = origin_of(adapter)
    return ModelError(
        f"{member} of {owner_of(adapter)} {what}; expected {expected}", plugin=None if origin is None else origin.plugin
    )


def member(adapter: Any, name: str, expected: str) -> Any:
    """The member of that name, None if there is none."""
    try:
        return getattr(adapter, name, None)
    except CfprotoError:
        raise
    except Exception as error:
        raise wrong(adapter, name, _raised(error), expected) from error


def method(adapter: Any, name: str) -> Callable[..., Any] | None:
    """The method of that name, None if there is none."""
    found = member(adapter, name, "a method")
    if name == "labels" and found is not None and not callable(found):  # decides: ignoring it would give wrong classes
        raise wrong(adapter, name, f"is {found!r}", "a method. The names of the classes are `classes`")
    return found if callable(found) else None


def answer(adapter: Any, name: str, expected: str) -> Any:
    """What the method of that name, which takes no arguments, returns; None if there is none."""
    found = method(adapter, name)
    try:
        return None if found is None else found()
    except CfprotoError:
        raise
    except Exception as error:
        raise wrong(adapter, name, _raised(error), expected) from error


def batch_size(adapter: Any, name: str) -> int | None:
    """`max_rows` or `fixed_rows`."""
    expected = "a whole number above 0"
    found = member(adapter, name, expected)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, np.integer)) or found < 1:
        raise wrong(adapter, name, f"is {found!r}", expected)
    return int(found)


def column_names(adapter: Any) -> tuple[str, ...] | None:
    """`feature_names`."""
    expected = "the names of the model's columns, such as ['age', 'income']"
    found = member(adapter, "feature_names", expected)
    if found is None:
        return None
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise wrong(adapter, "feature_names", f"is {found!r}", expected)
    return tuple(map(str, found))


def class_names(adapter: Any, n_columns: int) -> Array:
    """`classes` (k,); 0, 1, ... if there are none."""
    expected = (
        f"{n_columns} different labels, one for each column that predict returns, in a list or an array. Labels that "
        "are tuples have to be in an array of objects"
    )
    found = member(adapter, "classes", expected)
    if found is None:
        return np.arange(n_columns)
    try:
        classes = np.array(found)
    except ValueError as error:  # items of different lengths
        raise wrong(adapter, "classes", f"is {found!r}", expected) from error
    if classes.ndim != 1:
        raise wrong(adapter, "classes", f"is {found!r}", expected)
    names = classes.tolist()
    if len(classes) != n_columns:
        raise wrong(adapter, "classes", f"has {len(classes)} labels, {names}", expected)
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise wrong(adapter, "classes", f"has the label {twice[0]!r} twice", expected)
    return classes


def tree_ensemble(adapter: Any) -> TreeEnsemble | None:
    """`trees()`."""
    expected = "a TreeEnsemble or None"
    found = answer(adapter, "trees", expected)
    if found is not None and not isinstance(found, TreeEnsemble):
        raise wrong(adapter, "trees", f"returned {type(found).__name__}", expected)
    return found


def splits_of_trees(adapter: Any, ensemble: TreeEnsemble) -> list[Array]:
    """The split values of the adapter's `trees()` by column."""
    try:
        return tree_thresholds(ensemble)
    except Exception as error:
        what = f"returned trees that cannot be read ({_words(error)})"
        raise wrong(adapter, "trees", what, "trees with one entry per node in each of their arrays") from error


def split_values(adapter: Any) -> list[Array] | None:
    """`thresholds()`: numbers (m,) for every column."""
    expected = "a list of arrays (m,) of sorted numbers, one for each column, or None"
    found = answer(adapter, "thresholds", expected)
    if found is None:
        return None
    try:
        columns = [np.asarray(values, dtype=float) for values in found]
    except (TypeError, ValueError) as error:
        raise wrong(adapter, "thresholds", f"returned {found!r}", expected) from error
    for at, values in enumerate(columns):
        if values.ndim != 1 or not (np.diff(values) >= 0).all() or np.isnan(values).any():
            what = f"an array of shape {values.shape}" if values.ndim != 1 else f"{values[:4]}"
            raise wrong(adapter, "thresholds", f"returned {what} for column {at}", expected)
    return [values[np.isfinite(values)] for values in columns]


def _raised(error: Exception) -> str:
    return f"raised {_words(error)}"


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")
