"""What the engine asks of models, prototype providers and categorical distances, and how plugins describe them.

Protocols and plain records only: nothing here knows a framework, a loss or a search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Role: TypeAlias = Literal["classifier", "transform"]
Pullback: TypeAlias = Callable[[Array], Array]
CONTRACT = 1  # raised when a plugin written for the old one would no longer work


@runtime_checkable
class ModelAdapter(Protocol):
    """A model the engine can call.

    In the role ``classifier`` the output is (n, k) probabilities with k >= 2; in the role ``transform`` (encoders and
    autoencoders) it is whatever the model computes, one item per row. It is the model's own answer, in the dtype of the
    rows, and the only one that confirms a counterfactual. The input is never modified.
    """

    def predict(self, x: Array) -> Array:
        """Map (n, *shape) to (n, k)."""
        ...


@runtime_checkable
class GradientAdapter(ModelAdapter, Protocol):
    """A model that can also pull gradients back to its input."""

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        """Return the output y of `predict` and the pullback: dL/dy, shaped like y, to dL/dx, shaped like x."""
        ...


class Capabilities(Protocol):
    """What an adapter may add to `predict`. Each member is found by its name; leave out what the model cannot do."""

    @property
    def classes(self) -> Array:
        """The labels (k,) in the order of the probability columns; 0, 1, ... by default. Read after a prediction."""
        ...

    @property
    def accepts_frames(self) -> bool:
        """Whether the model takes its columns by name: it is then given a DataFrame if the training data was one."""
        ...

    @property
    def feature_names(self) -> Sequence[str]:
        """The names of the model's columns, in the order of `thresholds` and `trees`."""
        ...

    @property
    def max_rows(self) -> int:
        """The largest batch that `predict` takes."""
        ...

    @property
    def fixed_rows(self) -> int:
        """The size of every batch, of a model that was exported for one: shorter ones are filled up with copies."""
        ...

    @property
    def scored(self) -> bool:
        """Whether the probabilities are made from scores of the model, which has none of its own; default False."""
        ...

    @property
    def row_by_row(self) -> bool:
        """Whether the answer to a row depends on nothing but the row, to the last bit: not on the batch or the call.

        True of trees. `fit` measures it where this is not said.
        """
        ...

    def session(self) -> AbstractContextManager[object]:
        """What is entered around the search of one call of `explain`, from any thread, several at a time.

        For what need not be done again at every prediction, such as switching a network to evaluation mode. `predict`
        and the others work outside of it too.
        """
        ...

    def labels(self, x: Array) -> Array:
        """The model's own decision for rows (n, *shape): columns (n,) of `predict`.

        Only where that is not the first largest probability: a threshold of its own, costs, votes.
        """
        ...

    def scores(self, x: Array) -> Array:
        """Numbers (n, k), rows summing to one, whose largest column is that of `labels`, for adapters that have it.

        They lead the search, where labels alone give no direction and probabilities the wrong one, and confirm nothing.
        """
        ...

    def quick(self, x: Array) -> Array:
        """What `predict` returns, recomputed faster, equal up to rounding. The search uses it; it confirms nothing."""
        ...

    def trees(self) -> TreeEnsemble | None:
        """The model as a sum of trees in plain arrays; None if this model is not one."""
        ...

    def thresholds(self) -> list[Array] | None:
        """Sorted split values by column, of a model that is constant between them but is no sum of trees.

        Not needed beside `trees`.
        """
        ...


class PrototypeProvider(Protocol):
    """Finds class prototypes near a point. The explainer fits a copy of a provider that was passed to it.

    `space` (optional): the encoder adapter whose codes the points are; None, or no such attribute, if they are points
    of the search space.
    """

    def fit(self, z: Array, labels: Array) -> PrototypeProvider:
        """Learn from search points (n, *s) and their classes (n,), column numbers 0 to K-1."""
        ...

    def nearest(self, z0: Array, allowed: Array) -> tuple[Array, Array]:
        """Prototypes of the allowed classes, nearest first.

        z0 are search points (n, *s), allowed is (n, K) bool. Returns points (n, m, *s), or codes (n, m, *e) if the
        provider has a `space`, and their classes (n, m). A row with fewer than m
        prototypes repeats its last one; a row without any has class -1.
        """
        ...


