"""The searches of the MNIST experiment: which settings, which images, and results that are kept chunk by chunk.

Losses are searched by the protocols of protocol.py: with the first of c = 1, 10, 100, ... that gives a counterfactual,
or with the reference implementation's ten values and bisection.

Times are seconds of processor time of one thread: what a search takes on a core of its own, whoever else is at work.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from itertools import product
from typing import Any, Self

import numpy as np
from mnist_networks import DIGITS, Networks
from protocol import REFERENCE, TEXT
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig, adapt
from cfproto_plugin.prototypes.encoder import EncoderPrototypes

VALUES_OF_C = TEXT.values_of_c
PIXELS = 28 * 28
SAMPLE = 200  # images that tell an explainer the classes, where prototypes and bounds are given


class SharedPrototypes(EncoderPrototypes):
    """Fitted once on all the training images, then shared by explainers that see only a few of them."""

    @classmethod
    def on(cls, networks: Networks, x: np.ndarray, labels: np.ndarray) -> Self:
        provider = cls(k=5, encoder=adapt(networks.encoder, role="transform"))
        super(SharedPrototypes, provider).fit(x, labels)
        return provider

    def fit(self, z: np.ndarray, labels: np.ndarray) -> Self:  # noqa: ARG002 the protocol's arguments
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Explainers copy a provider before they fit it; this one needs neither."""
        return self

    def with_k(self, k: int | None) -> Self:
        """The same encodings, another K; None is the whole class."""
        other = copy.copy(self)
        other.k = k
        return other


