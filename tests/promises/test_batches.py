"""A batch gives the answers of its rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, SearchConfig

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(200, 4))
LABELS = (TABLE[:, 0] > 0) + (np.arange(200) >= 198) * (2 - (TABLE[:, 0] > 0))
TABLE[198:, 1] += 6


@pytest.mark.parametrize("polish", [0, 1])
def test_a_row_with_fewer_prototypes_than_another_has_the_answers_that_it_has_alone(polish):
    model = LogisticRegression().fit(TABLE, LABELS)
    assert (model.predict(TABLE) == 2).sum() < 3
    explainer = CounterfactualExplainer(model, search=SearchConfig(max_changes=2, polish=polish)).fit(TABLE)
    targets = np.array([2, 1, 2, 0, 2])
    together = explainer.explain(TABLE[:5], target=targets, n=3)
    for row in range(5):
        alone = explainer.explain(TABLE[row : row + 1], target=targets[row : row + 1], n=3)
        assert alone.status.tolist() == together.status[together.row == row].tolist()
        assert np.array_equal(alone.counterfactual_class, together.counterfactual_class[together.row == row])


def test_the_answers_of_a_row_differ_by_more_than_rounding():
    table = TABLE.astype(np.float32)
    model = LogisticRegression().fit(table, table[:, 0] > 0)
    search = SearchConfig(method="fista", max_iterations=30, theta=1e-6, polish=0)  # prototypes hardly lead
    e = CounterfactualExplainer(model, search=search).fit(table).explain(table[:20], n=3)
    assert e.found.sum() >= 20
    for row in range(20):
        answers = e.counterfactual[(e.row == row) & e.found].astype(float)
        for i, answer in enumerate(answers):
            changes = np.abs(np.stack([answer, *answers[:i]]) - table[row]).max(axis=0)
            assert (np.abs(answers[:i] - answer) > 1e-6 * changes).any(axis=1).all()
