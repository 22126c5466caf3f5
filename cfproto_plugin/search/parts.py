"""What `fit` tries of the parts of an adapter before it relies on them: a few training rows each.

The search can do without `vjp`, `quick`, `scores`, `thresholds` and `trees`: one that fails is left out with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cfproto_plugin.errors import CfprotoError, ModelError
from cfproto_plugin.plugins import Adapted, checked_vjp, wrong
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.failures import in_words
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.space import FeatureSpace
from cfproto_plugin.tables.splits import Splits

log = logging.getLogger(__name__)
_TRIED = 4  # training rows
_FAR = 0.1  # from what predict returns: not rounding, nor the noise of most models


def parts_that_work(classifier: Adapted, columns: Columns, train: Array) -> Adapted:
    """The classifier without `vjp`, `quick` and `scores` that fail for training rows (n, A) which `predict` answers."""
    rows = train[np.argsort(np.isnan(train).any(axis=1), kind="stable")[:_TRIED]]
    numbers = columns.plain and not np.isnan(rows).any()
    parts: dict[str, Callable[[Array], None]] = {}
    if classifier.vjp is not None and numbers:
        parts["vjp"] = lambda proba: _try_vjp(classifier, rows.reshape(-1, *columns.shape), proba)
    if classifier.has_quick:
        quick = classifier.quick
        parts["quick"] = lambda proba: _try_probabilities(
            "quick", quick(columns.to_model(rows, floats=True)), proba, classifier
        )
    if classifier.scores is not None:
        scores = classifier.scores
        parts["scores"] = lambda proba: _try_probabilities("scores", scores(columns.to_model(rows)), proba, classifier)
    if not parts:
        return classifier
    try:
        proba = np.asarray(classifier.predict(columns.to_model(rows)))
    except Exception:  # noqa: BLE001 the model cannot predict, and says so next
        return classifier
    instead: dict[str, Any] = {"vjp": None, "quick": classifier.predict, "scores": None}
    failed = [name for name, part in parts.items() if _fails(name, classifier, lambda part=part: part(proba))]  # type: ignore[misc]
    return replace(classifier, **{name: instead[name] for name in failed})


def splits_that_work(model: Adapted, space: FeatureSpace) -> Splits | None:
    """The split values of a tree model whose columns are those of the table."""
    columns, grid = space.columns, space.rules.grid
    found: list[Array] = []

    def read() -> None:
        found.extend(model.thresholds or ())
        if model.thresholds is not None and len(found) != len(columns.attributes):
            what = f"has {len(found)} columns"
            raise wrong(model.adapter, "thresholds", what, f"the {len(columns.attributes)} of the training data")

    if not columns.plain or _fails("thresholds", model, read) or model.thresholds is None:
        return None
    own = model.feature_names or ()  # of an adapter that takes them in any order
    names = list(map(str, columns.names or ()))
    if own and set(names) == set(own):
        found = [found[own.index(name)] for name in names]
    trees = None
    with suppress(ModelError):  # the thresholds of the adapter itself will do
        trees = model.trees
    if trees is None:
        return Splits(found, grid=grid)
    return Splits(found, equal_left=trees.equal_left, dtype=trees.dtype, grid=grid)


def transform_that_works(name: str, model: Adapted | None, shape: tuple[int, ...], train: Array) -> Adapted | None:
    """The encoder or autoencoder without a `vjp` that fails for training rows (n, A).

    It must return numbers, an autoencoder in the shape of the rows.
    """
    rows = train[:_TRIED].reshape(-1, *shape)
    if model is None or np.isnan(rows).any():
        return model
    try:
        found = np.asarray(model.predict(rows))
    except CfprotoError:
        raise
    except Exception as error:
        raise ModelError(
            f"the {name} raised {in_words(error)} for rows of the training data; expected numbers", plugin=model.plugin
        ) from error
    expected = rows.shape if name == "autoencoder" else (len(rows), *found.shape[1:])
    if found.shape != expected or found.dtype.kind not in "fiub":
        raise ModelError(
            f"the {name} returned shape {found.shape} for rows of shape {rows.shape}, as {found.dtype}; expected "
            + ("numbers of the same shape" if name == "autoencoder" else f"numbers of shape ({len(rows)}, ...)"),
            plugin=model.plugin,
        )
    if not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0, 0])
        raise ModelError(
            f"the {name} returned {found[row].ravel()[:4]} for row {row} of the training data; expected finite numbers",
            plugin=model.plugin,
        )
    fails = model.vjp is not None and _fails("vjp", model, partial(_try_gradient, model, rows, found))
    return replace(model, vjp=None) if fails else model


def _fails(name: str, model: Adapted, part: Callable[[], object]) -> bool:
    """Whether a part of the adapter fails for training rows. A warning then says that it is left out, and why."""
    try:
        part()
    except CfprotoError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 whatever a plugin raises
        reason = f"{name} of {model.owner}, asked about training rows, raised {in_words(error)}"
    else:
        return False
    log.warning("%s. It is left out: the search can do without.", reason.rstrip("."))
    return True


def _try_vjp(model: Adapted, rows: Array, proba: Array) -> None:
    """The output and the gradients of a classifier for rows (n, *shape) of probabilities (n, k)."""
    _try_probabilities("vjp", _try_gradient(model, rows, proba), proba, model)


def _try_gradient(model: Adapted, rows: Array, found: Array) -> Array:
    """Ask `vjp` about rows (n, *shape), of which `predict` said (n, ...); return its output."""
    output, pull = checked_vjp(model, rows)
    if output.shape != found.shape:
        raise wrong(model.adapter, "vjp", f"returned shape {output.shape}", f"{found.shape}, as predict returns")
    cotangent = np.zeros_like(output)
    cotangent.reshape(len(rows), -1)[:, 0] = 1
    gradient = pull(cotangent)
    if not np.isfinite(gradient).all(axis=tuple(range(1, gradient.ndim))).any():
        what = f"has a pullback that returned {gradient[0].ravel()[:4]}"
        raise wrong(model.adapter, "vjp", what, "finite numbers")
    return output


def _try_probabilities(name: str, found: Any, proba: Array, model: Adapted) -> None:
    """Compare what a part returned for rows with the probabilities (n, k) of `predict`, where these are numbers."""
    answer, known = np.asarray(found), np.isfinite(proba).all(axis=1)
    if answer.shape != proba.shape or answer.dtype.kind not in "fiub":
        what = f"returned {answer.dtype} of shape {answer.shape} for {len(proba)} rows"
        raise wrong(model.adapter, name, what, f"numbers of shape {proba.shape}, as predict returns")
    bad = np.flatnonzero(known & ~np.isfinite(answer).all(axis=1))
    if len(bad):
        raise wrong(model.adapter, name, f"returned {answer[bad[0]]}", "finite numbers")
    far = np.flatnonzero(known & ~(np.abs(answer - proba) <= _FAR).all(axis=1))
    if len(far) and name != "scores":
        what = f"returned {answer[far[0]]} for a row of the training data"
        raise wrong(model.adapter, name, what, f"{proba[far[0]]}, as predict returns")
