"""The types of answers in Parquet: they follow from the explainer, not from the rows of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.helpers.kinds import library_of, load_pandas, names_of, to_pandas
from cfproto_plugin.integrations.datasets.loading import load_pyarrow
from cfproto_plugin.integrations.serving import known
from cfproto_plugin.report import HEADS, heads_beside

_TEXTS, _COUNTS = ("status", "message"), ("row", "n_changes")


def feature_names(explainer: CounterfactualExplainer) -> list[str] | None:
    """The columns of the training data; None if it was an array."""
    data = known(explainer).data
    return None if library_of(data) is None else [str(name) for name in names_of(data)]


def feature_types(explainer: CounterfactualExplainer) -> dict[str, Any]:
    """The pyarrow type of each column of a counterfactual, by its name in the answers: x0, x1, ... for arrays."""
    data = to_pandas(known(explainer).data)
    if library_of(data) is None:
        if data.ndim != 2:  # noqa: PLR2004
            raise InputError(
                f"this explainer was fitted on rows of shape {data.shape[1:]}; data sets are explained if a row is a "
                "vector"
            )
        data = load_pandas().DataFrame(data, columns=[f"x{j}" for j in range(data.shape[1])])
    return {str(name): type_of(data[name], str(name)) for name in data.columns}


def head_types(explainer: CounterfactualExplainer) -> dict[str, Any]:
    """The pyarrow types of `HEADS`."""
    pa = load_pyarrow()
    label = _plain(pa.array(known(explainer).classes.tolist()).type)
    types = {
        **dict.fromkeys(_TEXTS, pa.string()),
        **dict.fromkeys(_COUNTS, pa.int64()),
        **{name: label for name in HEADS if name.endswith("_class")},
    }
    return {name: types.get(name, pa.float64()) for name in HEADS}


def answer_schema(explainer: CounterfactualExplainer, keep: Mapping[str, Any]) -> Any:
    """Columns that were kept, `HEADS`, then the counterfactual. keep: pyarrow types by the names in the rows."""
    features = feature_types(explainer)
    kept = {f"{name}_before" if name in features else name: kind for name, kind in keep.items()}
    heads = zip(heads_beside([*features, *kept]), head_types(explainer).values(), strict=True)
    columns = [*kept.items(), *heads, *features.items()]
    names = [name for name, _ in columns]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InputError(f"the answers would have two columns {twice!r}; rename one in the data, or do not keep it")
    return load_pyarrow().schema(columns)


def type_of(values: Any, name: str) -> Any:
    """The pyarrow type of a pandas column; that of its values if they are categories."""
    return _plain(as_arrow(values, name).type)


def as_arrow(values: Any, name: str) -> Any:
    """A column of pandas or pyarrow as a pyarrow array, categories as what they stand for."""
    pa = load_pyarrow()
    try:
        array = values if isinstance(values, pa.ChunkedArray) else pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"column {name!r} cannot be written to Parquet, which holds one type per column: {error}", column=name
        ) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def as_column(values: Any, kind: Any, name: str) -> Any:
    """A column as a pyarrow array of a given type."""
    pa = load_pyarrow()
    array = as_arrow(values, name)
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"column {name!r} holds {array.type}; the answers hold {kind} there: {error}. Convert the data first",
            column=name,
        ) from error


def lines_of(frame: Any, name: str, rows: Any) -> Any:
    """A column of a pandas frame or a pyarrow Table at these rows."""
    arrow = library_of(frame) == "pyarrow"
    names = frame.column_names if arrow else frame.columns
    if name not in names:
        listed = ", ".join(map(str, names))
        raise InputError(f"the rows have no column {name!r} to keep; they have {listed}", column=name)
    if arrow:
        return frame.column(name).take(load_pyarrow().array(rows))
    return frame[name].iloc[rows]


def to_frame(table: Any) -> Any:
    """A pandas frame whose dtypes follow from the types of the table, not from which values are missing."""
    pa, pandas = load_pyarrow(), load_pandas()
    nullable = {pa.from_numpy_dtype(name.lower()): name for name in _NULLABLE}
    dtypes = {kind: pandas.api.types.pandas_dtype(name) for kind, name in nullable.items()}
    return table.to_pandas(types_mapper={**dtypes, pa.bool_(): pandas.BooleanDtype()}.get)


_NULLABLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")


def keep_types(keep: Mapping[str, Any] | Sequence[str], frame: Any) -> dict[str, Any]:
    """The pyarrow types of the columns to keep: those that were named, else those of this frame."""
    pa = load_pyarrow()
    given = keep if isinstance(keep, Mapping) else dict.fromkeys(keep)
    absent = [name for name, kind in given.items() if kind is None and (frame is None or name not in frame.columns)]
    if absent:
        raise InputError(
            f"the type of the kept column {absent[0]!r} is not known; name it: keep={{{absent[0]!r}: 'int64'}}"
        )
    return {
        name: type_of(frame[name], name) if kind is None else pa.type_for_alias(kind) if isinstance(kind, str) else kind
        for name, kind in given.items()
    }


def _plain(kind: Any) -> Any:
    """The type without what Parquet and other engines do not tell apart."""
    pa = load_pyarrow()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.float64() if pa.types.is_null(kind) or pa.types.is_float16(kind) else kind


def as_rows(frame: Any, names: Sequence[str] | None, keep: Sequence[str]) -> Any:
    """The features of a frame: these columns, or an array of all that are not kept."""
    if names is None:
        return np.asarray(frame.drop(columns=list(keep), errors="ignore").to_numpy())
    absent = [name for name in names if name not in frame.columns]
    if absent:
        listed = ", ".join(map(str, frame.columns))
        raise InputError(f"the rows have no column {absent[0]!r}; they have {listed}", column=absent[0])
    return frame[list(names)]
