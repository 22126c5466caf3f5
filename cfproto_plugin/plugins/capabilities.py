"""What an adapter or a provider can do, found out once. Nobody else asks for their optional members.

Members are looked up with `getattr`: a proxy that forwards them in `__getattr__` works on every version of Python.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from cfproto_plugin.errors import CfprotoError, PluginError
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.plugins.members import (
    batch_size,
    class_names,
    column_names,
    member,
    method,
    origin_of,
    owner_of,
    split_values,
    splits_of_trees,
    tree_ensemble,
)
from cfproto_plugin.protocols import Array, ModelAdapter, PrototypeProvider, Pullback, TreeEnsemble

_CALLS = ("predict", "quick", "vjp", "labels", "scores")  # methods that take rows


@dataclass(frozen=True)
class Call:
    """A method of an adapter: given rows of its own, at most `max_rows` at a time.

    filled: exactly `max_rows` at a time; the last row is repeated where there are fewer, and the outputs of the copies
    are left out.
    A model that works in place then harms nobody, nor does one that returns the same array each time: what it returns
    is copied. Copying the array of one row costs a microsecond; a frame is made for the call already.
    """

    method: Callable[[Any], Any]
    max_rows: int | None
    plugin: str | None
    filled: bool = False

    def __call__(self, x: Any) -> Any:
        """Return what the method returns for rows (n, *shape) or a frame."""
        try:
            if self.max_rows is None or len(x) <= self.max_rows:
                return self._whole(x)
            parts = list(_parts(x, self.max_rows))
            results = [*map(self._ask, parts[:-1]), self._whole(parts[-1])]
            return self._joined(results)
        except CfprotoError as error:
            error.plugin = error.plugin or self.plugin
            raise

    def _whole(self, x: Any) -> Any:
        """Ask about one batch, filled up if it has to be."""
        count = len(x)
        if not self.filled or count == self.max_rows or not count:
            return self._ask(x.copy(order="K") if isinstance(x, np.ndarray) else x)
        place = np.minimum(np.arange(self.max_rows or count), count - 1)
        return self._cut(self._ask(x[place] if isinstance(x, np.ndarray) else x.iloc[place]), count)

    def _ask(self, x: Any) -> Any:
        return _kept(self.method(x))

    def _cut(self, result: Any, count: int) -> Any:
        """What belongs to the first `count` rows."""
        return np.asarray(result)[:count]

    def _joined(self, results: list[Any]) -> Any:
        return np.concatenate([np.asarray(result) for result in results])


@dataclass(frozen=True)
class GradientCall(Call):
    """The method `vjp`: the pullbacks of the parts become one."""

    def _ask(self, x: Any) -> Any:
        result = self.method(x)
        return (_kept(result[0]), *result[1:]) if isinstance(result, tuple) and result else result

    def _cut(self, result: tuple[Array, Pullback], count: int) -> tuple[Array, Pullback]:
        y, pull = result

        def pullback(cotangent: Array) -> Array:
            whole = np.zeros((len(y), *cotangent.shape[1:]), dtype=cotangent.dtype)
            whole[:count] = cotangent
            return pull(whole)[:count]

        return y[:count], pullback

    def _joined(self, results: list[tuple[Array, Pullback]]) -> tuple[Array, Pullback]:
        outputs, pulls = zip(*results, strict=True)
        ends = np.cumsum([len(y) for y in outputs])[:-1]

        def pullback(cotangent: Array) -> Array:
            parts = np.split(cotangent, ends)
            return np.concatenate([pull(part) for pull, part in zip(pulls, parts, strict=True)])

        return np.concatenate(outputs), pullback


@dataclass(frozen=True)
class Adapted:
    """A model behind its adapter, and what it can do. None or False stands for what it cannot.

    It is a `ModelAdapter` itself, and a `GradientAdapter` if `vjp` is there. The methods of the adapter get rows of
    their own, in batches of at most `max_rows`, or of exactly that many if the adapter says `fixed_rows`.
    """

    name: str  # of the adapter, as plugins register it
    adapter: ModelAdapter
    origin: str  # the plugin it comes from, for messages
    predict: Callable[[Array], Array]  # the model's own answer
    quick: Callable[[Array], Array]  # for searching: the adapter's recomputation, or `predict` itself
    vjp: Callable[[Array], tuple[Array, Pullback]] | None
    labels: Callable[[Array], Array] | None
    scores: Callable[[Array], Array] | None
    accepts_frames: bool
    row_by_row: bool
    scored: bool
    feature_names: tuple[str, ...] | None
    max_rows: int | None

    @classmethod
    def of(cls, adapter: Any, name: str | None = None) -> Adapted:
        """Look at the adapter. name: what to call it if it was not made by a plugin; default: its type."""
        if isinstance(adapter, Adapted):
            return adapter
        origin = origin_of(adapter)
        name = origin.name if origin else name or type(adapter).__name__
        plugin = origin.plugin if origin else None
        fixed = batch_size(adapter, "fixed_rows")
        limit = batch_size(adapter, "max_rows") if fixed is None else fixed

        def call(name: str, kind: type[Call] = Call) -> Any:
            found = method(adapter, name)
            return None if found is None else kind(found, limit, plugin, fixed is not None)

        predict = call("predict")
        return cls(
            name=name,
            adapter=adapter,
            origin="" if origin is None else str(origin),
            predict=predict,
            quick=call("quick") or predict,
            vjp=call("vjp", GradientCall),
            labels=call("labels"),
            scores=call("scores"),
            accepts_frames=bool(getattr(adapter, "accepts_frames", False)),
            row_by_row=getattr(adapter, "row_by_row", False) is True,
            scored=getattr(adapter, "scored", False) is True,
            feature_names=column_names(adapter),
            max_rows=limit,
        )

    def session(self) -> AbstractContextManager[object]:
        """What is entered around the search of one call of `explain`."""
        found = method(self.adapter, "session")
        return nullcontext() if found is None else cast("AbstractContextManager[object]", found())

    @cached_property
    def trees(self) -> TreeEnsemble | None:
        """The model as a sum of trees. Raises ModelError if the adapter has trees that cannot be read."""
        return tree_ensemble(self.adapter)

    @property
    def has_quick(self) -> bool:
        """Whether `quick` is a recomputation of the adapter's, not `predict`."""
        return self.quick is not self.predict

    @property
    def has_classes(self) -> bool:
        """Whether the adapter names the classes."""
        return member(self.adapter, "classes", "the labels of the classes") is not None

    @cached_property
    def thresholds(self) -> list[Array] | None:
        """Split values by column of the model: its own, or those of its trees. Raises like `trees`."""
        found = split_values(self.adapter)
        return splits_of_trees(self.adapter, self.trees) if found is None and self.trees is not None else found

    def classes(self, n_columns: int) -> Array:
        """The labels of the probability columns, asked after the first prediction; 0, 1, ... if it has none."""
        return class_names(self.adapter, n_columns)

    @property
    def owner(self) -> str:
        """What messages call the adapter, with its plugin if it comes from one."""
        return owner_of(self.adapter)

    @property
    def plugin(self) -> str | None:
        """The name of the plugin it comes from."""
        origin = origin_of(self.adapter)
        return None if origin is None else origin.plugin


