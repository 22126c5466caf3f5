"""What all servers share: limits, batches, deadlines, rows from requests, models behind a URL. No server is needed."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError, ModelError
from cfproto_plugin.integrations.service.calls import calls_until
from cfproto_plugin.integrations.service.errors import PredictorError, ServiceError
from cfproto_plugin.integrations.service.limits import Limits
from cfproto_plugin.integrations.service.remote import RemoteModel
from cfproto_plugin.integrations.service.rows import RowReader
from cfproto_plugin.integrations.service.service import ExplainerService, as_answers, safe

log = logging.getLogger(__name__)


def loans(n=100, seed=0):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round(2)})
    return x.assign(zone=rng.choice(["north", "south"], n))


def probabilities(rows):
    """One column is enough to know the class; steps, so that answers do not depend on the batch."""
    score = np.clip((np.floor(np.asarray(rows["income"], dtype=float) / 100) - 10) / 40, 0.02, 0.98)
    return np.column_stack([1 - score, score])


@pytest.fixture(scope="module")
def explainer():
    return CounterfactualExplainer(probabilities, search=SearchConfig.close()).fit(loans())


def service(explainer, **limits):
    return ExplainerService(explainer, Limits(**limits))


async def answered(served, rows, params=None, request_id="test"):
    return await served.explain(rows, params, request_id=request_id, log=log)


def test_requests_that_ask_for_the_same_are_explained_together_and_get_their_own_lines(explainer):
    rows = loans(12, seed=1)
    parts = [rows[at : at + 1 + at % 2].reset_index(drop=True) for at in range(10)]

    async def all_of_them():
        served = service(explainer, max_batch=16, max_wait=0.2)
        try:
            return await asyncio.gather(*(answered(served, part, {"target": at % 2}) for at, part in enumerate(parts)))
        finally:
            served.close()

    for at, (found, facts) in enumerate(asyncio.run(all_of_them())):
        alone = explainer.explain(parts[at], target=at % 2)
        assert facts.together == 5  # those of the same target
        assert found.row.tolist() == alone.row.tolist()
        assert found.counterfactual.equals(alone.counterfactual)
        assert found.original.index.tolist() == alone.original.index.tolist()


def test_rows_of_other_kinds_do_not_meet(explainer):
    rows = loans(1, seed=2)

    async def both():
        served = service(explainer, max_batch=2, max_wait=0.1)
        try:
            return await asyncio.gather(answered(served, rows), answered(served, rows.astype({"age": float})))
        finally:
            served.close()

    assert [facts.together for _, facts in asyncio.run(both())] == [1, 1]


def test_a_request_does_not_join_one_whose_time_is_nearly_over(explainer):
    served = service(explainer, max_batch=8, max_wait=1.0, max_seconds=1.8)
    row = loans(1, seed=2)

    async def early_and_late():
        first = asyncio.ensure_future(answered(served, row))
        await asyncio.sleep(0.95)
        return await asyncio.gather(first, answered(served, row))

    found = asyncio.run(early_and_late())
    served.close()
    assert [facts.together for _, facts in found] == [1, 1]


def test_a_request_that_fails_in_a_batch_fails_alone(explainer):
    served = service(explainer, max_batch=4, max_wait=0.1)
    whole = served._batcher._search

    def search(rows, request, deadline):
        if (rows["age"] == 99).any():
            raise InputError("an age of 99")
        return whole(rows, request, deadline)

    served._batcher._search = search
    good, bad = loans(1, seed=3), loans(1, seed=3).assign(age=99)

    async def three():
        return await asyncio.gather(*(answered(served, each) for each in (good, bad, good)), return_exceptions=True)

    first, second, third = asyncio.run(three())
    served.close()
    assert isinstance(second, ServiceError)
    assert (second.status, str(second)) == (400, "an age of 99")
    assert first[0].found.all()
    assert third[0].found.all()


def test_a_line_that_is_too_long_is_503_and_so_is_a_request_that_waited_too_long(explainer):
    served = service(explainer, max_waiting=1, max_seconds=0.3)
    whole = served._batcher._search
    served._batcher._search = lambda *asked: (time.sleep(0.6), whole(*asked[:2], asked[2] + 9))[1]
    row = loans(1, seed=4)

    async def three():
        first = asyncio.ensure_future(answered(served, row))
        await asyncio.sleep(0.05)
        second = asyncio.ensure_future(answered(served, row))
        await asyncio.sleep(0.05)
        return await asyncio.gather(first, second, answered(served, row), return_exceptions=True)

    first, second, third = asyncio.run(three())
    served.close()
    assert first[0].found.all()
    assert (second.status, "waited" in str(second)) == (503, True)
    assert (third.status, "requests are waiting" in str(third)) == (503, True)


def test_an_error_of_the_server_is_500_and_the_next_request_is_answered(explainer):
    served = service(explainer)
    whole = served._batcher._search
    served._batcher._search = lambda *_: 1 / 0
    with pytest.raises(ServiceError, match="ZeroDivisionError") as raised:
        asyncio.run(answered(served, loans(1)))
    assert raised.value.status == 500
    served._batcher._search = whole
    assert asyncio.run(answered(served, loans(1)))[0].found.all()
    served.close()


@pytest.mark.parametrize(
    ("params", "status", "said"),
    [
        ({"target": "2"}, 400, "Labels: 0, 1"),
        ({"time_budget": 0}, 400, "time_budget is 0"),
        ({"time_budget": "soon"}, 400, "expected a positive number"),
        ({"rules": {"immutable": ["sex"]}}, 400, "sex"),
        ({"preset": ["few"]}, 400, "expected one of close"),
        ({"preset": {"few": 1}}, 400, "expected one of close"),
    ],
)
def test_params_that_cannot_be_used_are_400(explainer, params, status, said):
    with pytest.raises(ServiceError, match=said) as raised:
        asyncio.run(answered(service(explainer), loans(1), params))
    assert raised.value.status == status


@pytest.mark.parametrize(
    "given", [{"max_rows": 0}, {"max_seconds": "1"}, {"max_wait": -1}, {"threads": 1.5}, {"max_row": 3}]
)
def test_limits_that_make_no_sense_are_refused(given):
    with pytest.raises(ConfigError, match=next(iter(given))):
        Limits.of(given)


def test_ids_in_the_log_are_words(explainer, caplog):
    assert safe('a b"\n=c') == "a_b___c"
    with caplog.at_level(logging.INFO):
        asyncio.run(answered(service(explainer), loans(2), request_id="x\nforged"))
    assert "explained request_id=x_forged rows=2 found=2" in caplog.text


def test_answers_are_objects_with_null_for_what_is_missing(explainer):
    found = explainer.explain(loans(2), time_budget=5)
    first = as_answers(found)[0]
    assert first["status"] == "found"
    assert isinstance(first["age"], int)
    assert json.loads(json.dumps(first)) == first


# Rows


def test_rows_are_read_by_name_in_any_order_by_position_and_from_objects(explainer):
    reader, rows = RowReader(explainer), loans(3, seed=5)
    by_name = reader.from_columns({name: rows[name].tolist() for name in ("zone", "income", "age")})
    by_place = reader.from_array(rows.to_numpy(dtype=object))
    by_object = reader.from_records(rows.to_dict("records"))
    for found in (by_name, by_place, by_object):
        assert list(found.columns) == ["age", "income", "zone"]
        assert found["age"].dtype == "int64"
        assert found["income"].tolist() == rows["income"].tolist()
    assert reader.from_columns({"age": [1.5, None], "income": [1, 2], "zone": ["a", None]})["age"].dtype == float


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": [1], "income": [2.0]}, "column 'zone' is missing"),
        ({"age": [1], "income": [2.0], "zone": ["a"], "zon": ["a"]}, "Did you mean 'zone'"),
        ({"age": [1, 2], "income": [2.0], "zone": ["a"]}, "differ in length"),
    ],
)
def test_columns_that_do_not_fit_are_named(explainer, columns, said):
    with pytest.raises(InputError, match=said):
        RowReader(explainer).from_columns(columns)


@pytest.mark.parametrize("instances", [None, [], [[1]], [[1], [1, 2]], [{"age": 3}], "rows"])
def test_instances_that_are_no_rows_are_refused(explainer, instances):
    with pytest.raises(InputError):
        RowReader(explainer).from_records(instances)


def test_a_row_that_lacks_a_column_is_named(explainer):
    whole = {"age": 30, "income": 2000.0, "zone": "north"}
    with pytest.raises(InputError, match="column 'income' is missing in row 1"):
        RowReader(explainer).from_records([whole, {"age": 30, "zone": "north"}])
    read = RowReader(explainer).from_records([whole, {**whole, "income": None}])
    assert read["income"].isna().tolist() == [False, True]


def test_a_whole_number_of_more_than_64_bits_is_an_answer_of_its_row_or_refused(explainer):
    row = {"income": 2000.0, "zone": "north"}
    found = RowReader(explainer).from_records([{"age": 2**63, **row}, {"age": -(10**30), **row}])
    assert found["age"].dtype == float
    with pytest.raises(InputError, match="column 'age' holds a number"):
        RowReader(explainer).from_records([{"age": 10**400, **row}])


def test_a_request_that_cannot_be_read_is_in_the_log(explainer, caplog):
    served = service(explainer)
    with caplog.at_level(logging.INFO), pytest.raises(ServiceError) as raised:
        served.read(lambda: served.reader.from_records([]), request_id="mine", log=log)
    assert raised.value.status == 400
    assert "refused request_id=mine rows=unknown status=400" in caplog.text


def test_waiting_for_others_takes_a_part_of_the_time_of_a_request(explainer):
    served = service(explainer, max_batch=8, max_wait=5.0)
    start = time.monotonic()
    found, facts = asyncio.run(answered(served, loans(1), {"time_budget": 2.0}))
    assert time.monotonic() - start < 4
    assert (found.found.all(), facts.waited < 1) == (True, True)


# A model behind a URL


@contextmanager
def model_server(answer):
    """An address whose requests `answer(number, body)` answers: a status and JSON or bytes."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            status, content = answer(len(seen), body)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def as_v2(_number, body):
    columns = {each["name"]: each["data"] for each in body["inputs"]}
    found = probabilities(columns)
    return 200, {
        "outputs": [{"name": "proba", "shape": [*found.shape], "datatype": "FP64", "data": found.ravel().tolist()}]
    }


