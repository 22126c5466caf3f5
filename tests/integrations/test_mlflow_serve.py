"""A logged explainer behind a real scoring server, asked over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from scoring_server import free_port, scoring_server
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.integrations.mlflow import log_explainer

pytestmark = [
    pytest.mark.needs("mlflow"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::Warning:mlflow.*"),  # of MLflow's own code
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 80, 200), "income": rng.gamma(3, 1000, 200).round()})


@pytest.fixture(scope="module")
def explainer(rows):
    granted = np.where(rows["income"] + 20 * rows["age"] > 4000, "granted", "refused")
    model = LogisticRegression(max_iter=5000).fit(rows, granted)
    return CounterfactualExplainer(model, features=Features(increasing="age")).fit(rows)


@pytest.fixture(scope="module")
def served(explainer, tmp_path_factory):
    """The address of a server that answers; it is stopped at the end."""
    import mlflow

    folder = tmp_path_factory.mktemp("served")
    before, tracking = mlflow.get_tracking_uri(), f"sqlite:///{folder / 'mlflow.db'}"
    mlflow.set_tracking_uri(tracking)
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("served", str(folder / "artifacts")))
    with mlflow.start_run():
        log_explainer(explainer, registered_model_name="loans-explainer")
    mlflow.set_tracking_uri(before)
    arguments = ["models", "serve", "-m", "models:/loans-explainer/1", "--env-manager", "local"]
    with scoring_server(arguments, free_port(), folder / "log", MLFLOW_TRACKING_URI=tracking) as address:
        yield address


def asked(address, content):
    """The status and the JSON of the answer; NaN is no JSON."""
    request = urllib.request.Request(  # noqa: S310 likewise
        address, json.dumps(content).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 likewise
            return answer.status, json.loads(answer.read(), parse_constant=pytest.fail)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_request_is_answered_with_counterfactuals_that_the_model_confirms(served, explainer, rows):
    status, found = asked(served, {"dataframe_split": rows[:5].to_dict("split", index=False)})
    assert status == 200
    answers = pd.DataFrame(found["predictions"])
    assert answers["status"].tolist() == ["found"] * 5
    counterfactuals = answers[["age", "income"]].astype({"income": float})
    assert explainer.model.predict(counterfactuals).tolist() == answers["counterfactual_class"].tolist()
    assert (answers["original_class"] != answers["counterfactual_class"]).all()
    assert (counterfactuals["age"] >= rows["age"][:5]).all()
    pd.testing.assert_frame_equal(counterfactuals, explainer.explain(rows[:5]).counterfactual)


def test_params_and_rows_without_an_answer_arrive_as_strict_json(served, rows):
    rules = {"ranges": {"income": [0, 10], "age": [18, 20]}}
    params = {"target": "granted", "n": 2, "rules": json.dumps(rules), "preset": "close", "time_budget": 5.0}
    status, found = asked(served, {"dataframe_records": rows[:1].to_dict("records"), "params": params})
    assert status == 200
    assert [line["row"] for line in found["predictions"]] == [0, 0]
    for line in found["predictions"]:
        assert line["status"] in {"not_found", "infeasible"}
        assert line["age"] is line["counterfactual_class"] is line["distance"] is None
        assert line["message"]


def test_a_wrong_param_is_answered_with_400_and_what_was_expected(served, rows):
    content = {"dataframe_records": rows[:1].to_dict("records"), "params": {"target": "grantd"}}
    status, found = asked(served, content)
    assert status == 400
    assert "Did you mean 'granted'?" in found["message"]