class FilledUp:
    """An adapter of `fixed_rows` as one that takes any number of rows; what it cannot do, this cannot either."""

    fixed_rows = None

    def __init__(self, adapter: Any) -> None:
        self._adapter, self._known = adapter, Adapted.of(adapter)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._adapter, name)
        return getattr(self._known, name) if name in _CALLS and callable(own) else own


def of_any_size(adapter: Any) -> Any:
    """The adapter itself if it takes batches of any size, else one that fills up its batches."""
    return adapter if getattr(adapter, "fixed_rows", None) is None else FilledUp(adapter)


def space_of(provider: PrototypeProvider) -> ModelAdapter | None:
    """The encoder whose codes the provider's points are; None if they are points of the search space."""
    return getattr(provider, "space", None)


def own_copy(provider: PrototypeProvider) -> PrototypeProvider:
    """A copy to be fitted, so that the user's provider stays as it is. Its encoder is shared, not copied."""
    space = space_of(provider)
    try:
        made: Any = copy.deepcopy(provider, {id(space): space})
    except Exception as error:
        raise PluginError(
            f"the provider {type(provider).__name__} cannot be copied before it is fitted ({type(error).__name__}: "
            f"{error}); give it a __deepcopy__, or register its factory and pass its name"
        ) from error
    if space is not None:
        with suppress(AttributeError):  # a provider without a place for it keeps the adapter itself
            made.space = Adapted.of(space)
    return cast("PrototypeProvider", made)


def _kept(result: Any) -> Any:
    return result.copy() if isinstance(result, np.ndarray) else result


def _parts(x: Any, size: int) -> Iterator[Any]:
    """`size` rows each, the last part shorter."""
    for start in range(0, len(x), size):
        part = take(x, slice(start, start + size))
        yield part.copy() if hasattr(part, "copy") else part  # pyarrow's tables cannot be written to
