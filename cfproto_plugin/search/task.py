"""What a search is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.intervals import Intervals
from cfproto_plugin.search.plan import BETA
from cfproto_plugin.search.tuning import Tuning
from cfproto_plugin.tables.space import FeatureSpace, Rows


class Others(NamedTuple):
    """Answers that the lines have already, and that another has to differ from."""

    table: Array  # (n, m, A)
    by_value: bool  # another set of changed columns does not suffice

    def take(self, lines: Array) -> Others:
        """Those of some lines."""
        return self._replace(table=self.table[lines])


@dataclass(frozen=True)
class Task:
    """Lines to be answered, one for every row, and what counts as an answer. Nothing changes it."""

    rows: Rows  # (n, A), one entry per line
    allowed: Array  # (n, k) bool: the classes an answer may have
    group: Array  # (n,) ascending: the user's row that a line belongs to
    label: Array  # (n,) the row's own class, a column of the probabilities
    space: FeatureSpace
    config: SearchConfig  # with every value settled
    tuning: Tuning = field(default_factory=Tuning)
    intervals: Intervals | None = None  # of probabilities: they are the target then, and `allowed` only leads there
    others: Others | None = None
    least: Array | None = None  # (k,) the probability that an answer of every class must have; None for none
    wished: Array | None = None  # (k,) that it should have; None if there is no such wish
    proba: Array | None = None  # (n, k) what the model itself said of the rows, if they were asked about
    surest: bool = False  # the wish could not be met: on paths in codes the surest point counts, not the nearest
    lead: Array | None = None  # (n, D) points whose nearest prototypes lead the search, in place of those of the rows

    @property
    def beta(self) -> float:
        """The weight of L1."""
        return BETA if self.config.beta is None else self.config.beta

    @property
    def sources(self) -> Array:
        """(n, k) bool: the classes of training rows that may be answers."""
        return self.allowed if self.intervals is None else np.ones_like(self.allowed)

    @cached_property
    def binding(self) -> list[str]:
        """The rules and settings that an answer has to keep, by the names users give them."""
        rules, config = self.space.rules, self.config
        given = {
            "immutable": "immutable" in rules.fixed_by,
            "vary": "vary" in rules.fixed_by,
            "increasing": rules.rising.any(),
            "decreasing": rules.falling.any(),
            "ranges": np.delete(rules.declared, list(rules.grid.listed)).any(),
            "allowed": rules.allowed or rules.grid.listed,
            "relations": rules.relations,
            "max_changes": config.max_changes,
            "min_proba": config.min_proba,
            "min_typicality": config.min_typicality,
            "min_stability": config.min_stability,
            "min_confidence": config.min_confidence,
            "kappa": config.kappa,
        }
        return [name for name, value in given.items() if value]

    @cached_property
    def hard_rules(self) -> list[str]:
        """Those of them that proofs count."""
        return [name for name in self.binding if not name.startswith("min_") and name != "kappa"]

    @cached_property
    def ranged(self) -> bool:
        """Whether a column of a table stays inside the range of the training rows because it has no other."""
        return self.space.rules.ranged

    def take(self, lines: Array, config: SearchConfig) -> Task:
        """Some of the lines, under other settings."""
        return replace(
            self,
            rows=self.rows.take(lines),
            allowed=self.allowed[lines],
            group=self.group[lines],
            label=self.label[lines],
            proba=None if self.proba is None else self.proba[lines],
            config=config,
            intervals=None if self.intervals is None else self.intervals.take(lines),
            others=None if self.others is None else self.others.take(lines),
            lead=None if self.lead is None else self.lead[lines],
        )

    def __len__(self) -> int:
        return len(self.group)
