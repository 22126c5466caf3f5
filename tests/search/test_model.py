"""The first prediction, the model's own answer beside a recomputed one, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.search.model import SearchModel
from cfproto_plugin.search.training import training_answer
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.space import FeatureSpace

TRAIN = np.random.default_rng(0).normal(size=(50, 3))


def proba(x):
    p = 1 / (1 + np.exp(-3 * x[:, 0]))
    return np.stack([1 - p, p], axis=1)


class Plain:
    def __init__(self):
        self.batches = []

    def predict(self, x):
        self.batches.append(len(x))
        return proba(x)


def search_model(adapter, **settings):
    columns, given = Columns.learn(TRAIN, Features(), accepts_frames=False)
    table = given.table
    space = FeatureSpace.numeric(columns, table, Features(), scale=True)
    return SearchModel(Adapted.of(adapter, "toy"), space, given=given, **settings)


def test_the_first_prediction_names_the_missing_cell_that_the_model_refuses():
    class Refuses(Plain):
        def predict(self, x):
            if np.isnan(x).any():
                raise TypeError
            return proba(x)

    rows = TRAIN[:5].copy()
    rows[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3 of the training data is NaN in column 1, and the model") as caught:
        training_answer(search_model(Refuses()), rows)
    assert (caught.value.row, caught.value.column) == (3, 1)


def test_an_error_of_the_model_on_complete_rows_is_put_in_words():
    class Broken(Plain):
        def predict(self, x):
            raise ZeroDivisionError

    with pytest.raises(ModelError, match="the model raised ZeroDivisionError for the training rows") as caught:
        training_answer(search_model(Broken()), TRAIN)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_class_is_the_first_largest_probability_or_the_models_own_decision():
    class Tie(Plain):
        def predict(self, x):
            return np.full((len(x), 2), 0.5)

    class Decides(Tie):
        def labels(self, x):
            return np.ones(len(x), dtype=int)

    assert search_model(Tie()).answer(TRAIN[:3]).label.tolist() == [0, 0, 0]
    assert search_model(Decides()).answer(TRAIN[:3]).label.tolist() == [1, 1, 1]


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((3, 1)), np.ones((2, 2)), np.ones((3, 2, 1))])
def test_output_that_is_no_probabilities_is_refused_with_its_shape(bad):
    class Odd(Plain):
        def predict(self, x):
            return bad

    with pytest.raises(ModelError, match="expected"):
        search_model(Odd()).strictly(TRAIN[:3])


def test_batches_are_as_large_as_memory_allows_and_counted():
    adapter = Plain()
    model = search_model(adapter, tuning=Tuning(cells=30))
    assert np.array_equal(model.quick(TRAIN), proba(TRAIN))
    assert adapter.batches == [10] * 5
    assert (model.calls, model.predicted) == (5, 50)


class Quick(Plain):
    """Recomputed with an error: every claim that only `quick` makes is false."""

    shift = 0.0

    def quick(self, x):
        return proba(x + np.array([self.shift, 0, 0]))


def test_what_is_returned_was_confirmed_by_the_model_itself():
    adapter = Quick()
    e = CounterfactualExplainer(adapter).fit(TRAIN).explain(TRAIN[:10])
    assert e.found.all()
    assert np.array_equal(e.counterfactual_proba, proba(e.counterfactual))
    adapter.shift = 0.5
    wrong = CounterfactualExplainer(adapter).fit(TRAIN).explain(TRAIN[TRAIN[:, 0] < -0.5])
    claimed = wrong.counterfactual[wrong.found]
    assert (proba(claimed)[:, 1] > 0.5).all()


def test_a_models_own_decision_confirms_or_refuses():
    class Strict(Plain):
        """Class 1 only above a probability of 0.9."""

        def labels(self, x):
            return (proba(x)[:, 1] > 0.9).astype(int)

    rows = TRAIN[TRAIN[:, 0] < 0][:8]
    e = CounterfactualExplainer(Strict()).fit(TRAIN).explain(rows)
    assert (proba(e.counterfactual[e.found])[:, 1] > 0.9).all()
    assert e.original_class.tolist() == [0] * 8


def test_training_data_written_to_after_fit_changes_no_answer():
    train = TRAIN.copy()
    explainer = CounterfactualExplainer(Plain(), features=Features(scale=None)).fit(train)
    before = explainer.explain(TRAIN[:5])
    train[:] = 0
    after = explainer.explain(TRAIN[:5])
    assert np.array_equal(before.counterfactual, after.counterfactual)


@pytest.mark.parametrize(
    "labels",
    [["no"] * 5, [0.0] * 5, [[0]] * 5, [0] * 4, [-1] * 5, [2] * 5],
    ids=["names", "floats", "2d", "few", "-1", "2"],
)
def test_labels_that_are_no_columns_are_refused(labels):
    class Odd(Plain):
        def labels(self, x):
            return np.array(labels)

    with pytest.raises(ModelError, match=r"labels of the adapter 'Odd' returned .*; expected \(5,\) whole numbers"):
        search_model(Odd()).strictly(TRAIN[:5])


def test_what_the_model_does_not_confirm_is_sought_again_by_asking_it():
    class Never(Plain):
        """The recomputation is right for training rows, and sees a class that the model does not for all others."""

        def quick(self, x):
            known = (x[:, None] == TRAIN).all(axis=2).any(axis=1)
            return np.where(known[:, None], proba(x), proba(x + np.array([5.0, 0, 0])))

    rows = TRAIN[(TRAIN[:, 0] < -0.5) & (TRAIN[:, 0] > -3)][:5]
    e = CounterfactualExplainer(Never(), search=SearchConfig(fallback=False)).fit(TRAIN).explain(rows)
    assert e.found.all()
    assert (Plain().predict(e.counterfactual).argmax(axis=1) != Plain().predict(rows).argmax(axis=1)).all()


def test_calls_are_counted_as_the_adapter_sees_them():
    class Small(Plain):
        max_rows = 7

    adapter = Small()
    e = CounterfactualExplainer(adapter).fit(TRAIN)
    adapter.batches.clear()
    meta = e.explain(TRAIN[:10]).meta
    assert max(adapter.batches) == 7
    assert meta["n_predict_calls"] == len(adapter.batches)
    assert meta["n_predicted_rows"] == sum(adapter.batches)
