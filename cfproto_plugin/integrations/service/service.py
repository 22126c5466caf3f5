"""An explainer as a service: a request in, its explanation and what it took out."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Self, TypeVar

from cfproto_plugin.checks import is_number, shown
from cfproto_plugin.errors import ConfigError, ModelError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.integrations.requests import Request, read_request
from cfproto_plugin.integrations.service.batching import Answered, Asked, Batcher
from cfproto_plugin.integrations.service.calls import calls_until
from cfproto_plugin.integrations.service.errors import PredictorError, ServiceError, as_service_error
from cfproto_plugin.integrations.service.limits import Limits
from cfproto_plugin.integrations.service.remote import RemoteModel
from cfproto_plugin.integrations.service.rows import RowReader
from cfproto_plugin.integrations.serving import ServedExplainer, known, without_nan
from cfproto_plugin.report import as_table

T = TypeVar("T")
_GRACE = 1.0  # seconds that a call of a model behind a URL may take beyond the time budget
_LONGEST_ID = 128
_SPECIAL = re.compile(r"[^\w.:@/+-]")  # in the id of a request, which a client chose


@dataclass(frozen=True)
class Facts:
    """What a request took. predict_calls: of the model, shared by the requests that were explained together."""

    rows: int
    found: int
    predict_calls: int
    seconds: float
    waited: float
    together: int


class ExplainerService:
    """Answers requests one by one or in batches; every request is logged with its id."""

    def __init__(self, explainer: CounterfactualExplainer, limits: Limits | None = None) -> None:
        self.explainer = explainer
        self.limits = limits or Limits()
        self.reader = RowReader(explainer)
        self._served = ServedExplainer(explainer)
        self._batcher = Batcher(self._search, self.limits)

    @classmethod
    def load(
        cls,
        path: str,
        *,
        limits: Mapping[str, Any],
        predictor: Mapping[str, Any] | None = None,
        trusted: tuple[str, ...] = (),
    ) -> Self:
        """The service of a saved explainer. predictor: arguments of `RemoteModel`, if the model is behind a URL."""
        checked = Limits.of(limits)
        try:
            model = None if predictor is None else RemoteModel(**predictor)
        except TypeError as error:
            raise ConfigError(f"predictor is {shown(predictor)}; expected arguments of RemoteModel: {error}") from error
        return cls(CounterfactualExplainer.load(path, model, trusted=trusted), checked)

    def read(self, read: Callable[[], T], *, request_id: str, log: logging.Logger) -> T:
        """What a request says. One that cannot be read is logged like any other. Raises ServiceError."""
        start = time.monotonic()
        try:
            return read()
        except Exception as error:
            raise _refused(error, request_id, log, "unknown", time.monotonic() - start) from error

    async def explain(
        self, rows: Any, params: Mapping[str, Any] | None, *, request_id: str, log: logging.Logger
    ) -> tuple[Explanation, Facts]:
        """The explanation of rows that `reader` made. Raises ServiceError."""
        start = time.monotonic()
        try:
            request = self._request(params)
            self.limits.check_size(len(rows), None)
            seconds = self.limits.max_seconds if request.time_budget is None else request.time_budget
            answered = await self._batcher.explain(Asked(rows, request, start + seconds))
        except Exception as error:
            raise _refused(error, request_id, log, f"{len(rows)}", time.monotonic() - start) from error
        facts = _facts(len(rows), answered, time.monotonic() - start)
        log.info(
            "explained request_id=%s %s", safe(request_id), " ".join(f"{k}={v:.6g}" for k, v in vars(facts).items())
        )
        return answered.explanation, facts

    def close(self) -> None:
        """End the threads."""
        self._batcher.close()

    def _request(self, params: Mapping[str, Any] | None) -> Request:
        request = read_request(params, known(self.explainer).classes)
        budget = request.time_budget
        if budget is None:
            return request
        if not is_number(budget) or not budget > 0:
            raise ConfigError(f"time_budget is {shown(budget)}; expected a positive number of seconds")
        return replace(request, time_budget=min(float(budget), self.limits.max_seconds))

    def _search(self, rows: Any, request: Request, deadline: float) -> Explanation:
        """Explain within what is left of the time. If the predictor fails, what it confirmed before is answered.

        A request of which nothing was confirmed by then is an error.
        """
        left = max(deadline - time.monotonic(), 1e-3)
        with calls_until(deadline + _GRACE) as calls:
            try:
                found = self._served.explain(rows, replace(request, time_budget=left))
            except ModelError as error:
                remote = PredictorError(str(error), HTTPStatus.BAD_GATEWAY) if calls.remote else error
                raise calls.failure or remote from error
            finally:
                if calls.failure is not None:  # a preset may have been fitted with wrong answers
                    self._served.forget(request.preset)
        if calls.failure is not None and not found.found.any():
            raise calls.failure
        return found


def safe(request_id: str) -> str:
    """An id as a word of a line of a log."""
    return _SPECIAL.sub("_", request_id)[:_LONGEST_ID]


def _refused(error: Exception, request_id: str, log: logging.Logger, rows: str, seconds: float) -> ServiceError:
    """What the client is told, after a line of the log."""
    told = as_service_error(error)
    log.info("refused request_id=%s rows=%s status=%d seconds=%.3f", safe(request_id), rows, told.status, seconds)
    return told


def as_answers(explanation: Explanation) -> list[dict[str, Any]]:
    """An object per line, null where a value is missing: how it ended, then the counterfactual by column."""
    records = without_nan(as_table(explanation)).to_dict("records")
    return [{str(name): value for name, value in each.items()} for each in records]


def as_json(value: Any) -> str:
    """Strict JSON; what it has no word for, such as dates, as text."""
    return json.dumps(value, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _facts(rows: int, answered: Answered, seconds: float) -> Facts:
    explanation = answered.explanation
    found = len(set(explanation.row[explanation.found].tolist()))
    calls = int(explanation.meta["n_predict_calls"])
    return Facts(rows, found, calls, seconds, answered.waited, answered.together)
