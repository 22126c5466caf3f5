from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, ModelError, NotFittedError


def cost(e, scale=1.0, beta=0.1):
    delta = (e.counterfactual - e.original) / scale
    return beta * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)


@pytest.fixture(scope="module")
def explainer(forest, cancer):
    return CounterfactualExplainer(forest).fit(cancer[0][:450])


@pytest.fixture(scope="module")
def held_back(cancer):
    return cancer[0][450:480]


def test_what_is_returned_has_the_class_it_claims(explainer, forest, held_back):
    e = explainer.explain(held_back)
    assert set(e.status) == {"found"}
    assert np.array_equal(forest.predict(e.counterfactual), e.counterfactual_class)
    assert np.array_equal(forest.predict(held_back), e.original_class)
    assert (e.counterfactual_class != e.original_class).all()
    assert np.allclose(forest.predict_proba(e.counterfactual), e.counterfactual_proba)
    low, high = explainer.fitted_.guide.train.min(axis=0), explainer.fitted_.guide.train.max(axis=0)
    assert (e.counterfactual >= np.minimum(low, held_back)).all()
    assert (e.counterfactual <= np.maximum(high, held_back)).all()


def test_cells_that_did_not_change_are_exactly_the_rows_own(explainer, held_back):
    e = explainer.explain(held_back)
    same = np.isclose(e.counterfactual, held_back, rtol=1e-12)
    assert same.any()
    assert np.array_equal(e.counterfactual[same], held_back[same])


def test_batch_of_a_tree_model_is_identical_to_its_rows_one_by_one(explainer, held_back):
    together = explainer.explain(held_back)
    for i, row in enumerate(held_back):
        alone = explainer.explain(row)
        assert np.array_equal(alone.counterfactual[0], together.counterfactual[i])
        assert alone.status[0] == together.status[i]
        assert alone.counterfactual_class[0] == together.counterfactual_class[i]


@pytest.mark.parametrize("search", [SearchConfig(), pytest.param(SearchConfig(c_init=1.0), marks=pytest.mark.slow)])
def test_batch_of_a_network_agrees_with_its_rows_one_by_one(golden, search):
    model = networks.in_torch(golden.layers)
    explainer = CounterfactualExplainer(model, search=search).fit(golden.x_train)
    together = explainer.explain(golden.x[:4])
    alone = [explainer.explain(row) for row in golden.x[:4]]
    assert [e.status[0] for e in alone] == together.status.tolist()
    assert [e.counterfactual_class[0] for e in alone] == together.counterfactual_class.tolist()
    scale = golden.x_train.std(axis=0)
    assert np.allclose([cost(e, scale)[0] for e in alone], cost(together, scale), rtol=1e-3)


def test_explain_changes_nothing_on_the_explainer(explainer, held_back):
    before = pickle.dumps(explainer)
    explainer.explain(held_back[:5], target=[0, 1])
    explainer.explain(held_back[:5], time_budget=1e-9)
    assert pickle.dumps(explainer) == before


def test_explainer_survives_pickling(explainer, held_back):
    copy = pickle.loads(pickle.dumps(explainer))  # noqa: S301
    assert np.array_equal(copy.explain(held_back).counterfactual, explainer.explain(held_back).counterfactual)


@pytest.mark.parametrize("kind", ["forest", pytest.param("torch", marks=pytest.mark.needs("torch"))])
def test_four_threads_at_once_get_the_right_answers(kind, forest, cancer, golden):
    if kind == "forest":
        model, train, x, search = forest, cancer[0][:450], cancer[0][450:482], SearchConfig()
    else:
        import torch

        network = networks.in_torch(golden.layers)
        model = torch.nn.Sequential(*list(network)[:2], torch.nn.Dropout(0.5), *list(network)[2:]).train()
        train, x = golden.x_train, golden.x[:8]
        search = SearchConfig(method="fista", c_init=1.0, c_steps=2, max_iterations=100, theta=20)
    explainer = CounterfactualExplainer(model, search=search).fit(train)
    parts = np.array_split(x, 4)
    expected = [explainer.explain(part) for part in parts]
    start = threading.Barrier(4)

    def work(part):
        start.wait()
        return explainer.explain(part)

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(work, parts))
    for mine, theirs in zip(got, expected, strict=True):
        assert mine.status.tolist() == theirs.status.tolist()
        assert np.allclose(mine.counterfactual, theirs.counterfactual, equal_nan=True, atol=1e-6)
        assert mine.meta["n_predict_calls"] == theirs.meta["n_predict_calls"]
    if kind == "torch":
        assert model.training
        assert all(module.training for module in model.modules())


