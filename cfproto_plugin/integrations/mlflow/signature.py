"""The signature of a logged explainer: the columns of the training data in, lines of answers out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.helpers.kinds import library_of, load_pandas, take, to_pandas
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.integrations.requests import DEFAULTS, PARAMS
from cfproto_plugin.integrations.serving import known
from cfproto_plugin.report import HEADS, heads_beside

_NUMBERS = "biuf"  # kinds of dtypes
_TYPES = {"row": "long", "status": "string", "message": "string", "n_changes": "long"}  # the others are numbers
_EXAMPLES = 3  # rows


def example_of(explainer: CounterfactualExplainer) -> Any:
    """The first rows of the training data as MLflow can write them: a pandas frame, or an array of numbers."""
    rows = to_pandas(take(known(explainer).data, np.arange(_EXAMPLES)))
    if library_of(rows) is None and rows.dtype.kind not in _NUMBERS:
        return load_pandas().DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])]).infer_objects()
    if hasattr(rows, "select_dtypes"):  # MLflow cannot compare categories with the signature that it made of them
        kinds = {name: rows[name].cat.categories.dtype for name in rows.select_dtypes("category")}
        return rows.astype({name: kind for name, kind in kinds.items() if kind.kind not in "iub"})
    return rows


def signature_of(explainer: CounterfactualExplainer, rows: Any) -> Any:
    """An mlflow ModelSignature for rows like these."""
    load_mlflow()
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types import ParamSchema, ParamSpec, Schema

    with warnings.catch_warnings():  # a hint that integers may be missing in later rows
        warnings.filterwarnings("ignore", "(?s).*integer column", UserWarning)
        inputs = infer_signature(rows).inputs
    label = "double" if known(explainer).classes.dtype.kind in _NUMBERS else "string"
    types = {name: label if name.endswith("_class") else _TYPES.get(name, "double") for name in HEADS}
    params = [ParamSpec(name, dtype, DEFAULTS.get(name)) for name, dtype in PARAMS.items()]
    return ModelSignature(inputs, Schema(_outputs(inputs, types, np.shape(rows)[1:])), ParamSchema(params))


def _outputs(inputs: Any, types: dict[str, str], shape: tuple[int, ...]) -> list[Any]:
    """Columns of answers, of which most are missing for rows without a counterfactual.

    Whole numbers and truth values that may be missing are doubles: Spark UDFs would fail, or make False of them.
    """
    from mlflow.types import ColSpec
    from mlflow.types.schema import Array, DataType

    if not inputs.is_tensor_spec():
        whole = (DataType.boolean, DataType.integer, DataType.long)
        types_of_rows = [DataType.double if spec.type in whole else spec.type for spec in inputs.inputs]
        names = inputs.input_names()
        rows = [ColSpec(dtype, name, required=False) for dtype, name in zip(types_of_rows, names, strict=True)]
    elif len(shape) == 1:
        rows = [ColSpec("double", f"x{j}", required=False) for j in range(shape[0])]
    else:
        nested: Any = DataType.double
        for _ in shape:
            nested = Array(nested)
        rows = [ColSpec(nested, "counterfactual", required=False)]
    always = ("row", "status", "message", "n_changes")
    heads = zip(heads_beside(spec.name for spec in rows), types.items(), strict=True)
    return [*(ColSpec(dtype, name, required=head in always) for name, (head, dtype) in heads), *rows]
