# ruff: noqa: PD011 the values are those of a shap.Explanation
"""Explanations in SHAP's own plots, and counterfactuals as SHAP's background."""

import importlib
import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import InputError, MissingPackageError

matplotlib = pytest.importorskip("matplotlib")
shap = pytest.importorskip("shap")
matplotlib.use("Agg")
plt = importlib.import_module("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    return x, forest, CounterfactualExplainer(forest, search=SearchConfig(max_changes=5)).fit(x)


@pytest.fixture(scope="module")
def answered(cancer):
    x, _, explainer = cancer
    return explainer(x[:12])


def jobs(n=300, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": random.normal(3000, 800, n).round(0),
            "job": random.choice(["clerk", "farmer", "nurse"], n),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D"),
            "member": random.random(n) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def mixed():
    """Categories, dates, truth values and missing cells; the first line has no counterfactual."""
    frame = jobs()
    said = frame["income"] + 900 * (frame["job"] == "nurse") + 400 * frame["member"] > 3600
    steps = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["job", "member"]))
    model = make_pipeline(steps, LogisticRegression(C=10)).fit(frame, said)

    def predict(rows):
        return model.predict_proba(rows.assign(income=rows["income"].fillna(2000.0)))

    frame.loc[frame.index[::7], "income"] = np.nan
    e = CounterfactualExplainer(predict, features=Features(step={"income": 1})).fit(frame).explain(frame.head(14))
    none = CounterfactualExplainer(predict).fit(frame).explain(frame.head(1), features=Features(vary=("since",)))
    return e, none


PLOTS = {
    "waterfall": lambda sv: shap.plots.waterfall(sv[1], show=False),
    "bar": lambda sv: shap.plots.bar(sv, show=False),
    "bar of one line": lambda sv: shap.plots.bar(sv[1], show=False),
    "beeswarm": lambda sv: shap.plots.beeswarm(sv, show=False),
    "heatmap": lambda sv: shap.plots.heatmap(sv, show=False),
    "scatter": lambda sv: shap.plots.scatter(sv[:, 0], color=sv, show=False),
    "scatter of another": lambda sv: shap.plots.scatter(sv[:, 1], color=sv[:, 0], show=False),
}


@pytest.mark.parametrize("values", ["contributions", "delta"])
@pytest.mark.parametrize("plot", PLOTS)
def test_shap_draws_numbers(answered, plot, values):
    PLOTS[plot](answered.to_shap(values))
    plt.gcf().canvas.draw()


@pytest.mark.parametrize("values", ["contributions", "delta"])
@pytest.mark.parametrize("plot", PLOTS)
def test_shap_draws_categories_dates_and_missing_cells(mixed, plot, values):
    e, _ = mixed
    assert e.found.any()
    PLOTS[plot](e.to_shap(values))
    plt.gcf().canvas.draw()


@pytest.mark.parametrize("plot", ["waterfall", "bar", "beeswarm", "heatmap"])
def test_shap_draws_lines_without_an_answer_as_zeros(cancer, plot):
    x, _, explainer = cancer
    rows = x[:6].copy()
    rows.iloc[2] = np.inf  # cannot be read
    sv = explainer.explain(rows).to_shap()
    assert not sv.values[2].any()
    assert sv.base_values[2] == 0
    assert np.isfinite(sv.values).all()
    PLOTS[plot](sv)
    plt.gcf().canvas.draw()


def test_a_waterfall_begins_at_the_original_and_ends_at_the_counterfactual(cancer, answered):
    _, forest, _ = cancer
    sv = answered.to_shap()
    assert isinstance(sv, shap.Explanation)
    new = answered.counterfactual_class.astype(int)
    each = np.arange(len(answered))
    np.testing.assert_allclose(sv.base_values, forest.predict_proba(answered.original)[each, new], atol=1e-12)
    ends = sv.base_values + sv.values.sum(axis=1)
    np.testing.assert_allclose(ends, forest.predict_proba(answered.counterfactual)[each, new], atol=1e-12)
    shap.plots.waterfall(sv[0], show=False)
    texts = [text.get_text() for axes in plt.gcf().axes for text in axes.get_xticklabels()]
    assert any(f"{sv.base_values[0]:.3f}".rstrip("0") in text for text in texts)
    assert any(f"{ends[0]:.3f}".rstrip("0") in text for text in texts)


