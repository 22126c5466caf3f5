from __future__ import annotations

from itertools import product

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.refine.linear import nearest_step
from cfproto_plugin.search.refine.polish import best_pairs, best_together
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.splits import Splits

LADDER = Tuning().price_ladder


def cost(e, scale):
    delta = (e.counterfactual - e.original) / scale
    return 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)


@pytest.fixture(scope="module")
def rows(cancer):
    return cancer[0][:450], cancer[0][450:480]


def explained(model, rows, **settings):
    train, x = rows
    return CounterfactualExplainer(model, search=SearchConfig.close(**settings)).fit(train).explain(x)


def test_theta_is_the_knob_between_close_to_the_row_and_close_to_the_class(forest, rows):
    """The same objective is minimised whatever it is: what polishing gains is what it weighs."""
    scale = rows[0].std(axis=0)
    near = [explained(forest, rows, theta=theta) for theta in (0.0, 1.0, 20.0)]
    costs = np.array([cost(e, scale).mean() for e in near])
    assert (np.diff(costs) > 0).all()
    typical = [e.typicality.mean() for e in near]
    assert typical[0] < typical[1] < typical[2]
    for e in near:
        assert np.array_equal(forest.predict(e.counterfactual), e.counterfactual_class)


@pytest.mark.parametrize("theta", [0.0, 0.5, 5.0])
def test_polishing_lowers_the_objective_whatever_the_weight_of_the_prototype(forest, rows, theta):
    """It starts from fewer points of every path than are looked at without it, which may cost a row a little."""
    plain, polished = (explained(forest, rows, polish=polish, theta=theta) for polish in (False, True))
    assert (polished.objective <= 1.1 * plain.objective).all()
    assert polished.objective.mean() < plain.objective.mean()


def test_the_objective_is_distance_prototype_and_number_of_changes(forest, rows):
    e = explained(forest, rows, few_changes=0.3)
    np.testing.assert_allclose(e.objective, e.distance + 0.3 * e.n_changes)
    assert (explained(forest, rows, few_changes=0.3, theta=1.0).objective > e.objective).all()


def test_nothing_more_can_be_taken_back_after_full_polish(forest, rows):
    """No single changed cell can return to the row's own value."""
    e = explained(forest, rows, polish=True)
    for before, after, kind in zip(e.original, e.counterfactual, e.counterfactual_class, strict=True):
        columns = np.flatnonzero(before != after)
        tried = np.repeat(after[None], len(columns), axis=0)
        tried[np.arange(len(columns)), columns] = before[columns]
        proba = forest.predict_proba(tried)
        assert (proba[:, kind] <= 0.5 + 1e-12).all()


def test_moves_chosen_together_cannot_be_beaten_if_their_effects_add_up():
    """No other choice is cheaper with more margin. The first place is the current one, the second the original."""
    rng = np.random.default_rng(5)
    cost, effect = rng.random((3, 5, 3)), rng.normal(size=(3, 5, 3))
    effect[..., 0] = 0
    columns = np.arange(5)
    found = best_together(cost, effect, None, LADDER)
    assert sum(len(np.unique(chosen, axis=0)) for chosen in found) > 6
    for chosen, price, gain in zip(found, cost, effect, strict=True):
        every = [(price[columns, c].sum(), gain[columns, c].sum()) for c in product(range(3), repeat=5)]
        for choice in chosen:
            paid, gained = price[columns, choice].sum() - 1e-12, gain[columns, choice].sum() + 1e-12
            assert not any(less < paid and margin > gained for less, margin in every)


def test_moves_chosen_together_keep_to_the_number_of_changes():
    rng = np.random.default_rng(6)
    chosen = best_together(rng.random((3, 5, 4)), rng.normal(size=(3, 5, 4)), 2, LADDER)
    assert ((chosen != 1).sum(axis=2) <= 2).all()
    assert ((chosen != 1).sum(axis=2) == 2).any()


def test_a_price_on_changes_makes_them_fewer(forest, rows):
    scale = rows[0].std(axis=0)
    free, dear = (explained(forest, rows, few_changes=price) for price in (0.0, 2.0))
    counts = [(e.counterfactual != e.original).sum(axis=1) for e in (free, dear)]
    assert counts[1].mean() < 0.7 * counts[0].mean()
    costs = [cost(e, scale) + 2 * count for e, count in zip((free, dear), counts, strict=True)]
    assert costs[1].mean() < costs[0].mean()
    assert np.array_equal(forest.predict(dear.counterfactual), dear.counterfactual_class)
    assert cost(free, scale).mean() < cost(dear, scale).mean()


