"""Rows from the tensors of a V2 request, and answers as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, RequestInput, ResponseOutput

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.integrations.service.rows import RowReader
from cfproto_plugin.integrations.service.service import as_answers, as_json

_WORD = 8  # bytes that a number takes at most


def size_of(payload: InferenceRequest) -> int:
    """How many bytes the request had, or how many its tensors take if that is not known."""
    headers = (payload.parameters.headers if payload.parameters else None) or {}
    declared = headers.get("content-length", "") or headers.get("Content-Length", "")
    return int(declared) if declared.isdigit() else sum(_bytes_of(each) for each in payload.inputs)


def check_id(payload: InferenceRequest) -> None:
    """MLServer sends the id back as a header, which has no line breaks."""
    if payload.id is not None and not payload.id.isprintable():
        raise InputError(f"the id of the request is {shown(payload.id)}; expected printable characters")


def rows_of(payload: InferenceRequest, reader: RowReader) -> Any:
    """One tensor per column by its name, or one tensor of all columns in the order of the training data."""
    inputs = {each.name: each for each in payload.inputs}
    if len(inputs) < len(payload.inputs):
        raise InputError("the request has two inputs of one name; expected each column once")
    if len(inputs) == 1 and not set(inputs) & set(reader.names):
        return reader.from_array(_array(payload.inputs[0]))
    return reader.from_columns({name: _column(each) for name, each in inputs.items()})


def outputs_of(explanation: Explanation, payload: InferenceRequest) -> list[ResponseOutput]:
    """The outputs that were asked for; all if none was.

    answers: (lines, 1) texts, a JSON object for each line. explanation: (1, 1), what `Explanation.from_json` reads.
    """
    made = {
        "answers": lambda: [as_json(each) for each in as_answers(explanation)],
        "explanation": lambda: [explanation.to_json()],
    }
    asked = [each.name for each in payload.outputs or []] or [*made]
    for name in asked:
        if name not in made:
            raise InputError(f"there is no output {name!r}.{did_you_mean(name, made)} Known: {', '.join(made)}")
    return [StringCodec.encode_output(name, made[name]()) for name in asked]


def params_of(payload: InferenceRequest) -> Mapping[str, Any]:
    """`explain_parameters`: an object, or its JSON, as gRPC has no objects."""
    given = getattr(payload.parameters, "explain_parameters", None) if payload.parameters else None
    if isinstance(given, str):
        import json

        try:
            given = json.loads(given)
        except ValueError:
            given = [given]
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(
            f'explain_parameters is {shown(given)}; expected an object such as {{"target": "granted", "n": 2}}'
        )
    return given


def _array(tensor: RequestInput) -> Any:
    if tensor.datatype == "BYTES":
        values = np.array(_texts_in(tensor), dtype=object)
        return values.reshape(tensor.shape) if values.size == np.prod(tensor.shape) else values
    try:
        return np.asarray(NumpyCodec.decode_input(tensor))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the input {tensor.name!r} does not hold {tensor.datatype} of shape {tensor.shape}: {error}"
        ) from error


def _column(tensor: RequestInput) -> list[Any]:
    found = _array(tensor)
    if found.ndim > 1 and found.size != len(found):
        raise InputError(f"the input {tensor.name!r} has the shape {tensor.shape}; expected (n,) or (n, 1) of a column")
    values: list[Any] = found.ravel().tolist()
    return values


def _texts_in(tensor: RequestInput) -> list[Any]:
    data = getattr(tensor.data, "root", tensor.data)
    if isinstance(data, (bytes, str)):  # one text, or the raw form of gRPC
        return [_text(each) for each in StringCodec.decode_input(tensor)]
    return [_text(each) for each in np.array(data, dtype=object).ravel().tolist()]


def _text(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise InputError(f"{value[:40]!r} is no text in UTF-8") from error


def _bytes_of(tensor: RequestInput) -> int:
    data = getattr(tensor.data, "root", tensor.data)
    if isinstance(data, (bytes, str)):
        return len(data)
    return sum(
        len(each) if isinstance(each, (bytes, str)) else _WORD for each in np.ravel(np.array(data, dtype=object))
    )
