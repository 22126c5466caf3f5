"""Where the trees of scikit-learn split the columns of their input.

Outputs of trees are constant between the splits x <= t, and so is all that is computed from them: the splits of a model
made of tree models are those of its parts. Scalers before the trees are undone column by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_adapters.sklearn_parts.ensembles import inside
from cfproto_adapters.sklearn_parts.inputs import active_steps, kind, unwrap
from cfproto_adapters.sklearn_parts.trees import walked
from cfproto_plugin.protocols import Array

SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
NODE = {"feature_idx", "num_threshold", "is_leaf"}


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
    if kind(model) == "HistGradientBoostingClassifier":
        return _of_histograms(model)
    trees = _trees(model)
    if not trees:
        return None
    features = np.concatenate([tree.feature for tree in trees])
    values = np.concatenate([tree.threshold for tree in trees])
    inner = features >= 0  # leaves have no column
    return _by_column(features[inner], _edges(values[inner]) if scaled else values[inner], model.n_features_in_)


def _trees(model: Any) -> list[Any]:
    if kind(model) == "GradientBoostingClassifier":
        constant = model.init is None or isinstance(model.init, str)  # any other start depends on the row
        return [tree.tree_ for tree in model.estimators_.flat] if constant else []
    walk = walked(model)
    return [] if walk is None else walk.trees


def _of_histograms(model: Any) -> list[Array] | None:
    """Compared in float64. No public attribute has the nodes; categories are coded and moved to the front."""
    stages = getattr(model, "_predictors", None)
    if not stages or getattr(model, "is_categorical_", None) is not None:
        return None
    nodes: list[Any] = [getattr(tree, "nodes", None) for stage in stages for tree in stage]
    if not all(isinstance(node, np.ndarray) and set(node.dtype.names or ()) >= NODE for node in nodes):
        return None
    inner = [node[node["is_leaf"] == 0] for node in nodes]
    features = np.concatenate([node["feature_idx"] for node in inner])
    return _by_column(features, np.concatenate([node["num_threshold"] for node in inner]), model.n_features_in_)


def _by_column(features: Array, values: Array, n_columns: int) -> list[Array]:
    """Leave out splits between missing and present, whose value is infinite or beyond float32."""
    plain = np.abs(values) < np.finfo(np.float32).max
    features, values = features[plain], values[plain]
    order = np.argsort(features, kind="stable")
    starts = np.searchsorted(features[order], np.arange(1, n_columns))
    return [np.unique(column) for column in np.split(values[order], starts)]


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
