"""What `fit` asks the model: the classes of the training rows, how noisy it is, and what it is to be known by."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from cfproto_plugin.errors import CfprotoError, InputError, ModelError
from cfproto_plugin.helpers.probabilities import check_probabilities
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.boundary import between_rows, margins
from cfproto_plugin.search.failures import in_words
from cfproto_plugin.search.fingerprint import Fingerprint
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.noise import Noise, as_margin, noise_of
from cfproto_plugin.search.opinion import Opinion
from cfproto_plugin.tables.cells import is_loose, listed
from cfproto_plugin.tables.given import Given
from cfproto_plugin.tables.numerals import all_read_as_numbers

log = logging.getLogger(__name__)
ON_CATEGORIES = "If the model was trained on columns of the pandas dtype category"  # begins the advice on them
_NAN = (
    "Look for missing values in this row, and for divisions by zero in the model, such as a scaler of a constant "
    "column; it has to return probabilities for every row."
)
_LISTED = 5  # columns in an advice
_COMPARED = 64  # training rows near the boundary that are recomputed, to see how far that is from the model


class Said(NamedTuple):
    """All that `fit` asked the model: with it an explainer is made again without asking."""

    labels: Array  # (N,) classes of the training rows, columns of the probabilities
    proba: Array  # (N,) the probability of that class
    noise: tuple[tuple[str, Noise], ...]  # of tables of these dtypes; the first is that of the training data
    fingerprint: Fingerprint
    opinions: tuple[Opinion, ...] = ()  # small networks that learnt it


def ask(classifier: Adapted, model: SearchModel, given: Given) -> Said:
    """Ask the model about the training rows, how noisy it is, and what it is to be known by."""
    answer = training_answer(model, given.table)
    check_probabilities(answer.proba, "the training data")
    classes = classifier.classes(answer.proba.shape[1])
    _require_two(answer.label, classes)
    noise = _noise(classifier, model, given.table, answer)
    own = np.take_along_axis(answer.proba, answer.label[:, None], axis=1)[:, 0]
    return Said(answer.label, own, noise, Fingerprint.take(model, given, answer, noise[0][1], classes))


def with_opinions(said: Said, train: Array, count: int, seed: int) -> Said:
    """With so many small networks that learn what was said of the training rows (N, A); those that there are stay."""
    if len(said.opinions) >= count:
        return said._replace(opinions=said.opinions[:count])
    start, k = time.perf_counter(), len(said.fingerprint.classes)
    learnt = [Opinion.learn(train, said.labels, k, seed + number) for number in range(len(said.opinions), count)]
    seconds = time.perf_counter() - start
    log.info("%d second opinions learnt in %.1f s; SearchConfig(opinions=0) does without", len(learnt), seconds)
    return said._replace(opinions=(*said.opinions, *learnt))


def still(said: Said, model: SearchModel) -> Said:
    """What was said, if this is the model that said it."""
    difference = difference_in(said.fingerprint, model)
    if difference is not None:
        raise ModelError(
            f"this is not the model that the explainer was fitted with: {difference}. Pass that model, or fit a new "
            "explainer with this one."
        )
    return said


def difference_in(fingerprint: Fingerprint, model: SearchModel) -> str | None:
    """What a model says otherwise than the one that the fingerprint is of; None if it says the same."""
    return fingerprint.difference(_asked_again(fingerprint, model), model.classes)


def check_same(fingerprint: Fingerprint, model: SearchModel) -> None:
    """Raise ModelError if the model changed since `fit`."""
    fingerprint.check(_asked_again(fingerprint, model), model.classes)


def _asked_again(fingerprint: Fingerprint, model: SearchModel) -> Answer:
    """What the model says now of the rows of the fingerprint."""
    try:
        return Answer.of(*model.say(fingerprint.rows))
    except CfprotoError:
        raise
    except Exception as error:
        raise _raised(error, "rows of the training data", model) from error


def training_answer(model: SearchModel, table: Array) -> Answer:
    """What the model says of the training rows; an error names the row and the column that it cannot take."""
    try:
        (proba, decision), _ = model.strictly(table, np.arange(len(table)))
    except Exception as error:
        _check_without_missing(model, table, error)
        advice = _advice_on_texts(model)
        if isinstance(error, ModelError) and advice:
            raise ModelError(f"{str(error).rstrip('.')}. {advice}", plugin=error.plugin) from error
        if isinstance(error, CfprotoError):
            raise
        raise _raised(error, "the training rows", model) from error
    bad = np.flatnonzero(np.isnan(proba).any(axis=1))
    if len(bad):
        what = model.no_number(proba[bad[0]], f"row {bad[0]} of the training data")
        raise ModelError(f"{what}. {_NAN}", plugin=model.plugin)
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
        raise _raised(another, where, model) from another
    row, at = np.argwhere(missing)[0].tolist()
    raise InputError(
        f"row {row} of the training data is NaN in column {model.space.columns.describe(at)}, and the model does "
        f"not accept missing values ({in_words(error)}). Fill it in, or use a model that accepts NaN.",
        row=row,
        column=model.space.columns.attributes[at].name,
    ) from error


def _raised(error: Exception, where: str, model: SearchModel) -> ModelError:
    """An error of the model's own in our words, and what it may come from."""
    return ModelError(
        f"the model raised {in_words(error)} for {where}; expected probabilities (n, k). {_advice(model)}",
        plugin=model.plugin,
    )