def test_a_plot_of_one_line_says_what_changes(answered):
    change = answered[0].changes()[0]
    shap.plots.waterfall(answered[0].to_shap()[0], show=False)
    labels = [text.get_text() for axes in plt.gcf().axes for text in axes.get_yticklabels()]
    assert f"{change.before:g} → {change.after:g} = {change.feature}" in labels


def test_values_belong_to_their_features(answered):
    sv = answered.to_shap()
    assert sv.feature_names == list(answered.feature_names)
    np.testing.assert_array_equal(sv.data, answered.original.to_numpy())
    assert sv.display_data is None
    for row, feature, _, _, contribution, _ in answered.contributions():
        assert sv.values[row, sv.feature_names.index(feature)] == contribution
    assert np.count_nonzero(sv.values) <= answered.n_changes.sum()


def test_deltas_are_those_of_the_explanation_and_need_no_model(answered):
    loaded = Explanation.from_json(answered.to_json())
    sv = loaded.to_shap("delta")
    np.testing.assert_array_equal(sv.values, answered.delta.to_numpy())
    with pytest.raises(InputError, match="with_explainer"):
        loaded.to_shap()


def test_categories_are_codes_in_data_and_themselves_where_they_are_shown(mixed):
    e, none = mixed
    sv = e.to_shap()
    assert sv.data.dtype == float
    jobs = sv.display_data[:, 1]
    assert set(jobs) <= {"clerk", "farmer", "nurse"}
    assert [sorted(set(jobs)).index(job) for job in jobs] == sv.data[:, 1].tolist()
    assert np.isnan(sv.data[0, 0])  # a missing income
    changed = [line for line in range(len(e)) if e.is_changed[line, 1]]
    assert all(e.to_shap("delta").values[line, 1] == 1 for line in changed)
    assert not none.found.any()
    assert not none.to_shap().values.any()


def test_columns_with_numbers_and_texts_as_names_keep_their_places():
    x = np.random.default_rng(0).normal(size=(200, 3))
    frame = pd.DataFrame(x, columns=[2, "a", 0])
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    explainer = CounterfactualExplainer(lambda rows: model.predict_proba(np.asarray(rows)))
    e = explainer.fit(frame).explain(frame.head(4))
    sv = e.to_shap()
    assert ((sv.values != 0) == e.is_changed).all()
    assert e.is_changed[:, 0].all()


def test_a_missing_cell_that_is_filled_counts_as_one_change():
    before, after = np.array([[np.nan, 1.0]]), np.array([[2.0, 3.0]])
    e = Explanation(
        before,
        after,
        *(np.array([each], dtype=object) for each in ("found", "", 0, 1, 1)),
        np.array([[0.9, 0.1]]),
        np.array([[0.2, 0.8]]),
        np.array([0, 1]),
        np.zeros(1, dtype=int),
        np.zeros(1),
        np.zeros(1, dtype=int),
        None,
        {},
    )
    assert e.to_shap("delta").values.tolist() == [[1.0, 2.0]]


def test_a_one_hot_group_is_one_feature_of_the_plot():
    random = np.random.default_rng(0)
    x = np.column_stack([random.normal(size=300), np.eye(3)[random.integers(0, 3, 300)]])
    frame = pd.DataFrame(x, columns=["size", "red", "green", "blue"])
    model = LogisticRegression(C=100).fit(frame, x[:, 0] + 3 * x[:, 3] > 1)
    features = Features(one_hot={"colour": ("red", "green", "blue")})
    rows = frame[model.predict(frame) == 0].head(8)
    e = CounterfactualExplainer(model, features=features).fit(frame).explain(rows)
    sv = e.to_shap()
    assert sv.feature_names == ["size", "colour"]
    assert set(sv.display_data[:, 1]) <= {"red", "green", "blue"}
    before, after = e.new_class_proba
    np.testing.assert_allclose(sv.values.sum(axis=1), after - before, atol=1e-12)
    shap.plots.beeswarm(sv, show=False)


def test_several_answers_are_lines_of_their_own(cancer):
    x, _, explainer = cancer
    e = explainer.explain(x[:3], n=3)
    sv = e.to_shap()
    assert sv.values.shape == (9, 30)
    before, after = e.new_class_proba
    np.testing.assert_allclose(sv.values.sum(axis=1), np.where(e.found, after - before, 0), atol=1e-12)


