"""The runtime. Settings of MLServer in `model-settings.json`:

parameters.uri: the saved explainer. parameters.extra: "limits" (fields of `Limits`), "trusted" (types that loading may
restore), "predictor" (arguments of `RemoteModel`, if the model is behind a URL).
max_batch_size, max_batch_time: adaptive batching, done here: MLServer's own gives every request of a batch the
parameters of the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from grpc import StatusCode
from mlserver import MLModel, ModelSettings
from mlserver.context import model_context
from mlserver.errors import MLServerError
from mlserver.grpc.utils import STATUS_CODE_MAPPING
from mlserver.handlers.custom import CustomHandler, register_custom_handler
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor
from mlserver.utils import get_model_uri

from cfproto_plugin.errors import CfprotoError, ConfigError, did_you_mean
from cfproto_plugin.integrations.mlserver.metrics import metrics
from cfproto_plugin.integrations.mlserver.tensors import check_id, output_names, outputs_of, params_of, rows_of, size_of
from cfproto_plugin.integrations.service.errors import as_service_error
from cfproto_plugin.integrations.service.service import ExplainerService, safe

log = logging.getLogger("mlserver.cfproto")  # MLServer's handlers write it
_EXTRA = ("limits", "trusted", "predictor", "batching")
_ALONE = '"load_models_at_startup": false'  # of MLServer's settings
_CODES = {  # of gRPC, for statuses that MLServer does not know
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.BAD_GATEWAY: StatusCode.UNAVAILABLE,
    HTTPStatus.SERVICE_UNAVAILABLE: StatusCode.UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: StatusCode.DEADLINE_EXCEEDED,
}


class CounterfactualRuntime(MLModel):  # type: ignore[misc]  # MLServer is not seen by the type checker
    """Rows in, counterfactuals out."""

    def __init__(self, settings: ModelSettings) -> None:
        """Take over batching before MLServer begins with it, here and in the processes that it starts."""
        if settings.parameters is not None and settings.max_batch_size > 1 and settings.max_batch_time > 0:
            batching = {"max_batch": settings.max_batch_size, "max_wait": settings.max_batch_time}
            settings.parameters.extra = {**(settings.parameters.extra or {}), "batching": batching}
            settings.max_batch_size = 0
        super().__init__(settings)
        self._add_explain()
        for status, code in _CODES.items():
            STATUS_CODE_MAPPING.setdefault(int(status), code)

    async def load(self) -> bool:
        """Read the explainer; MLServer reports it ready then.

        An error ends a server that is starting, and is the answer to a client that asked to load this model.
        """
        try:
            self.service = await self._loaded()
        except Exception as error:
            kind = "" if isinstance(error, CfprotoError) else f"{type(error).__name__}: "
            text = f"model {self.name!r} cannot be loaded: {kind}{error}"
            log.error(  # noqa: TRY400 MLServer writes the traceback
                "%s. To serve the other models without it, put %s into settings.json and load models by "
                "POST /v2/repository/models/NAME/load",
                text,
                _ALONE,
            )
            raise MLServerError(text, HTTPStatus.INTERNAL_SERVER_ERROR) from error
        self._describe()
        metrics()
        return True

    async def _loaded(self) -> ExplainerService:
        extra = self._extra()
        return await asyncio.to_thread(
            ExplainerService.load,
            await get_model_uri(self.settings),
            limits={**extra.get("limits", {}), **extra.get("batching", {})},
            predictor=extra.get("predictor"),
            trusted=tuple(extra.get("trusted", ())),
        )

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The answers to the rows of a request."""
        request_id = payload.id or ""
        try:
            rows, params, names = self.service.read(lambda: self._asked(payload), request_id=request_id, log=log)
            explanation, facts = await self.service.explain(rows, params, request_id=request_id, log=log)
            outputs = outputs_of(explanation, names)
        except Exception as error:
            told = as_service_error(error)
            if told.status == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("failed request_id=%s", safe(request_id))
            metrics().refused(self.name, int(told.status))
            raise MLServerError(str(told), int(told.status)) from error
        metrics().answered(self.name, facts)
        return InferenceResponse(id=payload.id, model_name=self.name, model_version=self.version, outputs=outputs)

    def _asked(self, payload: InferenceRequest) -> tuple[Any, Mapping[str, Any], list[str]]:
        """Rows, `explain_parameters`, and the names of outputs."""
        check_id(payload)
        self.service.limits.check_size(0, size_of(payload))
        return rows_of(payload, self.service.reader), params_of(payload), output_names(payload)

    def _add_explain(self) -> None:
        """The same at the address that Seldon's explainers have.

        A handler of the class would have one address for all models of a server, and the first would get every request.
        """

        async def explain(payload: InferenceRequest) -> InferenceResponse:
            with model_context(self.settings):
                return await self.predict(payload)

        register_custom_handler(CustomHandler(rest_path=f"/v2/models/{self.name}/explain"), explain)
        self.explain = explain

    async def unload(self) -> bool:
        """End the threads; the process that only passes requests on has none."""
        service = getattr(self, "service", None)
        if service is not None:
            service.close()
        return True

    def _extra(self) -> dict[str, Any]:
        extra = dict((self.settings.parameters.extra if self.settings.parameters else None) or {})
        for name in extra:
            if name not in _EXTRA:
                raise ConfigError(
                    f"there is no setting {name!r} in parameters.extra.{did_you_mean(name, _EXTRA)} "
                    f"Known: {', '.join(_EXTRA[:-1])}"
                )
        return extra

    def _describe(self) -> None:
        """Inputs and outputs, for clients that ask what the model takes."""
        reader, settings = self.service.reader, self.settings
        if not settings.inputs:
            columns = reader.datatypes.items()
            self.inputs = [MetadataTensor(name=name, datatype=kind, shape=[-1, 1]) for name, kind in columns] or [
                MetadataTensor(name="rows", datatype="FP64", shape=[-1, *reader.shape])
            ]
        if not settings.outputs:
            names = ("answers", "explanation")
            self.outputs = [MetadataTensor(name=name, datatype="BYTES", shape=[-1, 1]) for name in names]
