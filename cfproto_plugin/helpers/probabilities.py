"""Scores as probabilities: what the numbers a classifier returns mean, and how gradients pass back through that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.protocols import Array

log = logging.getLogger(__name__)

Meaning: TypeAlias = Literal["logits", "probabilities"]
Output: TypeAlias = Literal["auto", "logits", "probabilities"]

SUM_TOLERANCE = 5e-3  # how far a row of probabilities computed in half precision may sum from one
_PROBED_ROWS = 8
_LOCK = threading.Lock()


def softmax(logits: Array) -> Array:
    """exp(z_i) / sum_j exp(z_j) along the last axis, without overflow."""
    exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exp / exp.sum(axis=-1, keepdims=True))


def two_columns(positive: Array) -> Array:
    """Turn the probability of the second class, (n,) or (n, 1), into the (n, 2) of a classifier."""
    columns = np.empty((len(positive), 2), dtype=positive.dtype)
    columns[:, 1] = flat = positive.reshape(-1)
    columns[:, 0] = 1 - flat
    return columns


def logits_of(output: Any) -> Any:
    """The logits in what a model returned: the attribute or key "logits", as of Hugging Face; None if it has none."""
    if isinstance(output, Mapping):
        return output.get("logits")
    return getattr(output, "logits", None)


def check_probabilities(proba: Array, what: str) -> None:
    """Refuse numbers (n, k) outside [0, 1]; say so if rows do not sum to one. what: the rows, for messages."""
    outside = ((proba < -SUM_TOLERANCE) | (proba > 1 + SUM_TOLERANCE)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise ModelError(
            f"the model returned {proba[row]} for row {row} of {what}; expected probabilities, numbers from 0 to 1 "
            "that sum to 1. Return softmax(scores) where these are logits, and divide percentages by 100."
        )
    away = np.abs(proba.sum(axis=1) - 1) > SUM_TOLERANCE
    if away.any():
        row = int(away.argmax())
        log.warning(
            "the model returned %s for row %d of %s, which do not sum to one: the largest decides, and min_proba is "
            "compared with these numbers as they are",
            proba[row],
            row,
            what,
        )


def score_rows(scores: Array, n: int, model: str) -> Array:
    """Return the scores of n rows as (n, k). A model that squeezes its one column returns (n,), and () for one row."""
    if scores.shape == (n,) or (scores.ndim == 0 and n == 1):
        return scores.reshape(n, 1)
    if scores.ndim != 2 or len(scores) != n:  # noqa: PLR2004
        raise ModelError(
            f"{model} returned shape {scores.shape} for {n} rows; a classifier returns ({n}, k), or ({n},) for two "
            'classes. Flatten it in a wrapper; for an encoder or autoencoder use role="transform".'
        )
    return scores


class ScoreReader:
    """Finds out once whether scores (n, k) are logits or probabilities, and makes probabilities of them.

    model: its name, for messages. output: "logits", "probabilities", or "auto", which decides on the first rows seen
    and remembers:

    1. by the operation that made the output, if `ending` can tell: a softmax or a sigmoid gives probabilities; a linear
       layer or a log-softmax gives logits (softmax(log p) = p);
    2. else by values: probabilities if every row is non-negative and sums to one, or lies in [0, 1] where there is one
       column. A single row may do so by luck, so points between the rows and zero are looked at too.

    Where probabilities are announced, by the caller or by the last operation, and the values are none, ModelError is
    raised. One column is the second of two classes.
    """

    def __init__(self, model: str, output: Output = "auto") -> None:
        if output not in get_args(Output):
            raise InputError(f"output={output!r}: expected one of {', '.join(map(repr, get_args(Output)))}")
        self._model = model
        self._output = output
        self._meaning: Meaning | None = "logits" if output == "logits" else None

    def meaning(
        self, x: Array, scores_of: Callable[[Array], Array], ending: Callable[[Array], Meaning | None] | None = None
    ) -> Meaning:
        """Return what the scores mean. On the first call, rows x and points near them are given to `scores_of`.

        ending: what the operation that made the scores of a row says about them; None where it cannot tell.
        """
        return self._meaning or self._decide(x, scores_of, ending)

    def probabilities(self, rows: Array, meaning: Meaning) -> Array:
        """Return (n, k) probabilities: one column z becomes (0, z) as a logit and (1 - z, z) as a probability."""
        if rows.shape[1] == 1:
            first = np.zeros_like(rows) if meaning == "logits" else 1 - rows
            rows = np.concatenate([first, rows], axis=1)
        return softmax(rows) if meaning == "logits" else rows

    def pull(self, cotangent: Array, y: Array, k: int, meaning: Meaning) -> Array:
        """Return dL/drows (n, k) from dL/dy at the probabilities y.

        y (g - <g, y>) for a softmax; the single column of a pair takes g_1, or g_1 - g_0 for probabilities.
        """
        g = cotangent
        if meaning == "logits":
            g = np.asarray(y * (g - (g * y).sum(axis=1, keepdims=True)))
            return g[:, 1:] if k == 1 else g
        return np.asarray(g[:, 1:] - g[:, :1]) if k == 1 else g

    def _decide(
        self, x: Array, scores_of: Callable[[Array], Array], ending: Callable[[Array], Meaning | None] | None
    ) -> Meaning:
        """Several threads may decide at once: the first answer stays."""
        probes = _probes(x)
        rows = score_rows(scores_of(probes), len(probes), self._model)
        likely = _are_probabilities(rows)
        by_values: Meaning = "probabilities" if likely else "logits"
        told: Meaning | None = None if self._output == "auto" else self._output
        last = None if told or ending is None else ending(probes[:1])
        found = told or last or by_values
        source = f"output={told!r}" if told else "its last operation" if last else "the values it returns"
        if found == "probabilities" and not likely:
            raise ModelError(
                f"{self._model} gives probabilities according to {source}, but some rows of its output are "
                'negative or do not sum to one. Pass output="logits" if they are logits; wrap a model with several '
                "independent sigmoids so that its rows are the probabilities of exclusive classes."
            )
        if told is None and last is None:
            self._refuse_shares(rows)
        with _LOCK:
            if self._meaning is None:
                self._meaning = found
                log.info("%s: output read as %s, from %s", self._model, found, source)
                if told is None and rows.shape[1] == 1 and not likely:
                    log.warning(
                        "%s has one output that is no probability, such as %g: it is read as the log-odds of the "
                        'second class. Pass adapt(model, output="logits") to say so; what a regressor predicts has no '
                        "classes, and its answers would mean nothing.",
                        self._model,
                        rows[0, 0],
                    )
        return self._meaning

    def _refuse_shares(self, rows: Array) -> None:
        """Raise ModelError if rows (n, k) are shares of another number than one, such as percentages."""
        total = rows.sum(axis=1, dtype=float)
        whole = float(total[0])
        differ = np.abs(rows - rows[0]).max() > SUM_TOLERANCE * whole
        same = np.abs(total - whole).max() <= SUM_TOLERANCE * whole
        if rows.shape[1] > 1 and whole > 1 + SUM_TOLERANCE and (rows >= 0).all() and differ and same:
            raise ModelError(
                f"{self._model} returned {rows[0]}, and every row sums to {whole:g}: these look like percentages. "
                'Divide them in a wrapper so that rows sum to one, or pass adapt(model, output="logits") if they are '
                "logits."
            )


def _probes(x: Array) -> Array:
    """A few rows, and points between them and zero: inside the range of the data. Whole numbers stay whole.

    x may hold objects, such as the truths and numbers of a frame.
    """
    rows = np.asarray(x)[:_PROBED_ROWS] if len(x) else np.zeros((1, *x.shape[1:]), x.dtype)
    rows = rows if rows.dtype.kind == "f" else rows.astype(float)
    probes = np.concatenate([rows * t for t in (1.0, 0.75, 0.5, 0.25, 0.0)])
    return np.rint(probes) if np.array_equal(rows, np.rint(rows)) else probes


def _are_probabilities(rows: Array) -> bool:
    """Whether no row contradicts it; a row with missing values says nothing."""
    if (rows < 0).any() or (rows > 1 + SUM_TOLERANCE).any():
        return False
    return rows.shape[1] == 1 or not (np.abs(rows.sum(axis=1) - 1) > SUM_TOLERANCE).any()
