"""What `fit` tries of the parts of an adapter before it relies on them: a few training rows each."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.columns import Columns

log = logging.getLogger(__name__)
_TRIED = 4  # training rows


def parts_that_work(classifier: Adapted, columns: Columns, train: Array) -> Adapted:
    """The classifier without the parts that fail for training rows (n, A) and that the search can do without."""
    return _quick_and_scores(_gradient(classifier, columns, train), columns, train)


def _gradient(classifier: Adapted, columns: Columns, train: Array) -> Adapted:
    """Leave out the gradient of a classifier that has none after all, such as a module that runs under `no_grad`."""
    if classifier.vjp is None or not columns.plain or np.isnan(train[:1]).any():
        return classifier
    try:
        proba, pull = classifier.vjp(train[:1].reshape(1, *columns.shape))
        pull(np.zeros_like(proba))
    except Exception as error:  # noqa: BLE001 whatever the framework raises; a model that cannot predict says so next
        log.info("the model is used without gradients: %s", error)
        return replace(classifier, vjp=None)
    return classifier


def _quick_and_scores(classifier: Adapted, columns: Columns, train: Array) -> Adapted:
    """Search by `predict` where an adapter's `quick` or `scores` fails for training rows that `predict` answers."""
    known = classifier
    rows = train[np.argsort(np.isnan(train).any(axis=1), kind="stable")[:_TRIED]]
    for name, part in (("quick", known.quick if known.has_quick else None), ("scores", known.scores)):
        if part is None:
            continue
        try:
            expected = np.shape(known.predict(columns.to_model(rows)))
        except Exception:  # noqa: BLE001 the model cannot predict, and says so next
            return classifier
        try:
            shape = np.shape(part(columns.to_model(rows, floats=name == "quick")))
            reason = "" if shape == expected else f"it returned shape {shape}; expected {expected}"
        except Exception as error:  # noqa: BLE001 whatever a plugin raises
            reason = f"{type(error).__name__}: {error}"
        if reason:
            owner = known.origin or f"the adapter {known.name!r}"
            log.warning("%s of %s fails for training rows, and is left out: %s", name, owner, reason)
            known = replace(known, quick=known.predict) if name == "quick" else replace(known, scores=None)
    return known


def check_transforms(
    encoder: Adapted | None, autoencoder: Adapted | None, shape: tuple[int, ...], train: Array
) -> None:
    """Ask encoder and autoencoder about a few training rows: numbers, and an autoencoder in the shape of the rows."""
    rows = train[:_TRIED].reshape(-1, *shape)
    for name, other in (("encoder", encoder), ("autoencoder", autoencoder)):
        if other is None or np.isnan(rows).any():
            continue
        found = np.asarray(other.predict(rows))
        if name == "autoencoder" and found.shape != rows.shape:
            raise ModelError(
                f"the autoencoder returned shape {found.shape} for rows of shape {rows.shape}; expected the same shape",
                plugin=other.plugin,
            )
        if not np.isfinite(found).all():
            row = int(np.argwhere(~np.isfinite(found))[0, 0])
            raise ModelError(
                f"the {name} returned {found[row].ravel()[:4]} for row {row} of the training data; expected finite "
                "numbers",
                plugin=other.plugin,
            )
