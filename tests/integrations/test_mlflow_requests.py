"""What a request to a served explainer may ask for, and what it gets: no MLflow is needed for that."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.integrations.mlflow.measures import MEASURES, Groups, as_metrics, measures_by_group
from cfproto_plugin.integrations.requests import PRESETS, read_preset, read_rules, read_target
from cfproto_plugin.integrations.serving import ServedExplainer
from cfproto_plugin.report import HEADS


def loans(n=200):
    """Whole years, an income, and a category that the model does not use."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round()})
    x["sex"] = pd.Categorical(rng.choice(["female", "male"], n))
    return x


@pytest.fixture(scope="module")
def explainer():
    x = loans()

    def model(rows):
        score = 1 / (1 + np.exp(-(rows["income"] + 20 * rows["age"] - 4000).to_numpy(dtype=float) / 500))
        return np.column_stack([1 - score, score])

    return CounterfactualExplainer(model, features=Features(immutable="sex")).fit(x)


def test_neither_the_package_nor_its_commands_nor_this_integration_import_mlflow():
    code = """
import sys
import cfproto_plugin.integrations.mlflow
from cfproto_plugin.cli import main
main(["plugins"], standalone_mode=False)
assert not [name for name in sys.modules if name.split(".")[0] == "mlflow"]
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_without_mlflow_an_error_says_what_to_install(explainer, monkeypatch):
    from cfproto_plugin.integrations.mlflow import load_explainer, log_explainer, log_explanation

    monkeypatch.setitem(sys.modules, "mlflow", None)
    x = loans()[:1]
    for call in (
        lambda: log_explanation(explainer.explain(x)),
        lambda: log_explainer(explainer),
        lambda: load_explainer("models:/loans/1"),
    ):
        with pytest.raises(ImportError, match=r"cfproto-plugin\[mlflow\]"):
            call()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (None, None),
        ("1", 1),
        ("[0, 1]", [0, 1]),
        ('["0"]', [0]),
        ('{"1": [0.7, null]}', {1: (0.7, 1.0)}),
        ('{"1": [null, 0.6]}', {1: (0.0, 0.6)}),
    ],
)
def test_a_target_is_the_text_of_a_label_or_json(text, target):
    assert read_target(text, np.array([0, 1])) == target


def test_a_label_that_looks_like_json_is_a_label():
    assert read_target("[0]", np.array(["[0]", "[1]"])) == "[0]"


@pytest.mark.parametrize("text", ["grantd", "3", "{", ""])
def test_a_target_that_is_neither_is_refused_with_the_labels(text):
    with pytest.raises(InputError, match="Labels: granted, refused"):
        read_target(text, np.array(["granted", "refused"]))


def test_rules_are_the_fields_of_features_as_json():
    text = json.dumps({"immutable": ["sex"], "ranges": {"age": [17, None]}, "relations": ["a <= b"]})
    assert read_rules(text) == Features(immutable=("sex",), ranges={"age": (17, math.inf)}, relations=("a <= b",))
    assert read_rules(None) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a JSON object"),
        ('["sex"]', "expected a JSON object"),
        ('{"imutable": ["sex"]}', "Did you mean 'immutable'"),
        ('{"ranges": {"age": [17]}}', "expected .lowest, highest."),
    ],
)
def test_rules_that_cannot_be_read_are_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        read_rules(text)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_replaces_its_own_settings_and_keeps_the_others(name):
    search = SearchConfig(max_changes=2, few_changes=0.3)
    preset = getattr(SearchConfig, name)()
    found = read_preset(name, search)
    assert found.max_changes == 2
    assert found.few_changes == (0.3 if preset.few_changes is None else preset.few_changes)
    assert (found.theta, found.noise, found.min_stability) == (preset.theta, preset.noise, preset.min_stability)


def test_an_unknown_preset_is_refused():
    with pytest.raises(ConfigError, match="Did you mean 'close'"):
        read_preset("closer", SearchConfig())


def test_an_answer_has_a_line_per_counterfactual_in_the_columns_of_the_rows(explainer):
    x = loans()[:4]
    frame = ServedExplainer(explainer).answer(x, {"n": 2})
    assert list(frame.columns) == [*HEADS, *x.columns]
    assert frame["row"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (frame["sex"][::2].astype(str).to_numpy() == x["sex"].astype(str).to_numpy()).all()
    same = explainer.explain(x, n=2).counterfactual.reset_index(drop=True)
    pd.testing.assert_frame_equal(frame[list(x.columns)], same)


def test_an_answer_holds_no_nan_and_can_be_written_as_strict_json(explainer):
    x = loans()[:2]
    served = ServedExplainer(explainer)
    frame = served.answer(x, {"rules": '{"ranges": {"income": [0, 1], "age": [18, 19]}}', "target": "1"})
    assert frame["status"].isin(["not_found", "infeasible"]).all()
    for record in frame.to_dict("records"):
        assert record["counterfactual_class"] is record["age"] is record["income"] is record["distance"] is None
    json.dumps(frame.drop(columns="row").to_dict("records"), allow_nan=False, default=int)


def test_a_column_of_the_rows_keeps_its_name_and_ours_gets_an_underscore():
    x = loans()[["age", "income"]].set_axis(["status", "income"], axis=1)
    model = LogisticRegression(max_iter=1000).fit(x, x["status"] > 40)
    frame = ServedExplainer(CounterfactualExplainer(model).fit(x)).answer(x[:2])
    assert frame["status_"].tolist() == ["found", "found"]
    assert frame["status"].dtype.kind == "i"


def test_params_are_those_of_explain_and_rules_replace_those_of_the_explainer(explainer):
    x = loans()[:3]
    served = ServedExplainer(explainer)
    usual, free = served.answer(x), served.answer(x, {"rules": '{"vary": ["age"]}', "target": "1", "time_budget": 9.0})
    assert (usual["income"] != x["income"].to_numpy()).any()
    found = (free["status"] == "found").to_numpy()
    assert found.any()
    assert (free["income"][found] == x["income"][found]).all()
    assert set(free["counterfactual_class"].dropna()) <= {1}
    with pytest.raises(ConfigError, match="Did you mean 'target'"):
        served.answer(x, {"targets": "1"})


def test_a_preset_gives_the_answers_of_an_explainer_made_with_it(explainer):
    x = loans()
    made = CounterfactualExplainer(explainer.model, features=explainer.features, search=SearchConfig.close()).fit(x)
    served = ServedExplainer(explainer)
    frame = served.answer(x[:5], {"preset": "close"})
    same = made.explain(x[:5])
    assert frame["distance"].tolist() == same.distance.tolist()
    assert (frame["distance"] < served.answer(x[:5])["distance"]).any()


def test_images_come_back_as_nested_lists():
    rng = np.random.default_rng(0)
    x = rng.random((60, 3, 3))

    def model(images):
        score = images.reshape(len(images), -1)[:, 4]
        return np.column_stack([1 - score, score])

    frame = ServedExplainer(CounterfactualExplainer(model).fit(x)).answer(x[:2])
    assert list(frame.columns) == [*HEADS, "counterfactual"]
    assert np.shape(frame["counterfactual"].tolist()) == (2, 3, 3)


def test_measures_are_means_over_the_answers_for_all_rows_and_for_each_group(explainer):
    x = loans()
    chosen = np.arange(0, 40)
    e = explainer.explain(x.iloc[chosen], target=1)
    table = measures_by_group(e, Groups.of("sex", x).take(chosen)).set_index("value")
    assert table.index.tolist() == ["", "female", "male"]
    assert table["rows"].tolist() == [40, *x["sex"][:40].value_counts().sort_index()]
    women = e[np.flatnonzero(x["sex"][:40] == "female")]
    assert table.loc["female", "validity"] == women.found.mean()
    assert table.loc["female", "distance"] == pytest.approx(women.distance[women.found].mean())
    assert table.loc["female", "changed_columns"] == women.n_changes[women.found].mean()
    assert table.loc["", "stability"] == pytest.approx(np.nanmean(e.stability))
    assert table.loc["", "seconds"] == pytest.approx(e.seconds.sum() / 40)


def test_metrics_have_names_that_mlflow_takes_and_no_two_groups_share_one(explainer):
    x = loans()
    group = pd.Series(np.where(x["age"] < 40, "<40", ">40"), name="age band")
    e = explainer.explain(x[:20], target=1)
    metrics = as_metrics(measures_by_group(e, Groups.of(group, x).take(np.arange(20))), "test_")
    assert {"test_cfproto/validity", "test_cfproto/validity/age band/_40"} < {*metrics}
    assert metrics["test_cfproto/rows/age band/_40"] + metrics["test_cfproto/rows/age band/_40_2"] == 20
    assert {name.split("/")[1] for name in metrics} == {"rows", *MEASURES}


def test_a_measure_that_no_line_has_is_no_metric(explainer):
    x = loans()[:3]
    e = explainer.explain(x, target=1, features=Features(ranges={"income": (0, 1), "age": (18, 19)}))
    assert not e.found.any()
    assert {*as_metrics(measures_by_group(e))} == {"cfproto/rows", "cfproto/validity", "cfproto/seconds"}


@pytest.mark.parametrize("group", ["sexx", [1, 2], np.zeros((200, 2))])
def test_a_group_that_does_not_fit_the_data_is_refused(group):
    with pytest.raises(InputError, match="group is"):
        Groups.of(group, loans())


def test_missing_values_of_a_group_are_a_group():
    groups = Groups.of(pd.Series(["a", None, np.nan, "b"]), loans(4))
    assert groups.name == "group"
    assert groups.labels.tolist() == ["a", "missing", "missing", "b"]


@pytest.mark.parametrize("name", ["target", "rules"])
def test_json_of_great_depth_in_a_request_is_refused_like_any_other(explainer, name):
    with pytest.raises((InputError, ConfigError), match=f"{name} is .*expected"):
        ServedExplainer(explainer).answer(loans()[:1], {name: "[" * 100_000})


@pytest.mark.parametrize("n", [101, 10**9, math.inf, math.nan])
def test_a_request_asks_for_at_most_a_hundred_answers_per_row(explainer, n):
    with pytest.raises(ConfigError, match="expected at most 100 answers per row"):
        ServedExplainer(explainer).answer(loans()[:1], {"n": n})
