"""Explainers and explanations in a real tracking store, a registry in SQLite, and the evaluator that MLflow finds."""

from __future__ import annotations

import json
import pickletools
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, FileError, InputError, ModelError, NotFittedError
from cfproto_plugin.integrations.mlflow import load_explainer, log_explainer, log_explanation, save_explainer

pytestmark = [
    pytest.mark.needs("mlflow"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::Warning:mlflow.*"),  # of MLflow's own code: pandas, SQLAlchemy, hints to users
]


def loans(n=240):
    """Rows with whole numbers, a category and a label; and who was granted a loan."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round()})
    x["sex"] = rng.choice(["female", "male"], n)
    return x, np.where(x["income"] + 20 * x["age"] > 4000, "granted", "refused")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """MLflow, with a new SQLite file for runs and models, and a folder for artifacts."""
    import mlflow

    folder = tmp_path_factory.mktemp("store")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("loans", str(folder / "artifacts")))
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def explainer():
    x, y = loans()
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(20, random_state=0)).fit(x, y)
    return CounterfactualExplainer(model, features=Features(immutable="sex")).fit(x)


@pytest.fixture(scope="module")
def logged(store, explainer):
    with store.start_run():
        return log_explainer(explainer, registered_model_name="loans-explainer")


def is_pickle(content):
    """Whether it reads as a pickle from the first byte to a stop that ends it."""
    try:
        operations = list(pickletools.genops(content))
    except Exception:  # noqa: BLE001 whatever it says of what is no pickle
        return False
    return operations[-1][2] == len(content) - 1


def contents(folder):
    """Every file below the folder, and inside its archives."""
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
        yield str(path.relative_to(folder)), path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    yield f"{path.name}!{name}", archive.read(name)


def test_a_logged_explainer_gives_the_same_answers_from_the_registry(store, explainer, logged):
    x, _ = loans()
    again = load_explainer("models:/loans-explainer/1", trusted=["sklearn.tree._tree.Tree"])
    pd.testing.assert_frame_equal(again.explain(x[:6]).counterfactual, explainer.explain(x[:6]).counterfactual)
    served = store.pyfunc.load_model(logged.model_uri).predict(x[:6])
    pd.testing.assert_frame_equal(served[list(x.columns)], explainer.explain(x[:6]).counterfactual, check_dtype=False)


def test_the_folder_of_a_logged_explainer_contains_no_pickle(store, logged):
    assert is_pickle(__import__("pickle").dumps({"a": 1}))
    found = dict(contents(store.artifacts.download_artifacts(logged.model_uri)))
    assert {"MLmodel", "explainer_model.py", "artifacts/explainer/manifest.json"} < {*found}
    assert any(name.endswith(".skops") for name in found)
    assert [name for name, content in found.items() if is_pickle(content) or name.endswith((".pkl", ".pickle"))] == []
    for name, content in found.items():
        if name.endswith(".npy"):
            assert b"|O" not in content[:128], name


def test_a_logged_explainer_has_a_signature_an_example_and_requirements(store, explainer, logged):
    signature = logged.signature
    assert {name: spec.type.name for name, spec in signature.inputs.input_dict().items()} == {
        "age": "long",
        "income": "double",
        "sex": "string",
    }
    outputs = {spec.name: spec.type.name for spec in signature.outputs.inputs}
    assert outputs["counterfactual_class"] == "string"
    assert (outputs["row"], outputs["age"]) == ("long", "double")  # missing where there is no counterfactual
    assert list(outputs)[-3:] == ["age", "income", "sex"]
    assert [param.name for param in signature.params] == ["target", "n", "time_budget", "rules", "preset"]
    folder = Path(store.artifacts.download_artifacts(logged.model_uri))
    example = json.loads((folder / "serving_input_example.json").read_text(encoding="utf-8"))
    assert example["dataframe_split"]["columns"] == ["age", "income", "sex"]
    requirements = (folder / "requirements.txt").read_text(encoding="utf-8")
    for package in ("cfproto-plugin==", "scikit-learn==", "mlflow=="):
        assert package in requirements


def test_params_of_a_request_are_handed_on_and_a_wrong_one_is_an_error_of_the_client(store, logged):
    x, _ = loans()
    model = store.pyfunc.load_model(logged.model_uri)
    asked = {"n": 2, "target": "granted", "rules": '{"vary": ["income"]}', "preset": "few", "time_budget": 20.0}
    answers = model.predict(x[:3], params=asked)
    assert answers["row"].tolist() == [0, 0, 1, 1, 2, 2]
    found = answers[answers["status"] == "found"]
    assert {*found["counterfactual_class"]} == {"granted"}
    assert (found["age"].to_numpy() == x["age"].to_numpy()[found["row"].astype(int)]).all()
    with pytest.raises(store.MlflowException, match="Did you mean 'granted'") as caught:
        model.predict(x[:1], params={"target": "grantd"})
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"


def test_the_error_of_one_row_is_a_line_and_not_an_error_of_the_request(store, logged):
    x, _ = loans()
    rows = x[:2].assign(sex=["unknown", "male"])
    answers = store.pyfunc.load_model(logged.model_uri).predict(rows)
    assert answers["status"].tolist() == ["error", "found"]
    assert "unknown" in answers["message"][0]
    assert answers["counterfactual_class"][0] is None


def test_a_model_that_lies_elsewhere_in_mlflow_is_loaded_from_there(store, tmp_path):
    x, y = loans()
    x = x[["age", "income"]]
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(x, y)
    other = HistGradientBoostingClassifier(max_iter=3, random_state=0).fit(x, np.roll(y, 1))
    explainer = CounterfactualExplainer(model).fit(x)
    uris = [tmp_path / "model", tmp_path / "other"]
    for each, path in zip((model, other), uris, strict=True):
        store.sklearn.save_model(each, path, serialization_format="cloudpickle", pip_requirements=[])
    save_explainer(explainer, tmp_path / "explainer", model_uri=str(uris[0]))
    assert "model" not in json.loads((tmp_path / "explainer/artifacts/explainer/manifest.json").read_text())["files"]
    answers = load_explainer(str(tmp_path / "explainer")).explain(x[:3]).counterfactual
    pd.testing.assert_frame_equal(answers, explainer.explain(x[:3]).counterfactual)
    assert store.pyfunc.load_model(str(tmp_path / "explainer")).predict(x[:2])["status"].tolist() == ["found", "found"]
    with pytest.raises(ModelError):
        load_explainer(str(tmp_path / "explainer"), model=other)


def test_an_explainer_that_could_not_be_loaded_is_not_logged(tmp_path):
    x, _ = loans()
    x = x[["age", "income"]]

    def model(rows):
        share = (rows[:, 1] > 3000).astype(float)
        return np.column_stack([1 - share, share])

    with pytest.raises(FileError, match="pass model_uri="):
        save_explainer(CounterfactualExplainer(model).fit(x.to_numpy()), tmp_path / "explainer")
    assert not (tmp_path / "explainer").exists()


def test_what_is_no_fitted_explainer_is_refused(store, tmp_path):
    with pytest.raises(InputError, match="expected a fitted CounterfactualExplainer"):
        save_explainer("explainer", tmp_path / "explainer")
    with pytest.raises(NotFittedError):
        save_explainer(CounterfactualExplainer(LogisticRegression()), tmp_path / "explainer")
    x, y = loans()
    store.sklearn.save_model(LogisticRegression().fit(x[["age"]], y), tmp_path / "model", pip_requirements=[])
    with pytest.raises(InputError, match="holds no explainer"):
        load_explainer(str(tmp_path / "model"))


def test_arrays_have_a_tensor_signature_and_come_back_by_the_names_x0_x1(store, tmp_path):
    x, y = loans()
    rows = x[["age", "income"]].to_numpy(dtype=float)
    explainer = CounterfactualExplainer(LogisticRegression(max_iter=1000).fit(rows, y == "granted")).fit(rows)
    save_explainer(explainer, tmp_path / "explainer")
    model = store.pyfunc.load_model(str(tmp_path / "explainer"))
    assert model.metadata.get_input_schema().is_tensor_spec()
    answers = model.predict(rows[:3])
    assert (answers[["x0", "x1"]].to_numpy() == explainer.explain(rows[:3]).counterfactual).all()


def test_an_explanation_is_logged_as_json_that_can_be_read_back_as_a_page_and_as_a_plot(store, explainer):
    x, _ = loans()
    explanation = explainer.explain(x[:3])
    with store.start_run() as run:
        uri = log_explanation(explanation, "answers", title="Three loans")
    assert uri == f"{run.info.artifact_uri}/answers"
    read = Explanation.from_json(store.artifacts.load_text(f"{uri}/explanation.json"))
    pd.testing.assert_frame_equal(read.counterfactual, explanation.counterfactual)
    assert "<title>Three loans</title>" in store.artifacts.load_text(f"{uri}/explanation.html")
    picture = Path(store.artifacts.download_artifacts(f"{uri}/explanation.png")).read_bytes()
    assert picture.startswith(b"\x89PNG")
    log_explanation(explanation, "more", run_id=run.info.run_id)
    assert store.active_run() is None
    assert {each.path for each in store.MlflowClient().list_artifacts(run.info.run_id)} == {"answers", "more"}
    with pytest.raises(InputError, match="expected an Explanation"):
        log_explanation("answers")


def test_an_explanation_without_a_counterfactual_is_logged_without_a_plot(store, explainer):
    x, _ = loans()
    explanation = explainer.explain(x[:1].assign(sex="unknown"))
    with store.start_run() as run:
        log_explanation(explanation, "answers")
    paths = {each.path for each in store.MlflowClient().list_artifacts(run.info.run_id, "answers")}
    assert paths == {"answers/explanation.json", "answers/explanation.html"}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n": "3"}, "Can not safely convert"),
        ({"n": 0}, "n is 0; expected how many"),
        ({"time_budget": "fast"}, "Can not safely convert"),
        ({"time_budget": float("nan")}, "time_budget is nan"),
        ({"target": 3}, "Can not safely convert"),
        ({"target": '{"granted": [0.9, 0.1]}'}, "the lower one first"),
        ({"rules": {"immutable": ["age"]}}, "must be a scalar"),
        ({"rules": '{"immutable": ["agee"]}'}, "Did you mean 'age'"),
        ({"preset": "fwe"}, "Did you mean 'few'"),
    ],
)
def test_params_of_a_wrong_type_or_value_are_named(store, served, params, said):
    with pytest.raises(store.MlflowException, match=said):
        served.predict(loans()[0][:1], params=params)


@pytest.fixture(scope="module")
def served(store, logged):
    client = store.MlflowClient()
    client.set_registered_model_alias("loans-explainer", "champion", 1)
    return store.pyfunc.load_model("models:/loans-explainer@champion")


def test_rows_by_name_in_any_order_and_with_others_beside_them_are_answered(store, served):
    x, _ = loans()
    expected = served.predict(x[:1])
    assert expected["status"].tolist() == ["found"]
    for rows in (x[:1].assign(z=1), x[:1][["sex", "income", "age"]], x[:1].to_dict("records"), x[:1].to_dict("list")):
        answer = served.predict(rows)
        assert answer["counterfactual_class"].tolist() == expected["counterfactual_class"].tolist()
        assert answer["income"].tolist() == expected["income"].tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x[:0], "x has no rows; expected at least one"),
        (lambda x: x[["age", "sex"]], "missing inputs"),
        (lambda x: x.assign(income="much"), "Incompatible input types for column income"),
        (lambda x: None, "Expected input to be DataFrame"),
    ],
)
def test_rows_that_do_not_fit_are_an_error_of_the_client(store, served, change, said):
    with pytest.raises(store.MlflowException, match=said):
        served.predict(change(loans()[0][:2]))


def test_mlflow_predict_answers_a_file_of_rows(store, served, tmp_path):
    loans()[0][:2].to_csv(tmp_path / "rows.csv", index=False)
    store.models.predict(
        model_uri="models:/loans-explainer@champion",
        input_path=str(tmp_path / "rows.csv"),
        content_type="csv",
        output_path=str(tmp_path / "answers.json"),
        env_manager="local",
    )
    lines = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))["predictions"]
    assert [line["status"] for line in lines] == ["found", "found"]


@pytest.mark.parametrize("uri", [None, 3])
def test_a_uri_that_is_no_text_is_refused(store, uri):
    with pytest.raises(InputError, match=r"model_uri is .*; expected text such as 'models:/"):
        load_explainer(uri)


# The evaluator


@pytest.fixture(scope="module")
def model_uri(store, explainer):
    with store.start_run():
        options = {"pip_requirements": [], "serialization_format": "cloudpickle"}
        return store.sklearn.log_model(explainer.model, name="loans", **options).model_uri


MEASURES = ("validity", "distance", "changed_columns", "typicality", "stability", "seconds")


def evaluated(store, model_uri, **config):
    x, y = loans()
    with store.start_run() as run:
        result = store.models.evaluate(
            model_uri,
            x.assign(granted=y)[:30],
            targets="granted",
            model_type="classifier",
            evaluators="cfproto",
            evaluator_config=config,
        )
    return result, store.get_run(run.info.run_id)


def test_the_evaluator_is_found_by_its_entry_point_and_logs_its_measures_also_by_group(store, model_uri, explainer):
    assert "cfproto" in store.models.list_evaluators()
    result, run = evaluated(store, model_uri, explainer=explainer, group="sex", target="granted", rows=20)
    assert result.metrics == run.data.metrics
    for name in MEASURES:
        assert {f"cfproto/{name}", f"cfproto/{name}/sex/female", f"cfproto/{name}/sex/male"} < {*result.metrics}
    x, _ = loans()
    explanation = explainer.explain(x.iloc[np.unique(np.linspace(0, 29, 20).astype(int))], target="granted")
    assert run.data.metrics["cfproto/rows"] == 20
    assert run.data.metrics["cfproto/validity"] == explanation.found.mean()
    assert run.data.metrics["cfproto/distance"] == pytest.approx(explanation.distance[explanation.found].mean())
    paths = {each.path for each in store.MlflowClient().list_artifacts(run.info.run_id, "counterfactuals")}
    names = {"explanation.json", "explanation.html", "explanation.png"}
    assert {path.split("/")[1] for path in paths} == names | {"metrics.csv"}
    assert result.artifacts["counterfactual_metrics"].content["value"].tolist() == ["", "female", "male"]


def test_the_evaluator_makes_an_explainer_of_the_model_and_the_data(store, model_uri):
    x, _ = loans()
    rules = {"features": Features(immutable="sex"), "search": SearchConfig.few()}
    result, _ = evaluated(store, model_uri, explainer="auto", train=x, rows=10, metric_prefix="few_", **rules)
    assert result.metrics["few_cfproto/validity"] == 1
    assert result.metrics["few_cfproto/changed_columns"] < 1.5


def test_the_evaluator_takes_a_logged_xgboost_explainer_by_its_uri(store, model_uri, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    x, y = loans()
    x = x[["age", "income"]]
    model = xgboost.XGBClassifier(n_estimators=10).fit(x, y == "granted")
    with store.start_run():
        uri = log_explainer(CounterfactualExplainer(model).fit(x)).model_uri
        info = store.xgboost.log_model(model, name="boosted", pip_requirements=[])
        data = x.assign(granted=y == "granted")[:10]
        config = {"explainer": uri, "group": pd.Series(loans()[0]["sex"][:10])}
        result = store.models.evaluate(
            info.model_uri,
            data,
            targets="granted",
            model_type="classifier",
            evaluators=["default", "cfproto"],
            evaluator_config={"default": {"log_model_explainability": False}, "cfproto": config},
        )
    assert {"accuracy_score", "cfproto/validity", "cfproto/validity/sex/male"} < {*result.metrics}


def test_nobody_waits_for_counterfactuals_who_has_not_asked_for_them():
    from cfproto_plugin.integrations.mlflow.evaluator import CounterfactualEvaluator

    asked = CounterfactualEvaluator.can_evaluate
    assert asked(model_type="classifier", evaluator_config={"explainer": "auto"})
    assert not asked(model_type="classifier", evaluator_config={})
    assert not asked(model_type="classifier", evaluator_config={"metric_prefix": "a", "pos_label": 1})
    assert not asked(model_type="regressor", evaluator_config={"explainer": "auto"})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"explainer": 3}, "expected a CounterfactualExplainer"),
        ({"explainer": "auto", "rows": 0}, "rows is 0"),
        ({"explainer": "models:/x/1", "train": [1]}, "leave out one"),
    ],
)
def test_settings_of_the_evaluator_that_make_no_sense_are_refused(store, model_uri, config, said):
    with pytest.raises(ConfigError, match=said):
        evaluated(store, model_uri, **config)


def test_a_setting_that_the_evaluator_does_not_know_is_warned_about(store, model_uri, explainer, caplog):
    evaluated(store, model_uri, explainer=explainer, row=3, rows=2)
    assert "'row' of evaluator_config. Did you mean 'rows'?" in caplog.text


def test_a_function_is_no_model_to_make_an_explainer_of(store):
    with pytest.raises(InputError, match="Give a fitted one"):
        evaluated(store, lambda rows: ["granted"] * len(rows), explainer="auto")


@pytest.mark.needs("pyspark")
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
@pytest.mark.filterwarnings("ignore::Warning:pyspark.*")
def test_a_spark_udf_answers_every_row_with_a_line(store, tmp_path, monkeypatch):
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import struct

    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    x, y = loans()
    x = x[["age", "income"]]
    explainer = CounterfactualExplainer(LogisticRegression(max_iter=5000).fit(x, y)).fit(x)
    save_explainer(explainer, tmp_path / "explainer")
    rules = Features(decreasing="income", immutable="age")
    params = {"target": "granted", "rules": '{"decreasing": ["income"], "immutable": ["age"]}'}
    expected = explainer.explain(x[:6], target="granted", features=rules)
    assert 0 < expected.found.sum() < 6
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        udf = store.pyfunc.spark_udf(spark, str(tmp_path / "explainer"), env_manager="local", params=params)
        answers = spark.createDataFrame(x[:6]).select(udf(struct("age", "income")).alias("line")).select("line.*")
        found = answers.toPandas()
    finally:
        spark.stop()
    assert found["status"].tolist() == expected.status.tolist()
    assert found["income"].isna().tolist() == (~expected.found).tolist()
    assert found["income"].dropna().tolist() == expected.counterfactual["income"].dropna().tolist()
