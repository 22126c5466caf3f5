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
