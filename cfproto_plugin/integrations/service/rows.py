"""Rows of a request in the columns of the training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.helpers.kinds import library_of, load_pandas, take, to_pandas
from cfproto_plugin.integrations.service.tensors import datatype_of
from cfproto_plugin.integrations.serving import known

_MOST_WHOLE = 2.0**63  # of 64 bits


class RowReader:
    """Makes rows like those of the training data of an explainer."""

    def __init__(self, explainer: CounterfactualExplainer) -> None:
        like = to_pandas(take(known(explainer).data, np.arange(1)))
        self._is_frame = library_of(like) is not None
        self._dtypes = {str(name): dtype for name, dtype in like.dtypes.items()} if self._is_frame else {}
        self.names: tuple[str, ...] = tuple(self._dtypes)
        self.shape: tuple[int, ...] = tuple(like.shape[1:])

    @property
    def datatypes(self) -> dict[str, str]:
        """The datatypes of V2 by column."""
        return {name: datatype_of(dtype) for name, dtype in self._dtypes.items()}

    def from_columns(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Rows from values by column, in any order."""
        if not self._is_frame:
            raise InputError(f"this explainer knows no names of columns; send one tensor of shape (n, {self._size()})")
        for name in columns:
            if name not in self._dtypes:
                raise InputError(f"there is no column {name!r}.{did_you_mean(name, self.names)} {self._columns()}")
        absent = [name for name in self.names if name not in columns]
        if absent:
            raise InputError(f"column {absent[0]!r} is missing. {self._columns()}")
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the columns differ in length: {lengths}")
        pandas = load_pandas()
        return pandas.DataFrame({name: self._column(columns[name], name) for name in self.names})

    def from_array(self, array: Any) -> Any:
        """Rows from one array (n, *shape), columns in the order of the training data; or from one row of it."""
        array = np.asarray(array)
        if array.shape == self.shape and self.shape:
            array = array[None]
        if array.shape[1:] != self.shape:
            raise InputError(
                f"the rows have the shape {array.shape}; expected (n, {self._size()})"
                + (f", columns {', '.join(self.names)}" if self._is_frame else "")
            )
        if not self._is_frame:
            return array
        return self.from_columns({name: array[:, at].tolist() for at, name in enumerate(self.names)})

    def from_records(self, instances: Any) -> Any:
        """Rows from a list: objects by column, or lists of values."""
        if not isinstance(instances, list) or not instances:
            raise InputError(f"instances is {shown(instances)}; expected a list of rows, at least one")
        if all(isinstance(each, dict) for each in instances):
            names = [*dict.fromkeys(name for each in instances for name in each)]
            self._check_complete(instances)
            return self.from_columns({name: [each.get(name) for each in instances] for name in names})
        try:
            return self.from_array(np.array(instances, dtype=object if self._is_frame else float))
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(f"the instances are no rows of equal length: {error}") from error

    def _check_complete(self, instances: Sequence[Mapping[str, Any]]) -> None:
        for at, each in enumerate(instances):
            absent = [name for name in self.names if name not in each]
            if absent:
                raise InputError(
                    f"column {absent[0]!r} is missing in row {at}; a value that is not known is null. {self._columns()}"
                )

    def _column(self, values: Sequence[Any], name: str) -> Any:
        """A pandas column of the dtype of the training data, where the values have one."""
        pandas = load_pandas()
        column = pandas.Series(list(values), dtype=object)
        kind = getattr(self._dtypes[name], "kind", "O")
        if kind in "iuf" and column.map(_is_number).all():
            try:
                numbers = column.astype(float)
            except OverflowError as error:
                raise InputError(f"column {name!r} holds a number that no float can hold") from error
            whole = kind in "iu" and bool((numbers % 1 == 0).all()) and bool((numbers.abs() < _MOST_WHOLE).all())
            return column.astype("int64") if whole else numbers
        return column.astype(bool) if kind == "b" and column.map(_is_truth).all() else column

    def _columns(self) -> str:
        return f"Columns: {', '.join(self.names)}"

    def _size(self) -> str:
        return ", ".join(map(str, self.shape))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, np.number)) and not isinstance(value, bool))


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))
