"""A part of a third-party adapter that fails is named, and costs no answers where the model itself can be asked."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import ModelError

X = np.random.default_rng(0).normal(size=(60, 3))


class Base:
    def predict(self, x):
        p = 1 / (1 + np.exp(-3 * x.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)


class QuickRaises(Base):
    def quick(self, x):
        raise ZeroDivisionError("no table")


class QuickIsShort(Base):
    def quick(self, x):
        return self.predict(x)[:-1]


class ScoresRaise(Base):
    def labels(self, x):
        return self.predict(x).argmax(axis=1)

    def scores(self, x):
        raise ZeroDivisionError("no table")


class Text(Base):
    def predict(self, x):
        return super().predict(x).astype(str)


@pytest.mark.parametrize(
    ("kind", "part", "why"),
    [
        (QuickRaises, "quick", "ZeroDivisionError: no table"),
        (QuickIsShort, "quick", "returned shape (3, 2); expected (4, 2)"),
        (ScoresRaise, "scores", "ZeroDivisionError: no table"),
    ],
)
def test_a_part_that_fails_is_named_and_predict_is_asked_instead(kind, part, why, caplog):
    e = CounterfactualExplainer(object(), adapter=kind()).fit(X).explain(X[:6])
    assert e.found.all()
    assert f"{part} of the adapter {kind.__name__!r} fails" in caplog.text
    assert why in caplog.text


def test_probabilities_that_are_no_numbers_are_refused_in_words():
    with pytest.raises(ModelError, match=r"returned <U32, such as .*expected \(60, k\) probabilities"):
        CounterfactualExplainer(object(), adapter=Text()).fit(X)