def test_the_one_column_that_matters_is_found_though_others_lie_farther_from_the_prototype():
    """Class 1 iff the last column exceeds 0.5, while the prototypes differ far more in the others."""

    def model(x):
        p = 1 / (1 + np.exp(-20 * (x[:, 3] - 0.5)))
        return np.stack([1 - p, p], axis=1)

    train = np.array([[0.0, 0.0, 0.0, 0.0], [5.0, -4.0, 6.0, 1.0], [4.0, -5.0, 7.0, 0.9]])
    explainer = CounterfactualExplainer(model, features=Features(scale=None), search=SearchConfig(max_changes=1)).fit(
        train
    )
    e = explainer.explain(train[:1])
    assert e.status.tolist() == ["found"]
    assert [change.feature for change in e.changes()] == ["x3"]
    assert e.message[0].startswith("class 1 reached on the way to an example of it with 1 change")


def test_split_values_of_a_tree_are_used_themselves(rows, cancer):
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows[0], cancer[1][:450])
    train, x = rows
    close = SearchConfig.close()
    e = CounterfactualExplainer(tree, features=Features(decimals=None), search=close).fit(train).explain(x)
    splits = tree.tree_.threshold[tree.tree_.feature >= 0]
    for change in e.changes():
        assert np.isclose(splits, change.after, rtol=1e-6).any(), change


def test_values_across_splits_lie_beyond_them_and_not_beyond_the_present_value():
    splits = Splits([np.array([]), np.array([0.7, 9.0]), np.array([1.0, 2.0, 3.0, 4.0])])
    own, here = np.zeros((3, 3)), np.ones((3, 3))
    own[:, 2], here[:, 2] = [0.5, 3.5, 1.2], [3.5, 1.5, 1.4]
    up, down, none = splits.across(own, here, 5)[:, 2]
    assert np.unique(up) == pytest.approx([1, 2, 3, 3.5])
    assert (np.unique(up)[:3] > [1, 2, 3]).all()
    assert np.unique(down) == pytest.approx([1.5, 2, 3])
    assert (np.unique(down)[1:] < [2, 3]).all()
    assert set(none) == {1.4}
    empty, one, missing = splits.across(np.array([0.0, 0.0, np.nan]), np.array([1.0, 1.0, 2.5]), 3)
    assert empty.tolist() == [1.0, 1.0, 1.0]
    assert np.unique(one) == pytest.approx([0.7, 1.0])
    assert missing.tolist() == [2.5, 2.5, 2.5]
    assert Splits([np.array([])]).across(np.array([0.0]), np.array([1.0]), 2).tolist() == [[1.0, 1.0]]


def test_the_values_that_polishing_tries_come_from_one_search_of_the_splits():
    splits = Splits([np.array([]), np.array([0.7, 9.0]), np.array([1.0, 2.0, 3.0, 4.0])])
    original = np.array([[0.0, 0.0, 1.5], [0.0, np.nan, 2.5]])
    current, beyond = np.array([[1.0, 1.0, 3.5], [0.0, 1.0, 0.5]]), np.array([[2.0, 10.0, 3.5], [0.0, 1.0, 0.0]])
    found, apart = splits.places(original, current, beyond, 4, 2, 1)
    assert apart.tolist() == [[False, True, True], [False, True, True]]
    assert found.shape == (2, 3, 4 + 2 + 2)
    assert found[..., :4].tolist() == splits.across(original, current, 4).tolist()
    assert found[..., 4:6].tolist() == splits.across(current, beyond, 4)[..., ::2].tolist()
    alone, same = splits.place(original, current, 4, 1)
    assert alone.tolist() == found[..., 1:2].tolist()
    assert same.tolist() == apart.tolist()
    assert found[0, 2, 6] == pytest.approx(1.0)
    assert found[0, 2, 6] < 1.0
    assert found[0, 2, 7] == current[0, 2]  # beyond the split above the original lies one of the first four values
    assert found[0, 0, 6:].tolist() == [1.0, 1.0]
    nothing, apart = Splits([np.array([])]).places(np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]]), 2, 2, 1)
    assert nothing.tolist() == [[[2.0, 2.0, 3.0, 2.0, 2.0]]]
    assert not apart.any()


def test_a_split_lies_between_two_values_as_the_model_compares_them():
    splits = Splits([np.array([]), np.array([0.7, 9.0])], equal_left=True, dtype="float64")
    start, end = np.array([[0.0, 0.7], [0.0, 0.6], [np.nan, 0.8]]), np.array([[5.0, 0.8], [0.0, 0.7], [1.0, 8.9]])
    assert splits.are_exact
    assert splits.places(start, end, end, 1, 1, 1)[1].tolist() == [[False, True], [False, False], [True, False]]
    assert not Splits([np.array([0.7])]).are_exact


