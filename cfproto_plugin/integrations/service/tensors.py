"""Rows as JSON of V2 and V1 requests, and probabilities from their answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.errors import ModelError
from cfproto_plugin.helpers.kinds import library_of
from cfproto_plugin.helpers.probabilities import two_columns
from cfproto_plugin.protocols import Array

_DATATYPES = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}  # by kind of dtype; else BYTES
_MATRIX = "input-0"


def to_v2(x: Any, *, as_columns: bool, output: str | None) -> dict[str, Any]:
    """A request of the Open Inference Protocol."""
    if as_columns and library_of(x) is not None:
        inputs = [_tensor(str(name), x[name].to_numpy(), (len(x), 1)) for name in x.columns]
        body: dict[str, Any] = {"inputs": inputs, "parameters": {"content_type": "pd"}}
    else:
        array = _numbers(x)
        body = {"inputs": [_tensor(_MATRIX, array, array.shape)]}
    return body if output is None else {**body, "outputs": [{"name": output}]}


def to_v1(x: Any, *, as_columns: bool) -> dict[str, Any]:
    """A request of KServe's V1."""
    if as_columns and library_of(x) is not None:
        columns = {str(name): _plain(x[name].to_numpy()) for name in x.columns}
        return {"instances": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]}
    array = _numbers(x)
    return {"instances": np.array(_plain(array), dtype=object).reshape(array.shape).tolist()}


def from_v2(answer: Any, n: int, output: str | None) -> Array:
    """(n, k) probabilities in an answer of V2."""
    tensors = answer.get("outputs") if isinstance(answer, dict) else None
    if not isinstance(tensors, list) or not tensors or not all(isinstance(each, dict) for each in tensors):
        raise ModelError(f"the model behind the URL answered {str(answer)[:200]}; expected a list of outputs")
    named = {tensor.get("name"): tensor for tensor in tensors}
    if output is not None and output not in named:
        raise ModelError(f"the model behind the URL has no output {output!r}; it has {', '.join(map(str, named))}")
    chosen = tensors[0] if output is None else named[output]
    try:
        return _probabilities(np.asarray(chosen["data"], dtype=float).reshape(chosen["shape"]), n)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"the output {chosen.get('name')!r} of the model behind the URL is no tensor: {error}"
        ) from error


def from_v1(answer: Any, n: int) -> Array:
    """(n, k) probabilities in an answer of V1."""
    found = answer.get("predictions") if isinstance(answer, dict) else None
    try:
        return _probabilities(np.asarray(found, dtype=float), n)
    except ModelError:
        raise
    except (TypeError, ValueError) as error:
        raise ModelError(f"the model behind the URL answered {str(answer)[:200]}; expected predictions") from error


def _probabilities(y: Array, n: int) -> Array:
    """One probability a row becomes two columns."""
    if y.shape in {(n,), (n, 1)}:
        y = two_columns(y)
    if y.ndim != 2 or len(y) != n:  # noqa: PLR2004
        raise ModelError(
            f"the model behind the URL answered with shape {y.shape} for {n} rows; expected ({n}, k) probabilities"
        )
    return y


def datatype_of(dtype: Any) -> str:
    """The datatype of V2 for values of a dtype of NumPy or pandas."""
    return _DATATYPES.get(getattr(dtype, "kind", "O"), "BYTES")


def _tensor(name: str, values: Array, shape: tuple[int, ...]) -> dict[str, Any]:
    datatype = datatype_of(values.dtype)
    if datatype == "BYTES" and all(value is None or isinstance(value, (int, float)) for value in values.ravel()):
        datatype = "FP64"  # numbers that are kept as objects because some are missing
    found = {"name": name, "shape": list(shape), "datatype": datatype, "data": _plain(values)}
    return {**found, "parameters": {"content_type": "str"}} if datatype == "BYTES" else found


def _plain(values: Array) -> list[Any]:
    """The values as JSON has them, null where they are missing."""
    flat = values.ravel().tolist()
    return [None if value is None or value != value else value for value in flat]  # noqa: PLR0124 NaN


def _numbers(x: Any) -> Array:
    return np.asarray(x if library_of(x) is None else x.to_numpy())
