"""The first question: what the model says of the user's own rows. A row that it cannot predict is named."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cfproto_plugin.errors import InputError, ModelError, did_you_mean
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.failures import Asked, ask, in_words
from cfproto_plugin.search.fingerprint import Fingerprint
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.tables.cells import listed
from cfproto_plugin.tables.given import Given

_LARGE = float(np.finfo(np.float32).max)
_SIMILAR = 8  # calls to find out whether rows with the same peculiarity all fail
_FAILING = 64  # calls to find the rows that an encoder fails for
_SHOWN = 12  # cells of a row in a message


def first_look(model: SearchModel, given: Given, known: Fingerprint) -> tuple[Answer, dict[int, InputError]]:
    """The model's own answers to the user's rows, NaN and -1 where there is none; and why a row has none, by row.

    known: training rows that are asked in the same call. A model that changed, or fails for them as well, is an error
    of the call.
    """
    errors = dict(given.errors)
    rows = np.setdiff1d(np.arange(len(given)), list(errors)) if errors else np.arange(len(given))
    asked = _asked(model, given, rows, known)
    dtypes = [proba.dtype for _, (proba, _) in asked.parts]  # kept: a margin is to be the same as in the search
    proba = np.full((len(given), model.n_classes), np.nan, dtype=np.result_type(np.float32, *dtypes))
    answer = Answer(proba, np.full(len(given), -1))
    for at, (proba, decision) in asked.parts:
        answer.proba[rows[at]] = proba
        answer.label[rows[at]] = Answer.of(proba, decision).label
    failed = {int(rows[at]): error for at, error in asked.failed.items()}
    for row in rows[np.isnan(answer.proba[rows]).any(axis=1)].tolist():
        answer.label[row] = -1
        failed.setdefault(row, model.no_number(answer.proba[row], "it"))
    if failed:
        _check_training(model, given, known, failed)
    for row, error in failed.items():
        errors[row] = _reason(given, row, error)
    return answer, errors


def without_code(
    guide: Guide, given: Given, shape: tuple[int, ...], known: Mapping[int, Exception]
) -> dict[int, InputError]:
    """Why rows of the user's cannot be searched: the encoder or the autoencoder fails for them.

    known: rows to leave out, by number.
    """
    errors: dict[int, InputError] = {}
    used = {
        "encoder": guide.encoder if guide.plan.theta else None,
        "autoencoder": guide.autoencoder if guide.plan.gamma else None,
    }
    for name, model in used.items():
        if model is None:
            continue
        rows = np.setdiff1d(np.arange(len(given)), [*known, *errors])
        if not len(rows):
            continue
        x = given.table[rows].reshape(-1, *shape)
        asked = ask(lambda at, model=model, x=x: np.asarray(model.predict(x[at])), len(rows), _FAILING)  # type: ignore[misc]
        failed = {at: f"raised {in_words(error)}" for at, error in asked.failed.items()}
        for at, found in asked.parts:
            bad = np.flatnonzero(~np.isfinite(found.reshape(len(at), -1)).all(axis=1))
            failed |= {int(at[i]): f"returned {found[i].ravel()[:4]}" for i in bad.tolist()}
        for place, reason in sorted(failed.items()):
            row = int(rows[place])
            errors[row] = InputError(f"row {row}: the {name} {reason} for it; expected finite numbers", row=row)
    return errors


def takes(model: SearchModel, given: Given) -> bool:
    """Whether the model predicts rows of the user's that hold text or objects where the training data had neither."""
    rows = np.setdiff1d(np.arange(len(given)), list(given.errors))
    table = given.table[rows]
    return bool(ask(lambda at: model.strictly(table[at], rows[at]), len(rows), _SIMILAR).parts) if len(rows) else False


