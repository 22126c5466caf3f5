"""What a peer offers: ways to explain, each prepared once per case and then timed row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cases import Case

PROOF_SECONDS = 20.0  # of a row, for methods that prove

Explain = Callable[[np.ndarray], "np.ndarray | None"]


@dataclass(frozen=True)
class Method:
    """`prepare(case)` fits and returns row -> counterfactual; `batch(case)` the same for many rows at once.

    many: also time a thousand rows in one call. A function that counts its predict calls says how many as its attribute
    `calls`, and one that proves answers whether the last is proved to be the best as `proved`.
    """

    name: str
    prepare: Callable[[Case], Explain]
    batch: Callable[[Case], Explain] | None = None
    many: bool = False
