"""The MLServer runtime, with real servers and real clients."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loans import loans, v2, write_models
from servers import call, free_port, running

from cfproto_plugin import Explanation, Features

pytestmark = [pytest.mark.needs("mlserver"), pytest.mark.slow]
RUNTIME = "cfproto_plugin.integrations.mlserver.runtime.CounterfactualRuntime"
PREDICTOR = """
from pathlib import Path

import xgboost
from mlserver import MLModel
from mlserver.errors import MLServerError
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Probabilities(MLModel):
    async def load(self):
        self.model = xgboost.XGBClassifier()
        self.model.load_model(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        if Path(self.settings.parameters.uri).with_name("refuse").exists():
            raise MLServerError("the quota is used up", 400)
        rows = NumpyCodec.decode_input(payload.inputs[0])
        found = self.model.predict_proba(rows)
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("proba", found)])
"""


class Server:
    """Addresses of a server."""

    def __init__(self, pid, folder, ports):
        self.pid, self.log = pid, folder / "log"
        self.rest, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in ports)

    def infer(self, body, model="loans", seconds=120):
        return call(f"http://{self.rest}/v2/models/{model}/infer", body, seconds)


@contextmanager
def mlserver(folder, name, models, **settings):
    """models: by name, their settings."""
    top = folder / name
    ports = [free_port() for _ in range(3)]
    for model, about in models.items():
        (top / model).mkdir(parents=True)
        (top / model / "model-settings.json").write_text(json.dumps({"name": model, **about}))
        if "predictor" in about["implementation"]:
            (top / model / "predictor.py").write_text(PREDICTOR)
    named = ("http_port", "grpc_port", "metrics_port")
    settings = {"host": "127.0.0.1", **dict(zip(named, ports, strict=True)), "parallel_workers": 0, **settings}
    (top / "settings.json").write_text(json.dumps(settings))
    with running(
        ["mlserver", "start", top], f"http://127.0.0.1:{ports[0]}/v2/health/ready", top / "log", cwd=top
    ) as pid:
        yield Server(pid, top, ports)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mlserver")


@pytest.fixture(scope="module")
def explainer(folder):
    return write_models(folder)


@pytest.fixture(scope="module")
def predictor(folder, explainer):
    about = {"implementation": "predictor.Probabilities", "parameters": {"uri": str(folder / "model.json")}}
    with mlserver(folder, "predictor", {"credit": about}) as server:
        yield server


@pytest.fixture(scope="module")
def server(folder, predictor):
    """Two models: one in process with adaptive batching on, one whose model is behind the other server."""
    limits = {"max_rows": 50, "max_bytes": 20_000, "max_seconds": 20.0}
    remote = {
        "url": f"http://{predictor.rest}/v2/models/credit/infer",
        "output": "proba",
        "timeout": 3.0,
        "attempts": 2,
    }
    models = {
        "loans": {
            "implementation": RUNTIME,
            "max_batch_size": 16,
            "max_batch_time": 0.05,
            "parameters": {"uri": str(folder / "explainer.zip"), "extra": {"limits": limits}},
        },
        "remote": {
            "implementation": RUNTIME,
            "parameters": {"uri": str(folder / "without.zip"), "extra": {"predictor": remote, "limits": limits}},
        },
    }
    with mlserver(folder, "explaining", models) as found:
        yield found


def answers(body):
    """The lines of an answer, and the whole explanation."""
    outputs = {each["name"]: each["data"] for each in body["outputs"]}
    return [json.loads(line) for line in outputs["answers"]], Explanation.from_json(outputs["explanation"][0])


def same(found, expected):
    wanted = expected.counterfactual.set_axis(expected.row, axis=0)  # the index of a request begins at 0
    pd.testing.assert_frame_equal(found.counterfactual, wanted, check_dtype=False, check_index_type=False)
    assert found.status.tolist() == expected.status.tolist()
    assert found.row.tolist() == expected.row.tolist()


def test_rest_answers_what_the_explainer_answers(server, explainer):
    rows = loans(5, seed=1)
    status, body = server.infer(v2(rows, "first", target=1, n=2))
    assert (status, body["id"]) == (200, "first")
    lines, explanation = answers(body)
    expected = explainer.explain(rows, target=1, n=2)
    same(explanation, expected)
    incomes = [None if np.isnan(income) else income for income in expected.counterfactual["income"]]
    assert [line["income"] for line in lines] == incomes
    assert {line["status"] for line in lines} == {*expected.status.tolist()}


def test_one_tensor_of_all_columns_is_rows_in_the_order_of_the_training_data(server, explainer):
    rows = loans(3, seed=2)
    tensor = {"name": "rows", "shape": [3, 2], "datatype": "FP64", "data": rows.to_numpy().ravel().tolist()}
    for path in ("infer", "explain"):
        status, body = call(f"http://{server.rest}/v2/models/loans/{path}", {"inputs": [tensor]})
        assert status == 200
        same(answers(body)[1], explainer.explain(rows))


def test_every_model_of_a_server_is_explained_at_its_own_address(server):
    for model in ("loans", "remote"):
        status, body = call(f"http://{server.rest}/v2/models/{model}/explain", v2(loans(2), model))
        assert (status, body["id"], body["model_name"]) == (200, model, model)
    assert call(f"http://{server.rest}/v2/models/nobody/explain", v2(loans(2)))[0] == 404


def test_whole_numbers_may_be_null(server, explainer):
    rows = loans(2, seed=3)
    body = v2(rows)
    body["inputs"][0]["data"][1] = None
    status, answer = server.infer(body)
    assert status == 200
    expected = explainer.explain(rows.assign(age=[float(rows["age"].iloc[0]), np.nan]))
    same(answers(answer)[1], expected)


def test_rules_a_preset_and_a_time_budget_are_those_of_explain(server, explainer):
    rows = loans(4, seed=3)
    rules = {"vary": ["income"], "ranges": {"income": [0, None]}}
    status, body = server.infer(v2(rows, rules=rules, preset="few", time_budget=10))
    assert status == 200
    lines, explanation = answers(body)
    assert explanation.found.any()
    assert all(line["age"] in (None, age) for line, age in zip(lines, rows["age"], strict=True))
    status, body = server.infer(v2(rows, rules=json.dumps(rules)))
    same(answers(body)[1], explainer.explain(rows, features=Features(vary="income", ranges={"income": (0, np.inf)})))


def test_only_the_outputs_that_are_asked_for_are_sent(server):
    _, body = server.infer({**v2(loans(1)), "outputs": [{"name": "answers"}]})
    assert [each["name"] for each in body["outputs"]] == ["answers"]


def stub(server):
    import grpc
    from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub

    channel = grpc.insecure_channel(server.grpc)
    return channel, GRPCInferenceServiceStub(channel)


def infer_request(rows, **params):
    from mlserver.grpc.dataplane_pb2 import ModelInferRequest

    request = ModelInferRequest(model_name="loans", id="by-grpc")
    for name in rows.columns:
        tensor = request.inputs.add(name=name, datatype="FP64", shape=[len(rows), 1])
        tensor.contents.fp64_contents.extend(rows[name].astype(float).tolist())
    request.parameters["explain_parameters"].string_param = json.dumps(params)
    return request


def test_grpc_answers_what_rest_answers(server, explainer):
    rows = loans(6, seed=4)
    channel, client = stub(server)
    with channel:
        found = client.ModelInfer(infer_request(rows, target="0"), timeout=120)
    assert found.id == "by-grpc"
    outputs = {each.name: each.contents.bytes_contents for each in found.outputs}
    same(Explanation.from_json(outputs["explanation"][0].decode()), explainer.explain(rows, target=0))
    assert len(outputs["answers"]) == 6


def test_grpc_has_its_own_codes_for_errors(server):
    import grpc

    channel, client = stub(server)
    with channel:
        for request, code in (
            (infer_request(loans(2), target="7"), grpc.StatusCode.INVALID_ARGUMENT),
            (infer_request(loans(51)), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            with pytest.raises(grpc.RpcError) as raised:
                client.ModelInfer(request, timeout=120)
            assert raised.value.code() == code


def changed(**columns):
    body = v2(loans(2))
    for name, values in columns.items():
        body["inputs"].append({"name": name, "shape": [len(values)], "datatype": "FP64", "data": values})
    return body


def ages(datatype, values):
    body = v2(loans(2))
    body["inputs"][0].update(datatype=datatype, data=values)
    return body


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (v2(loans(2)[["age"]]), 400, "column 'income' is missing"),
        (changed(incme=[1.0, 2.0]), 400, "Did you mean 'income'"),
        ({"inputs": [{"name": "x", "shape": [2, 3], "datatype": "FP64", "data": [1.0] * 6}]}, 400, "expected (n, 2)"),
        (
            {"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [1.0] * 3}]},
            400,
            "does not hold FP64",
        ),
        (v2(loans(2), target="granted"), 400, "Labels: 0, 1"),
        (v2(loans(2), rules={"ranges": {"age": [50, 20]}}), 400, "age"),
        (v2(loans(2), rules={"increasing": ["age"], "decreasing": ["age"]}), 400, "age"),
        (v2(loans(2), n=0), 400, "n is 0"),
        (v2(loans(2), time_budget=-1), 400, "time_budget is -1"),
        (v2(loans(2), preset="nearest"), 400, "expected one of close"),
        (v2(loans(2), targt=1), 400, "Did you mean 'target'"),
        ({**v2(loans(2)), "outputs": [{"name": "anwers"}]}, 400, "Did you mean 'answers'"),
        (v2(loans(2), "two\nlines"), 400, "expected printable characters"),
        (v2(loans(2), "für Ärzte ☃"), 400, "expected printable characters of ASCII"),
        (v2(loans(2), preset=["few"]), 400, "expected one of close"),
        (ages("INT64", [30, 30.5]), 400, "30.5 is no whole number"),
        (ages("INT64", [30, 10**30]), 400, "1e+30 is not from"),
        (ages("UINT8", [30, 300]), 400, "300 is not from 0 to 255"),
        ({**v2(loans(2)), "parameters": {"explain_parameters": "[" * 10_000}}, 400, "expected an object"),
        (v2(loans(51)), 413, "51 rows; at most 50"),
        (v2(loans(2), target="x" * 30_000), 413, "at most 20,000"),
    ],
)
def test_a_bad_request_gets_a_message_and_a_status_and_the_server_stays_up(server, body, status, said):
    found, answer = server.infer(body)
    assert (found, set(answer)) == (status, {"error"})
    assert said in answer["error"]
    assert call(f"http://{server.rest}/v2/health/live")[0] == 200


def test_what_is_no_v2_request_is_refused_by_the_server_itself(server):
    assert server.infer(b"{")[0] == 422
    assert server.infer(v2(loans(1)), model="nobody")[0] == 404


def test_requests_that_meet_in_a_batch_get_their_own_answers_by_their_own_parameters(server, explainer):
    rows = loans(40, seed=5)
    asked = [{"target": at % 2, "n": 1 + at % 3 % 2} for at in range(40)]

    def one(at):
        return server.infer(v2(rows[at : at + 1], f"batch-{at}", **asked[at]))

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(one, range(40)))
    for at, (status, body) in enumerate(found):
        assert (status, body["id"]) == (200, f"batch-{at}")
        same(answers(body)[1], explainer.explain(rows[at : at + 1], **asked[at]))
    together = [int(each) for each in re.findall(r"request_id=batch-\S+ .*together=(\d+)", server.log.read_text())]
    assert len(together) == 40
    assert max(together) > 1


def test_a_bad_request_in_a_batch_does_not_spoil_the_others(server):
    good, bad = v2(loans(2)), v2(loans(2), rules={"immutable": ["sex"]})
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda at: server.infer(bad if at % 3 else good)[0], range(12)))
    assert found == [400 if at % 3 else 200 for at in range(12)]


def test_every_request_is_in_the_log_with_its_id_and_in_the_metrics(server):
    server.infer(v2(loans(3), 'mine" 2026 forged'))
    server.infer(v2(loans(60), "too-many"))
    server.infer(v2(loans(2)[["age"]], "no-income"))
    text = server.log.read_text()
    assert re.search(r"explained request_id=mine__2026_forged rows=3 found=3 predict_calls=\d+ seconds=", text)
    assert "refused request_id=too-many rows=60 status=413" in text
    assert "refused request_id=no-income rows=unknown status=400" in text
    _, metrics = call(f"http://{server.metrics}/metrics")
    counted = dict(re.findall(r"^(cfproto_\w+_total)\{model_name=\"loans\"\} (\S+)$", metrics, re.MULTILINE))
    assert float(counted["cfproto_rows_total"]) >= float(counted["cfproto_found_total"]) >= 3
    assert float(counted["cfproto_predict_calls_total"]) > 0
    assert 'cfproto_seconds_count{model_name="loans"}' in metrics
    assert 'cfproto_requests_total{model_name="loans",status="413"}' in metrics


def test_it_says_that_it_is_ready_and_what_it_takes(server):
    assert call(f"http://{server.rest}/v2/models/loans/ready")[0] == 200
    _, about = call(f"http://{server.rest}/v2/models/loans")
    assert [(each["name"], each["datatype"]) for each in about["inputs"]] == [("age", "INT64"), ("income", "FP64")]


def test_a_model_behind_another_server_gives_the_same_answers(server, explainer):
    rows = loans(6, seed=6)
    status, body = server.infer(v2(rows), model="remote")
    assert status == 200
    found, expected = answers(body)[1], explainer.explain(rows)
    assert found.status.tolist() == expected.status.tolist()
    assert found.counterfactual_class.tolist() == expected.counterfactual_class.tolist()
    np.testing.assert_allclose(found.objective, expected.objective, rtol=0.1)


def test_a_predictor_that_begins_to_refuse_all_rows_is_502_at_once(server, predictor, folder):
    (folder / "refuse").touch()
    try:
        start = time.monotonic()
        status, answer = server.infer(v2(loans(2)), model="remote")
        assert time.monotonic() - start < 10  # of the 20 seconds of a request
    finally:
        (folder / "refuse").unlink()
    assert status == 502
    assert f"the model at http://{predictor.rest}/v2/models/credit/infer answered 400" in answer["error"]
    assert "the quota is used up" in answer["error"]
    assert server.infer(v2(loans(2)), model="remote")[0] == 200


def test_a_slow_predictor_is_504_a_broken_one_502_and_a_mended_one_answers(server, predictor):
    os.kill(predictor.pid, signal.SIGSTOP)
    try:
        status, answer = server.infer(v2(loans(2), time_budget=2), model="remote")
        assert (status, "did not answer in time" in answer["error"]) == (504, True)
        assert server.infer(v2(loans(1)))[0] == 200  # the other model is not disturbed
    finally:
        os.kill(predictor.pid, signal.SIGCONT)
    assert server.infer(v2(loans(2)), model="remote")[0] == 200
    os.kill(predictor.pid, signal.SIGKILL)
    status, answer = server.infer(v2(loans(2)), model="remote")
    assert (status, f"the model at http://{predictor.rest}" in answer["error"]) == (502, True)
    assert call(f"http://{server.rest}/v2/health/ready")[0] == 200


def test_processes_of_mlserver_answer_alike_and_keep_the_statuses(folder, explainer):
    about = {
        "implementation": RUNTIME,
        "max_batch_size": 8,
        "max_batch_time": 0.02,
        "parameters": {"uri": str(folder / "explainer.zip")},
    }
    with mlserver(folder, "processes", {"loans": about}, parallel_workers=2, metrics_dir=str(folder / "m")) as server:
        rows = loans(12, seed=7)
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda at: server.infer(v2(rows[at : at + 1], target=at % 2)), range(12)))
        for at, (_, body) in enumerate(found):
            same(answers(body)[1], explainer.explain(rows[at : at + 1], target=at % 2))
        assert server.infer(v2(rows, target=7))[0] == 400
        assert server.infer(v2(loans(1001)))[0] == 413
        status, body = call(f"http://{server.rest}/v2/models/loans/explain", v2(rows[:1]))
        assert status == 200
        same(answers(body)[1], explainer.explain(rows[:1]))
        assert "cfproto_rows_total" in call(f"http://{server.metrics}/metrics")[1]


def damaged_beside_good(folder, name):
    """Settings of two models, one of them a file of which the end is missing."""
    whole, damaged = folder / "explainer.zip", folder / f"{name}.zip"
    damaged.write_bytes(whole.read_bytes()[:-200])
    paths = {"loans": whole, "damaged": damaged}
    return {each: {"implementation": RUNTIME, "parameters": {"uri": str(path)}} for each, path in paths.items()}


def test_a_damaged_explainer_ends_a_server_that_is_starting_and_is_named_in_the_log(folder, explainer):
    models = damaged_beside_good(folder, "broken")
    with pytest.raises(TimeoutError), mlserver(folder, "stopped", models):
        pass
    said = (folder / "stopped" / "log").read_text()
    assert re.search(r"model 'damaged' cannot be loaded: \S*broken.zip is no complete zip archive", said)
    assert '"load_models_at_startup": false' in said


def test_models_that_are_loaded_one_by_one_are_served_beside_a_damaged_one(folder, explainer):
    models = damaged_beside_good(folder, "torn")
    with mlserver(folder, "one-by-one", models, load_models_at_startup=False) as server:
        repository = f"http://{server.rest}/v2/repository/models"
        status, answer = call(f"{repository}/damaged/load", b"")
        assert status == 500
        assert re.search(r"model 'damaged' cannot be loaded: \S*torn.zip is no complete zip archive", answer["error"])
        assert call(f"{repository}/loans/load", b"")[0] == 200
        assert server.infer(v2(loans(1)))[0] == 200
        assert server.infer(v2(loans(1)), model="damaged")[0] == 404
        (folder / "torn.zip").write_bytes((folder / "explainer.zip").read_bytes())
        assert call(f"{repository}/damaged/load", b"")[0] == 200
        assert server.infer(v2(loans(1)), model="damaged")[0] == 200


def test_the_page_can_be_followed_from_the_explainer_to_the_answer(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    code, about, settings = (next(b for b in blocks if b[0] == kind and word in b[1])[1] for kind, word in _BLOCKS)
    curl = next(text for kind, text in blocks if kind == "sh" and text.startswith("curl"))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    ports = {port: str(free_port()) for port in ("8080", "8081", "8082")}
    for port, free in ports.items():
        settings, curl = settings.replace(port, free), curl.replace(port, free)
    (tmp_path / "model-settings.json").write_text(about)
    (tmp_path / "settings.json").write_text(settings)
    ready = f"http://127.0.0.1:{ports['8080']}/v2/models/tumours/ready"
    with running(["mlserver", "start", "."], ready, tmp_path / "log", cwd=tmp_path):
        done = subprocess.run(["bash", "-c", curl], capture_output=True, check=True, text=True)  # noqa: S607
    body = json.loads(done.stdout)
    (answer,) = (json.loads(line) for line in body["outputs"][0]["data"])
    assert (body["id"], answer["status"], answer["counterfactual_class"]) == ("patient-17", "found", 1)
    assert answer["mean texture"] == 10.4


_BLOCKS = (("python", "save("), ("json", "max_batch_size"), ("json", "http_port"))
