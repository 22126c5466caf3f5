"""What the paper claims, beside what was found here, and a verdict by one rule for all.

An effect is a relative change: -0.87 is "87 % less". The verdict is
- "holds" if the sign is right and the effect is at least half the paper's. Where the paper states a direction but no
  number, the sign must be right beyond the confidence bounds.
- "holds weaker" if only the sign is right;
- "does not hold" otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from common import markdown, per_cent

from cfproto_plugin.metrics import MetricRecord

Verdict = Literal["holds", "holds weaker", "does not hold"]
RULE = (
    "A claim holds if the sign is right and the effect is at least half of the paper's; where the paper names a "
    "direction only, if the confidence bounds do not overlap. It holds weaker if only the sign is right."
)


@dataclass(frozen=True)
class Claim:
    """A relative change the paper states, and ours. paper is None where it shows a direction but no number.

    direction: -1 for less, +1 for more; needed where paper is None. clear: whether our bounds stay apart.
    """

    name: str
    paper: float | None
    ours: float
    direction: int = 0
    clear: bool = True

    @property
    def verdict(self) -> Verdict:
        """By the rule above."""
        sign = self.direction if self.paper is None else math.copysign(1, self.paper)
        if not self.ours * sign > 0:
            return "does not hold"
        strong = self.clear if self.paper is None else abs(self.ours) >= abs(self.paper) / 2
        return "holds" if strong else "holds weaker"

    def line(self) -> list[str]:
        """A line of the table of claims."""
        paper = {-1: "less", 1: "more"}[self.direction] if self.paper is None else per_cent(self.paper)
        return [self.name, paper, per_cent(self.ours), self.verdict]


def compared(
    name: str, ours: MetricRecord, base: MetricRecord, *, paper: float | None = None, direction: int = 0
) -> Claim:
    """A claim about the mean of one measure against another."""
    apart = ours.upper < base.lower or base.upper < ours.lower
    return Claim(name, paper, ours.mean / base.mean - 1, direction, clear=apart)


def table(claims: Sequence[Claim]) -> str:
    """All claims with their verdicts."""
    return markdown(["claim", "paper", "here", "verdict"], [claim.line() for claim in claims])


def tally(claims: Sequence[Claim]) -> str:
    """How many of each verdict."""
    verdicts = [claim.verdict for claim in claims]
    counts = {kind: verdicts.count(kind) for kind in ("holds", "holds weaker", "does not hold")}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
