"""The record of how a counterfactual was found. `report.sentences.how_in_words` makes a sentence of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class How:
    """How a counterfactual was found."""

    method: str  # "path", "latent", "fista", "fallback", "product", "beam", "nearest" or "unchanged"
    prototype_class: Any = None  # label of the prototype that led there
    theta: float = math.nan  # on a path: where on it; infinite at the prototype itself
    step: int = 0  # fista: the iteration
    c: float = math.nan  # fista: the weight of L_pred
    polished_from: float = math.nan  # cost before polishing; infinite where polishing made it valid; NaN: not polished