@dataclass
class Found:
    """Counterfactuals of test images, one line each; class -1 and a NaN image where there is none."""

    index: np.ndarray  # place in the test set
    original_class: np.ndarray
    counterfactual_class: np.ndarray
    prototype_class: np.ndarray
    steps: np.ndarray  # gradient steps as the paper counts them
    c: np.ndarray  # the value of c it was found with
    seconds: np.ndarray  # the time of the batch until then, shared among its rows
    x: np.ndarray  # (n, 28, 28, 1)

    @classmethod
    def none(cls, index: np.ndarray, x: np.ndarray) -> Found:
        n = len(index)
        classes = [np.full(n, -1) for _ in range(3)]
        return cls(index, *classes, np.zeros(n, dtype=int), np.zeros(n), np.zeros(n), np.full_like(x, np.nan))

    @property
    def valid(self) -> np.ndarray:
        return np.asarray(self.counterfactual_class >= 0)

    def fill(self, rows: np.ndarray, e: Explanation, c: float, steps_before: int) -> np.ndarray:
        """Take over what was found for these rows; return the rows without a counterfactual."""
        good = np.isin(e.status, ("found", "fallback"))
        taken = rows[good]
        self.original_class[rows] = e.original_class
        self.counterfactual_class[taken] = e.counterfactual_class[good].astype(int)
        self.prototype_class[taken] = [-1 if kind is None else kind for kind in e.prototype_class[good]]
        self.steps[taken] = steps_before + e.n_steps[good]
        self.c[taken] = c
        self.x[taken] = e.counterfactual[good]
        return np.asarray(rows[~good])

    def taken(self, rows: np.ndarray) -> Found:
        return Found(**{name: values[rows] for name, values in self.arrays().items()})

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def join(cls, parts: list[Found]) -> Found:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True)
class Size:
    """How much is run; smaller for trying out."""

    seed: int = 0  # of the networks
    images: int = 0  # seed of the order in which test images are taken
    chunks: int = 2
    per_class: int = 5  # images of each class in a chunk
    iterations: int = TEXT.steps
    epochs: int | None = None  # of every network; None: the paper's
    train: int | None = None  # training images; None: all

    @classmethod
    def of(cls, per_class: int, **other: Any) -> Size:
        """So many images of each class in all."""
        return cls(chunks=-(-per_class // cls.per_class), **other)

    @property
    def is_full(self) -> bool:
        """Whether networks and searches are those of the experiment, not smaller ones for trying out."""
        return self.epochs is None and self.train is None and self.iterations == TEXT.steps

    @property
    def flags(self) -> str:
        """How a command was called to run this size."""
        return f" --per-class {self.chunks * self.per_class}" * (self.chunks != Size.chunks)


@dataclass(frozen=True)
class Setting:
    """A line of a table. kind: "first c" as the paper measures, "all c" as its reference, "default": the product."""

    name: str
    loss: str = ""
    kind: str = "first c"
    k: int | None = 5
    changes: tuple[tuple[str, Any], ...] = ()

    def place(self, size: Size, chunk: int) -> str:
        return f"mnist/seed{size.seed}/{self.name.replace(', ', '-').replace(' ', '-')}/{chunk}"

    def about(self, size: Size) -> dict[str, Any]:
        """All that the result depends on; the images are named where they are not those of the networks' seed."""
        about = {**asdict(self), "iterations": size.iterations, "epochs": size.epochs, "per_class": size.per_class}
        if self.kind == "default":
            about["search"] = asdict(SearchConfig(**dict(self.changes)))
        return about if size.images == size.seed else {**about, "images": size.images}


LOSSES = tuple(Setting(loss, loss) for loss in "ABCDEF")
BY_REFERENCE = tuple(
    Setting(loss + REFERENCE.suffix, loss, kind="all c", changes=(("momentum", REFERENCE.momentum),))
    for loss in "ABCDEF"
)
DEFAULTS = (Setting("default, k-d tree", kind="default"), Setting("default, encoder", "encoder", kind="default"))


@dataclass(frozen=True)
class Searches:
    """The networks, the training images and the prototypes that every search uses."""

    networks: Networks
    train: np.ndarray
    prototypes: SharedPrototypes
    iterations: int = 1000

    @classmethod
    def on(cls, networks: Networks, train: np.ndarray, labels: np.ndarray, iterations: int = 1000) -> Searches:
        return cls(networks, train, SharedPrototypes.on(networks, train, labels), iterations)

    def explainer(self, loss: str, k: int | None = 5, **settings: Any) -> CounterfactualExplainer:
        """A loss of the paper; every pixel may go from -0.5 to 0.5."""
        config = SearchConfig.paper(loss, **{"max_iterations": self.iterations, "k": None, **settings})  # k: below
        return CounterfactualExplainer(
            self.networks.classifier,
            encoder=self.networks.encoder if config.theta else None,
            autoencoder=self.networks.autoencoder if config.gamma else None,
            prototypes=self.prototypes.with_k(k) if config.theta else "kdtree",
            features=Features(ranges=dict.fromkeys(range(PIXELS), (-0.5, 0.5))),
            search=config,
        ).fit(self.train[:SAMPLE])

    def solver(self, setting: Setting) -> Callable[[np.ndarray, np.ndarray], Found]:
        """A function of places in the test set and images; made once."""
        if setting not in self._made:
            self._made[setting] = self._solver(setting)
        return self._made[setting]

    @cached_property
    def _made(self) -> dict[Setting, Callable[[np.ndarray, np.ndarray], Found]]:
        return {}

    def _solver(self, setting: Setting) -> Callable[[np.ndarray, np.ndarray], Found]:
        changes = dict(setting.changes)
        if setting.kind == "default":
            encoder = self.networks.encoder if setting.loss == "encoder" else None
            search = SearchConfig(**changes)
            made = CounterfactualExplainer(self.networks.classifier, encoder=encoder, search=search).fit(self.train)
            return lambda index, x: once(made, index, x)
        if setting.kind == "all c" or setting.loss in "EF":
            made = self.explainer(setting.loss, setting.k, **changes)
            return lambda index, x: once(made, index, x)
        by_c = [
            self.explainer(setting.loss, setting.k, **{**changes, "c_init": 10.0**number, "c_steps": 1})
            for number in range(VALUES_OF_C)
        ]
        return lambda index, x: satisfactory(by_c, index, x)


def once(explainer: CounterfactualExplainer, index: np.ndarray, x: np.ndarray) -> Found:
    """One call for all the rows."""
    found = Found.none(index, x)
    start = time.process_time()
    found.fill(np.arange(len(x)), explainer.explain(x, progress=False), explainer.search.c_init or 0.0, 0)
    found.seconds[:] = (time.process_time() - start) / len(x)
    return found


def satisfactory(by_c: Iterable[CounterfactualExplainer], index: np.ndarray, x: np.ndarray) -> Found:
    """Explainers of rising c: each row takes the counterfactual of the first that gives one."""
    found, todo, steps = Found.none(index, x), np.arange(len(x)), 0
    for explainer in by_c:
        start, tried = time.process_time(), todo
        todo = found.fill(tried, explainer.explain(x[tried], progress=False), explainer.search.c_init or 0.0, steps)
        found.seconds[tried] += (time.process_time() - start) / len(tried)
        steps += explainer.search.max_iterations
        if not len(todo):
            break
    return found


def rows_of_chunk(labels: np.ndarray, chunk: int, size: Size) -> np.ndarray:
    """Places of the test images of a chunk: the next few of every class, in an order of their own."""
    part = slice(chunk * size.per_class, (chunk + 1) * size.per_class)
    rng = np.random.default_rng(size.images)
    return np.concatenate([rng.permutation(np.flatnonzero(labels == digit))[part] for digit in DIGITS])


def run(
    searches: Callable[[], Searches],
    store: Store,
    settings: Sequence[Setting],
    chunks: Sequence[int],
    test: tuple[np.ndarray, np.ndarray],
    size: Size,
) -> dict[str, Found]:
    """What every setting found for the images of the chunks; all settings of one chunk before the next chunk."""
    x, y = test
    found: dict[str, list[Found]] = {setting.name: [] for setting in settings}

    def solve(setting: Setting, index: np.ndarray) -> Arrays:
        made: Found = searches().solver(setting)(index, x[index])
        return made.arrays()

    for chunk, setting in (bar := tqdm(list(product(chunks, settings)), disable=None)):
        bar.set_description(f"{setting.name}, chunk {chunk}")
        index = rows_of_chunk(y, chunk, size)
        kept = store.get(setting.place(size, chunk), setting.about(size), partial(solve, setting, index))
        found[setting.name].append(Found(**kept))
    return {name: Found.join(parts) for name, parts in found.items()}
