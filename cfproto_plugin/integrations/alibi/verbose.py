"""What `verbose=True` prints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.objective.terms import Evaluation


@dataclass(frozen=True)
class Printer:
    """Prints the objective every so many steps."""

    every: int

    def __call__(self, step: int, c: Array, evaluation: Evaluation) -> None:
        if step % self.every:
            return
        value, gradient = evaluation.value(), evaluation.gradient
        lines = [
            f"iteration {step}, {len(c)} rows, c from {c.min():g} to {c.max():g}",
            f"  loss without L1: mean {value.mean():.4g}, smallest {value.min():.4g}",
            f"  gradient: from {gradient.min():.4g} to {gradient.max():.4g}, mean size {np.abs(gradient).mean():.4g}",
        ]
        tqdm.write("\n".join(lines))
