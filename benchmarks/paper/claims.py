"""What the paper claims, beside what was found here, and a verdict by one rule for all.

An effect is a relative change of a mean: -0.87 is "87 % less". Both means are of the rows that both losses found, and
the bounds are of the paired change (see paired.change). Effects are compared on the scale of log(1 + effect), on which
half and twice as much mean the same in both directions: twice "50 % less" is "75 % less". The verdict is
- "holds" if the sign is right beyond the bounds and the effect is between half and twice the paper's; where the paper
  states a direction but no number, if the sign is right beyond the bounds;
- "stronger" or "weaker" if the sign is right beyond the bounds, but the effect is more than twice or less than half;
- "not clear" if the bounds contain no effect;
- "does not hold" if the opposite is true beyond the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from common import markdown, per_cent
from paired import change

Verdict = Literal["holds", "stronger", "weaker", "not clear", "does not hold"]
LEAST, MOST = 0.5, 2.0  # of the paper's effect
RULE = (
    "Every claim is a change of a mean over the n rows that both losses found, with paired 95 % bounds. It *holds* if "
    "the sign is right beyond the bounds and the effect is between half and twice the paper's (of log(1 + effect): "
    "twice -50 % is -75 %); it is *stronger* or *weaker* if only the sign is right, *not clear* if the bounds contain "
    "0, and *does not hold* if the opposite is true beyond the bounds. Where the paper names a direction only, the "
    "sign decides."
)


@dataclass(frozen=True)
class Claim:
    """A relative change the paper states, and ours with its bounds and the number of common rows.

    paper is None where it shows a direction but no number; direction is then -1 for less, +1 for more.
    """

    name: str
    paper: float | None
    ours: float
    lower: float
    upper: float
    n: int
    direction: int = 0

    @property
    def verdict(self) -> Verdict:
        """By the rule above."""
        sign = self.direction if self.paper is None else math.copysign(1, self.paper)
        least, most = sorted((self.lower * sign, self.upper * sign))
        if most < 0:
            return "does not hold"
        if not least > 0:
            return "not clear"
        if self.paper is None:
            return "holds"
        size = math.log1p(self.ours) / math.log1p(self.paper)
        return "weaker" if size < LEAST else "stronger" if size > MOST else "holds"

    @property
    def stated(self) -> str:
        """The paper's side."""
        return {-1: "less", 1: "more"}[self.direction] if self.paper is None else per_cent(self.paper)

    @property
    def found(self) -> str:
        """Ours, with bounds if there are any."""
        if math.isnan(self.lower):
            return f"{per_cent(self.ours)} (no bounds)"
        return f"{per_cent(self.ours)} ({per_cent(self.lower)} to {per_cent(self.upper)})"


def compared(name: str, ours: Any, base: Any, rows: Any, *, paper: float | None = None, direction: int = 0) -> Claim:
    """A claim about the mean of values (n,) against others (n,) of the same rows (n,); NaN where there is none."""
    found = change(ours, base, rows)
    return Claim(name, paper, found.mean, found.lower, found.upper, found.n, direction)


def table(claims: Sequence[Claim]) -> str:
    """All claims with their verdicts."""
    body = [[claim.name, claim.stated, claim.found, str(claim.n), claim.verdict] for claim in claims]
    return markdown(["claim", "paper", "here (95 % bounds)", "n", "verdict"], body)


def beside(first: Sequence[Claim], second: Sequence[Claim], names: tuple[str, str]) -> str:
    """The same claims by two protocols."""
    body = [
        [one.name, one.stated, *(text for claim in (one, two) for text in (claim.found, str(claim.n), claim.verdict))]
        for one, two in zip(first, second, strict=True)
    ]
    columns = [text for name in names for text in (f"{name} (95 % bounds)", "n", "verdict")]
    return markdown(["claim", "paper", *columns], body)


def tally(claims: Sequence[Claim]) -> str:
    """How many of each verdict."""
    verdicts = [claim.verdict for claim in claims]
    counts = {kind: verdicts.count(kind) for kind in get_args(Verdict)}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
