"""What can be reached is found, and a row without an answer is told why."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.report.sentences import ended_in_words

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
X, Y = load_breast_cancer(return_X_y=True)
RNG = np.random.default_rng(0)
CELLS = 60


def two_columns_free(model, x, y, pairs, rows):
    """Rows of which more than 0.2 % of a grid over two columns has another class, and how many have no answer."""
    order = np.random.default_rng(1).permutation(len(x))
    held, train = x[order[:rows]], x[order[rows:]]
    model.fit(train, y[order[rows:]])
    explainer = CounterfactualExplainer(model).fit(train)
    solvable = missed = 0
    for pair in pairs:
        axes = [np.linspace(train[:, at].min(), train[:, at].max(), CELLS) for at in pair]
        cells = np.stack([part.ravel() for part in np.meshgrid(*axes)], axis=1)
        points = np.repeat(held[:, None], len(cells), axis=1)
        points[:, :, pair] = cells
        label = model.predict(points.reshape(-1, x.shape[1])).reshape(rows, -1)
        reachable = (label != model.predict(held)[:, None]).mean(axis=1) > 0.002
        rules = Features(immutable=tuple(np.delete(np.arange(x.shape[1]), pair).tolist()))
        e = explainer.explain(held, features=rules)
        solvable += reachable.sum()
        missed += (reachable & ~e.found).sum()
        good = e.found
        assert not good.any() or (model.predict(e.counterfactual[good]) != model.predict(held[good])).all()
    return solvable, missed


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), MLPClassifier((20,), max_iter=200, random_state=0)),
        RandomForestClassifier(25, random_state=0),
    ],
    ids=["logistic", "MLP", "forest"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_with_two_free_columns_are_not_missed(model):
    solvable, missed = two_columns_free(model, X, Y, [(20, 27), (22, 7)], 25)
    assert solvable > 2
    assert missed == 0


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.needs("xgboost")
@pytest.mark.filterwarnings("ignore")
def test_at_most_two_rows_in_a_thousand_are_missed(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import complete

    total = complete.measure(pairs=2, rows=25)[-1]
    assert total["solvable"] > 300
    assert total["missed"] <= 0.002 * total["solvable"]


def island(x):
    """Class 1 on a small square of the first two columns that no training row and no way to one touches."""
    p = np.where((np.abs(x[:, 0] - 0.3) < 0.02) & (np.abs(x[:, 1] - 0.8) < 0.02) | (x[:, 2] > 0.9), 0.9, 0.1)
    return np.stack([1 - p, p], axis=1)


TRAIN = np.concatenate([RNG.uniform(0, 0.6, (150, 4)), RNG.uniform(0.92, 1, (20, 4))])
ROWS = TRAIN[:12]


@pytest.mark.parametrize("free", [(0, 1), (1, 0, 3)])
def test_a_small_region_is_found_whatever_the_training_rows_say(free):
    rules = Features(immutable=tuple({0, 1, 2, 3} - set(free)), scale=None)
    e = CounterfactualExplainer(island, features=rules).fit(TRAIN).explain(ROWS)
    assert e.found.all()
    assert (island(e.counterfactual)[:, 1] > 0.5).all()
    assert set(e.status) == {"fallback"}
    assert "combinations of values" in e.message[0]


def test_a_limit_that_never_binds_finds_no_more():
    rules = Features(immutable=(2, 3), scale=None)
    without, limited = (
        CounterfactualExplainer(island, features=rules, search=SearchConfig(max_changes=most)).fit(TRAIN).explain(ROWS)
        for most in (None, 2)
    )
    assert without.found.tolist() == limited.found.tolist()


def test_many_free_columns_are_searched_change_by_change():
    def steep(x):
        """Class 1 only where the first six columns are near their largest value; no training row comes near."""
        p = 1 / (1 + np.exp(-40 * (x[:, :6].mean(axis=1) - 0.95)))
        p = np.where(x[:, 7] > 0.9, 0.9, p)
        return np.stack([1 - p, p], axis=1)

    train = np.random.default_rng(2).uniform(0, 1, (200, 8))
    train[:180, 7] *= 0.8
    train[180:, 7] = 0.95
    rules = Features(immutable=(7,))
    rows = train[:5]
    e = CounterfactualExplainer(steep, features=rules).fit(train).explain(rows)
    assert e.found.all()
    assert (steep(e.counterfactual)[:, 1] > 0.5).all()


def test_whole_numbers_and_categories_take_part():
    import pandas as pd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"count": rng.integers(0, 40, 200), "kind": rng.choice(list("abcd"), 200), "other": rng.uniform(0, 1, 200)}
    )
    frame.loc[(frame["count"] == 31) & (frame["kind"] == "c"), "count"] = 30

    def model(x):
        hit = ((x["count"] == 31) & (x["kind"] == "c")) | (x["other"] > 0.95)
        p = np.where(hit, 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)

    rows = frame[frame["other"] < 0.9].head(8)
    e = CounterfactualExplainer(model, features=Features(immutable=("other",))).fit(frame).explain(rows)
    assert e.found.all()
    assert (e.counterfactual["count"] == 31).all()
    assert (e.counterfactual["kind"] == "c").all()


def ramp(x):
    """The probability of class 1 rises with the first column, to 0.4 at 1; the second alone decides."""
    p = np.where(x[:, 1] > 0.9, 0.8, 0.4 * np.clip(x[:, 0], 0, 1))
    return np.stack([1 - p, p], axis=1)


def test_not_found_names_the_best_probability_and_what_to_relax():
    train = np.random.default_rng(3).uniform(0, 1, (200, 3))
    rows = train[train[:, 1] < 0.8][:3]
    rules = Features(immutable=(1,), ranges={0: (0.0, 1.0)})
    e = CounterfactualExplainer(ramp, features=rules).fit(train).explain(rows)
    assert (e.status == "not_found").all()
    for message in e.message:
        assert "the closest point gave class 1 a probability of 0.4" in message
        assert "relax immutable or ranges or give more ranges" in message


def test_an_impossible_relation_is_named():
    import pandas as pd

    train = pd.DataFrame(np.random.default_rng(4).uniform(0, 1, (200, 3)), columns=["a", "b", "c"])
    rules = Features(immutable=("a",), ranges={"b": (0.0, 0.2)}, relations=("c >= 0", "a <= b"))
    rows = train[(train["a"] > 0.5) & (train["b"] < 0.8)].head(3)
    explainer = CounterfactualExplainer(lambda x: ramp(x.to_numpy())).fit(train)
    e = explainer.explain(rows, features=rules)
    assert (e.status == "infeasible").all()
    assert "the relation 'a <= b' cannot hold" in e.message[0]
    e = explainer.explain(rows, features=replace(rules, relations=("c >= 0", "a * a <= a * b")))  # no proof of products
    assert (e.status == "not_found").all()
    assert "no point that was tried satisfies the relation 'a * a <= a * b'" in e.message[0]


def explained_under(*relations, **rules):
    import pandas as pd

    train = pd.DataFrame(np.random.default_rng(4).uniform(0.1, 1, (200, 3)), columns=["a", "b", "c"])
    rows = train[(train["b"] < 0.8) & (train["a"] > 0.5)].head(3)
    explainer = CounterfactualExplainer(lambda x: ramp(x.to_numpy())).fit(train)
    return explainer.explain(rows, features=Features(relations=relations, **rules))


def test_relations_that_no_point_satisfies_together_are_named():
    e = explained_under("c >= 0", "a * c < b * c", "b * c < a * c")
    assert (e.status == "not_found").all()
    for message in e.message:
        assert "no point that was tried satisfies the relations 'a * c < b * c' and 'b * c < a * c' together" in message
        assert message.endswith("; relax one of them, or the rules of their columns")


def test_the_relation_that_no_point_of_the_class_satisfies_is_named():
    e = explained_under("c >= 0", "b * c <= 0.8 * c", vary=("a", "b"))
    assert (e.status == "not_found").all()
    for message in e.message:
        assert "points with class 1 were tried, but none of them satisfies the relation 'b * c <= 0.8 * c'" in message
        assert "the best point that keeps all rules has probability 0.399; relax it" in message


def test_a_function_among_the_relations_is_named_likewise():
    def cheap(rows):
        return rows["b"] < 0.05

    e = explained_under(cheap)
    assert (e.status == "not_found").all()
    assert "no point that was tried satisfies the relation 'cheap'" in e.message[0]


class Hasty:
    """A recomputation that finds class 1 too early, where no training row shows it."""

    classes = ("no", "yes")

    def predict(self, x):
        p = 1 / (1 + np.exp(-60 * (x[:, 0] - 0.75)))
        return np.stack([1 - p, p], axis=1)

    def quick(self, x):
        early = (x[:, 0] > 0.62) & (x[:, 0] < 0.9)
        p = np.where(early, 0.9, self.predict(x)[:, 1])
        return np.stack([1 - p, p], axis=1)


def test_what_the_model_itself_refuses_is_sought_again():
    train = np.concatenate(
        [np.random.default_rng(5).uniform(0, 0.6, (80, 3)), np.random.default_rng(6).uniform(0.92, 1, (20, 3))]
    )
    e = CounterfactualExplainer(Hasty(), search=SearchConfig.close()).fit(train).explain(train[:10])
    assert e.found.all()
    assert (Hasty().predict(e.counterfactual)[:, 1] > 0.5).all()
    assert (e.counterfactual[:, 0] < 0.9).all()  # near the row, not at a training row


def test_gradients_are_counted_in_all():
    class Counting:
        def __init__(self):
            self.rows = 0

        def predict(self, x):
            p = 1 / (1 + np.exp(-(x @ np.array([1.0, -2.0, 0.5]))))
            return np.stack([1 - p, p], axis=1)

        def vjp(self, x):
            self.rows += len(x)
            y = self.predict(x)
            slope = (y[:, :1] * y[:, 1:]) * np.array([1.0, -2.0, 0.5])
            return y, lambda g: slope * (g[:, 1:] - g[:, :1])

    for search in (None, SearchConfig(method="fista", c_init=1.0, max_iterations=50)):
        model = Counting()
        explainer = CounterfactualExplainer(model, search=search).fit(np.random.default_rng(7).normal(size=(100, 3)))
        model.rows = 0
        e = explainer.explain(np.random.default_rng(8).normal(size=(6, 3)))
        assert e.meta["n_gradients"] == model.rows > 0


def test_wine_with_three_free_columns():
    wine, kind = load_wine(return_X_y=True)
    model = RandomForestClassifier(25, random_state=0).fit(wine, kind)
    explainer = CounterfactualExplainer(model).fit(wine)
    held = wine[::6]
    free = (6, 9, 12)
    rules = Features(immutable=tuple(set(range(13)) - set(free)))
    axes = [np.linspace(wine[:, at].min(), wine[:, at].max(), 15) for at in free]
    cells = np.stack([part.ravel() for part in np.meshgrid(*axes)], axis=1)
    points = np.repeat(held[:, None], len(cells), axis=1)
    points[:, :, free] = cells
    label = model.predict(points.reshape(-1, 13)).reshape(len(held), -1)
    reachable = (label != model.predict(held)[:, None]).mean(axis=1) > 0.002
    e = explainer.explain(held, features=rules)
    assert reachable.sum() > 5
    assert e.found[reachable].all()


def test_what_the_model_refuses_twice_is_said():
    message = ended_in_words(in_time=True, refused=True, further=False)
    assert message == "the model did not confirm the class of what the search found"


@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(random_state=0), KNeighborsClassifier(4)], ids=["tree", "near"]
)
def test_columns_without_bounds_are_searched_as_far_as_the_training_rows_go(model):
    x, y = load_wine(return_X_y=True)
    model.fit(x, y)
    fixed = tuple(at for at in range(13) if at not in (0, 9))
    rules = Features(immutable=fixed, ranges={0: (-np.inf, np.inf), 9: (0, np.inf)}, step={0: 0.1})
    e = CounterfactualExplainer(model, features=rules).fit(x).explain(x[::9])
    cf = e.counterfactual[e.found]
    assert len(cf) > 0
    assert np.isfinite(cf).all()
    assert (model.predict(cf) == e.counterfactual_class[e.found]).all()
