"""Programs that once proved what is not so: each beside an answer that is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import OptimizeResult
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin import explainer as explainer_module
from cfproto_plugin.search.proofs import program
from cfproto_plugin.search.proofs.certify import certify

OPTIMAL = SearchConfig.close(certify="optimal")


def price(d):
    return (0.1 * np.abs(d) + d**2).sum(axis=-1)


def test_an_interval_whose_cheapest_value_breaks_an_inequality_stays_possible():
    x = np.random.default_rng(0).integers(0, 10, size=(300, 2)).astype(float)
    tree = DecisionTreeClassifier(max_depth=1).fit(x, x[:, 0] >= 5)
    rules = Features(integer=[0, 1], relations=("x0 != x1",), immutable=[1])
    tool = CounterfactualExplainer(tree, features=rules, search=OPTIMAL).fit(x)
    best = price(4 / x[:, :1].std(axis=0))  # from 2 to 6: 5 is the other column
    bound = tool.certificate(np.array([[2.0, 5.0]])).lower_bound[0]
    assert 0 < bound <= best
    assert tool.explain(np.array([[2.0, 5.0]])).objective[0] == pytest.approx(best)


@pytest.mark.parametrize("options", [{"learning_rate": 1.0}, {"learning_rate": 0.5, "init": "zero"}])
def test_a_tie_of_one_score_may_go_to_either_class(options):
    number = np.tile(np.arange(12), 4)
    y = np.where(number < 4, 0, np.where(number >= 8, 1, np.arange(48) // 12 % 2))
    x = number[:, None] + 0.123
    model = GradientBoostingClassifier(n_estimators=1, max_depth=2, random_state=0, **options).fit(x, y)
    assert 0 in model.decision_function(x)
    tool = CounterfactualExplainer(model, features=Features(decimals=None), search=OPTIMAL).fit(x)
    near = np.linspace(0, 12, 12001)[:, None]
    best = price((near[model.predict(near) == 1] - 0.123) / x.std(axis=0)).min()
    row = np.array([[0.123]])
    assert tool.certificate(row).lower_bound[0] <= best
    assert tool.explain(row).objective[0] <= best


def test_a_high_min_proba_does_not_make_a_possible_row_infeasible():
    rng = np.random.default_rng(163)
    rng.integers(1, 3), rng.integers(-3, 4, (80, 1)), rng.normal(size=80), rng.random()
    x = rng.integers(0, 4, (80, 1)).astype(float)
    y = (x[:, 0] % 2 + rng.normal(size=80) * 0.5 + x[:, 0] * 0.1 > 0.5).astype(int)
    forest = RandomForestClassifier(5, max_depth=2, random_state=163).fit(x, y)
    search = SearchConfig.close(certify="optimal", min_proba=0.65)
    tool = CounterfactualExplainer(forest, features=Features(decimals=None, categorical=[0]), search=search).fit(x)
    e = tool.explain(np.array([[1.0]]))
    assert e.found[0]
    assert tool.certificate(np.array([[1.0]])).lower_bound[0] <= e.objective[0]


def test_a_program_is_infeasible_only_if_it_is_so_without_presolve(monkeypatch):
    solver = scipy.optimize.milp

    def hasty(cost, *, options, **rest):
        if options.get("presolve", True):
            return OptimizeResult(status=2, x=None, mip_dual_bound=None)
        return solver(cost, options=options, **rest)

    x = np.random.default_rng(0).normal(size=(200, 3))
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
    tool = CounterfactualExplainer(forest, features=Features(decimals=None), search=OPTIMAL).fit(x)
    expected = tool.certificate(x[:4]).lower_bound
    monkeypatch.setattr(scipy.optimize, "milp", hasty)
    assert tool.certificate(x[:4]).lower_bound == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("decimals", [None, "auto"])
@pytest.mark.parametrize("far", [1e9, 1e200, 1e300, np.inf])
def test_ranges_without_end_change_no_bound(far, decimals):
    rng = np.random.default_rng(0)
    x = np.stack([rng.gamma(2, 400, 150).round(-1), rng.normal(3000, 900, 150).round(-1)], axis=1)
    y = x[:, 1] - 2 * x[:, 0] + rng.normal(size=150) * 400 > 1300
    forest = RandomForestClassifier(5, max_depth=5, random_state=0).fit(x, y)
    found = []
    for most in (x.max(), far):
        rules = Features(ranges={0: (0, most), 1: (-most, most)}, decimals=decimals)
        tool = CounterfactualExplainer(forest, features=rules, search=OPTIMAL).fit(x)
        found.append((tool.certificate(x[:5]).lower_bound, tool.explain(x[:5]).objective))
    assert (found[1][0] <= found[0][1] * (1 + 1e-6)).all()
    assert found[1][0] == pytest.approx(found[1][1], rel=1e-4)


@pytest.mark.parametrize("more", [{}, {"step": {0: 0.1}}, {"decimals": None}])
def test_ranges_without_end_have_bounds_under_relations(more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    model = XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1).fit(x, x[:, 1] + x[:, 0] > 0)
    rules = Features(ranges={0: (-np.inf, np.inf)}, relations=("x0 <= x1 + 1",), **more)
    tool = CounterfactualExplainer(model, features=rules, search=OPTIMAL).fit(x)
    e, bound = tool.explain(x[:5]), tool.certificate(x[:5]).lower_bound
    assert (bound > 0).all()
    assert (bound <= e.objective * (1 + 1e-9)).all()
    assert (e.gap == 0).sum() >= 4


@pytest.mark.parametrize("relation", ["x0 <= x1", "x0 <= x1 - 1", "x0 + x1 <= -0.5"])
def test_relations_of_a_missing_value_are_left_out_of_the_bound(relation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    x[::10, 0] = np.nan
    y = x[:, 1] + 0.2 * np.nan_to_num(x[:, 0]) > 0
    model = XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1).fit(x, y)
    tool = CounterfactualExplainer(model, features=Features(decimals=None, relations=(relation,)), search=OPTIMAL)
    tool.fit(x)
    row = np.array([[np.nan, -1.5]])
    ends = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    points = np.stack(np.meshgrid(*np.linspace(*ends, 401).T), axis=-1).reshape(-1, 2)
    kept = eval(relation, {}, {"x0": points[:, 0], "x1": points[:, 1]})  # noqa: S307 one of the three above
    points = points[kept & (model.predict(points) != model.predict(row))]
    space = tool.fitted_.space
    best = price((points - space.offset) / space.factor - np.nan_to_num((row - space.offset) / space.factor))
    e, found = tool.explain(row), tool.certificate(row)
    assert max(found.lower_bound[0], e.lower_bound[0]) <= best.min(initial=np.inf)
    assert "relations not counted" in found.message[0]


def contradicted(monkeypatch, method, wrong):
    """Bounds of a forest whose programs are made wrong once the answers of the search are known."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
    tool = CounterfactualExplainer(forest, features=Features(decimals=None), search=OPTIMAL).fit(x)
    assert (tool.explain(x[:4]).gap == 0).all()
    monkeypatch.setattr(program.Program, method, wrong(getattr(program.Program, method)))
    return tool.explain(x[:4])


