"""Second opinions: small networks that learn at `fit` what the model calls the training rows, seen through noise.

One classifier takes a small change for another class where others do not. What the model and these networks are all
sure of, other classifiers mostly see as well. Plain NumPy: one hidden layer, trained by Adam for a fixed number of
steps, so that the time grows with the numbers of a row alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array, Pullback

LARGEST = 4096  # numbers of a row: training takes 4 s a network for 784 of them, and in proportion for more
_HIDDEN = 128
_ROWS = 20_000  # training rows that a network learns from
_STEPS, _BATCH = 3000, 128
_RATE, _DECAY, _LEAST = 1e-3, (0.9, 0.999), 1e-8  # of Adam
_FLAT = 1e-12  # range of images that are all the same
_NOISE = 1.2  # in root mean squares of the columns' deviations: a class must not hang on a few pixels


class Opinion(NamedTuple):
    """The weights of a network: its scores are max(x·enter + bias, 0)·leave + offset."""

    enter: Array  # (A, hidden)
    bias: Array  # (hidden,)
    leave: Array  # (hidden, k)
    offset: Array  # (k,)

    @classmethod
    def learn(cls, x: Array, labels: Array, k: int, seed: int) -> Opinion:
        """Train on rows (n, A) that the model gives classes (n,), columns of its k probabilities."""
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(x))[:_ROWS]
        rows, classes = x[chosen].astype(np.float64), labels[chosen]
        middle, spread = (rows.max() + rows.min()) / 2, max(np.ptp(rows), _FLAT)
        rows = ((rows - middle) / spread).astype(np.float32)  # whatever unit and offset the images have
        noise = np.float32(_NOISE * np.sqrt(rows.var(axis=0).mean()))
        found = cls(*_at_start(rng, x.shape[1], k))
        moments = [(np.zeros_like(part), np.zeros_like(part)) for part in found]
        for step in range(1, _STEPS + 1):
            at = rng.integers(len(rows), size=_BATCH)
            seen = rows[at] + noise * rng.standard_normal((_BATCH, x.shape[1]), dtype=np.float32)
            left = min(1.0, 2 * (1 - step / _STEPS))  # the rate falls in the second half
            rate = np.float32(left * _RATE * np.sqrt(1 - _DECAY[1] ** step) / (1 - _DECAY[0] ** step))
            for weight, slope, (mean, square) in zip(found, found._slopes(seen, classes[at]), moments, strict=True):
                mean[:] += (1 - _DECAY[0]) * (slope - mean)
                square[:] += (1 - _DECAY[1]) * (slope * slope - square)
                weight[:] -= rate * mean / (np.sqrt(square) + _LEAST)
        enter = (found.enter / spread).astype(np.float32)
        shift = middle * enter.sum(axis=0, dtype=np.float64)
        return found._replace(enter=enter, bias=(found.bias - shift).astype(np.float32))

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Probabilities (n, k) of rows (n, A), and the pullback to the rows."""
        hidden, proba = self._forward(x)

        def pullback(cotangent: Array) -> Array:
            back = proba * (cotangent - (proba * cotangent).sum(axis=1, keepdims=True))
            return np.asarray((back @ self.leave.T * (hidden > 0)) @ self.enter.T)

        return proba, pullback

    def _forward(self, x: Array) -> tuple[Array, Array]:
        hidden = np.maximum(x @ self.enter + self.bias, 0)
        scores = hidden @ self.leave + self.offset
        exp = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, exp / exp.sum(axis=1, keepdims=True)

    def _slopes(self, x: Array, labels: Array) -> tuple[Array, ...]:
        """The derivatives of the mean cross entropy of rows (n, A) by every weight."""
        hidden, back = self._forward(x)
        back[np.arange(len(x)), labels] -= 1
        back /= len(x)
        inner = back @ self.leave.T * (hidden > 0)
        return x.T @ inner, inner.sum(axis=0), hidden.T @ back, back.sum(axis=0)


def _at_start(rng: np.random.Generator, columns: int, k: int) -> list[Array]:
    """Glorot's uniform weights, no bias."""
    found: list[Array] = []
    for before, after in ((columns, _HIDDEN), (_HIDDEN, k)):
        most = np.sqrt(6 / (before + after))
        found += [rng.uniform(-most, most, (before, after)).astype(np.float32), np.zeros(after, dtype=np.float32)]
    return found
