"""The KServe explainer, with real servers and a predictor by host."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from loans import loans, write_models
from servers import call, free_port, running

pytestmark = [pytest.mark.needs("kserve"), pytest.mark.slow]
PREDICTOR = """
import sys
import numpy as np
import xgboost
from kserve import Model, ModelServer

class Probabilities(Model):
    def load(self):
        self.model = xgboost.XGBClassifier()
        self.model.load_model(sys.argv.pop(1))
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        return {"predictions": self.model.predict_proba(np.array(payload["instances"], dtype=float)).tolist()}

if __name__ == "__main__":
    port = int(sys.argv.pop(1))
    model = Probabilities("loans")
    model.load()
    ModelServer(http_port=port, enable_grpc=False, workers=1).start([model])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kserve")


@pytest.fixture(scope="module")
def explainer(folder):
    return write_models(folder)


@pytest.fixture(scope="module")
def predictor(folder, explainer):
    """Address and process of a server with the model."""
    script, port = folder / "predictor.py", free_port()
    script.write_text(PREDICTOR)
    command = [Path(sys.executable).name, script, port, folder / "model.json"]
    with running(command, f"http://127.0.0.1:{port}/v1/models/loans", folder / "predictor.log") as pid:
        yield f"127.0.0.1:{port}", pid


@pytest.fixture(scope="module")
def server(folder, predictor):
    port = free_port()
    command = [
        *(Path(sys.executable).name, "-m", "cfproto_plugin.integrations.kserve", "--model_name", "loans"),
        *("--explainer", folder / "without.zip", "--predictor_host", predictor[0], "--http_port", port),
        *("--predictor_protocol", "v1", "--remote", '{"timeout": 3, "attempts": 2}'),
        *("--limits", '{"max_rows": 20, "max_seconds": 20, "max_batch": 8, "max_wait": 0.02}'),
    ]
    log = folder / "explaining.log"
    with running(command, f"http://127.0.0.1:{port}/v1/models/loans", log):
        yield f"http://127.0.0.1:{port}/v1/models/loans:explain", log


def records(rows):
    return rows.to_dict("records")


def test_explain_answers_with_the_model_behind_the_predictors_host(server, explainer):
    rows = loans(5, seed=1)
    body = {"instances": records(rows), "explain_parameters": {"target": 1}}
    status, answer = call(server[0], body, headers={"x-request-id": "kserve-1"})
    assert status == 200
    expected = explainer.explain(rows, target=1)
    assert [line["status"] for line in answer["explanations"]] == expected.status.tolist()
    assert [line["counterfactual_class"] for line in answer["explanations"]] == expected.counterfactual_class.tolist()
    assert "explained request_id=kserve-1 rows=5" in server[1].read_text()
    by_position = call(server[0], {**body, "instances": rows.to_numpy().tolist()})
    assert by_position[1]["explanations"] == answer["explanations"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"instances": []}, 400, "at least one"),
        ({"rows": []}, 400, "instances"),
        ({"instances": [{"age": 3}]}, 400, "column 'income' is missing"),
        ({"instances": [[1.0, 2.0, 3.0]]}, 400, "expected (n, 2)"),
        ({"instances": [[1.0, 2.0]], "explain_parameters": {"target": 9}}, 400, "Labels: 0, 1"),
        ({"instances": [[1.0, 2.0]], "explain_parameters": [1]}, 400, "expected an object"),
        ({"instances": [[1.0, 2.0]], "explain_parameters": []}, 400, "expected an object"),
        ({"instances": [[1.0, 2.0]], "explain_parameters": {"preset": ["few"]}}, 400, "expected one of close"),
        ({"instances": [{"age": 3, "income": 2.0}, {"age": 3}]}, 400, "column 'income' is missing in row 1"),
        ({"instances": [[1.0, 2.0]] * 21}, 413, "at most 20"),
    ],
)
def test_a_bad_request_gets_a_message_and_a_status(server, body, status, said):
    found, answer = call(server[0], body)
    assert found == status
    assert said in str(answer)


def test_a_slow_predictor_is_504_and_a_broken_one_502(server, predictor):
    body = {"instances": records(loans(2)), "explain_parameters": {"time_budget": 2}}
    os.kill(predictor[1], signal.SIGSTOP)
    try:
        assert call(server[0], body)[0] == 504
    finally:
        os.kill(predictor[1], signal.SIGCONT)
    assert call(server[0], body)[0] == 200
    os.kill(predictor[1], signal.SIGKILL)
    status, answer = call(server[0], body)
    assert (status, f"the model at http://{predictor[0]}" in str(answer)) == (502, True)