class CategoryDistance(Protocol):
    """Measures how different the categories of a column are."""

    def __call__(self, codes: Array, n_categories: Sequence[int], context: Array, labels: Array) -> list[Array]:
        """codes (n, C) of the categorical columns, context (n, M) binned numeric columns, labels (n,).

        Returns one symmetric (K, K) matrix with a zero diagonal per categorical column.
        """
        ...


class Tree(NamedTuple):
    """One binary tree as arrays with an entry per node; node 0 is the root.

    A node that splits by category has no threshold (NaN) and an entry in `right_codes`. The code of a value is its
    whole part; a negative value has none and goes to the left.
    """

    column: Array  # (nodes,) int: the column that the node splits, -1 at a leaf
    threshold: Array  # (nodes,) float
    left: Array  # (nodes,) int: the child for values below the threshold
    right: Array  # (nodes,) int: the child for values above it
    missing_left: Array  # (nodes,) bool: whether a missing value goes to the left
    value: Array  # (nodes, m) float: what a leaf adds to the scores; the rows of inner nodes are not used
    right_codes: Mapping[int, Array] | None = None  # by node that splits by category: the codes that go to the right


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """scores(x) = (base + sum over the trees of the value of the leaf that x falls into) / divisor, then the link.

    trees: the trees; their values have m columns. base: (m,) added once. n_columns: columns of the rows.
    link: "identity" (the scores are the probabilities), "softmax", or "logistic" (m = 1: the log-odds of the second of
        two classes).
    equal_left: whether a value equal to the threshold goes to the left (x <= t goes left) or to the right (only x < t
        goes left).
    dtype: in which rows are compared with thresholds: "float32" or "float64".
    divisor: the number of trees where they are averaged, 1 where they are added.
    missing: a value that stands for a missing one, beside NaN.
    categories: by column that is split by category, its cells in the order of their codes, where a frame holds cells
        such as "red"; a column that is not among them holds the codes themselves.
    """

    trees: tuple[Tree, ...]
    base: Array
    n_columns: int
    link: Literal["identity", "softmax", "logistic"]
    equal_left: bool
    dtype: Literal["float32", "float64"]
    divisor: float = 1.0
    missing: float = math.nan
    categories: Mapping[int, tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class ModelFile:
    """A file format of models that a plugin reads, and writes if it says so.

    suffixes: such as (".json", ".ubj"), in lower case, with the dot.
    load: load(path, *, model=None, trusted=()) -> model. model: an untrained one to load weights into, for formats that
        need it; trusted: names of types that may be restored, for formats that ask.
    save: save(model, path), or None. Saved explainers use the first suffix.
    safe: whether loading runs no code from the file. Pickles do.
    weights: whether the file holds weights only, so that load needs the model to put them into.
    asks: asks(path) -> the names of types in the file that load restores only if they are trusted, or None.
    """

    suffixes: tuple[str, ...]
    load: Callable[..., Any]
    save: Callable[[Any, Path], None] | None = None
    safe: bool = False
    weights: bool = False
    asks: Callable[[Path], Sequence[str]] | None = None


@dataclass(frozen=True)
class AdapterSpec:
    """An adapter a plugin offers.

    claims: classes as "module:Class", looked up among the modules already imported, never by importing.
    factory: factory(model, *, role="classifier", ...) -> ModelAdapter.
    priority: decides between plugins whose claims are equally near; the higher wins.
    files: the file formats of these models.
    contract: the version of this contract that the plugin was written for.
    """

    name: str
    claims: tuple[str, ...]
    factory: Callable[..., ModelAdapter]
    priority: int = 0
    files: tuple[ModelFile, ...] = ()
    contract: int = CONTRACT

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of all files."""
        return [suffix for file in self.files for suffix in file.suffixes]


@dataclass(frozen=True)
class PrototypeSpec:
    """A prototype provider a plugin offers.

    factory: factory(*, k=None, k_type="mean", encoder=None, per_class=1, seed=0) -> PrototypeProvider; each argument is
        passed only if the factory takes it.
    contract: the version of this contract that the plugin was written for.
    """

    name: str
    factory: Callable[..., PrototypeProvider]
    contract: int = CONTRACT


@dataclass(frozen=True)
class DistanceSpec:
    """A categorical distance a plugin offers.

    factory: factory(*, seed=0) -> CategoryDistance; the argument is passed only if the factory takes it.
    contract: the version of this contract that the plugin was written for.
    """

    name: str
    factory: Callable[..., CategoryDistance]
    contract: int = CONTRACT