def test_target_is_reached_and_rows_already_there_come_back_unchanged(explainer, forest, held_back):
    e = explainer.explain(held_back, target=1)
    assert (forest.predict(e.counterfactual) == 1).all()
    there = e.original_class == 1
    assert there.any()
    assert not there.all()
    assert np.array_equal(e.counterfactual[there], held_back[there])
    assert all("already in the target" in message for message in e.message[there])
    assert set(e.status) == {"found"}


def test_every_row_may_have_a_target_of_its_own():
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_wine(return_X_y=True)
    model = RandomForestClassifier(30, random_state=0).fit(x, np.array(["red", "rose", "white"])[y])
    explainer = CounterfactualExplainer(model).fit(x)
    target = np.array(["rose", "white", "rose", "white"])
    e = explainer.explain(x[:4], target=target)
    assert np.array_equal(e.counterfactual_class, target)
    assert np.array_equal(model.predict(e.counterfactual), target)


def test_n_gives_different_counterfactuals_of_every_row_and_the_first_is_that_of_one(explainer, forest, held_back):
    x = held_back[:5]
    e = explainer.explain(x, n=3)
    assert len(e) == 15
    assert e.row.tolist() == np.repeat(np.arange(5), 3).tolist()
    assert np.array_equal(e.original, np.repeat(x, 3, axis=0))
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(forest.predict(e.counterfactual), e.counterfactual_class)
    for row in e.counterfactual.reshape(5, 3, -1):
        assert len(np.unique(row, axis=0)) == 3
    assert np.array_equal(explainer.explain(x).counterfactual, e.counterfactual[::3])


def test_n_beyond_what_there_is_says_so():
    def model(x):
        p = (x[:, 0] > 0).astype(float)
        return np.stack([1 - p, p], axis=1)

    train = np.array([[-1.0], [1.0], [1.0]])
    e = CounterfactualExplainer(model, features=Features(integer=(0,))).fit(train).explain([[-1.0]], n=3)
    assert e.status.tolist() == ["found", "not_found", "not_found"]
    assert "differs from the others" in e.message[1]


def test_n_of_a_row_already_in_the_target_is_the_row_itself_once(explainer, held_back):
    own = explainer.explain(held_back[:1]).original_class[0]
    e = explainer.explain(held_back[:1], target=own, n=2)
    assert e.status.tolist() == ["found", "not_found"]


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_n_must_be_a_whole_number(explainer, held_back, n):
    with pytest.raises(InputError, match="n is"):
        explainer.explain(held_back, n=n)


def test_rules_may_be_other_ones_for_one_call(explainer, held_back):
    free = explainer.explain(held_back)
    bound = explainer.explain(held_back, features=Features(immutable=(0, 1, 2)))
    assert (free.counterfactual[:, :3] != held_back[:, :3]).any()
    ok = np.isin(bound.status, ["found", "fallback"])
    assert np.array_equal(bound.counterfactual[ok, :3], held_back[ok, :3])
    assert np.array_equal(explainer.explain(held_back).counterfactual, free.counterfactual)
    with pytest.raises(ConfigError, match="settled by fit"):
        explainer.explain(held_back, features=Features(categorical=(1,)))


def test_max_changes_is_kept(forest, cancer, held_back):
    e = CounterfactualExplainer(forest, search=SearchConfig(max_changes=4)).fit(cancer[0][:450]).explain(held_back)
    ok = np.isin(e.status, ["found", "fallback"])
    assert ok.sum() > len(held_back) / 3
    assert ((e.counterfactual != held_back)[ok].sum(axis=1) <= 4).all()
    assert np.array_equal(forest.predict(e.counterfactual[ok]), e.counterfactual_class[ok].astype(int))


def test_min_proba_is_met_or_said_not_to_be(forest, cancer, held_back):
    search = SearchConfig(min_proba=0.9)
    e = CounterfactualExplainer(forest, search=search).fit(cancer[0][:450]).explain(held_back)
    found = np.isin(e.status, ["found", "fallback"])
    assert found.sum() >= len(held_back) - 2
    new = forest.predict_proba(e.counterfactual[found]).max(axis=1)
    assert (new >= 0.9).all()
    assert all("0.9" in message for message in e.message[~found])