def as_v1(_number, body):
    return 200, {"predictions": probabilities(pd.DataFrame(body["instances"])).tolist()}


@pytest.mark.parametrize(("answer", "path"), [(as_v2, "/v2/models/m/infer"), (as_v1, "/v1/models/m:predict")])
def test_a_model_behind_a_url_is_explained_like_one_in_process(explainer, tmp_path, answer, path):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    rows = loans(6, seed=6)
    with model_server(answer) as (address, seen):
        loaded = CounterfactualExplainer.load(tmp_path / "explainer.zip", RemoteModel(address + path))
        before = len(seen)
        found = loaded.explain(rows)
        assert len(seen) - before == found.meta["n_predict_calls"]  # all rows of a step in one request
    assert found.counterfactual.equals(explainer.explain(rows).counterfactual)


def test_a_request_that_fails_on_the_way_is_sent_again_and_a_refusal_is_not():
    def answer(number, body):
        return (503, {}) if number < 3 else as_v2(number, body)

    with model_server(answer) as (address, seen):
        model = RemoteModel(f"{address}/v2/models/m/infer", backoff=0.01)
        assert model.predict(loans(4)).shape == (4, 2)
        assert len(seen) == 3
    with model_server(lambda *_: (400, {"error": "no such zone"})) as (address, seen):
        with pytest.raises(ModelError, match=r"answered 400.*no such zone"):
            RemoteModel(f"{address}/v2/models/m/infer").predict(loans(4))
        assert len(seen) == 1


