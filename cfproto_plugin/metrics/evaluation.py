"""All measures of an Explanation at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.helpers.kinds import library_of, to_pandas
from cfproto_plugin.metrics.interpretability import im1, im2, neighbour_distance
from cfproto_plugin.metrics.sparsity import elastic_net, l0, l1, l2
from cfproto_plugin.metrics.table import MetricTable, join, summarise
from cfproto_plugin.protocols import Array

_NEIGHBOURS = 5
_BY = ("original_class", "counterfactual_class", "prototype_class", "status", "row")


def validity(explanation: Explanation) -> Array:
    """1 for a line that has a counterfactual, whose class `explain` has checked, else 0."""
    return np.isin(explanation.status.astype(str), ("found", "fallback")).astype(float)


def evaluate(
    explanations: Explanation | Mapping[str, Explanation],
    *,
    autoencoders: Mapping[Any, Any] | None = None,
    autoencoder: Any = None,
    reference: tuple[Any, Any] | None = None,
    beta: float = 0.1,
    confidence: float = 0.95,
    by: str | None = None,
) -> MetricTable:
    """A line per set of explanations and measure: n, mean, std and confidence bounds of the mean.

    explanations: one, or several by name. by: split every set by a field with one value per line, such as
    "counterfactual_class". The measures and the other arguments are those of `measure`. Lines without a counterfactual
    count in `validity` and are left out of every other measure. Bounds are Student's t, for `validity` Wilson's.
    """
    sets = {"": explanations} if isinstance(explanations, Explanation) else explanations
    parts = []
    for name, explanation in sets.items():
        values = measure(
            explanation, autoencoders=autoencoders, autoencoder=autoencoder, reference=reference, beta=beta
        )
        for group, lines in _groups(explanation, by):
            chosen = {metric: found[lines] for metric, found in values.items()}
            parts.append(summarise(chosen, name=name, group=group, confidence=confidence))
    return join(parts, confidence)


def measure(
    explanation: Explanation,
    *,
    autoencoders: Mapping[Any, Any] | None = None,
    autoencoder: Any = None,
    reference: tuple[Any, Any] | None = None,
    beta: float = 0.1,
) -> dict[str, Array]:
    """Measure -> one number per line, NaN where a line has no counterfactual (validity: 0).

    validity, n_steps, seconds and l0 always; elastic_net, l1 and l2 for rows of numbers, in the units of the rows.
    im1 needs `autoencoders`, one for each class by its label; im2 also `autoencoder`, that of all classes.
    neighbour_distance needs `reference`, rows and their labels: the five nearest of the new class.
    """
    there = validity(explanation) == 1
    lines = np.flatnonzero(there)
    values = {
        "validity": there.astype(float),
        "n_steps": np.where(there, explanation.n_steps, np.nan),
        "seconds": np.where(there, explanation.seconds, np.nan),
    }
    x, x0 = _numbers(explanation.counterfactual, lines), _numbers(explanation.original, lines)
    if x is None or x0 is None:
        if autoencoders or autoencoder is not None or reference is not None:
            raise InputError(
                "these rows hold words; im1, im2 and neighbour_distance need numbers. Leave out autoencoders and "
                "reference, or explain encoded rows."
            )
        changes = np.bincount([change.row for change in _by_line(explanation)], minlength=len(there))
        return {**values, "l0": np.where(there, changes, np.nan)}
    found = {"elastic_net": elastic_net(x, x0, beta), "l0": l0(x, x0), "l1": l1(x, x0), "l2": l2(x, x0)}
    new, old = explanation.counterfactual_class[lines], explanation.original_class[lines]
    if autoencoders is not None:
        found |= _interpretability(x, new, old, autoencoders, autoencoder)
    if reference is not None:
        found["neighbour_distance"] = _closeness(x, new, *reference)
    for metric, of_lines in found.items():
        values[metric] = np.full(len(there), np.nan)
        values[metric][lines] = of_lines
    return values


def _by_line(explanation: Explanation) -> Any:
    """The changes, each with the number of its line in place of that of its row."""
    for line, one in enumerate(explanation):
        for change in one.changes():
            yield change._replace(row=line)


def _numbers(x: Any, lines: Array) -> Array | None:
    """The chosen rows as an array of numbers; None if a column holds words."""
    x = to_pandas(x)
    if library_of(x) is not None:
        if not all(getattr(dtype, "kind", "O") in "iufb" for dtype in x.dtypes):
            return None
        return np.asarray(x.iloc[lines].to_numpy(dtype=float))
    x = np.asarray(x)
    return x[lines] if x.dtype.kind in "iufb" else None


def _interpretability(x: Array, new: Array, old: Array, models: Mapping[Any, Any], general: Any) -> dict[str, Array]:
    """IM1, and IM2 if there is an autoencoder of all classes, by pairs of classes."""
    found = {"im1": np.full(len(x), np.nan)}
    if general is not None:
        found["im2"] = np.full(len(x), np.nan)
    for pair in sorted(set(zip(new.tolist(), old.tolist(), strict=True)), key=str):
        of_new, of_old = (_of_class(models, label) for label in pair)
        at = np.flatnonzero((new == pair[0]) & (old == pair[1]))
        found["im1"][at] = im1(x[at], of_new, of_old)
        if general is not None:
            found["im2"][at] = im2(x[at], of_new, general)
    return found


def _of_class(models: Mapping[Any, Any], label: Any) -> Any:
    if label not in models:
        raise InputError(f"autoencoders has none for class {label!r}; there are {', '.join(map(repr, models))}")
    return models[label]


def _closeness(x: Array, new: Array, rows: Any, labels: Any) -> Array:
    rows, labels = np.asarray(rows, dtype=float), np.asarray(labels)
    if len(rows) != len(labels):
        raise InputError(f"reference has {len(rows)} rows and {len(labels)} labels; expected one label per row")
    found = np.full(len(x), np.nan)
    for label in sorted(set(new.tolist()), key=str):
        at = np.flatnonzero(new == label)
        found[at] = neighbour_distance(x[at], rows[labels == label], _NEIGHBOURS)
    return found


def _groups(explanation: Explanation, by: str | None) -> list[tuple[Any, Array]]:
    if by is None:
        return [(None, np.arange(len(explanation)))]
    if by not in _BY or by not in {field.name for field in fields(explanation)}:
        raise InputError(f"by is {by!r}; expected one of {', '.join(_BY)}.{did_you_mean(by, _BY)}")
    column = np.asarray(getattr(explanation, by), dtype=object)
    labels = sorted(set(column.tolist()), key=lambda label: (label is None, str(label)))
    return [(label, np.flatnonzero([value == label for value in column])) for label in labels]