def test_row_in_the_target_below_min_proba_is_still_searched(forest, cancer):
    train = cancer[0][:450]
    proba = forest.predict_proba(cancer[0])
    unsure = np.flatnonzero((proba[:, 1] > 0.5) & (proba[:, 1] < 0.8))[:2]
    search = SearchConfig(min_proba=0.95)
    e = CounterfactualExplainer(forest, search=search).fit(train).explain(cancer[0][unsure], target=1)
    assert (forest.predict_proba(e.counterfactual)[:, 1] >= 0.95).all()


def test_kappa_demands_a_lead(forest, cancer, held_back):
    e = CounterfactualExplainer(forest, search=SearchConfig(kappa=0.3)).fit(cancer[0][:450]).explain(held_back)
    proba = forest.predict_proba(e.counterfactual)
    assert (np.abs(proba[:, 0] - proba[:, 1]) > 0.3).all()


def test_rules_hold_on_every_counterfactual(forest, cancer, held_back):
    rules = Features(
        immutable=(0, 3), increasing=(1,), decreasing=(2,), ranges={4: (0.09, 0.11), 20: (5.0, 40.0)}, integer=(21,)
    )
    explainer = CounterfactualExplainer(forest, features=rules).fit(cancer[0][:450])
    e = explainer.explain(held_back)
    ok = np.isin(e.status, ["found", "fallback"])
    assert ok.sum() > len(held_back) / 2
    x, cf = held_back[ok], e.counterfactual[ok]
    assert np.array_equal(cf[:, [0, 3]], x[:, [0, 3]])
    assert (cf[:, 1] >= x[:, 1]).all()
    assert (cf[:, 2] <= x[:, 2]).all()
    assert ((cf[:, 4] >= 0.09) & (cf[:, 4] <= 0.11)).all()
    changed = cf[:, 21] != x[:, 21]
    assert np.array_equal(cf[changed, 21], np.rint(cf[changed, 21]))
    assert np.array_equal(forest.predict(cf), e.counterfactual_class[ok].astype(int))


def test_rules_that_leave_nothing_to_change_are_infeasible_and_named(forest, cancer, held_back):
    everything = CounterfactualExplainer(forest, features=Features(immutable=range(30))).fit(cancer[0][:450])
    e = everything.explain(held_back[:3])
    assert set(e.status) == {"infeasible"}
    assert "every column is fixed" in e.message[0]
    assert np.isnan(e.counterfactual).all()
    assert e.counterfactual_class.tolist() == [None] * 3
    crossed = Features(immutable=(0,), ranges={0: (0.0, 1.0)})
    e = CounterfactualExplainer(forest, features=crossed).fit(cancer[0][:450]).explain(held_back[:1])
    assert e.status[0] == "infeasible"
    assert "column 0" in e.message[0]


def test_one_row_without_a_counterfactual_does_not_take_the_others_along(forest, cancer, held_back):
    ranges = {i: (float(held_back[0, i]), float(held_back[0, i])) for i in range(29)}
    explainer = CounterfactualExplainer(forest, features=Features(ranges=ranges)).fit(cancer[0][:450])
    e = explainer.explain(held_back[:6])
    assert e.status[0] == "not_found"
    assert e.message[0]
    assert np.isnan(e.counterfactual[0]).all()
    assert (e.status[1:] == "found").any()


