"""What leads a search: prototypes, the models beside the classifier, training rows, and split values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cfproto_plugin.protocols import Array, GradientAdapter, PrototypeProvider
from cfproto_plugin.search.floors import Floors
from cfproto_plugin.search.lookup import Lookup
from cfproto_plugin.search.opinion import Opinion
from cfproto_plugin.search.plan import Plan
from cfproto_plugin.tables.geometry import Grid
from cfproto_plugin.tables.splits import Splits


@dataclass(frozen=True)
class Guide:
    """All of it, as `fit` learned it."""

    plan: Plan
    provider: PrototypeProvider
    encoder: GradientAdapter | None  # whose codes the prototypes are; None if they are points of the search space
    autoencoder: GradientAdapter | None
    train: Array  # (N, A) table of the training data
    labels: Array  # (N,) their classes, columns of the probabilities
    proba: Array  # (N,) the probability of that class
    splits: Splits | None  # where a tree model splits the columns of the table
    floors: Floors  # what answers should reach
    opinions: tuple[Opinion, ...] = ()  # small networks that should agree with the model about answers
    lookup: Lookup = field(default_factory=Lookup, compare=False)  # what is asked of the training rows again and again

    @property
    def with_codes(self) -> bool:
        """Whether an encoder or an autoencoder takes part."""
        return self.encoder is not None or self.autoencoder is not None

    def on(self, grid: Grid) -> Guide:
        """The same for columns that hold other numbers."""
        splits = None if self.splits is None else self.splits.on(grid)
        return self if splits is self.splits else replace(self, splits=splits)
