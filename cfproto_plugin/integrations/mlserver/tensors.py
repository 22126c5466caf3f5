"""Rows from the tensors of a V2 request, and answers as tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, RequestInput, ResponseOutput

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.integrations.service.rows import RowReader
from cfproto_plugin.integrations.service.service import as_answers, as_json

OUTPUTS = ("answers", "explanation")
_WORD = 8  # bytes that a number takes at most
_INTEGERS = {f"{kind}{bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)}


def size_of(payload: InferenceRequest) -> int:
    """How many bytes the request had, or how many its tensors take if that is not known."""
    headers = (payload.parameters.headers if payload.parameters else None) or {}
    declared = headers.get("content-length", "") or headers.get("Content-Length", "")
    return int(declared) if declared.isdigit() else sum(_bytes_of(each) for each in payload.inputs)


def check_id(payload: InferenceRequest) -> None:
    """MLServer sends the id back as a header, which has no line breaks, and nothing but ASCII over gRPC."""
    if payload.id is not None and not (payload.id.isascii() and payload.id.isprintable()):
        raise InputError(f"the id of the request is {shown(payload.id)}; expected printable characters of ASCII")


def rows_of(payload: InferenceRequest, reader: RowReader) -> Any:
    """One tensor per column by its name, or one tensor of all columns in the order of the training data."""
    inputs = {each.name: each for each in payload.inputs}
    if len(inputs) < len(payload.inputs):
        raise InputError("the request has two inputs of one name; expected each column once")
    if len(inputs) == 1 and not set(inputs) & set(reader.names):
        return reader.from_array(_array(payload.inputs[0]))
    return reader.from_columns({name: _column(each) for name, each in inputs.items()})


def output_names(payload: InferenceRequest) -> list[str]:
    """The outputs that are asked for; all if none is."""
    asked = [*dict.fromkeys(each.name for each in payload.outputs or [])] or [*OUTPUTS]
    for name in asked:
        if name not in OUTPUTS:
            raise InputError(f"there is no output {name!r}.{did_you_mean(name, OUTPUTS)} Known: {', '.join(OUTPUTS)}")
    return asked


def outputs_of(explanation: Explanation, names: Sequence[str]) -> list[ResponseOutput]:
    """answers: (lines, 1) texts, a JSON object each. explanation: (1, 1), what `Explanation.from_json` reads."""
    made = {
        "answers": lambda: [as_json(each) for each in as_answers(explanation)],
        "explanation": lambda: [explanation.to_json()],
    }
    return [StringCodec.encode_output(name, made[name]()) for name in names]


def params_of(payload: InferenceRequest) -> Mapping[str, Any]:
    """`explain_parameters`: an object, or its JSON, as gRPC has no objects."""
    given = getattr(payload.parameters, "explain_parameters", None) if payload.parameters else None
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
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
        if tensor.datatype in _INTEGERS and isinstance(data_of(tensor), list):
            return _whole_numbers(tensor)
        return np.asarray(NumpyCodec.decode_input(tensor))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"the input {tensor.name!r} does not hold {tensor.datatype} of shape {tensor.shape}: {error}"
        ) from error


def _whole_numbers(tensor: RequestInput) -> Any:
    """Integers of JSON, None where one is missing. NumPy would cut off decimals, and knows no missing integer."""
    values = np.array(data_of(tensor), dtype=object)
    bounds = np.iinfo(tensor.datatype.lower())
    for value in values.ravel():
        whole = value is None or (isinstance(value, (int, float)) and value % 1 == 0)
        if not whole:
            raise ValueError(f"{shown(value)} is no whole number")
        if value is not None and not bounds.min <= value <= bounds.max:
            raise ValueError(f"{shown(value)} is not from {bounds.min} to {bounds.max}")
    made = values if None in values.ravel().tolist() else values.astype(tensor.datatype.lower())
    return made.reshape(tensor.shape)


def _column(tensor: RequestInput) -> list[Any]:
    found = _array(tensor)
    if found.ndim > 1 and found.size != len(found):
        raise InputError(f"the input {tensor.name!r} has the shape {tensor.shape}; expected (n,) or (n, 1) of a column")
    values: list[Any] = found.ravel().tolist()
    return values


def data_of(tensor: RequestInput) -> Any:
    """The values of a tensor: a list, or the bytes of gRPC."""
    return getattr(tensor.data, "root", tensor.data)


def _texts_in(tensor: RequestInput) -> list[Any]:
    data = data_of(tensor)
    if isinstance(data, (bytes, str)):  # one text, or the raw form of gRPC
        return [_text(each) for each in StringCodec.decode_input(tensor)]
    return [_text(each) for each in np.array(data, dtype=object).ravel().tolist()]


def _text(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise InputError(f"{value[:40]!r} is no text in UTF-8") from error


def _bytes_of(tensor: RequestInput) -> int:
    data = data_of(tensor)
    if isinstance(data, (bytes, str)):
        return len(data)
    return sum(
        len(each) if isinstance(each, (bytes, str)) else _WORD for each in np.ravel(np.array(data, dtype=object))
    )