def _asked(model: SearchModel, given: Given, rows: Array, known: Fingerprint) -> Asked:
    """Ask for rows (m,) of the user's. If that fails, those without peculiarities first, then the others by kind."""
    table = given.table[rows]

    def call(at: Array) -> tuple[Array, Array | None]:
        return model.strictly(table[at], rows[at])[0]

    if not len(rows):
        return Asked([], {})
    asked = ask(lambda _at: model.strictly(table, rows, known.rows), len(rows), 0)
    if not asked.failed:
        at, (answer, again) = asked.parts[0]
        known.check(Answer.of(*again), model.classes)
        return Asked([(at, answer)], {})
    parts, failed = [], {}
    strange = _peculiar(given, table)
    _, kind = np.unique(strange, axis=0, return_inverse=True)
    for each in range(kind.max() + 1):
        at = np.flatnonzero(kind.ravel() == each)
        found = ask(lambda some, at=at: call(at[some]), len(at), _SIMILAR if strange[at[0]].any() else np.inf)  # type: ignore[misc]
        parts += [(at[some], answer) for some, answer in found.parts]
        failed.update({int(at[some]): error for some, error in found.failed.items()})
    return Asked(parts, failed)


def _peculiar(given: Given, table: Array) -> Array:
    """Which cells (m, A) models may refuse: missing, too large for 32 bits, or a category that is new."""
    strange = np.isnan(table) | (np.abs(np.nan_to_num(table)) > _LARGE)
    for at, attribute in given.columns.categories.items():
        strange[:, at] = table[:, at] >= len(attribute.levels) - attribute.unknown
    return np.asarray(strange)


def _check_training(model: SearchModel, given: Given, known: Fingerprint, failed: dict[int, Exception]) -> None:
    """Raise ModelError if the model fails for rows that it could predict at `fit`, or answers them differently."""
    asked = ask(lambda _at: model.say(known.rows), len(known.rows), 0)
    if not asked.failed:
        known.check(Answer.of(*asked.parts[0][1]), model.classes)
    else:
        row, error = next(iter(failed.items()))
        raise ModelError(
            f"the model fails for rows of the training data too, which it could predict at fit: {in_words(error)}. "
            f"The first row of x that it fails for is row {row}: {_cells(given, row)}. If the model was fitted again "
            "since explainer.fit, call explainer.fit again with the model as it is now.",
            row=row,
        ) from error


def _reason(given: Given, row: int, error: Exception) -> InputError:
    """Why the model gives no answer to a row, and what can be done."""
    strange = np.flatnonzero(_peculiar(given, given.table[[row]])[0]).tolist()
    columns = given.columns
    if not strange:
        text = f"row {row}: the model cannot predict it: {in_words(error)}"
        return InputError(text, row=row)
    at = next((at for at in strange if at in columns.categories), strange[0])
    attribute, name = columns.attributes[at], columns.describe(at)
    value = given.table[row, at]
    if at in columns.categories:
        known = list(attribute.levels)[: len(attribute.levels) - attribute.unknown]
        cell = attribute.levels[int(value)]
        text = (
            f"row {row} holds {cell!r} in column {name}, which the training data did not have, and the model does not "
            f"accept it ({in_words(error)}).{did_you_mean(cell, known)} There are: {listed(known)}"
        )
    elif np.isnan(value):
        text = (
            f"row {row} is NaN in column {name}, and the model does not accept missing values ({in_words(error)}). "
            "Fill it in, or use a model that accepts NaN."
        )
    else:
        text = f"row {row} holds {value:g} in column {name}, and the model cannot predict it: {in_words(error)}"
    return InputError(text, row=row, column=attribute.name)


def _cells(given: Given, row: int) -> str:
    """The values of a row, for messages."""
    table = given.columns.to_named(given.table[[row]])
    cells = np.asarray(table, dtype=object).ravel().tolist()
    names = given.columns.names or [f"x{at}" for at in range(len(cells))]
    shown = ", ".join(f"{name}={cell!r}" for name, cell in zip(names[:_SHOWN], cells[:_SHOWN], strict=True))
    return shown + (", ..." if len(cells) > _SHOWN else "")