def test_a_predictor_that_stays_broken_is_502_and_one_that_is_slow_504():
    with model_server(lambda *_: (500, b"oops")) as (address, seen):
        with pytest.raises(PredictorError, match=r"failed \(500: oops\), 3 times") as raised:
            RemoteModel(f"{address}/v2/models/m/infer", attempts=3, backoff=0.01).predict(loans(1))
        assert (raised.value.status, len(seen)) == (502, 3)
    with model_server(lambda *_: (time.sleep(1), (200, {}))[1]) as (address, _):
        with pytest.raises(PredictorError, match="did not answer in time") as raised:
            RemoteModel(f"{address}/v2/models/m/infer", timeout=0.1, attempts=2, backoff=0.01).predict(loans(1))
        assert raised.value.status == 504


def test_the_deadline_of_the_search_ends_the_attempts():
    with model_server(lambda *_: (time.sleep(5), (200, {}))[1]) as (address, _):
        start = time.monotonic()
        with calls_until(start + 0.3) as calls, pytest.raises(PredictorError):
            RemoteModel(f"{address}/v2/models/m/infer", timeout=60).predict(loans(1))
        assert calls.failure.status == 504
        assert time.monotonic() - start < 3


def test_a_service_says_502_if_its_predictor_fails_in_the_middle(explainer, tmp_path):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"broken": False}

    def answer(number, body):
        return (500, {}) if state["broken"] else as_v2(number, body)

    with model_server(answer) as (address, _):
        about = {"url": f"{address}/v2/models/m/infer", "attempts": 1}
        served = ExplainerService.load(tmp_path / "explainer.zip", limits={}, predictor=about)
        assert asyncio.run(answered(served, loans(2)))[0].found.all()
        state["broken"] = True
        with pytest.raises(ServiceError) as raised:
            asyncio.run(answered(served, loans(2)))
        assert raised.value.status == 502
        state["broken"] = False
        assert asyncio.run(answered(served, loans(2)))[0].found.all()
        served.close()


