"""The result of `explainer.certificate`: how far rows are from another class, as far as that is proved."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cfproto_plugin.protocols import Array


@dataclass(frozen=True, eq=False)
class Certificate:
    """One entry per row of x; arrays are read-only.

    lower_bound: (n,) no admissible change whose J is smaller leads to the target. 0 for a row that is there already,
        infinite if no admissible row is, NaN for a row that could not be read.
    exact: (n,) bool: a change that costs as much does lead there, so that no larger bound could be proved.
    original_class: (n,) the model's decision, None where it has none. message: (n,) all this in words.
    seconds: (n,) the time of every row.
    """

    lower_bound: Array
    exact: Array
    original_class: Array
    message: Array
    seconds: Array

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name).view()
            value.flags.writeable = False
            object.__setattr__(self, each.name, value)

    def __len__(self) -> int:
        return len(self.lower_bound)