def test_fallback_leads_to_a_training_row_where_the_search_has_none(golden):
    """Four steps of loss A reach nothing; the fallback is on the way to a training row, as far back as it can be."""
    model = networks.in_torch(golden.layers)
    search = SearchConfig(method="fista", c_init=1e-3, c_steps=1, max_iterations=4, theta=0)
    e = CounterfactualExplainer(model, search=search).fit(golden.x_train).explain(golden.x[:4])
    assert set(e.status) == {"fallback"}
    train_class = networks.forward(golden.layers, golden.x_train).argmax(axis=1)
    for i, row in enumerate(e.counterfactual):
        others = golden.x_train[train_class == e.counterfactual_class[i]]
        assert np.linalg.norm(row - golden.x[i]) < np.linalg.norm(others - golden.x[i], axis=1).min()
    assert np.array_equal(networks.forward(golden.layers, e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_time_budget_returns_what_was_found_so_far(golden):
    model = networks.in_torch(golden.layers)
    search = SearchConfig.paper("A", max_iterations=100_000)
    e = CounterfactualExplainer(model, search=search).fit(golden.x_train).explain(golden.x[:2], time_budget=0.3)
    assert any("time budget" in message for message in e.message) or set(e.status) == {"found"}


@pytest.mark.parametrize("search", [SearchConfig(), SearchConfig(method="fista", theta=20.0, max_iterations=40)])
def test_progress_reaches_one_and_never_falls(forest, cancer, held_back, search):
    seen = []
    explainer = CounterfactualExplainer(forest, search=search).fit(cancer[0][:450])
    e = explainer.explain(held_back, progress=seen.append)
    assert seen[-1] == pytest.approx(1)
    assert seen == sorted(seen)
    assert {done.rows for done in seen} == {len(held_back)}
    assert [done.done for done in seen] == sorted(done.done for done in seen)
    assert seen[-1].done == len(held_back)
    assert seen[-1].found == e.found.sum() > 0


def test_progress_counts_rows_that_need_no_search_from_the_start(explainer, held_back, forest):
    seen, label = [], forest.predict(held_back[:1])[0]
    e = explainer.explain(held_back[:6], target=label, progress=seen.append)
    there = int((e.n_changes == 0).sum())
    assert 0 < there < 6
    assert all(done.found >= there and done.done >= there for done in seen)
    assert (seen[-1].done, seen[-1].found) == (6, e.found.sum())


def test_progress_bar_goes_to_the_terminal_only_when_asked(explainer, held_back, capsys):
    explainer.explain(held_back[:2])
    assert capsys.readouterr().err == ""
    explainer.explain(held_back[:2], progress=True)
    assert "explaining" in capsys.readouterr().err


def test_one_row_may_come_without_its_batch_dimension(explainer, held_back):
    e = explainer(held_back[0])
    assert e.counterfactual.shape == (1, 30)
    assert np.array_equal(e.counterfactual, explainer.explain(held_back[:1]).counterfactual)


def test_float32_stays_float32(explainer, held_back):
    assert explainer.explain(held_back[:2].astype(np.float32)).counterfactual.dtype == np.float32


def test_numeric_frame_comes_back_with_its_columns_dtypes_and_index(cancer):
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    frame = pd.DataFrame(cancer[0][:, :5], columns=list("abcde"))
    frame["count"] = np.arange(len(frame)) % 7
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(frame, cancer[1])
    explainer = CounterfactualExplainer(model).fit(frame)
    x = frame.iloc[10:15].set_axis([f"row{i}" for i in range(5)])
    e = explainer.explain(x[["count", "b", "a", "c", "d", "e"]])
    assert list(e.counterfactual.columns) == ["count", "b", "a", "c", "d", "e"]
    assert e.counterfactual.dtypes.to_dict() == e.original.dtypes.to_dict()
    assert e.counterfactual["count"].dtype.kind == "i"
    assert list(e.counterfactual.index) == list(x.index)
    assert np.array_equal(model.predict(e.counterfactual[list(frame.columns)]), e.counterfactual_class)
    assert e.feature_names == tuple(e.counterfactual.columns)
    series = explainer.explain(x.iloc[0])
    assert (
        series.counterfactual.to_numpy()[0].tolist() == e[0].counterfactual[list(frame.columns)].to_numpy()[0].tolist()
    )


def test_images_keep_their_shape(digits):
    images = digits.x.reshape(-1, 8, 8)

    def model(x):
        return networks.forward(digits.classifier, x.reshape(len(x), -1))

    explainer = CounterfactualExplainer(model).fit(images)
    e = explainer.explain(images[:3])
    assert e.counterfactual.shape == (3, 8, 8)
    assert explainer.fitted_.space.is_identity
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_missing_values_the_model_accepts_stay_or_change_like_any_other(cancer):
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, y = cancer[0].copy(), cancer[1]
    x[::7, 3] = np.nan
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(x, y)
    e = CounterfactualExplainer(model).fit(x[:450]).explain(x[450:480])
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    assert not np.isnan(e.counterfactual[:, [0, 1, 2, 4]]).any()


class Nan:
    """Raises on missing values."""

    def __call__(self, x):
        if np.isnan(x).any():
            raise ValueError("NaN")
        p = (x[:, 0] > 0).astype(float)
        return np.stack([1 - p, p], axis=1)


TRAIN = np.array([[-1.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
BAD_CALLS = [
    ([[1.0, 2.0, 3.0]], "expected 2 columns"),
    (np.zeros((2, 2, 2)), "expected 2 columns"),
    (np.zeros((0, 2)), "no rows"),
]


@pytest.mark.parametrize(("x", "message"), BAD_CALLS)
def test_calls_that_cannot_be_answered_are_refused_before_any_work(x, message):
    explainer = CounterfactualExplainer(Nan()).fit(TRAIN)
    with pytest.raises(InputError, match=message):
        explainer.explain(x)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (np.zeros((0, 2)), "training data is empty"),
        (np.ones((4, 2)), "predicts class 1 for every row"),
        (np.ones(3), "expected rows"),
        ([[np.nan, 0.0], [1.0, 1.0]], "row 0 of the training data is NaN in column 0"),
        ([[np.inf, 0.0], [1.0, 1.0]], "holds inf"),
    ],
)
def test_training_data_that_cannot_be_used_is_refused(train, message):
    with pytest.raises(InputError, match=message):
        CounterfactualExplainer(Nan()).fit(train)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x: np.zeros(len(x)), r"shape \(3,\)"),
        (lambda x: np.zeros((len(x), 1)), r"shape \(3, 1\)"),
        (lambda x: np.zeros((len(x) + 1, 2)), "4"),
        (lambda x: np.full((len(x), 2), np.nan), "nan"),
    ],
)
def test_model_that_returns_the_wrong_thing_is_named(output, message):
    with pytest.raises(ModelError, match=message):
        CounterfactualExplainer(output).fit(TRAIN)


