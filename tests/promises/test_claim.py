"""What is returned as found has the class it claims, by the user's own model, alone or in a batch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.report.sentences import why_not_in_words
from cfproto_plugin.search.noise import Noise, noise_of

X, Y = load_breast_cancer(return_X_y=True)


def assert_true(e, predicted):
    assert np.array_equal(predicted, e.counterfactual_class[e.found])


@pytest.mark.parametrize("trained_in", [np.float32, np.float64])
def test_float32_rows_are_judged_by_the_model_in_float32(trained_in):
    x, y = load_digits(return_X_y=True)
    single = x.astype(np.float32)
    model = make_pipeline(StandardScaler(), SGDClassifier(random_state=0)).fit(single, y)
    e = CounterfactualExplainer(model).fit(x.astype(trained_in)).explain(single[:100])
    assert e.found.all()
    assert_true(e, model.predict(e.counterfactual))


class InPlace:
    """A function that writes to what it is given."""

    def __init__(self, model, mean):
        self.model, self.mean = model, mean

    def __call__(self, x):
        x -= self.mean
        return self.model.predict_proba(x)


@pytest.mark.parametrize("kind", ["linear", "forest", "function"])
def test_a_model_that_works_in_place_changes_nothing_and_is_answered(kind):
    last = RandomForestClassifier(10, random_state=0) if kind == "forest" else LogisticRegression(max_iter=1000)
    model = make_pipeline(StandardScaler(copy=False), last).fit(X.copy(), Y)
    reference = model.predict
    if kind == "function":
        mean = X.mean(axis=0)
        inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X - mean, Y)
        model, reference = InPlace(inner, mean), lambda x: inner.predict(x - mean)
    train, rows = X.copy(), X[:20].copy()
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert np.array_equal(train, X)
    assert np.array_equal(rows, X[:20])
    assert e.found.all()
    assert_true(e, reference(e.counterfactual.copy()))


def torch_network(widths, seed, dtype=None):
    import torch

    torch.manual_seed(seed)
    dtype = dtype or torch.float32
    layers = []
    for a, b in pairwise(widths):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).to(dtype)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.tensor(X, dtype=dtype), torch.tensor(Y)
    for _ in range(15):
        for batch in torch.randperm(len(x)).split(32):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()
    return model


@pytest.mark.needs("torch")
@pytest.mark.parametrize("steepness", [1.0, 1e3])
@pytest.mark.parametrize(("widths", "seed"), [((30, 32, 2), 0), ((30, 2), 106), ((30, 64, 16, 2), 2)])
def test_answers_of_a_network_on_unscaled_columns_keep_their_class_alone_and_in_any_batch(widths, seed, steepness):
    import torch

    model = torch_network(widths, seed)
    with torch.no_grad():
        model[-1].weight *= steepness
        model[-1].bias *= steepness
    e = CounterfactualExplainer(model).fit(X.astype(np.float32)).explain(X[:300].astype(np.float32))
    found = torch.from_numpy(e.counterfactual[e.found])
    assert e.found.all()
    with torch.no_grad():
        for size in (1, 7, 300):
            assert_true(e, np.concatenate([model(part).argmax(dim=1) for part in found.split(size)]))


def test_the_noise_of_a_model_is_what_its_answers_vary_by_near_the_boundary():
    train = np.linspace(-2, 2, 40)[:, None]

    def own(x, _row):
        p = 1 / (1 + np.exp(-50 * x[:, 0])) + (1e-4 if len(x) == 1 else 0.0) * (np.abs(x[:, 0]) < 0.05)
        return np.stack([1 - p, p], axis=1)

    def between(a, b, t):
        return a + t[:, None] * (b - a)

    noise = noise_of(own, train, own(train, None), between)
    assert 1e-4 < noise.own < 1e-2
    assert not noise.random


def test_a_forest_has_no_noise_and_a_linear_model_some():
    forest = RandomForestClassifier(10, random_state=0).fit(X, Y)
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert CounterfactualExplainer(forest).fit(X).fitted_.noise_of(X.dtype) == Noise()
    assert CounterfactualExplainer(forest.predict_proba).fit(X).fitted_.noise_of(X.dtype) == Noise()
    assert 0 < CounterfactualExplainer(linear).fit(X).fitted_.noise_of(X.dtype).own < 1e-10


def test_a_model_that_fails_between_its_training_rows_is_fitted_all_the_same():
    model = LogisticRegression(max_iter=5000).fit(X, Y)

    def picky(x):
        if not np.isin(x[:, 0], X[:, 0]).all():
            raise ValueError("only known values")
        return model.predict_proba(x)

    assert CounterfactualExplainer(picky).fit(X).fitted_ is not None


def subclass_of(base):
    class Strict(base):
        """Decides for class 1 only above 0.8."""

        def predict(self, x):
            return self.classes_[(self.predict_proba(x)[:, 1] > 0.8).astype(int)]

    return Strict


def deciding(name):
    if name == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        return subclass_of(xgboost.XGBClassifier)(n_estimators=20, max_depth=3)
    if name == "xgboost with its own probabilities":
        xgboost = pytest.importorskip("xgboost")

        class Tempered(xgboost.XGBClassifier):
            def predict_proba(self, x):
                p = np.sqrt(super().predict_proba(x)[:, 0])
                return np.stack([p, 1 - p], axis=1)

            def predict(self, x):
                return self.predict_proba(x).argmax(axis=1)

        return Tempered(n_estimators=20, max_depth=3)
    made = {
        "forest": lambda: subclass_of(RandomForestClassifier)(10, random_state=0),
        "linear": lambda: make_pipeline(StandardScaler(), subclass_of(LogisticRegression)()),
        "pipeline": lambda: subclass_of(Pipeline)([("scale", StandardScaler()), ("last", LogisticRegression())]),
        "search": lambda: subclass_of(GridSearchCV)(LogisticRegression(max_iter=9999), {"C": [1.0]}),
        "threshold": lambda: FixedThresholdClassifier(RandomForestClassifier(10, random_state=0), threshold=0.8),
        "threshold of a linear model": lambda: FixedThresholdClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.2
        ),
        "votes": lambda: make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
    }
    return made[name]()


DECIDING = [
    *("xgboost", "xgboost with its own probabilities", "forest", "linear", "pipeline", "search", "threshold"),
    *("threshold of a linear model", "votes"),
]


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("min_proba", [None, 0.85])
@pytest.mark.parametrize("name", DECIDING)
def test_a_model_with_a_decision_of_its_own_decides_and_its_probabilities_are_reported(name, min_proba):
    model = deciding(name).fit(X[:450], Y[:450])
    e = CounterfactualExplainer(model, search=SearchConfig(min_proba=min_proba)).fit(X[:450]).explain(X[450:480])
    assert e.found.sum() >= (28 if min_proba is None else 20)
    answers = e.counterfactual[e.found]
    assert_true(e, model.predict(answers))
    assert np.array_equal(e.original_class, model.predict(X[450:480]))
    np.testing.assert_allclose(e.counterfactual_proba[e.found], model.predict_proba(answers), rtol=0, atol=1e-9)
    chosen = model.predict_proba(answers)[np.arange(len(answers)), e.counterfactual_class[e.found].astype(int)]
    assert (chosen >= (min_proba or 0)).all()


class StandardisesInPlace(LogisticRegression):
    """Standardises the rows that it is given, in place."""

    def fit(self, x, y):
        self.mean_, self.scale_ = x.mean(axis=0), x.std(axis=0)
        return super().fit((x - self.mean_) / self.scale_, y)

    def predict_proba(self, x):
        x -= self.mean_
        x /= self.scale_
        return super().predict_proba(x)

    def predict(self, x):
        return super().predict((x - self.mean_) / self.scale_)


def test_a_model_that_changes_its_rows_in_place_is_explained_like_any_other():
    rows = np.random.default_rng(0).normal(size=(200, 3)) * 5 + 20
    model = StandardisesInPlace().fit(rows, (rows.sum(axis=1) > 60).astype(int))
    e = CounterfactualExplainer(model).fit(rows).explain(rows[:20])
    assert e.found.all()
    assert (model.predict(e.counterfactual) == e.counterfactual_class).all()


def test_a_model_whose_answers_depend_on_the_other_rows_is_named_at_fit(caplog):
    def centred(x):
        p = 1 / (1 + np.exp(-3 * (x - x.mean(axis=0)).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    rows = np.random.default_rng(0).normal(size=(60, 2))
    explainer = CounterfactualExplainer(centred).fit(rows)
    assert "depend on the other rows of the call" in caplog.text
    explainer.explain(rows[:3])  # and is not taken for a model that was fitted again


def test_a_model_whose_answers_do_not_is_not_named(caplog):
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    CounterfactualExplainer(linear.predict_proba).fit(X)
    assert "depend on the other rows" not in caplog.text


def test_a_lead_within_the_noise_of_the_model_is_named_as_such():
    said = why_not_in_words(
        ["yes"],
        absent=False,
        min_proba=None,
        fallback=True,
        reached=0.6,
        least=0.5,
        relax=["immutable"],
    )
    assert "has class yes with probability 0.6, but too small a lead; it must exceed 0.5" in said
    assert "no point" not in said


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("kind", ["function", "pipeline"])
def test_numbers_too_large_for_floats_are_asked_as_they_are(kind):
    """The model reads the last digits of a number of 19: in floats every row would be another."""
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=150), "id": rng.integers(2**60, 2**61, 150)})

    def columns(frame):
        return np.column_stack([frame["a"], 2.0 * (frame["id"] % 7 > 4)])

    inner = RandomForestClassifier(8, random_state=0).fit(columns(rows), columns(rows).sum(axis=1) > 1)
    model = make_pipeline(FunctionTransformer(columns), inner)
    asked = model if kind == "pipeline" else model.predict_proba
    e = CounterfactualExplainer(asked, features=Features(immutable="id")).fit(rows).explain(rows[:20])
    claimed = e.counterfactual_class[e.found].astype(int)
    possible = (rows["id"][:20] % 7 <= 4).to_numpy()
    assert e.found[possible].all()
    assert (model.predict_proba(e.counterfactual[e.found].astype(rows.dtypes)).argmax(axis=1) == claimed).all()
