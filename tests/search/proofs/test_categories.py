"""Bounds and proofs for XGBoost models that split by category, beside all combinations of categories and intervals."""

import itertools

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig, adapt
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.helpers import tree_probabilities

pytestmark = pytest.mark.needs("xgboost")
WORDS, NUMBERS = ["blue", "a", "red", "green", "b"], [35, 10, 20]


def frame(rng, n=300):
    colour = pd.Categorical(rng.choice(WORDS, n), categories=WORDS)
    return pd.DataFrame({"size": rng.normal(size=n), "colour": colour, "code": pd.Categorical(rng.choice(NUMBERS, n))})


def classifier(rows, y, **options):
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=True, n_jobs=1, **{"n_estimators": 5, "max_depth": 3, **options}).fit(
        rows, y
    )


def drawn(seed):
    """A frame, classes that depend on all its columns, and a model that puts categories into sets or takes one out."""
    rng = np.random.default_rng(seed)
    rows = frame(rng)
    score = (
        rows["size"] + rows["colour"].isin(["red", "b"]) * 1.5 - (rows["code"] == 10) + rng.normal(size=len(rows)) * 0.3
    )
    classes = int(rng.integers(2, 4))
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    return rng, rows, classifier(rows, y, max_cat_to_onehot=int(rng.choice([1, 10])))


def codes(rows):
    return np.stack([rows["size"], rows["colour"].cat.codes, rows["code"].cat.codes], axis=1).astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_trees_with_categories_give_what_the_model_gives(seed):
    rng, rows, model = drawn(seed)
    ensemble = adapt(model).trees()
    assert ensemble.categories == {1: tuple(WORDS), 2: (10, 20, 35)}
    assert any(tree.right_codes for tree in ensemble.trees)
    assert tree_probabilities(ensemble, codes(rows)) == pytest.approx(model.predict_proba(rows), abs=1e-6)
    odd = codes(rows)
    odd[:, 1:] = rng.choice([np.nan, -1, -0.5, 0.9, 1.2, 4, 5, 77], (len(odd), 2))
    assert tree_probabilities(ensemble, odd) == pytest.approx(model.predict_proba(odd), abs=1e-6)


def placed(points, space):
    """Where the rows of a frame are in the search."""
    levels = [list(space.columns.attributes[at].levels) for at in (1, 2)]
    words = [space.embeddings[at][[levels[at - 1].index(cell) for cell in points.iloc[:, at]]] for at in (1, 2)]
    return np.stack([(points["size"].to_numpy(float) - space.offset[0]) / space.factor[0], *words], axis=1)


def cheapest(model, rows, row, label, space):
    """The least J of all combinations of categories and of numbers next to splits."""
    splits = model.get_booster().trees_to_dataframe()
    at = splits.Split[splits.Feature == "size"].dropna().to_numpy(np.float32)
    near = np.concatenate([at, *(np.nextafter(at, np.float32(end)) for end in (-np.inf, np.inf))]).astype(float)
    near = near[(near >= rows["size"].min()) & (near <= rows["size"].max())]
    points = pd.DataFrame(itertools.product([*near, row["size"]], WORDS, sorted(NUMBERS)), columns=rows.columns)
    points = points.astype(rows.dtypes.to_dict())
    points = points[model.predict(points) != label]
    z, z0 = placed(points, space), placed(row.to_frame().T, space)
    return (0.1 * np.abs(z - z0) + (z - z0) ** 2).sum(axis=1).min(initial=np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_no_combination_of_categories_costs_less_than_a_proved_answer(seed):
    _, rows, model = drawn(seed)
    search = SearchConfig.close(certify="optimal")
    explainer = CounterfactualExplainer(model, features=Features(decimals=None), search=search).fit(rows)
    e = explainer.explain(rows[:4])
    assert (e.gap == 0).all()
    for i in range(4):
        best = cheapest(model, rows, rows.iloc[i], e.original_class[i], explainer.fitted_.space)
        assert e.lower_bound[i] <= best * (1 + 1e-9)
        assert e.objective[i] <= best * (1 + 2e-5)


def test_categories_are_known_by_name_whatever_their_order_in_a_frame():
    _, rows, model = drawn(0)
    other = rows.assign(colour=rows["colour"].cat.reorder_categories(sorted(WORDS)))
    found = []
    for train in (rows, other):
        search = SearchConfig.close(certify="optimal")
        explainer = CounterfactualExplainer(model, features=Features(decimals=None), search=search).fit(train)
        found.append(explainer.certificate(train[:5]))
    assert (found[0].lower_bound > 0).all()
    assert all(each.exact.all() for each in found)
    assert found[0].lower_bound == pytest.approx(found[1].lower_bound, rel=0.01)  # distances depend a little on order


@pytest.mark.parametrize("categorical", [[], [1, 2]])
def test_codes_in_an_array_are_split_by_category_too(categorical):
    _, rows, _ = drawn(1)
    x = codes(rows)
    y = (x[:, 0] > 0) ^ np.isin(x[:, 1], [0, 3])
    model = classifier(x, y, feature_types=["q", "c", "c"], max_cat_to_onehot=1)
    rules = Features(decimals=None, categorical=categorical, integer=[] if categorical else [1, 2])
    explainer = CounterfactualExplainer(model, features=rules, search=SearchConfig.close(certify="optimal")).fit(x)
    e = explainer.explain(x[:10])
    assert (e.gap == 0).all()
    assert not any("do not agree" in message for message in e.message)


def test_a_model_that_does_not_name_its_categories_is_refused():
    _, rows, _ = drawn(1)
    model = classifier(codes(rows), rows["colour"].isin(["red"]), feature_types=["q", "c", "c"])
    model.get_booster().feature_names = list(rows.columns)
    explainer = CounterfactualExplainer(model, search=SearchConfig.close(certify="optimal")).fit(rows)
    with pytest.raises(ConfigError, match=r"which category has which code; .*'colour'"):
        explainer.explain(rows[:1])


def test_letters_beyond_ascii_are_refused_because_xgboost_mixes_them_up():
    _, rows, _ = drawn(1)
    rows["colour"] = rows["colour"].cat.rename_categories({"red": "rød"})
    model = classifier(rows, rows["colour"] == "rød")
    assert adapt(model).trees() is None
    with pytest.raises(ConfigError, match=r"needs the trees of the model"):
        CounterfactualExplainer(model, search=SearchConfig(certify="bound")).fit(rows)