def test_moves_back_that_cross_no_split_are_not_predicted_and_the_answers_are_the_same(rows, cancer, monkeypatch):
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows[0], cancer[1][:450])
    explainer = CounterfactualExplainer(forest, search=SearchConfig.close()).fit(rows[0])
    sparing = explainer.explain(rows[1])
    monkeypatch.setattr(Splits, "are_exact", False)
    whole = explainer.explain(rows[1])
    assert sparing.counterfactual.tolist() == whole.counterfactual.tolist()
    assert sparing.meta["n_predicted_rows"] < 0.9 * whole.meta["n_predicted_rows"]


def test_moves_of_categories_are_measured_though_they_have_no_thresholds(monkeypatch):
    """The class depends on the category alone, which has no split value."""
    pd, xgboost = pytest.importorskip("pandas"), pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": pd.Categorical(rng.choice(list("uvw"), 300))})
    label = (frame["b"] == "w").to_numpy().astype(int)
    model = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, tree_method="hist").fit(frame, label)
    e = CounterfactualExplainer(model).fit(frame).explain(frame[:5])
    assert e.found.all()
    assert {change.feature for change in e.changes()} == {"b"}


@pytest.fixture
def measured(monkeypatch):
    """How many moves every round measures. The effect of others counts as none: were one cheaper, all would take it."""
    from cfproto_plugin.search.refine import polish

    moves_of, counts = polish.moves_of, []

    def checked(*arguments):
        moves = moves_of(*arguments)
        assert ((moves.cost[:, :, :1] - moves.cost)[~moves.fresh] <= 1e-12).all()
        counts.append(moves.fresh.sum())
        return moves

    monkeypatch.setattr(polish, "moves_of", checked)
    return counts


@pytest.mark.parametrize(
    "rules",
    [Features(), Features(integer=range(30)), Features(step={3: 10.0, 21: 2.0}), Features(ranges={0: (12, 14)})],
    ids=["none", "integer", "step", "ranges"],
)
def test_a_move_that_is_not_measured_never_looks_cheaper(forest, rows, rules, measured):
    train, x = np.rint(rows[0]), np.rint(rows[1])
    CounterfactualExplainer(forest, features=rules).fit(train).explain(x)
    assert sum(measured) > 1000


def test_a_category_that_is_not_measured_never_looks_cheaper(measured):
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(4)
    x = np.column_stack([rng.integers(0, 4, (400, 3)), rng.normal(size=(400, 2))])
    model = RandomForestClassifier(30, random_state=0).fit(x, x[:, 0] * x[:, 1] + 2 * x[:, 3] > 3)
    CounterfactualExplainer(model, features=Features(categorical=(0, 1, 2))).fit(x).explain(x[:60])
    assert sum(measured) > 100


def test_prototype_class_is_that_of_the_point_that_was_polished():
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_wine(return_X_y=True)
    model = RandomForestClassifier(30, random_state=0).fit(x, y)
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).explain(x)
    assert (e.prototype_class != e.original_class).all()
    assert all("then improved" in message for message in e.message)
    e = CounterfactualExplainer(model).fit(x).explain(x[y != 2], target=2)
    assert set(e.prototype_class) == set(e.counterfactual_class) == {2}


def test_rules_survive_polishing(forest, rows):
    rules = Features(immutable=(0,), increasing=(1,), ranges={4: (0.09, 0.11)}, integer=(21,), step={3: 10.0})
    e = CounterfactualExplainer(forest, features=rules).fit(rows[0]).explain(rows[1])
    ok = np.isin(e.status, ["found", "fallback"])
    x, cf = rows[1][ok], e.counterfactual[ok]
    assert ok.sum() > 20
    assert np.array_equal(cf[:, 0], x[:, 0])
    assert (cf[:, 1] >= x[:, 1]).all()
    assert ((cf[:, 4] >= 0.09) & (cf[:, 4] <= 0.11)).all()
    changed = cf[:, 21] != x[:, 21]
    assert np.array_equal(cf[changed, 21], np.rint(cf[changed, 21]))
    stepped = cf[:, 3] != x[:, 3]
    assert np.allclose(cf[stepped, 3] % 10, 0)