@pytest.mark.parametrize(
    "body",
    [
        {"outputs": []},
        {"outputs": [{"name": "other", "shape": [3, 2], "data": [0.5] * 6}]},
        {"outputs": [{"name": "proba", "shape": [9], "data": [0.5] * 9}]},
        {"outputs": [{"name": "proba", "shape": [3], "data": "abc"}]},
        {"predictions": [1]},
        [],
    ],
)
def test_an_answer_that_holds_no_probabilities_is_an_error_of_the_model(body):
    with model_server(lambda *_: (200, body)) as (address, _), pytest.raises(ModelError, match="model behind the URL"):
        RemoteModel(f"{address}/v2/models/m/infer", output="proba").predict(loans(3))


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, b"<html>"),
        (404, {}),
        (401, {}),
        (302, {}),
        (200, {"outputs": ["proba"]}),
        (200, {"outputs": [{"name": "proba", "shape": [1, 2], "data": [0.5, 0.5]}]}),
        (200, "nan"),
    ],
)
def test_a_predictor_that_answers_garbage_in_the_middle_is_502_at_once(explainer, tmp_path, status, content):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"good": 10**9}

    def answer(number, body):
        if number <= state["good"]:
            return as_v2(number, body)
        n = len(body["inputs"][0]["data"])
        nothing = {"outputs": [{"name": "proba", "shape": [n, 2], "data": [float("nan")] * (2 * n)}]}
        return status, nothing if content == "nan" else content

    with model_server(answer) as (address, seen):
        about = {"url": f"{address}/v2/models/m/infer", "attempts": 1}
        served = ExplainerService.load(tmp_path / "explainer.zip", limits={"max_seconds": 20}, predictor=about)
        for good in (0, 3):  # from the first call on, and in the middle of the search
            state["good"] = len(seen) + good
            start = time.monotonic()
            with pytest.raises(ServiceError) as raised:
                asyncio.run(answered(served, loans(6, seed=6)))
            assert raised.value.status == 502
            assert time.monotonic() - start < 10  # not all of the time that the request has
        state["good"] = 10**9
        assert asyncio.run(answered(served, loans(2)))[0].found.all()
        served.close()


def test_a_predictor_that_refuses_training_rows_too_is_502(explainer, tmp_path):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"refuses": False}

    def answer(number, body):
        return (400, {"error": "no such zone"}) if state["refuses"] else as_v2(number, body)

    with model_server(answer) as (address, _):
        about = {"url": f"{address}/v2/models/m/infer"}
        served = ExplainerService.load(tmp_path / "explainer.zip", limits={}, predictor=about)
        state["refuses"] = True
        with pytest.raises(ServiceError, match="no such zone") as raised:
            asyncio.run(answered(served, loans(1)))
        assert raised.value.status == 502
        served.close()


def test_a_preset_that_was_fitted_while_the_predictor_failed_is_fitted_again(explainer, tmp_path):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"good": 10**9}

    def answer(number, body):
        return as_v2(number, body) if number <= state["good"] else (200, b"oops")

    with model_server(answer) as (address, seen):
        about = {"url": f"{address}/v2/models/m/infer", "attempts": 1}
        served = ExplainerService.load(tmp_path / "explainer.zip", limits={}, predictor=about)
        for good in range(2, 9, 2):
            state["good"] = len(seen) + good
            with pytest.raises(ServiceError):
                asyncio.run(answered(served, loans(2), {"preset": "typical"}))
        state["good"] = 10**9
        found, _ = asyncio.run(answered(served, loans(5), {"preset": "typical"}))
        served.close()
    explained = CounterfactualExplainer(probabilities, search=SearchConfig.typical()).fit(loans()).explain(loans(5))
    assert found.status.tolist() == explained.status.tolist()


def test_an_answer_that_comes_byte_by_byte_does_not_outlast_the_deadline():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def trickle():
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)

        thread = threading.Thread(target=trickle)
        thread.start()
        start = time.monotonic()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/v2/models/m/infer"
        with calls_until(start + 0.5), pytest.raises(PredictorError, match="in time") as raised:
            RemoteModel(address, attempts=1).predict(loans(1))
        assert raised.value.status == 504
        assert time.monotonic() - start < 5
        thread.join()


