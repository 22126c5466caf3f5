"""The explanation: `meta` and `data` as alibi has them, with their entries as attributes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, LineError


class Explanation:
    """What `CounterfactualProto.explain` returns.

    meta: name, type, explanations, params, version. data: cf, all, orig_class, orig_proba, id_proto; cf is None if no
    counterfactual was found, else a dict of X, class, proba, grads_graph and grads_num. Every entry is an attribute,
    too: `explanation.cf["X"]`.

    Of several rows the arrays have a line for each, cf["X"] and cf["proba"] with NaN and cf["class"] with -1 where none
    was found, and `all` is a list with an entry for each row. `explanation[i]` is the explanation of row i alone.
    """

    def __init__(self, meta: dict[str, Any], data: dict[str, Any], rows: list[dict[str, Any]] | None = None) -> None:
        self.meta = meta
        self.data = data
        self._rows = [data] if rows is None else rows

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for part in (self.data, self.meta):
                if name in part:
                    return part[name]
        raise AttributeError(f"the explanation has no {name!r}; it has {', '.join([*self.data, *self.meta])}")

    def __getitem__(self, item: Any) -> Any:
        """The explanation of one row, or an entry of data by its name."""
        if isinstance(item, str):
            if item in self.data:
                return self.data[item]
            raise LineError(f"the explanation has no {item!r}; it has {', '.join(self.data)}")
        if not isinstance(item, (int, np.integer)) or not -len(self) <= item < len(self):
            raise LineError(f"{shown(item)} is no row of the explanation; expected 0 to {len(self) - 1}")
        return Explanation(self.meta, self._rows[int(item)])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[row] for row in range(len(self)))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.data, *self.meta})

    def __repr__(self) -> str:
        return f"Explanation(meta={self.meta!r}, data={self.data!r})"

    def to_json(self) -> str:
        """Both parts as JSON: arrays as nested lists, NaN as null."""
        return json.dumps({"meta": _plain(self.meta), "data": _plain(self.data)}, allow_nan=False)

    @classmethod
    def from_json(cls, jsonrepr: str) -> Explanation:
        """What `to_json` wrote: lists in place of arrays."""
        found = json.loads(jsonrepr)
        if not isinstance(found, dict) or not {"meta", "data"} <= set(found):
            raise InputError("this is no explanation; expected JSON with the keys meta and data")
        return cls(found["meta"], found["data"])


def _plain(value: Any) -> Any:
    """The value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else shown(value)
