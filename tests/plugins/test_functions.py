"""Plain functions as models."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers import softmax
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.plugins.functions import FunctionAdapter
from cfproto_plugin.testing import check_adapter

X = np.random.default_rng(0).normal(size=(7, 3))


def probabilities(x):
    return softmax(np.asarray(x) @ np.arange(6.0).reshape(3, 2))


def test_function_that_gives_probabilities_conforms():
    check_adapter(FunctionAdapter(probabilities), X)


def test_function_has_no_gradient_and_takes_frames():
    known = Adapted.of(FunctionAdapter(probabilities))
    assert known.vjp is None
    assert known.accepts_frames


def test_frame_reaches_the_function_as_it_is():
    import pandas as pd

    seen = []
    frame = pd.DataFrame(X, columns=list("abc"))
    FunctionAdapter(lambda x: seen.append(x) or probabilities(x)).predict(frame)
    assert seen[0] is frame


def test_list_of_lists_becomes_an_array():
    y = FunctionAdapter(lambda x: [[0.25, 0.75]] * len(x)).predict(X)
    assert isinstance(y, np.ndarray)
    assert y.shape == (7, 2)


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 2, 2), ()])
def test_output_that_is_not_a_column_per_class_is_refused_with_its_shape(shape):
    with pytest.raises(ModelError) as caught:
        FunctionAdapter(lambda x: np.ones(shape)).predict(X)
    assert str(caught.value) == (
        f"the function returned shape {shape} for 7 rows; expected (7, k) probabilities with k >= 2. "
        "For a model with one probability p return the two columns (1 - p, p)."
    )


@pytest.mark.parametrize("role", ["classifier", "transform"])
def test_output_with_another_number_of_rows_is_refused(role):
    with pytest.raises(ModelError, match=r"shape \(1, 2\) for 7 rows; expected one item per row"):
        FunctionAdapter(lambda x: np.ones((1, 2)), role=role).predict(X)


def test_scalar_is_no_encoding():
    with pytest.raises(ModelError, match=r"shape \(\) for 7 rows"):
        FunctionAdapter(np.sum, role="transform").predict(X)


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 2, 2)])
def test_encoding_may_have_any_shape_per_row(shape):
    adapter = FunctionAdapter(lambda x: np.ones((len(x), *shape[1:])), role="transform")
    assert adapter.predict(X).shape == shape
    check_adapter(adapter, X, role="transform")


def test_labels_are_those_given():
    assert FunctionAdapter(probabilities).classes is None
    assert FunctionAdapter(probabilities, classes=["no", "yes"]).classes.tolist() == ["no", "yes"]
