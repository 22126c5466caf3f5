from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.errors import InputError
from cfproto_plugin.search.targets import allowed_classes

CLASSES = np.array(["cat", "dog", "eel"])
ORIGINAL = np.array([0, 2])


def allowed(target, classes=CLASSES):
    return allowed_classes(target, classes, ORIGINAL).astype(int).tolist()


def test_default_is_every_other_class():
    assert allowed(None) == [[0, 1, 1], [1, 1, 0]]


def test_a_label_is_meant_for_all_rows():
    assert allowed("dog") == [[0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("target", [["dog", "eel"], ("dog", "eel"), {"dog", "eel"}])
def test_a_list_tuple_or_set_is_a_choice_for_all_rows(target):
    assert allowed(target) == [[0, 1, 1], [0, 1, 1]]


def test_an_array_is_one_label_per_row():
    assert allowed(np.array(["dog", "cat"])) == [[0, 1, 0], [1, 0, 0]]


def test_a_series_is_one_label_per_row():
    import pandas as pd

    assert allowed(pd.Series(["dog", "cat"])) == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("target", [1, np.int64(1), 1.0])
def test_numbers_are_matched_by_value(target):
    assert allowed(target, np.array([0, 1, 2])) == [[0, 1, 0], [0, 1, 0]]


def test_booleans_are_labels_of_their_own():
    assert allowed(True, np.array([False, True])) == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dogg", "Did you mean 'dog'"),
        (7, "target 7 is not a class"),
        ([], "target is empty"),
        (np.array(["dog"]), r"shape \(1,\) for 2 rows"),
    ],
)
def test_targets_that_cannot_be_are_refused(target, message):
    with pytest.raises(InputError, match=message):
        allowed(target)