def demanding(require):
    return lambda self, condition: require(self, condition._replace(least=condition.least + self.ensemble.divisor))


def refusing(_solve):
    return lambda *_args, **_more: program.Outcome(np.inf, None, solved=True, infeasible=True)


def forgetful(solve):
    def solved(self, *args, **more):
        for place in range(3):
            self.forbid(np.zeros(3, dtype=int), [place])
            self.forbid(np.array([len(each.value) - 1 for each in self.choices]), [place])
        return solve(self, *args, **more)

    return solved


@pytest.mark.parametrize(("method", "wrong"), [("require", demanding), ("solve", refusing), ("solve", forgetful)])
def test_a_program_without_the_answer_that_the_model_confirmed_proves_nothing(monkeypatch, method, wrong):
    e = contradicted(monkeypatch, method, wrong)
    assert e.found.all()
    refused = e.lower_bound == 0
    assert refused.any() if wrong is forgetful else refused.all()
    assert (e.gap[refused] == 1).all()
    assert all("the model do not agree" in message for message in e.message[refused])


def test_no_bound_is_above_the_cost_of_a_confirmed_answer(monkeypatch):
    def dear(solve):
        def solved(self, *args, **more):
            outcome = solve(self, *args, **more)
            return outcome._replace(bound=outcome.bound * 1.01)

        return solved

    e = contradicted(monkeypatch, "solve", dear)
    assert (e.lower_bound == 0).all()
    assert (e.gap == 1).all()