def _advice(model: SearchModel) -> str:
    """What to do about a model that raises: it may have got an array where it takes frames."""
    columns = model.space.columns
    if columns.names is None or columns.frames:
        return f"Try it on a few of these rows yourself. {_advice_on_texts(model)}".rstrip()
    return (
        f"The training data is a DataFrame, and {model.owner} was given the array of its numbers: if the model takes a "
        "DataFrame, write accepts_frames = True in the adapter. Else try it on a few of these rows yourself, as an "
        "array."
    )


def _advice_on_texts(model: SearchModel) -> str:
    """What to do if the model fails because of columns of text; nothing if there are none."""
    columns = model.space.columns
    texts = {
        attribute.name: attribute.levels
        for attribute in columns.categories.values()
        if columns.dtypes is not None and not attribute.group and is_loose(columns.dtypes[attribute.sources[0]])
    }
    numerals = [name for name, levels in texts.items() if all_read_as_numbers(levels)]
    others = [name for name in texts if name not in numerals]
    found = []
    if numerals:
        which = "Column" if len(numerals) == 1 else "Columns"
        hold = "holds" if len(numerals) == 1 else "hold"
        found.append(f"{which} {listed(numerals)} {hold} text that reads as numbers: convert by pd.to_numeric.")
    if others:
        dtypes = ", ".join(f"{name!r}: 'category'" for name in others[:_LISTED]) + ", ..." * (len(others) > _LISTED)
        found.append(f"{ON_CATEGORIES}, convert columns of text as in training: X.astype({{{dtypes}}}).")
    return " ".join(found)


def _noise(adapter: Adapted, model: SearchModel, train: Array, answer: Answer) -> tuple[tuple[str, Noise], ...]:
    """Measure the noise of the model, and how far it is from its recomputation, also in float32 if that is narrower."""
    guided = adapter.labels is not None and adapter.scores is not None
    proba = model.quick(train, np.arange(len(train))) if guided else answer.proba

    def ask(table: Array, row: Array) -> Array:
        return model.quick(table, row) if guided else model.own_proba(table, row)

    noise = Noise() if adapter.row_by_row else noise_of(ask, train, proba, partial(between_rows, model.space))
    if noise.random:
        log.warning(
            "the model gave different answers to the same rows twice: what is found cannot be guaranteed, and a model "
            "that is fitted again goes unnoticed. Switch its random parts off, such as dropout."
        )
    if noise.by_batch:
        log.warning(
            "the model's answers to a row depend on the other rows of the call: what is found holds in one batch and "
            "may not in another, and a model that is fitted again goes unnoticed. Put a network in evaluation mode, "
            "such as by model.eval() for batch normalisation, and take means and scales from the training data."
        )
    if adapter.vjp is not None:  # smooth, so that rounding decides near the boundary, seen or not
        noise = noise._replace(own=max(noise.own, 4 * float(np.finfo(answer.proba.dtype).eps)))
    if guided or not model.is_quick:
        return ((train.dtype.name, noise),)
    near = np.argsort(margins(answer.proba), kind="stable")[:_COMPARED]
    found = [(train.dtype.name, noise._replace(quick=as_margin(model.quick(train[near], near), answer.proba[near])))]
    if train.dtype == np.float64 and model.space.columns.names is None:
        rows = train[near].astype(np.float32)
        difference = as_margin(model.quick(rows), model.own_proba(rows))
        found.append(("float32", noise._replace(own=max(noise.own, difference * bool(noise.own)), quick=difference)))
    return tuple(found)


def _require_two(labels: Array, classes: Array) -> None:
    """At least two classes must have a training row."""
    seen = np.unique(labels)
    if len(seen) == 1:
        raise InputError(
            f"the model predicts class {classes[seen[0]]} for every row of the training data; "
            "expected rows of at least two predicted classes"
        )
