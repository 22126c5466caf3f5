"""What the model says of the training rows, at `fit`. An error names the row and the column that it cannot take."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.errors import CfprotoError, InputError, ModelError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.failures import in_words
from cfproto_plugin.search.model import Answer, SearchModel


def training_answer(model: SearchModel, table: Array) -> Answer:
    """What the model says of the training rows; an error names the row and the column that it cannot take."""
    try:
        (proba, decision), _ = model.strictly(table, np.arange(len(table)))
    except Exception as error:
        _check_without_missing(model, table, error)
        if isinstance(error, CfprotoError):
            raise
        raise _raised(error, "the training rows", model.plugin) from error
    bad = np.flatnonzero(np.isnan(proba).any(axis=1))
    if len(bad):
        raise model.no_number(proba[bad[0]], f"row {bad[0]} of the training data")
    return Answer.of(proba, decision)


def _check_without_missing(model: SearchModel, table: Array, error: Exception) -> None:
    """Blame missing values for an error of the training rows only if the rows without such are answered."""
    missing = np.isnan(table)
    complete = np.flatnonzero(~missing.any(axis=1))
    if len(complete) in {0, len(table)}:
        return
    try:
        model.strictly(table[complete], complete)
    except CfprotoError:
        raise
    except Exception as another:
        where = "the training rows, also without those that have missing values"
        raise _raised(another, where, model.plugin) from another
    row, at = np.argwhere(missing)[0].tolist()
    raise InputError(
        f"row {row} of the training data is NaN in column {model.space.columns.describe(at)}, and the model does "
        f"not accept missing values ({in_words(error)}). Fill it in, or use a model that accepts NaN.",
        row=row,
        column=model.space.columns.attributes[at].name,
    ) from error


def _raised(error: Exception, where: str, plugin: str | None) -> ModelError:
    """An error of the model's own in our words."""
    return ModelError(
        f"the model raised {in_words(error)} for {where}; expected probabilities (n, k). Try it on a few of these "
        "rows yourself.",
        plugin=plugin,
    )
