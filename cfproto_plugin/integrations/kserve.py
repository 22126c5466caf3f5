"""KServe: a saved explainer behind `/v1/models/NAME:explain`, its model in process or behind a predictor's host.

    python -m cfproto_plugin.integrations.kserve --model_name loans --explainer explainer.zip --predictor_host HOST

KServe is imported when this module is: only its servers need it.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException
from kserve import Model, ModelServer, model_server
from kserve.errors import InvalidInput

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.integrations.service.errors import as_service_error
from cfproto_plugin.integrations.service.service import ExplainerService, as_answers, as_json, safe

log = logging.getLogger("kserve.cfproto")  # KServe's handlers write it
_PATHS = {"v1": "v1/models/{}:predict", "v2": "v2/models/{}/infer"}


class CounterfactualModel(Model):  # type: ignore[misc]  # KServe is not seen by the type checker
    """Rows in, counterfactuals out. path: of the saved explainer; the others are those of `ExplainerService.load`."""

    def __init__(
        self,
        name: str,
        path: str,
        *,
        limits: Mapping[str, Any] | None = None,
        predictor: Mapping[str, Any] | None = None,
        trusted: Sequence[str] = (),
    ) -> None:
        super().__init__(name)
        self._path, self._limits, self._predictor, self._trusted = path, limits or {}, predictor, tuple(trusted)

    def load(self) -> bool:
        """Read the explainer; KServe reports it ready then."""
        self.service = ExplainerService.load(
            self._path, limits=self._limits, predictor=self._predictor, trusted=self._trusted
        )
        self.ready = True
        return True

    async def explain(self, payload: Any, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """{"instances": rows, "explain_parameters": {...}} -> {"explanations": an object for each answer}."""
        headers = headers or {}
        request_id = headers.get("x-request-id", "")
        try:
            rows, params = self.service.read(lambda: self._asked(payload, headers), request_id=request_id, log=log)
            found, _ = await self.service.explain(rows, params, request_id=request_id, log=log)
            return {"explanations": json.loads(as_json(as_answers(found)))}
        except Exception as error:
            told = as_service_error(error)
            if told.status == HTTPStatus.BAD_REQUEST:
                raise InvalidInput(str(told)) from error
            if told.status == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("failed request_id=%s", safe(request_id))
            raise HTTPException(int(told.status), str(told)) from error

    def _asked(self, payload: Any, headers: Mapping[str, str]) -> tuple[Any, Mapping[str, Any]]:
        """Rows and `explain_parameters`."""
        declared = headers.get("content-length", "")
        size = int(declared) if declared.isdigit() else len(as_json(payload))  # a body in chunks does not say its size
        self.service.limits.check_size(0, size)
        rows = self.service.reader.from_records(_object(payload, "the request").get("instances"))
        params = payload.get("explain_parameters")
        return rows, {} if params is None else _object(params, "explain_parameters")

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        """Passed on to the predictor, as every explainer of KServe does."""
        return await super().predict(payload, headers, response_headers)


def _object(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InputError(
            f"{what} is {shown(given)}; expected an object, as in "
            '{"instances": [{"age": 30}], "explain_parameters": {"target": "granted"}}'
        )
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve. Options are those of KServe's servers, and those below."""
    parser = argparse.ArgumentParser(parents=[model_server.parser], conflict_handler="resolve")
    parser.add_argument("--explainer", required=True, help="What explainer.save or `cfproto save` wrote.")
    parser.add_argument("--trust", action="append", default=[], help="A type or function that it may restore.")
    parser.add_argument("--limits", type=json.loads, default={}, help='JSON, such as {"max_rows": 100}.')
    parser.add_argument("--remote", type=json.loads, default={}, help='JSON, such as {"classes": ["no", "yes"]}.')
    given = parser.parse_args(arguments)
    predictor = None
    if given.predictor_host:
        if given.predictor_protocol not in _PATHS:
            parser.error(f"--predictor_protocol is {given.predictor_protocol}; expected {' or '.join(_PATHS)}")
        path = _PATHS[given.predictor_protocol].format(given.model_name)
        scheme = "https" if given.predictor_use_ssl else "http"
        predictor = {"url": f"{scheme}://{given.predictor_host}/{path}", **given.remote}
    model = CounterfactualModel(
        given.model_name, given.explainer, limits=given.limits, predictor=predictor, trusted=given.trust
    )
    model.load()
    ModelServer(http_port=given.http_port, grpc_port=given.grpc_port, enable_grpc=False).start([model])


if __name__ == "__main__":
    main()
