"""Which classes a counterfactual may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

import numpy as np

from cfproto_plugin.checks import as_plain, shown
from cfproto_plugin.errors import ConfigError, InputError, did_you_mean
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import is_missing

_CHOICES = (list, tuple, AbstractSet, ValuesView, range, Iterator)
_BY_POSITION = "Give target the index of x, or pass target.to_numpy() for one label per row in their order"


def allowed_classes(target: Any, classes: Array, original: Array, index: Any = None) -> Array:
    """The allowed classes (n, k) of rows whose own classes are the columns `original` (n,).

    None: every class but the row's own. A label, or a list, tuple or set of labels: the same for all rows. An array or
    Series: one label per row; a pandas Series is matched to the `index` of the rows, if they have one.
    """
    n, k = len(original), len(classes)
    if target is None:
        return np.asarray(np.arange(k) != original[:, None])
    if isinstance(target, tuple) and any(isinstance(name, tuple) and name == target for name in names_of(classes)):
        target = [target]
    if isinstance(target, _CHOICES):
        labels = list(target)
        if not labels:
            raise InputError("target is empty; expected at least one label, or None for any other class")
        chosen = _columns(labels, classes)
        if n == len(labels) > 1 and isinstance(target, (list, tuple)) and len(set(chosen)) < n:
            raise InputError(
                "target is a list with repeated labels and one item per row; a list is a set of allowed labels for all "
                "rows: pass np.array(target) for one label per row"
            )
        allowed = np.zeros((n, k), dtype=bool)
        allowed[:, chosen] = True
        return allowed
    if np.ndim(target) == 0:
        label = target[()] if isinstance(target, np.ndarray) else target
        return np.broadcast_to(np.arange(k) == _columns([label], classes)[0], (n, k))
    per_row = np.asarray(in_order_of(target, index))
    if per_row.shape != (n,):
        raise InputError(
            f"target has shape {per_row.shape} for {n} rows; expected one label per row, or a list of allowed labels"
        )
    return np.asarray(np.arange(k) == np.array(_columns(list(per_row), classes, per_row=True))[:, None])


def in_order_of(target: Any, index: Any) -> Any:
    """One target per row in the order of the rows: a pandas Series by their index, anything else as it is."""
    return (
        _by_index(target, index) if index is not None and hasattr(target, "iloc") and np.ndim(target) == 1 else target
    )


def class_columns(labels: list[Any], classes: Array, row: int | None = None) -> list[int]:
    """The columns of labels that the target of all rows, or of one row, names."""
    known = names_of(classes)
    places = {label: column for column, label in reversed(list(enumerate(known)))}
    return [_column(as_plain(label), known, places, classes, row) for label in labels]


def _by_index(target: Any, index: Any) -> Any:
    """The labels of a Series in the order of the rows."""
    if target.index.equals(index):
        return target
    for what, labels in (("target", target.index), ("x", index)):
        if not labels.is_unique:
            twice = as_plain(labels[labels.duplicated()][0])
            raise InputError(
                f"target is matched to x by its index, and the index of {what} has {shown(twice)} twice. {_BY_POSITION}"
            )
    for what, other, labels in (("target", "x", target.index), ("x", "target", index)):
        extra = labels.difference(index if other == "x" else target.index, sort=False)
        if len(extra):
            raise InputError(
                f"target is matched to x by its index, and {shown(as_plain(extra[0]))} is in the index of {what} and "
                f"not in that of {other}. {_BY_POSITION}"
            )
    return target.reindex(index)


def _columns(labels: list[Any], classes: Array, *, per_row: bool = False) -> list[int]:
    """The columns of labels. per_row: the place of a label is the number of its row, for messages."""
    known = names_of(classes)
    places = {label: column for column, label in reversed(list(enumerate(known)))}
    return [
        _column(as_plain(label), known, places, classes, row if per_row else None) for row, label in enumerate(labels)
    ]


def _column(label: Any, known: list[Any], places: dict[Any, int], classes: Array, row: int | None) -> int:
    of_row = "" if row is None else f" of row {row}"
    if getattr(label, "ndim", 0) or isinstance(label, (list, Mapping, AbstractSet)):
        raise InputError(f"target{of_row} holds {shown(label)}; expected a label", row=row)
    if is_missing(label):
        raise InputError(f"target{of_row} holds {label!r}; expected a class in each place", row=row)
    with suppress(TypeError, KeyError):  # an unhashable label is no key
        return places[label]
    if classes.dtype.kind == "f" and isinstance(label, float) and (classes == classes.dtype.type(label)).any():
        return int(np.argmax(classes == classes.dtype.type(label)))
    same = [column for column, name in enumerate(known) if bool(name == label)]
    if same:
        return same[0]
    there = ", ".join(map(repr, known[:20]))
    raise InputError(
        f"target {shown(label)}{of_row} is not a class of the model.{_meant(label, known)} Its classes are: {there}",
        row=row,
    )


def _meant(label: Any, known: list[Any]) -> str:
    """A class that reads the same and has another type, or one that is written nearly so."""
    for name in known:
        if str(name) == str(label):
            return f" {shown(label)} is {_type(label)} and the classes are {_type(name)}: write target={name!r}."
    return did_you_mean(label, known)


def _type(value: Any) -> str:
    return type(value).__name__


def names_of(classes: Array) -> list[Any]:
    """The labels as plain Python values; dates stay what they are."""
    return list(classes) if classes.dtype.kind in "mM" else [as_plain(label) for label in classes.tolist()]


def names_for(given: Mapping[Any, str] | tuple[str, ...] | None, classes: Array) -> tuple[str, ...] | None:
    """The names of the classes, in their order; a class that a dict leaves out is called by its label.

    A label may be given as a text: 1 and "1" look the same on a command line.
    """
    if given is None:
        return None
    known = names_of(classes)
    there = ", ".join(map(repr, known[:20]))
    if not isinstance(given, Mapping):
        if len(given) != len(known):
            raise ConfigError(
                f"class_names has {len(given)} names, and the model has {len(known)} classes: {there}. Give one name "
                "for each, in this order, or a dict of label to name"
            )
        return given
    found = [str(label) for label in known]
    for label, name in given.items():
        same = [at for at, each in enumerate(known) if each == label] or [
            at for at, each in enumerate(known) if str(each) == str(label)
        ]
        if not same:
            raise ConfigError(
                f"class_names names the class {shown(label)}, which the model does not have."
                f"{did_you_mean(label, known)} Its classes are: {there}"
            )
        found[same[0]] = name
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"class_names makes {twice!r} stand for two classes; expected a name of its own for each")
    return tuple(found)


def _no_name(text: str, labels: list[Any], names: Sequence[str]) -> str:
    """That a text names no class, and which there are."""
    begun = [name for name in names if name.casefold().startswith(text.casefold().strip() or name)]
    meant = f" Did you mean {begun[0]!r}?" if len(begun) == 1 else did_you_mean(text, names)
    pairs = list(zip(names, labels, strict=True))[:20]
    there = ", ".join(repr(label) if name == str(label) else f"{name!r} ({label!r})" for name, label in pairs)
    return f"target {shown(text)} is not a class of the model.{meant} Its classes are, by name (and label): {there}"


def labels_for(target: Any, classes: Array, names: Sequence[str] | None) -> Any:
    """A target that may use the names of classes, by their labels. A label that is a name, too, stays that label.

    A label may be given as a text, as in `names_for`. InputError, with the names, for a text that is none of these.
    """
    if names is None or target is None:
        return target
    labels = names_of(classes)
    by_text = {str(label): label for label in labels if [str(each) for each in labels].count(str(label)) == 1}
    by_name = by_text | dict(zip(names, labels, strict=True))
    by_name = {name: label for name, label in by_name.items() if name not in labels}

    def labelled(one: Any) -> Any:
        if isinstance(one, Mapping):
            return {labelled(key): value for key, value in one.items()}
        if isinstance(one, str) and one not in by_name and one not in map(str, labels):
            raise InputError(_no_name(one, labels, names))
        return by_name.get(one, one) if isinstance(one, str) else one

    if isinstance(target, (list, tuple, set, frozenset)):
        return type(target)(labelled(one) for one in target)
    if hasattr(target, "iloc"):
        return target.astype(object).map(labelled)
    if isinstance(target, np.ndarray) and target.ndim == 1 and target.dtype.kind in "OU":
        made = np.empty(len(target), dtype=object)
        made[:] = [labelled(one) for one in target.tolist()]
        return made
    return labelled(target)
