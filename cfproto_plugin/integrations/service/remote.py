"""A model behind a URL: the Open Inference Protocol (V2) or KServe's V1, as an adapter.

All rows of a step go in one request. Predictions change nothing, so that a request which failed on the way is sent
again, after a pause that doubles each time, until the deadline of the search.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from cfproto_plugin.checks import is_count, is_number, shown
from cfproto_plugin.errors import ConfigError, ModelError
from cfproto_plugin.helpers.kinds import library_of
from cfproto_plugin.integrations.service.calls import present_calls
from cfproto_plugin.integrations.service.errors import PredictorError
from cfproto_plugin.integrations.service.tensors import from_v1, from_v2, to_v1, to_v2
from cfproto_plugin.protocols import Array

_AGAIN = {408, 429, 500, 502, 503, 504}  # of which another attempt may know better
_REFUSED = {400, 413, 422}  # it does not take these rows, as a model does that raises
_REFUSALS = 2  # in a row, after which it may refuse all rows
_MOST_BYTES = 2**30  # of an answer
_SHOWN = 300  # characters of an answer in a message
_LEAST_SECONDS = 0.01


class RemoteModel:
    """Probabilities from a server. Pass it to an explainer as its model, or to `load` in place of the one it was.

    url: of V2 (".../v2/models/NAME/infer") or V1 (".../v1/models/NAME:predict"). classes: the labels in the order of
    the probabilities; 0, 1, ... by default. output: the name of the tensor with the probabilities; default: the first.
    as_columns: whether rows are sent as one tensor per column (V1: objects by name) or as one of numbers; default: as
    columns if they have text. timeout: seconds for one request. attempts: requests, the first included.
    backoff: seconds before the second.
    """

    accepts_frames = True

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[Any] | None = None,
        output: str | None = None,
        as_columns: bool | None = None,
        timeout: float = 10.0,
        attempts: int = 4,
        backoff: float = 0.1,
    ) -> None:
        parts = urlsplit(url)
        self._v1 = parts.path.endswith(":predict")
        if (
            parts.scheme not in {"http", "https"}
            or not parts.hostname
            or not (self._v1 or parts.path.endswith("/infer"))
        ):
            raise ConfigError(
                f"url is {shown(url)}; expected http://HOST/v2/models/NAME/infer or http://HOST/v1/models/NAME:predict"
            )
        if not is_number(timeout) or not timeout > 0 or not is_number(backoff) or backoff < 0:
            raise ConfigError(f"timeout is {shown(timeout)} and backoff {shown(backoff)}; expected positive seconds")
        if not is_count(attempts):
            raise ConfigError(f"attempts is {shown(attempts)}; expected a whole number of at least 1")
        self.url = url
        self._parts, self._output, self._as_columns = parts, output, as_columns
        self._timeout, self._attempts, self._backoff = timeout, attempts, backoff
        self._classes = None if classes is None else np.asarray(list(classes))
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._taken: bytes | None = None  # a request of one row that was answered
        self._refusals = 0  # in a row
        if self._classes is not None:
            self.classes = self._classes

    def predict(self, x: Any) -> Array:
        """(n, k) probabilities for the rows of a frame, or an array (n, *shape)."""
        answer = self._answer(self._body(x))
        self._refusals = 0
        if self._taken is None and len(x):
            self._taken = self._body(x[:1])
        try:
            found = from_v1(answer, len(x)) if self._v1 else from_v2(answer, len(x), self._output)
        except ModelError as error:
            raise self._failed(f"gave no probabilities: {error}", HTTPStatus.BAD_GATEWAY) from error
        if len(found) and np.isnan(found).any(axis=1).all():
            raise self._failed(f"gave no probabilities: NaN for all of {len(found)} rows", HTTPStatus.BAD_GATEWAY)
        return found

    def _body(self, x: Any) -> bytes:
        as_columns = self._as_columns if self._as_columns is not None else _has_text(x)
        body = to_v1(x, as_columns=as_columns) if self._v1 else to_v2(x, as_columns=as_columns, output=self._output)
        return json.dumps(body, allow_nan=False).encode()

    def _answer(self, body: bytes) -> Any:
        """The JSON that the server answers with, by as many attempts as it takes."""
        calls, attempt = present_calls(), 0
        calls.remote = True
        if calls.failure is not None:  # more attempts would not mend it
            raise calls.failure
        while True:
            left, attempt = calls.left(), attempt + 1
            if left <= 0:
                raise self._failed("did not answer in time", HTTPStatus.GATEWAY_TIMEOUT)
            try:
                return self._sent(body, min(self._timeout, left))
            except (OSError, http.client.HTTPException, _TryAgainError) as error:
                pause = self._backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 spreads clients
                late = isinstance(error, TimeoutError)
                if attempt >= self._attempts or pause >= calls.left():
                    status = HTTPStatus.GATEWAY_TIMEOUT if late else HTTPStatus.BAD_GATEWAY
                    why = "did not answer in time" if late else f"failed ({_words(error)})"
                    raise self._failed(f"{why}, {attempt} times", status) from error
                time.sleep(pause)

    def _failed(self, why: str, status: HTTPStatus) -> PredictorError:
        error = PredictorError(f"the model at {self.url} {why}", status)
        present_calls().failure = error
        return error

    def _sent(self, body: bytes, seconds: float) -> Any:
        """One request and its answer, as JSON."""
        status, content = self._exchanged(body, seconds)
        if status in _AGAIN:
            raise _TryAgainError(f"{status}: {_text(content)}")
        if status in _REFUSED:
            raise self._refusal(body, f"{status}: {_text(content)}")
        if status != HTTPStatus.OK:
            raise self._failed(f"answered {status}: {_text(content)}", HTTPStatus.BAD_GATEWAY)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._failed(f"answered with no JSON: {_text(content)}", HTTPStatus.BAD_GATEWAY) from error

    def _refusal(self, body: bytes, said: str) -> ModelError:
        """Are these rows refused, or all? After two refusals in a row, a row that was taken before is asked about."""
        self._refusals += 1
        if self._taken is not None and body == self._taken:
            return self._failed(f"answered {said}, also for a row that it took before", HTTPStatus.BAD_GATEWAY)
        if self._taken is not None and self._refusals >= _REFUSALS:
            self._answer(self._taken)
            self._refusals = 0
        return ModelError(f"the model at {self.url} answered {said}")

    def _exchanged(self, body: bytes, seconds: float) -> tuple[int, bytes]:
        """Status and content of an answer. A kept connection that the server closed meanwhile is no failed attempt."""
        end = time.monotonic() + seconds
        try:
            kept = self._idle.pop()
        except IndexError:
            return self._by(self._new_connection(), body, seconds)
        try:
            return self._by(kept, body, seconds)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            return self._by(self._new_connection(), body, max(end - time.monotonic(), _LEAST_SECONDS))

    def _by(self, connection: http.client.HTTPConnection, body: bytes, seconds: float) -> tuple[int, bytes]:
        """The answer over a connection, which is kept for the next request unless something failed on the way."""
        connection.timeout = seconds
        try:
            with _cut_after(seconds, connection):
                connection.request("POST", self._path(), body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                content = response.read(_MOST_BYTES)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return response.status, content

    def _new_connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port)

    def close(self) -> None:
        """Close connections that are open and not in use; the next request opens a new one."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def _path(self) -> str:
        return f"{self._parts.path}?{self._parts.query}" if self._parts.query else self._parts.path

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_idle": deque(), "_taken": None}


@contextmanager
def _cut_after(seconds: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer: the timeout of a socket begins anew with every byte."""
    cut = threading.Event()

    def end() -> None:
        cut.set()
        sock = connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    if connection.sock is None:
        connection.connect()
    connection.sock.settimeout(seconds)
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if cut.is_set():
            raise TimeoutError(f"no whole answer in {seconds:.3g} seconds") from error
        raise
    finally:
        timer.cancel()
    if cut.is_set():
        raise TimeoutError(f"no whole answer in {seconds:.3g} seconds")


class _TryAgainError(Exception):
    """An answer of which another attempt may know better."""


def _has_text(x: Any) -> bool:
    return library_of(x) is not None and any(getattr(dtype, "kind", "O") not in "biuf" for dtype in x.dtypes)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _text(content: bytes) -> str:
    return content[:_SHOWN].decode(errors="replace")