@pytest.mark.parametrize("target", [None, {1: (0.6, 1.0)}])
@pytest.mark.parametrize("more", [{}, {"max_changes": 2}, {"polish": False}])
def test_the_cost_of_an_answer_is_that_of_its_prototype_inside_the_rules(monkeypatch, target, more):
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(-4, 8, 120).astype(float), rng.normal(size=120), rng.normal(size=120)], axis=1)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(x, x[:, 0] / 3 + x[:, 1] + x[:, 2] > 0.5)
    seen = []

    def spy(judge, clock, solved, *rest):
        at = np.flatnonzero(solved.good)
        seen.append((solved.cost[at], judge.cost(solved.table[at], at, solved.goal[at])))
        return certify(judge, clock, solved, *rest)

    monkeypatch.setattr(explainer_module, "certify", spy)
    rules = Features(decimals=None, allowed={0: [-4, -2, 1, 4, 7]}, ranges={1: (-1, 1)})
    search = SearchConfig.close(certify="optimal", theta=0.5, **more)
    rows = x[forest.predict(x) == 0][:15]
    e = CounterfactualExplainer(forest, features=rules, search=search).fit(x).explain(rows, target=target)
    ((claimed, priced),) = seen
    assert len(claimed) > 10
    assert claimed == pytest.approx(priced)
    assert not any("do not agree" in message for message in e.message)
    assert (e.gap[e.found] == 0).mean() > 0.9


def _nearly_tied(seed, base, spread):
    """An XGBoost model whose margins lie within `spread` of 0, but where the row of zeros falls."""
    import json

    from xgboost import DMatrix, XGBClassifier

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 2))
    rng.normal(size=80)
    y = (x.sum(axis=1) > 0) & (rng.random(80) < 0.99)
    options = {"n_estimators": 3, "max_depth": 2, "min_child_weight": 0, "reg_lambda": 0, "n_jobs": 1}
    model = XGBClassifier(base_score=base, **options).fit(x, y.astype(int))
    saved = json.loads(bytes(model.get_booster().save_raw("json")))
    third = np.log(np.float32(1) / np.float32(base) - np.float32(1)) / 3
    trees = saved["learner"]["gradient_booster"]["model"]["trees"]
    for tree in trees:
        for node in np.flatnonzero(np.array(tree["left_children"]) == -1):
            tree["split_conditions"][node] = float(np.float32(third + rng.normal() * spread))
    at = int(model.get_booster().predict(DMatrix(np.zeros((1, 2))), pred_leaf=True)[0, 0])
    trees[0]["split_conditions"][at] = 8.0
    model.load_model(bytearray(json.dumps(saved).encode()))
    return model, x


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize(
    ("seed", "base", "spread"), [(0, 0.999999, 0.05), (1, 0.99999, 1e-3), (82, 0.999, 1e-5), (130, 0.999, 1e-5)]
)
def test_certificates_hold_where_the_margin_nearly_is_zero(seed, base, spread):
    model, x = _nearly_tied(seed, base, spread)
    rules = Features(decimals=None)
    explainer = CounterfactualExplainer(model, features=rules, search=SearchConfig.close()).fit(x)
    found = explainer.certificate(x[:3])
    splits = model.get_booster().trees_to_dataframe()
    for i in range(3):
        values = []
        for column in range(2):
            at = splits.Split[splits.Feature == f"f{column}"].to_numpy(np.float32)
            near = np.concatenate([at, np.nextafter(at, np.float32(-np.inf))]).astype(float)
            inside = near[(near >= x[:, column].min()) & (near <= x[:, column].max())]
            values.append(np.append(inside, x[i, column]))
        points = np.stack([part.ravel() for part in np.meshgrid(*values)], axis=1)
        d = (points[model.predict(points) != found.original_class[i]] - x[i]) / x.std(axis=0)
        best = (0.1 * np.abs(d) + d**2).sum(axis=1).min(initial=np.inf)
        assert found.lower_bound[i] <= best * (1 + 1e-9), (i, found.message[i])


def test_leaves_too_large_for_the_solver_prove_nothing_wrong():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    options = {"n_estimators": 4, "max_depth": 3, "learning_rate": 1.0, "min_child_weight": 0, "reg_lambda": 0}
    model = XGBClassifier(base_score=0.01, n_jobs=1, **options).fit(x, (x.sum(axis=1) + rng.normal(size=60) > 0) * 1)
    leaves = model.get_booster().trees_to_dataframe().query("Feature == 'Leaf'").Gain.abs()
    assert leaves.max() > 1e12
    explainer = CounterfactualExplainer(model, search=SearchConfig.close(certify="optimal")).fit(x)
    e, found = explainer.explain(x[:10]), explainer.certificate(x[:10])
    assert e.found.all()
    assert (found.lower_bound <= e.objective * (1 + 1e-9)).all()
    assert not any("do not agree" in message for message in e.message)
