"""What the user calls rows, made a pandas frame or left an array; the dtypes of training wherever rows have none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfproto_plugin.helpers.kinds import library_of, to_pandas
from cfproto_plugin.tables.cells import cast, number_dtype

_EXACT = 2**53  # the integers up to here are float64 numbers


def opened(rows: Any, names: Sequence[Any] | None, dtypes: Sequence[Any] | None, library: str | None) -> Any:
    """A Series, which is one row of a frame, and frames of every kind as pandas frames; anything else as it is.

    names, dtypes: of the columns of the training data. A Series, and a frame of another library than that of the
    training data, has no dtypes that would mean anything to the model: it gets those of training wherever they hold its
    values exactly; a float column keeps its own width, as in pandas. A null in a column of integers or truth values,
    which pandas had not at training, becomes what `to_pandas` of polars makes of it: NaN among floats, None among
    objects.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.Series):
        return _typed(rows.to_frame().T, names, dtypes)
    kind = library_of(rows)
    if kind in {None, "pandas"}:
        return rows
    frame = to_pandas(rows)
    return frame if kind == library else _typed(frame, names, dtypes)


def _typed(frame: Any, names: Sequence[Any] | None, dtypes: Sequence[Any] | None) -> Any:
    """The frame in these dtypes; where they do not hold a column, pandas infers one for it."""
    if names is None or dtypes is None or set(names) != set(frame.columns) or len(names) != frame.shape[1]:
        return frame.infer_objects()
    known = dict(zip(names, dtypes, strict=True))
    own = dict(frame.dtypes.items())
    wanted = {name: own[name] if _both_float(own[name], known[name]) else known[name] for name in frame.columns}
    categories = {name: object for name, dtype in frame.dtypes.items() if hasattr(dtype, "categories")}
    made = cast(frame.astype(categories), wanted)  # categories in another order would pass for the same
    for at, dtype in enumerate(wanted.values()):
        if made.dtypes.iloc[at] != dtype:
            made.isetitem(at, _without_nullable(made.iloc[:, at].infer_objects(), dtype))
    return made


def _both_float(*dtypes: Any) -> bool:
    """Whether each is a NumPy dtype of floats: then the rows' own width means the same as in a pandas frame."""
    return all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in dtypes)


def _without_nullable(column: Any, dtype: Any) -> Any:
    """A column with missing values in a dtype that pandas needs no extension for; dtype: that of training."""
    if not isinstance(dtype, np.dtype) or not column.isna().any():
        return column
    if str(column.dtype) == "boolean":
        return column.astype(object).where(column.notna(), None)
    known = number_dtype(column.dtype)
    exact = known is not None and known.kind in "iu" and not (column.abs() > _EXACT).any()
    return column.astype(np.float64) if exact else column
