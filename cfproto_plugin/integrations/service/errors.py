"""Errors of a served explainer, with the HTTP status that a server answers with.

ServiceError (CfprotoError)            a request that is not answered
└── PredictorError (ModelGoneError)    the model behind a URL does not answer (502), or not in time (504)
"""

from __future__ import annotations

from http import HTTPStatus

from cfproto_plugin.errors import CfprotoError, InputError, ModelGoneError


class ServiceError(CfprotoError):
    """A request that is not answered. status: of HTTP."""

    def __init__(self, message: str, status: HTTPStatus) -> None:
        super().__init__(message)
        self.status = status


class PredictorError(ServiceError, ModelGoneError):
    """The model behind a URL does not answer, or with something else than probabilities."""


def as_service_error(error: Exception) -> ServiceError:
    """What the client is told: what is wrong with its request is its error, all else the server's."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, InputError):
        return ServiceError(str(error), HTTPStatus.BAD_REQUEST)
    kind = "" if isinstance(error, CfprotoError) else f"{type(error).__name__}: "
    return ServiceError(f"{kind}{error}", HTTPStatus.INTERNAL_SERVER_ERROR)
