"""The constants of the search that trade work for distance. Measured in `benchmarks/constants.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from cfproto_plugin.protocols import Array


class Shorter(NamedTuple):
    """How a beam looks for fewer changes than an answer has, where every changed column has a price."""

    price: float  # from which it does
    longest: float  # list of changes that is tried again
    changes: int  # the most that it tries
    width: int  # sets of changed columns that go on


@dataclass(frozen=True)
class Tuning:
    """Constants that benchmarks and tests vary; users need none of them.

    More of any count finds nearer points for more predicted rows, a few per cent each.
    """

    # path
    prototypes: int = 16  # of every row
    coarse: int = 16  # points of every path, from end to end
    fine: int = 16  # points between the last coarse one of the old class and the first of the new
    rough: int = 8  # points of every path where polishing follows
    halved: bool = False  # of these every second at first, then the one before the first of another class
    # polish
    starts: int = 4  # points of a row that are polished
    start_range: float = 2.0  # times the cost of the nearest: farther points are no starts
    kept: tuple[int, ...] = (4, 1)  # points of a row that go on in round 1, 2, ...; the last number stays
    rounds: int = 20
    sparing: bool = False  # a coarse first round, the row itself as a start, pairs of changes; see `refine.polish`
    worth: float = 0.35  # share of the cost: a round that gains less is the last
    least_gain: float = 1e-2  # share of the cost: a move that gains less is not tried
    prices: int = 24  # prices of the margin that are tried in a round
    pair_slack: tuple[float, ...] = (0.0, 0.1, 0.3)  # of two changes that are tried together, see `best_pairs`
    inward: int = 8  # split values tried between the original and the current value
    outward_every: int = 4  # every which of as many split values is tried beyond the current one
    around: int = 6  # split values tried on both sides of the original; categories next to it
    largest_rise: float = 0.2  # share of the cost that a single move may add
    # wishes
    copies: int = 32  # with noise, of a point whose stability is measured
    copies_many: int = 64  # where nearly all must keep the class: a search finds points that suit a few copies alone
    many_from: float = 0.8  # share of copies that must keep it
    copies_first: float = 0.25  # of these; where they alone show that a point is not stable, no more are asked
    lost_later: float = 0.5  # how often the others lose the class then, by the first: an estimate
    wished_rows: int = 64  # training rows of a line that are looked at where no path led to such a point
    assessed: int = 8  # paths of a row on which points are looked for that meet them
    asked_first: int = 2  # points of a path or of a round that are asked at first; then twice as many, and so on
    asked_together: int = 32  # points of all paths that are asked at first, if that is more
    towards: tuple[float, ...] = (0.1, 0.5, 2.0)  # weights of the prototype that typical points are looked for with
    # beam
    beam_values: int = 17  # values tried in every column
    beam_width: int = 16  # sets of changed columns that go on
    beam_rows: int = 16_384  # points after which it ends where the number of changes is not limited
    shorter: tuple[Shorter, ...] = (  # the first whose price the changes have
        Shorter(price=3.0, longest=np.inf, changes=3, width=4),
        Shorter(price=2.0, longest=4, changes=2, width=2),
    )
    taken_back: int = 4  # changes of an answer that are taken back one after the other, of a model with gradients
    # product
    product_columns: int = 4  # the most free columns of which all combinations are tried
    product_coarse: int = 256  # combinations for every line that has nothing
    product_rows: int = 8192  # combinations for those that still have nothing
    # proofs
    proof_seconds: float = 60.0  # of a row, where no time budget is given
    # memory
    cells: int = 16_000_000  # numbers of the largest array
    lines: int = 1024  # that are searched together: with 20 columns they take some 0.3 GB, and fewer take longer

    @classmethod
    def of_trees(cls, *, wishes: bool = False) -> Self:
        """For models whose splits are known: their predictions are cheap, and a cost has many local minima.

        wishes: whether answers should be typical, stable or sure, which leaves more minima to get out of.

        Measured on 24 rows each of seven tables that judge nothing, cost under `SearchConfig.close()` by the best that
        is known, median, geometric mean and 90 % quantile, with the time of a row in a batch of 150. XGBoost: 1.00,
        1.12 and 1.46 in 2.3 ms, forests 1.12, 1.26 and 1.91 in 4.5 ms. Full rounds of eight starts within four times
        the cost of the nearest, then 4, 4 and 2 of them: 1.00, 1.08, 1.27 in 6.9 ms and 1.05, 1.17, 1.61 in 12.5 ms.

        With the wishes of the default, sixty rows each of ten cases that judge nothing: the places and the rounds that
        are added give 0.98 times the distance and 0.99 times the changed columns in 1.15 times the time; on a forest of
        a small table with sixty columns 0.89 to 0.98 times the distance.
        """
        common = cls(starts=8, start_range=1.5, kept=(8, 3, 2, 1), worth=0.05, least_gain=1e-3, prices=16, sparing=True)
        return replace(common, inward=12, around=12, worth=0.01, least_gain=1e-4) if wishes else common

    @classmethod
    def of_functions(cls) -> Self:
        """For models that only predict, which may take long: fewer predicted rows at the same cost.

        Measured on twenty rows each of twelve tables, by the constants of `Tuning()`: XGBoost as a function 0.56 times
        the predicted rows at 0.98 times the cost under `SearchConfig.close()`, 0.65 and 0.98 by default; a network as a
        function 0.62 and 0.96, 0.69 and 1.02. Calls are 1.4 to 1.6 times as many. `halved` saves another 9 % (XGBoost)
        and 7 % of the rows (a network) at 0.998 and 1.000 times the cost: forty rows each of six of the tables.
        """
        return cls(starts=3, kept=(4, 2, 1), worth=0.1, sparing=True, halved=True)

    def copies_for(self, stability: float) -> int:
        """How many copies with noise stability is measured by, where that share of them must keep the class."""
        return self.copies if stability < self.many_from else self.copies_many

    @property
    def cached(self) -> int:
        """Numbers of an array that is worked on again and again, and should stay in the processor's cache."""
        return self.cells // 32

    @property
    def network(self) -> int:
        """Numbers of a batch of a network, whose layers hold many times more: 128 images of 28x28."""
        return self.cells // 160

    @cached_property
    def price_ladder(self) -> Array:
        """Exponents (prices,) from 0, the lowest price, to 1, the highest."""
        return np.linspace(0, 1, self.prices)
