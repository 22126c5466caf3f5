"""Where the trees of scikit-learn split the columns of their input.

Outputs of trees are constant between the splits x <= t, and so is all that is computed from them: the splits of a model
made of tree models are those of its parts. Scalers before the trees are undone column by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_adapters.sklearn_parts.ensembles import inside
from cfproto_adapters.sklearn_parts.inputs import active_steps, kind, unwrap
from cfproto_adapters.sklearn_parts.trees import tree_ensemble
from cfproto_plugin.helpers import tree_thresholds
from cfproto_plugin.protocols import Array

SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


def splits(model: Any, *, scaled: bool = False) -> list[Array] | None:
    """Return the sorted t of all splits by column; None where the output is not that of trees on these columns.

    scaled: float32 of what a scaler returns is compared with t. The place where that changes is not t, but half-way
    between its two neighbours in float32.
    """
    model = unwrap(model)
    if kind(model) == "Pipeline":
        return _behind_scalers(active_steps(model), scaled=scaled)
    parts = inside(model)
    if parts:
        passed_on = getattr(model, "passthrough", False)  # a stacked model that sees the rows themselves, too
        return None if passed_on else _union([splits(part, scaled=scaled) for part in parts])
    ensemble = tree_ensemble(model)
    if ensemble is None:
        return None
    found = tree_thresholds(ensemble)
    return [np.unique(_edges(t)) for t in found] if scaled and ensemble.dtype == "float32" else found


def _union(found: list[list[Array] | None]) -> list[Array] | None:
    known = [columns for columns in found if columns is not None]
    return [np.unique(np.concatenate(c)) for c in zip(*known, strict=True)] if len(known) == len(found) else None


def _edges(t: Array) -> Array:
    """Half-way between the largest float32 that is not above t and the next."""
    below = t.astype(np.float32)
    below = np.where(below > t, np.nextafter(below, np.float32(-np.inf)), below)
    return (below.astype(np.float64) + np.nextafter(below, np.float32(np.inf))) / 2


def _behind_scalers(steps: list[Any], *, scaled: bool) -> list[Array] | None:
    *before, last = (unwrap(step) for step in steps)
    if not all(kind(step) in SCALERS for step in before):
        return None
    found = splits(last, scaled=scaled or bool(before))
    if found is None or not before:
        return found
    longest = max(len(values) for values in found)
    table = np.stack([np.pad(values, (0, longest - len(values)), constant_values=np.nan) for values in found], axis=1)
    if not longest:
        return found
    for scaler in reversed(before):
        table = scaler.inverse_transform(table)
    return [np.unique(column[np.isfinite(column)]) for column in table.T]
