"""How the paper is read where it leaves something open, for all experiments alike.

TEXT takes its words: "iteratively updates delta with momentum for N optimization steps", and a satisfactory
counterfactual is "the optimal counterfactual found using FISTA for a fixed value of c for which counterfactual
instances exist". So there is momentum, and c is 1, 10, 100, ... until one gives a counterfactual, without refining it.
N is not named; 1,000 is the reference implementation's. Main tables are of TEXT.

REFERENCE is what the reference implementation in effect runs: no momentum, ten values of c with bisection, the nearest
counterfactual of all of them. Every experiment has a second table of it.

Both count gradient steps alike: N for every value of c tried before the first success, plus the step of the best
iterate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STEPS = 1000  # N
VALUES_OF_C = 10


@dataclass(frozen=True)
class Protocol:
    """A reading of the paper. first_c: stop at the first c that gives a counterfactual, else bisect and keep the
    best.
    """

    name: str
    momentum: bool
    first_c: bool
    steps: int = STEPS
    values_of_c: int = VALUES_OF_C

    @property
    def suffix(self) -> str:
        """What is added to the name of a loss in results."""
        return "" if self.name == TEXT.name else f", {self.name}"

    def settings(self, **other: Any) -> dict[str, Any]:
        """For SearchConfig.paper; one search has one value of c if the first that works is taken."""
        c_steps = 1 if self.first_c else self.values_of_c
        return {"momentum": self.momentum, "max_iterations": self.steps, "c_steps": c_steps, **other}

    @property
    def words(self) -> str:
        """For a page."""
        momentum = "with momentum" if self.momentum else "without momentum"
        rule = (
            "the first of c = 1, 10, 100, ... that gives a counterfactual"
            if self.first_c
            else (f"{self.values_of_c} values of c with bisection, the nearest counterfactual of all")
        )
        return f"{momentum}, {rule}, {self.steps:,} steps for each c"


TEXT = Protocol("text", momentum=True, first_c=True)
REFERENCE = Protocol("reference", momentum=False, first_c=False)
