"""Every check of the conformance kit lets a good adapter pass and catches one that breaks its rule."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from cfproto_plugin import testing
from cfproto_plugin.protocols import softmax
from cfproto_plugin.testing import check_adapter

X = np.random.default_rng(0).normal(size=(9, 4))
W = np.random.default_rng(1).normal(size=(4, 3))


class Good:
    """A softmax regression with its gradient, its labels and split values: no check finds fault with it."""

    classes = np.array(["a", "b", "c"])

    def predict(self, x):
        return softmax(x.reshape(len(x), -1) @ W)

    def vjp(self, x):
        y = self.predict(x)

        def pullback(cotangent):
            inner = cotangent - (cotangent * y).sum(axis=1, keepdims=True)
            return ((y * inner) @ W.T).reshape(x.shape)

        return y, pullback

    def thresholds(self):
        return [np.array([0.0, 1.0]), np.array([]), np.array([2.0]), np.array([-1.0, 3.0])]


class GivesAList(Good):
    def predict(self, x):
        return super().predict(x).tolist()


class DropsARow(Good):
    def predict(self, x):
        return super().predict(x)[:-1]


class GivesNaN(Good):
    def predict(self, x):
        return super().predict(x) * np.nan


class GivesOneColumn(Good):
    def predict(self, x):
        return super().predict(x)[:, :1] * 0 + 1


class GivesNegative(Good):
    def predict(self, x):
        return super().predict(x) * 3 - [1, 1, 0]


class GivesLogits(Good):
    def predict(self, x):
        return np.abs(x @ W)


class MissesALabel(Good):
    classes = np.array(["a", "b"])


class LooksAtTheBatch(Good):
    def predict(self, x):
        return super().predict(x - x.mean(axis=0))


class ThrowsDice(Good):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(self, x):
        return super().predict(x + 1e-9 * self.rng.normal(size=x.shape))


class WritesIntoTheRows(Good):
    def predict(self, x):
        y = super().predict(x)
        x[0, 0] = 0.0
        return y


class WritesIntoTheRowsInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        x[0, 0] += 1
        return y, pullback


class LooksAtTheDtype(Good):
    def predict(self, x):
        return super().predict(x if x.dtype == np.float32 else x + 0.1)


class HasAWrongGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: 1.1 * pullback(cotangent)


class HasAFlatGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: pullback(cotangent).sum(axis=1)


class HasAnotherOutputInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y[:, ::-1], pullback


class SplitsTooFewColumns(Good):
    def thresholds(self):
        return super().thresholds()[:3]


class SplitsUnsorted(Good):
    def thresholds(self):
        return [t[::-1] for t in super().thresholds()]


class SplitsTwiceAtTheSamePlace(Good):
    def thresholds(self):
        return [np.repeat(t, 2) for t in super().thresholds()]


CAUGHT = [
    (GivesAList, "output_is_finite_with_one_item_per_row", "returned list, expected a NumPy array"),
    (DropsARow, "output_is_finite_with_one_item_per_row", "8 items for 9 rows"),
    (GivesNaN, "output_is_finite_with_one_item_per_row", "not finite"),
    (GivesOneColumn, "rows_are_probabilities_of_at_least_two_classes", r"shape \(9, 1\), expected \(n, k\)"),
    (GivesNegative, "rows_are_probabilities_of_at_least_two_classes", "negative"),
    (GivesLogits, "rows_are_probabilities_of_at_least_two_classes", "sums to 1"),
    (MissesALabel, "rows_are_probabilities_of_at_least_two_classes", "2 classes for 3 columns"),
    (LooksAtTheBatch, "output_does_not_depend_on_the_batch", "together and one by one differ"),
    (ThrowsDice, "output_is_deterministic", "two predictions of the same rows differ"),
    (WritesIntoTheRows, "input_is_not_modified", "changed in place"),
    (WritesIntoTheRowsInTheGradient, "input_is_not_modified", "changed in place"),
    (LooksAtTheDtype, "float32_and_float64_agree", "float32 and float64 rows differ"),
    (HasAWrongGradient, "pullback_agrees_with_random_direction_differences", "off finite differences"),
    (HasAFlatGradient, "pullback_agrees_with_random_direction_differences", r"shape \(9,\), expected \(9, 4\)"),
    (HasAnotherOutputInTheGradient, "pullback_agrees_with_random_direction_differences", "vjp and predict give"),
    (SplitsTooFewColumns, "thresholds_are_sorted_for_every_column", "thresholds of 3 columns for 4 columns"),
    (SplitsUnsorted, "thresholds_are_sorted_for_every_column", "not sorted and distinct"),
    (SplitsTwiceAtTheSamePlace, "thresholds_are_sorted_for_every_column", "not sorted and distinct"),
]
CHECKS = {
    name
    for name, function in inspect.getmembers(testing, inspect.isfunction)
    if function.__module__ == testing.__name__ and not name.startswith("_") and name != "check_adapter"
}


def test_good_adapter_passes_everything():
    check_adapter(Good(), X)
    check_adapter(Good(), X.reshape(9, 2, 2))


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_good_adapter_passes_each_check_alone(name):
    getattr(testing, name)(Good(), X)


@pytest.mark.parametrize(("broken", "check", "message"), CAUGHT)
def test_check_catches_the_adapter_that_breaks_its_rule(broken, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(testing, check)(broken(), X.copy())


@pytest.mark.parametrize("broken", [broken for broken, *_ in CAUGHT])
def test_check_adapter_catches_every_broken_adapter(broken):
    with pytest.raises(AssertionError):
        check_adapter(broken(), X.copy())


def test_every_check_has_an_adapter_that_it_catches():
    assert {check for _, check, _ in CAUGHT} == CHECKS


def test_transform_need_not_give_probabilities():
    class Encoder:
        def predict(self, x):
            return x.reshape(len(x), 2, 2) * 2

    check_adapter(Encoder(), X, role="transform")
    with pytest.raises(AssertionError, match="expected \\(n, k\\)"):
        check_adapter(Encoder(), X)


def test_tolerance_can_be_chosen():
    class Sloppy(Good):
        def predict(self, x):
            return super().predict(x + 1e-3 * len(x))

    with pytest.raises(AssertionError, match="together and one by one differ"):
        testing.output_does_not_depend_on_the_batch(Sloppy(), X)
    testing.output_does_not_depend_on_the_batch(Sloppy(), X, atol=0.1)