def test_a_connection_that_the_server_closed_while_idle_is_no_failed_attempt():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        body = json.dumps(as_v2(1, {"inputs": [{"name": "income", "data": [1000.0]}]})[1]).encode()

        def once_each():
            for _ in range(2):  # the connection would be kept, and is closed
                connection, _ = listening.accept()
                with connection:
                    connection.recv(100_000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        thread = threading.Thread(target=once_each)
        thread.start()
        model = RemoteModel(f"http://127.0.0.1:{listening.getsockname()[1]}/v2/models/m/infer", attempts=1)
        assert model.predict(loans(1)).shape == (1, 2)
        time.sleep(0.1)
        assert model.predict(loans(1)).shape == (1, 2)
        thread.join()
        model.close()


def test_one_probability_is_two_columns_and_missing_numbers_are_null():
    answer = {"outputs": [{"name": "p", "shape": [2, 1], "datatype": "FP64", "data": [0.2, 0.9]}]}
    with model_server(lambda *_: (200, answer)) as (address, seen):
        model = pickle.loads(pickle.dumps(RemoteModel(f"{address}/v2/models/m/infer", classes=["no", "yes"])))  # noqa: S301
        found = model.predict(np.array([[1.0, np.nan], [2.0, 3.0]]))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.1, 0.9]])
    assert seen[0]["inputs"][0]["data"] == [1.0, None, 2.0, 3.0]
    assert model.classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://host/v2/models/m/infer", {}),
        ("http://host/predict", {}),
        ("http://host/v2/models/m/infer", {"timeout": 0}),
        ("http://host/v2/models/m/infer", {"attempts": 0}),
    ],
)
def test_addresses_and_settings_that_make_no_sense_are_refused(url, options):
    with pytest.raises(ConfigError, match="expected"):
        RemoteModel(url, **options)


@pytest.mark.parametrize("good", [0, 3, 6])
def test_a_predictor_that_refuses_all_rows_from_some_time_on_is_502_at_once(explainer, tmp_path, good):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"good": 10**9}

    def answer(number, body):
        return as_v2(number, body) if number <= state["good"] else (400, {"error": "the quota is used up"})

    with model_server(answer) as (address, seen):
        about = {"url": f"{address}/v2/models/m/infer"}
        served = ExplainerService.load(tmp_path / "explainer.zip", limits={"max_seconds": 20}, predictor=about)
        before = len(seen)
        state["good"] = before + good
        with pytest.raises(ServiceError, match=f"{address}.*answered 400.*the quota is used up") as raised:
            asyncio.run(answered(served, loans(6, seed=6)))
        assert raised.value.status == 502
        assert len(seen) - before <= good + 4  # not asked until the time is up
        state["good"] = 10**9
        assert asyncio.run(answered(served, loans(2)))[0].found.all()
        served.close()


def test_answers_that_the_predictor_confirmed_before_it_failed_are_kept(explainer, tmp_path):
    explainer.save(tmp_path / "explainer.zip", model="reference")
    state = {"good": 10**9}

    def answer(number, body):
        return as_v2(number, body) if number <= state["good"] else (400, {"error": "the quota is used up"})

    with model_server(answer) as (address, seen):
        model = RemoteModel(f"{address}/v2/models/m/infer")
        loaded = CounterfactualExplainer.load(tmp_path / "explainer.zip", model)
        state["good"] = len(seen) + 2 * loaded.explain(loans(4, seed=6)).meta["n_predict_calls"]
        found = loaded.explain(loans(4, seed=6), n=2)  # as many calls for the first answers, and none for the second
    assert found.status.tolist() == ["found", "error"] * 4
    assert all(address in message and "the quota is used up" in message for message in found.message[1::2])
    expected = explainer.explain(loans(4, seed=6)).counterfactual
    pd.testing.assert_frame_equal(found[::2].counterfactual, expected, check_dtype=False)


def test_a_predictor_that_refuses_some_rows_answers_the_others(explainer, tmp_path):
    explainer.save(tmp_path / "explainer.zip", model="reference")

    def answer(number, body):
        columns = {each["name"]: each["data"] for each in body["inputs"]}
        return (400, {"error": "too old"}) if max(columns["age"]) > 90 else as_v2(number, body)

    rows = loans(12, seed=7).assign(age=[95, 30, 96, 97, *[30] * 8])
    with model_server(answer) as (address, _):
        model = RemoteModel(f"{address}/v2/models/m/infer")
        found = CounterfactualExplainer.load(tmp_path / "explainer.zip", model).explain(rows)
    assert found.status.tolist() == ["error", "found", "error", "error", *["found"] * 8]
    assert all("too old" in message for message in found.message[~found.found])
