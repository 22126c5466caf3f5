"""Training rows as the last resort, moved inside the rules."""

from __future__ import annotations

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig


def corner(x):
    """Class 1 only where both columns are high; half of the way there is still class 0."""
    p = np.where((x[:, 0] > 0.9) & (x[:, 1] > 0.9), 0.9, 0.1)
    return np.stack([1 - p, p], axis=1)


RNG = np.random.default_rng(0)
TRAIN = np.concatenate([RNG.uniform(0, 0.5, (80, 3)), RNG.uniform(0.92, 1, (20, 3))])
RULES = Features(immutable=(2,), scale=None)


def test_the_answer_keeps_the_rules_that_the_training_row_broke():
    e = CounterfactualExplainer(corner, features=RULES).fit(TRAIN).explain(TRAIN[:5])
    assert e.found.all()
    assert np.array_equal(e.counterfactual[:, 2], TRAIN[:5, 2])
    assert (corner(e.counterfactual)[:, 1] > 0.5).all()


def test_it_can_be_switched_off_and_the_message_says_so():
    def never(x):
        """Class 1 in the training rows only, nowhere on the way to them once a column is fixed."""
        p = np.where((x > 0.9).all(axis=1), 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    search = SearchConfig(fallback=False)
    e = CounterfactualExplainer(never, features=RULES, search=search).fit(TRAIN).explain(TRAIN[:3])
    assert e.status.tolist() == ["not_found"] * 3
    assert "fallback=True would try training rows" in e.message[0]


def test_the_answers_of_a_row_are_different_training_rows():
    e = (
        CounterfactualExplainer(corner, features=RULES, search=SearchConfig(polish=0))
        .fit(TRAIN)
        .explain(TRAIN[:4], n=2)
    )
    assert e.found.all()
    for row in range(4):
        first, second = e.counterfactual[e.row == row]
        assert not np.array_equal(first, second)
