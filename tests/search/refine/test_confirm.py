from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.clock import OutOfTimeError
from cfproto_plugin.search.refine import confirm as confirming
from cfproto_plugin.search.refine.confirm import _look
from cfproto_plugin.search.tuning import Tuning

TRAIN = np.random.default_rng(3).normal(size=(300, 5))
ROWS = TRAIN[TRAIN[:, 0] < -0.3][:12]


class Recorded:
    """Two columns decide, the others are noise that a search may change in vain. Keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, x):
        self.asked.append(x.copy())
        score = 3 * (x[:, 0] + 0.5 * np.tanh(x[:, 1]))
        p = 1 / (1 + np.exp(-score))
        return np.stack([1 - p, p], axis=1)


def explained(model, rows=ROWS, tuning=None, **settings):
    explainer = CounterfactualExplainer(model, search=SearchConfig.close(**settings)).fit(TRAIN)
    explainer.fitted_ = replace(explainer.fitted_, tuning=tuning or Tuning())
    model.asked.clear()
    return explainer.explain(rows)


@pytest.mark.parametrize("polish", [False, True])
def test_what_is_returned_was_predicted_in_two_calls(polish):
    model = Recorded()
    e = explained(model, polish=polish)
    assert set(e.status) == {"found"}
    for row in e.counterfactual:
        assert sum((batch == row).all(axis=1).any() for batch in model.asked) >= 2


def test_the_last_call_holds_a_row_and_every_single_change_of_it_taken_back():
    model = Recorded()
    for row in ROWS:
        e = explained(model, row)
        changed = np.flatnonzero(e.counterfactual[0] != row)
        wanted = np.repeat(e.counterfactual, len(changed) + 1, axis=0)
        wanted[np.arange(len(changed)) + 1, changed] = row[changed]
        if len(changed) == 1:
            wanted = wanted[:1]  # that change less is the row itself
        asked = {line.tobytes() for line in model.asked[-2]}  # the last call measures the stability
        assert asked == {line.tobytes() for line in wanted}


def test_a_change_that_the_class_does_not_need_is_taken_back():
    e = explained(Recorded(), tuning=Tuning(rounds=0), polish=1)  # nothing is improved before
    assert (e.counterfactual[:, 2:] == ROWS[:, 2:]).all()
    assert e.meta["n_polish_calls"] > 1
    for before, after in zip(ROWS, e.counterfactual, strict=True):
        changed = np.flatnonzero(before != after)
        back = np.repeat(after[None], len(changed), axis=0)
        back[np.arange(len(changed)), changed] = before[changed]
        assert (Recorded()(back)[:, 1] <= 0.5 + 1e-12).all()


def test_many_changes_are_taken_back_in_a_few_looks():
    """Of 120 columns two decide: a look for every change would be more than a hundred calls."""
    train = np.random.default_rng(3).normal(size=(300, 120))
    explainer = CounterfactualExplainer(Recorded(), search=SearchConfig.close()).fit(train)
    explainer.fitted_ = replace(explainer.fitted_, tuning=Tuning(rounds=0))
    rows = train[train[:, 0] < -0.3][:12]
    e = explainer.explain(rows)
    assert e.found.all()
    assert (e.counterfactual[:, 2:] == rows[:, 2:]).all()
    assert e.meta["n_predict_calls"] < 15


def test_what_was_taken_back_stays_so_when_the_time_runs_out(monkeypatch):
    def changes(most):
        """How many changes there are if the time runs out after so many looks."""
        looks = iter(range(most))

        def look(*arguments):
            if next(looks, None) is None:
                raise OutOfTimeError
            return _look(*arguments)

        monkeypatch.setattr(confirming, "_look", look)
        e = explained(Recorded(), tuning=Tuning(rounds=0), polish=1)
        assert e.found.all()
        return e.n_changes.sum()

    assert changes(2) < changes(1) < changes(0)


def test_changes_are_not_taken_back_without_polish():
    none = explained(Recorded(), polish=False)
    assert none.meta["n_polish_calls"] == 1, "the call that measures the stability"
    assert ((none.counterfactual != ROWS).sum(axis=1) > 2).any()


def test_no_single_change_can_be_left_out_with_class_typicality_and_stability_kept():
    explainer = CounterfactualExplainer(Recorded()).fit(TRAIN)
    e = explainer.explain(ROWS)
    assert e.found.all()
    floors = explainer.fitted_.guide.floors
    least = explainer.explain(ROWS).meta["config"]
    for line in range(len(e)):
        before, after = ROWS[line], e.counterfactual[line]
        for column in np.flatnonzero(before != after):
            back = after.copy()
            back[column] = before[column]
            if (back == before).all() or Recorded()(back[None])[0, 1] <= 0.5:
                continue
            copies = floors.copies.around(back[None], explainer.fitted_.space)[0]
            stable = (Recorded()(copies)[:, 1] > 0.5).mean()
            z = explainer.fitted_.space.to_search(back[None])
            typical = floors.typicality(z, np.array([1]))[0]
            assert stable < least["min_stability"] or typical < min(least["min_typicality"], 1.0)


def test_little_memory_gives_the_same_answers():
    whole = explained(Recorded())
    parts = explained(Recorded(), tuning=Tuning(cells=50))
    np.testing.assert_array_equal(whole.counterfactual, parts.counterfactual)
    np.testing.assert_array_equal(whole.counterfactual_proba, parts.counterfactual_proba)


def test_a_relation_keeps_a_change_that_the_class_does_not_need():
    """Column 2 has to stay above column 0, so it rises with it."""
    rule = Features(relations=(lambda x: x[:, 2] >= x[:, 0],))
    rows = ROWS[ROWS[:, 2] >= ROWS[:, 0]]
    explainer = CounterfactualExplainer(Recorded(), features=rule).fit(TRAIN)
    e = explainer.explain(rows)
    found = np.isin(e.status, ["found", "fallback"])
    assert found.all()
    assert (e.counterfactual[:, 2] >= e.counterfactual[:, 0]).all()
    assert (e.counterfactual[:, 2] != rows[:, 2]).any()


def test_a_model_that_changes_its_mind_leaves_no_claim():
    class Moody(Recorded):
        """Says no to whatever it is asked a second time."""

        def __call__(self, x):
            seen = {line.tobytes() for batch in self.asked for line in batch}
            proba = super().__call__(x)
            again = np.array([line.tobytes() in seen for line in x])
            return np.where(again[:, None], [1.0, 0.0], proba)

    model = Moody()
    explainer = CounterfactualExplainer(model, search=SearchConfig(polish=0)).fit(TRAIN)
    model.asked.clear()
    e = explainer.explain(ROWS)
    assert not np.isin(e.status, ["found", "fallback"]).any()
    assert np.isnan(e.counterfactual).all()