def test_explaining_before_fit_is_an_error():
    with pytest.raises(NotFittedError, match="fit"):
        CounterfactualExplainer(Nan()).explain(TRAIN)


def test_unfitted_scikit_learn_model_is_an_error():
    from sklearn.ensemble import RandomForestClassifier

    with pytest.raises(NotFittedError):
        CounterfactualExplainer(RandomForestClassifier()).fit(TRAIN)


def test_unknown_target_is_refused(explainer, held_back):
    with pytest.raises(InputError, match="target 7 is not a class"):
        explainer.explain(held_back, target=7)


@pytest.mark.parametrize("budget", [0, -1])
def test_time_budget_must_be_positive(explainer, held_back, budget):
    with pytest.raises(InputError, match="time_budget"):
        explainer.explain(held_back, time_budget=budget)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.0}, "no autoencoder"),
        ({"method": "path", "c_init": 1.0}, "method='path'"),
        ({"method": "fista", "c_init": 0, "theta": 0}, "both 0"),
    ],
)
def test_settings_that_contradict_the_models_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(Nan(), search=SearchConfig(**settings)).fit(TRAIN)


def test_rule_about_a_column_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="immutable names column 'age'"):
        CounterfactualExplainer(Nan(), features=Features(immutable=("age",))).fit(TRAIN)


def test_meta_says_how_the_result_was_made(explainer, held_back):
    meta = explainer.explain(held_back[:2]).meta
    assert meta["adapter"] == "sklearn"
    assert meta["method"] == "path"
    assert meta["seed"] == 0
    assert {"cfproto-plugin", "python", "numpy", "sklearn"} <= set(meta["versions"])
    assert 0 < meta["n_predict_calls"] - meta["n_polish_calls"] <= 4
    assert meta["n_predicted_rows"] > 0


def test_seconds_of_the_rows_add_up_to_the_time_of_the_call(explainer, held_back):
    e = explainer.explain(held_back)
    assert e.seconds.sum() == pytest.approx(e.meta["seconds"])
    assert (e.seconds > 0).all()


def test_n_steps_counts_failed_values_of_c_and_the_step_of_the_best_iterate(golden):
    """With c_init 1e-6 nothing moves; each failed c costs N steps until c is large enough."""
    model = networks.in_sklearn(golden.layers)
    search = SearchConfig(
        method="fista", beta=0.01, c_init=1e-2, c_steps=4, max_iterations=200, theta=0, momentum=False, fallback=False
    )
    e = CounterfactualExplainer(model, features=golden.features, search=search).fit(golden.x_train).explain(golden.x)
    found = e.status == "found"
    assert found.any()
    assert not found.all()
    assert (e.n_steps[found] > 200).all()
    assert (e.n_steps[~found] == 0).all()
    assert (e.n_steps[found] <= 800).all()
    for how, message in zip(e.how[found], e.message[found], strict=True):
        assert how.method == "fista"
        assert how.c >= 0.1
        assert "by gradient descent" in message