def test_sampled_contributions_carry_their_error(cancer):
    x, forest, _ = cancer
    e = CounterfactualExplainer(forest).fit(x).explain(x[:1])
    assert e.n_changes[0] > 8
    assert e.to_shap().error_std.max() > 0


def test_images_keep_their_shape():
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=2000).fit(x / 16, y)
    images = (x / 16).reshape(-1, 8, 8, 1)
    explainer = CounterfactualExplainer(lambda rows: model.predict_proba(rows.reshape(len(rows), -1))).fit(images)
    e = explainer.explain(images[:2])
    sv = e.to_shap(samples=8)
    assert sv.values.shape == images[:2].shape
    before, after = e.new_class_proba
    np.testing.assert_allclose(sv.values.sum(axis=(1, 2, 3)), after - before, atol=1e-9)
    np.testing.assert_allclose(e.to_shap("delta").values, e.delta)
    shap.plots.image(sv, show=False)


def test_a_line_that_the_model_fails_in_is_named():
    def predict(rows):
        if (rows[:, 0] * rows[:, 1] < 0).any():
            raise ValueError("signs differ")
        p = 1 / (1 + np.exp(-rows.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 1] = np.abs(x[:, 1]) * np.sign(x[:, 0])
    x[0] = [-2.0, -2.0]
    e = CounterfactualExplainer(predict).fit(x).explain(x[:1])
    with pytest.raises(InputError, match=r"row 0 has no contributions.*signs differ.*values='delta'"):
        e.to_shap()
    assert np.count_nonzero(e.to_shap("delta").values) == 2


def test_other_values_are_refused(answered):
    with pytest.raises(InputError, match="values is 'shap'; expected 'contributions' or 'delta'"):
        answered.to_shap("shap")


def test_without_shap_the_error_says_how_to_install_it(answered, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cfproto-plugin\[shap\]'"):
        answered.to_shap()


def test_counterfactuals_are_the_background_of_a_shap_explainer(cancer, answered):
    x, forest, _ = cancer
    background = answered.as_background()
    assert background.dtypes.equals(x.dtypes)
    single = np.float32  # scikit-learn's trees compare in it, and answers lie close to their splits
    explainer = shap.TreeExplainer(forest, background.astype(single))
    values = explainer(x[:2].astype(single))
    expected = forest.predict_proba(background).mean(axis=0)
    np.testing.assert_allclose(explainer.expected_value, expected, atol=1e-6)
    ends = values.base_values + values.values.sum(axis=1)
    np.testing.assert_allclose(ends, forest.predict_proba(x[:2]), atol=1e-6)


def test_a_model_agnostic_shap_explainer_takes_the_background_too():
    x = np.random.default_rng(0).integers(0, 20, size=(300, 3))
    model = RandomForestClassifier(10, random_state=0).fit(x, x.sum(axis=1) > 30)
    e = CounterfactualExplainer(model).fit(x).explain(x[:6])
    background = e.as_background()
    assert background.dtype == x.dtype
    values = shap.Explainer(model.predict_proba, background, seed=0)(x[:2])
    ends = values.base_values + values.values.sum(axis=1)
    np.testing.assert_allclose(ends, model.predict_proba(x[:2]), atol=1e-6)


def test_only_answers_are_in_the_background(cancer):
    x, _, explainer = cancer
    rows = pd.DataFrame(x[:4]).astype({"mean area": int})
    rows.iloc[1, 0] = np.inf
    e = explainer.explain(rows)
    background = e.as_background()
    assert len(background) == 3
    assert background.dtypes.equals(rows.dtypes)
    assert not background.isna().any().any()
    polars = explainer.explain(pl.from_pandas(x[:2])).as_background()
    assert isinstance(polars, pd.DataFrame)
    with pytest.raises(InputError, match="no line has a counterfactual"):
        e[1].as_background()


def test_calling_the_explainer_is_explaining(cancer):
    x, _, explainer = cancer
    called, explained = explainer(x[:2]), explainer.explain(x[:2])
    pd.testing.assert_frame_equal(called.counterfactual, explained.counterfactual)
    assert math.isclose(sum(c.contribution for c in called.contributions()), called.to_shap().values.sum())
