"""An encoder or autoencoder that fails at a point ends no search; a row that it fails for is an error."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.errors import ModelError

POINTS = np.random.default_rng(0).normal(size=(160, 3))
X = POINTS[np.abs(POINTS[:, 0]) > 0.2]  # where no encoder below fails
W = np.random.default_rng(1).normal(size=(3, 3)) / 2 + np.eye(3)


def classifier(x):
    p = 1 / (1 + np.exp(-4 * x[:, 0] - x[:, 1]))
    return np.stack([1 - p, p], axis=1)


class Linear:
    """x W, and nothing where the first number is near 0: on the way from one class to the other."""

    def __init__(self, how):
        self.how = how

    def predict(self, x):
        near = np.abs(x[:, 0]) < 0.1
        if self.how == "raises" and near.any():
            raise ZeroDivisionError("too near")
        return np.where(near[:, None], np.nan, x @ W)

    def vjp(self, x):
        return self.predict(x), lambda cotangent: cotangent @ W.T


class Predicts(Linear):
    vjp = None


SETTINGS = {
    "path with an encoder": ("encoder", SearchConfig()),
    "fista with an encoder": ("encoder", SearchConfig(method="fista", max_iterations=60)),
    "fista with an autoencoder": ("autoencoder", SearchConfig(method="fista", max_iterations=60, gamma=1.0)),
}


@pytest.mark.parametrize("kind", [Linear, Predicts])
@pytest.mark.parametrize("how", ["raises", "NaN"])
@pytest.mark.parametrize(("part", "search"), SETTINGS.values(), ids=SETTINGS)
def test_a_point_it_fails_for_ends_no_search_and_a_row_it_fails_for_is_an_error(kind, how, part, search):
    explainer = CounterfactualExplainer(classifier, **{part: kind(how)}, search=search).fit(X)
    rows = np.concatenate([X[:3], [[0.05, 1.0, 0.0]], X[3:6]])
    e = explainer.explain(rows)
    assert e.status[3] == "error"
    why = "raised ZeroDivisionError: too near" if how == "raises" else "returned [nan nan nan]"
    assert e.message[3] == f"row 3: the {part} {why} for it; expected finite numbers"
    others = np.delete(np.arange(7), 3)
    assert e.found[others].all()
    assert (classifier(e.counterfactual[others]).argmax(axis=1) == e.counterfactual_class[others]).all()
    assert explainer.explain(rows[3]).status.tolist() == ["error"]


def test_an_encoder_that_raises_for_training_rows_is_named_at_fit():
    with pytest.raises(
        ModelError, match="the encoder raised ZeroDivisionError: too near for rows of the training data"
    ):
        CounterfactualExplainer(classifier, encoder=Linear("raises")).fit(np.concatenate([[[0.0, 0.0, 0.0]], X]))


def test_an_encoder_whose_gradient_fails_is_used_by_differences(caplog):
    encoder = Linear("NaN")
    encoder.vjp = lambda x: (encoder.predict(x), lambda cotangent: cotangent[:, :1])
    e = CounterfactualExplainer(classifier, encoder=encoder).fit(X).explain(X[:2])
    assert e.found.all()
    assert "vjp of the adapter 'Linear' has a pullback that returned float64 of shape (4, 1)" in caplog.text