def test_networks_end_nearer_than_loss_a_with_every_row_found(golden):
    """Loss A with 14 values of c and 1,500 steps ends at 14.2 over all rows, at 3.55 on those of the reference."""
    model = networks.in_torch(golden.layers)
    search = SearchConfig.close(beta=0.01)
    e = CounterfactualExplainer(model, features=golden.features, search=search).fit(golden.x_train).explain(golden.x)
    assert set(e.status) == {"found"}
    delta = e.counterfactual - golden.x
    reached = 0.01 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)
    assert reached.mean() < 11.6
    assert reached[~np.isnan(golden.arrays["cf_A"][:, 0])].mean() < 3.55
    assert np.array_equal(networks.forward(golden.layers, e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_images_and_encoders_are_not_polished_by_default(digits):
    images = digits.x.reshape(-1, 8, 8)

    def model(x):
        return networks.forward(digits.classifier, x.reshape(len(x), -1))

    e = CounterfactualExplainer(model).fit(images).explain(images[:2])
    assert e.meta["n_polish_calls"] == 0


def test_nearest_step_minimises_its_objective_under_the_constraint():
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    gradient, beta = rng.normal(size=(1, 4)), 0.3
    lower, upper = np.full((1, 4), -0.4), np.full((1, 4), 0.5)
    least = np.array([0.6])
    found = nearest_step(gradient, least, lower, upper, beta)[0]

    def objective(parts):
        return beta * parts.sum() + np.square(parts[:4] - parts[4:]).sum()

    constraint = {"type": "ineq", "fun": lambda parts: gradient[0] @ (parts[:4] - parts[4:]) - least[0]}
    bounds = [(0, 0.5)] * 4 + [(0, 0.4)] * 4
    best = minimize(objective, np.full(8, 0.1), bounds=bounds, constraints=[constraint], tol=1e-12)
    assert np.allclose(found, best.x[:4] - best.x[4:], atol=1e-4)


def test_missing_numbers_beside_allowed_categories_are_polished_without_a_warning():
    """pytest makes warnings errors: a missing value must not be read as the code of a category."""
    rng = np.random.default_rng(0)
    train = np.column_stack([rng.normal(size=120), rng.integers(0, 3, 120), rng.normal(size=120)])
    train[::5, 0] = np.nan

    def model(x):
        p = (np.nan_to_num(x[:, 0]) + x[:, 1] + x[:, 2] > 1.2).astype(float)
        return np.stack([1 - p, p], axis=1)

    rules = Features(categorical=(1,), allowed={1: (0.0, 2.0)})
    e = CounterfactualExplainer(model, features=rules).fit(train).explain(train[:30])
    ok = np.isin(e.status, ["found", "fallback"])
    assert ok.sum() > 20
    assert np.isin(e.counterfactual[ok, 1], (0, 2)).all()
    assert np.array_equal(model(e.counterfactual[ok]).argmax(axis=1), e.counterfactual_class[ok].astype(int))


def placed(*columns):
    """(1, A, V) costs or effects; columns with fewer places repeat the current one."""
    width = max(map(len, columns))
    return np.array([[[*column, *[column[0]] * (width - len(column))] for column in columns]])


def test_a_large_change_goes_back_for_a_small_one_elsewhere_if_the_pair_keeps_the_class():
    costs = placed([3.0, 0.0], [0.0, 0.0, 1.0, 2.5], [0.0, 0.0, 0.5])
    effects = placed([0.0, -1.0], [0.0, 0.0, 0.9, 2.0], [0.0, 0.0, 0.3])
    assert best_pairs(costs, effects, np.array([0.2]), (0.0,)).tolist() == [[[1, 2, 0]]]
    nearly = best_pairs(costs, effects, np.array([0.05]), (0.0, 0.1))[0].tolist()
    assert nearly == [[1, 3, 0], [1, 2, 0]], "the slack tries what falls short by a little"


def test_a_point_without_a_margin_gets_the_cheapest_pair_that_leads_to_one():
    costs = placed([0.0, 0.0, 1.0], [0.0, 0.0, 1.2], [0.0, 0.0, 0.1])
    effects = placed([0.0, 0.0, 0.3], [0.0, 0.0, 0.4], [0.0, 0.0, 0.1])
    assert best_pairs(costs, effects, np.array([-0.45]), (0.0,)).tolist() == [[[0, 2, 2]]]
    assert best_pairs(costs, effects, np.array([-0.9]), (0.0,)).tolist() == [[[0, 0, 0]]]


def test_no_pair_is_made_of_two_places_of_one_column():
    costs, effects = placed([3.0, 0.0, 1.0]), placed([0.0, -1.0, 0.9])
    assert best_pairs(costs, effects, np.array([0.2]), (0.0,)).tolist() == [[[0]]]
