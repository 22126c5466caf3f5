"""The paper's MNIST experiment, losses A to F: `CFPROTO_DATA=... python benchmarks/paper/mnist.py`.

1,500 counterfactuals per loss, as in the paper: 50 test images of each class with the networks of three seeds, each
trained anew. Every network and every chunk of 50 images has a file of its own below .cache/paper, so that a run that
was stopped goes on where it was. What stands in benchmarks/results/paper/mnist_rows.csv is not searched again either,
and a smaller run reports all of it; where all is there no network is needed, and pictures stay as they are. `--hours 2`
begins no chunk later than that and reports the chunks that all losses have. `--fresh` goes on from .cache/paper alone,
`--fresh defaults` searches the product's own lines again, which also happens when its default settings are others.
Writes benchmarks/results/paper/mnist*.csv, mnist_facts.json and docs/paper-mnist.md with its pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # what the product says about small networks; times are of one core

import numpy as np
import torch
from common import Places
from mnist_networks import DIGITS, Networks, apply
from mnist_rows import ABOUT, Recorded, joined
from mnist_searches import BY_REFERENCE, DEFAULTS, LOSSES, Found, Searches, Setting, Size, rows_of_chunk, run
from store import Arrays, Store

from cfproto_plugin import SearchConfig
from cfproto_plugin.datasets import load_mnist
from cfproto_plugin.metrics import elastic_net, im1, im2, l0, l1, neighbour_distance

TIMED = 3  # images that are timed alone
STEPS_TIMED = 100
CURVED, POWER_STEPS = 5, 50  # images at which the curvature is taken, and steps of the power iteration
FRESH = "do not go on from the committed rows, or not from those of the product's own lines"
NO_MOMENTUM = tuple(Setting(f"{loss}, no momentum", loss, changes=(("momentum", False),)) for loss in "ABCDEF")
ALL_C = tuple(Setting(f"{loss}, all c", loss, kind="all c") for loss in "ABCD")
ALL_C_IMAGES = 2  # of every class: ten searches each
REFERENCE_CHUNKS = 1  # 50 images: ten searches each


@dataclass(frozen=True)
class Experiment:
    """Data, networks and searches of one seed; each is made when it is asked for.

    trained: where the networks are kept; None: in the store.
    """

    size: Size
    store: Store
    trained: Store | None = None

    @cached_property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        x, y = load_mnist("train")
        return x[: self.size.train], y[: self.size.train]

    @cached_property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        return load_mnist("test")

    @cached_property
    def networks(self) -> Networks:
        return Networks(self.trained or self.store, *self.train, self.size.seed, self.size.epochs)

    @cached_property
    def searches(self) -> Searches:
        return Searches.on(self.networks, self.train[0], self.labels, self.size.iterations)

    @cached_property
    def labels(self) -> np.ndarray:
        """What the classifier says about the training images."""
        make = lambda: {"labels": apply(self.networks.classifier, self.train[0]).argmax(axis=1)}  # noqa: E731
        return np.asarray(
            self.store.get(f"mnist/seed{self.size.seed}/labels", {"rows": self.size.train}, make)["labels"]
        )

    @cached_property
    def accuracy(self) -> float:
        """The share of the test images that the classifier is right about."""
        x, y = self.test
        return float((apply(self.networks.classifier, x).argmax(axis=1) == y).mean())

    def checks(self) -> Arrays:
        """Accuracy of the classifier and squared errors per pixel of the autoencoders, on the test images."""
        name = f"mnist/seed{self.size.seed}/checks"
        return self.store.get(name, {"epochs": self.size.epochs, "rows": self.size.train}, self._check)

    def _check(self) -> Arrays:
        (x, y), nets = self.test, self.networks
        own = [_error(nets.of_class[digit], x[y == digit]) for digit in DIGITS]
        return {
            "accuracy": self.accuracy,
            "ae": _error(nets.autoencoder, x),
            "ae_class": np.mean(own),
            "ae_all": _error(nets.of_all, x),
        }

    def curvature(self) -> Arrays:
        """The largest curvature of gamma·L_AE and of theta·L_proto at some test images."""
        index = rows_of_chunk(self.test[1], 0, self.size)[:: self.size.per_class][:CURVED]
        settings = {"epochs": self.size.epochs, "images": index.tolist()}
        return self.store.get(f"mnist/seed{self.size.seed}/curvature", settings, lambda: self._curvature(index))

    def _curvature(self, index: np.ndarray) -> Arrays:
        x, nets = torch.from_numpy(self.test[0][index]), self.networks
        points = self.searches.prototypes.nearest(x.numpy(), np.ones((len(x), len(DIGITS)), dtype=bool))[0][:, 1]
        goal = torch.from_numpy(points)  # of the second nearest class: the nearest is the image's own
        return {
            "reconstruction": steepest(lambda y: 100 * (y - nets.autoencoder(y)).square().sum(), x),
            "prototype": steepest(lambda y: 200 * (nets.encoder(y) - goal).square().sum(), x),
        }

    def find(self, settings: tuple[Setting, ...], chunks: Sequence[int] | None = None) -> dict[str, Found]:
        """Search what is not there yet, of these chunks or of all."""
        numbers = range(self.size.chunks) if chunks is None else chunks
        return run(lambda: self.searches, self.store, settings, numbers, self.test, self.size)

    def has(self, setting: Setting, chunk: int = 0) -> bool:
        """Whether the store has what a setting found for a chunk."""
        return self.store.has(setting.place(self.size, chunk), setting.about(self.size))

    def lines(
        self, settings: tuple[Setting, ...], recorded: Recorded, deadline: float = np.inf, **other: int
    ) -> dict[str, Arrays]:
        """One number per image and measure of every setting; what is recorded or kept is not searched.

        All settings have the same chunks: those that were begun before the deadline, by time.monotonic. other: what is
        different from the size of the experiment.
        """
        size, found = replace(self.size, **other), {setting.name: list[Arrays]() for setting in settings}
        for chunk in range(size.chunks):
            images = rows_of_chunk(self.test[1], chunk, size)
            known = {each: recorded.taken(each.name, size.seed, images) for each in settings}
            missing = tuple(
                each
                for each, line in known.items()
                if line is None and not self.store.has(each.place(size, chunk), each.about(size))
            )
            if missing and time.monotonic() > deadline:
                break
            for setting in settings:
                line = known[setting]
                if line is None:
                    part = run(lambda: self.searches, self.store, (setting,), (chunk,), self.test, size)
                    line = self.values(part[setting.name])
                found[setting.name].append(line)
        return {name: joined(parts) for name, parts in found.items() if parts}

    def timed(self, line: Arrays, setting: Setting) -> Arrays:
        """With the times of images alone, and of the steps of all, unless they are recorded."""
        if not np.isnan(line["alone_seconds"]).all():
            known = ~np.isnan(line["seconds"]) & (setting.kind != "default")
            per_step = float(np.median(line["seconds"][known] / line["n_steps"][known])) if known.any() else np.nan
        else:
            timing = self.timing(setting)
            line["alone_seconds"][: len(timing["alone"])] = timing["alone"]
            per_step = float(timing["per_step"])
        seconds = line["alone_seconds"] if setting.kind == "default" else line["n_steps"] * per_step
        return {**line, "seconds": np.where(np.isnan(line["seconds"]), seconds, line["seconds"])}

    def values(self, found: Found) -> Arrays:
        """One number per image and measure; NaN where there is no counterfactual, and where `timed` has the time."""
        good = found.valid
        of_rows = {"n_steps": found.steps[good].astype(float), **quality(found.taken(good), self)}
        about = (found.index, np.full(len(good), self.size.seed), found.original_class, found.counterfactual_class)
        out: Arrays = {**dict(zip(ABOUT, about, strict=True)), "validity": good.astype(float)}
        out["batch_seconds"] = found.seconds
        for name, numbers in of_rows.items():
            out[name] = np.full(len(good), np.nan)
            out[name][good] = numbers
        out["alone_seconds"], out["seconds"] = np.full((2, len(good)), np.nan)
        return out

    def timing(self, setting: Setting) -> Arrays:
        """Images alone: the whole search of each, and what a step costs (0 for searches that count no steps)."""
        name = setting.place(self.size, 0).rsplit("/", 1)[0] + "/timing"
        about = {**setting.about(self.size), "steps": "of images that are not certain"}
        return self.store.get(name, about, lambda: self._time(setting))

    def _time(self, setting: Setting) -> Arrays:
        x, y = self.test
        index = rows_of_chunk(y, 0, self.size)[:: max(1, self.size.per_class * len(DIGITS) // TIMED)][:TIMED]
        solve = self.searches.solver(setting)
        alone = [
            _processor_seconds(lambda i=i: solve(index[i : i + 1], x[index[i : i + 1]])) for i in range(len(index))
        ]
        if setting.kind == "default":
            return {"alone": alone, "per_step": 0.0}
        c = {"A": 1e5, "E": 0.0, "F": 0.0}.get(setting.loss, 1.0)  # large enough that the image leaves its start
        few = {**dict(setting.changes), "c_init": c, "c_steps": 1, "max_iterations": STEPS_TIMED}
        explainer = self.searches.explainer(setting.loss, setting.k, **few)
        steps = [
            _processor_seconds(lambda i=i: explainer.explain(x[i], progress=False)) for i in self._uncertain(len(index))
        ]
        return {"alone": alone, "per_step": np.median(steps) / STEPS_TIMED}

    def _uncertain(self, count: int) -> np.ndarray:
        """Images of the first chunk about which the classifier is least sure.

        Where it is certain its gradient is zero: A would rest at the image, and its steps would cost nothing.
        """
        index = rows_of_chunk(self.test[1], 0, self.size)
        sure = apply(self.networks.classifier, self.test[0][index]).max(axis=1)
        return np.asarray(index[np.argsort(sure, kind="stable")[:count]])


def quality(found: Found, of: Experiment) -> Arrays:
    """IM1, IM2, EN, changed pixels and the distance to the class, for images that have a counterfactual.

    im2 is the formula with the AE of L_AE; im2_ink divides by the norm of the image in [0, 1], where black is 0, and
    im2_small takes an autoencoder of the architecture of the AE_i, trained on all classes, as AE.
    """
    nets, x0 = of.networks, of.test[0][found.index]
    out = {name: np.full(len(found.index), np.nan) for name in ("im1", "im2", "im2_small", "neighbour_distance")}
    for new in np.unique(found.counterfactual_class):
        at = found.counterfactual_class == new
        out["im2"][at] = im2(found.x[at], nets.of_class[new], nets.autoencoder)
        out["im2_small"][at] = im2(found.x[at], nets.of_class[new], nets.of_all)
        out["neighbour_distance"][at] = neighbour_distance(found.x[at], of.train[0][of.labels == new])
        for old in np.unique(found.original_class[at]):
            pair = at & (found.original_class == old)
            out["im1"][pair] = im1(found.x[pair], nets.of_class[new], nets.of_class[old])
    black = np.full_like(x0, -0.5)
    out["im2_ink"] = out["im2"] * l1(found.x, np.zeros_like(x0)) / l1(found.x, black)
    return {**out, "elastic_net": elastic_net(found.x, x0), "l0": l0(found.x, x0)}


def steepest(loss: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> np.ndarray:
    """The largest eigenvalue, by size, of the Hessian of a sum over images (n, ...) at every image."""
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    size = torch.zeros(len(x))
    for _ in range(POWER_STEPS):
        v /= size_of(v)
        _, v = torch.autograd.functional.hvp(loss, x, v)
        size = size_of(v)
    return np.asarray(size.ravel().numpy())


def size_of(v: torch.Tensor) -> torch.Tensor:
    """The Euclidean norm of every image, to divide by."""
    return v.flatten(1).norm(dim=1).reshape(-1, *[1] * (v.dim() - 1))


def _error(model: torch.nn.Module, x: np.ndarray) -> float:
    return float(np.square(apply(model, x) - x).mean())


def _processor_seconds(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main(places: Places, size: Size, seeds: int = 1, hours: float = np.inf, fresh: str = "") -> None:
    """Search what is not there yet, then write the results and the page. fresh: "all" or "defaults" once more."""
    import mnist_report

    torch.set_num_threads(1)
    store, deadline = Store(places.cache), time.monotonic() + 3600 * hours
    recorded = Recorded()
    if size.is_full and fresh != "all":
        recorded = Recorded.read(places.results / "mnist_rows.csv", places.results / "mnist_facts.json")
    product = json.loads(json.dumps(asdict(SearchConfig()), default=str))
    same_product = recorded.facts.get("defaults") == product and fresh != "defaults"
    runs = [
        Experiment(replace(size, seed=seed, chunks=chunks_of(size, recorded, seed)), store)
        for seed in range(max(seeds, recorded.seeds))
    ]
    lines: dict[str, list[Arrays]] = {}
    for one in runs:
        found = one.lines(LOSSES, recorded, deadline)
        if found:
            images = replace(one.size, chunks=len(found["A"]["image"]) // (len(DIGITS) * size.per_class))
            found |= replace(one, size=images).lines(DEFAULTS, recorded if same_product else Recorded())
        for setting in (*LOSSES, *DEFAULTS):
            if setting.name in found:
                lines.setdefault(setting.name, []).append(one.timed(found[setting.name], setting))
    first = runs[0]
    few = min(ALL_C_IMAGES, size.per_class)
    changed = first.lines(NO_MOMENTUM, recorded, chunks=1)
    changed |= first.lines(ALL_C, recorded, chunks=1, per_class=few)
    changed |= first.lines(BY_REFERENCE, recorded, deadline, chunks=min(REFERENCE_CHUNKS, size.chunks))
    lines |= {name: [part] for name, part in changed.items()}
    recorded.facts["defaults"] = product
    mnist_report.write(lines, first, places, recorded, in_time=time.monotonic() <= deadline)


def chunks_of(size: Size, recorded: Recorded, seed: int, setting: str = "A") -> int:
    """Those that are asked for, and no fewer than are on record: a small run does not take away from a large one."""
    return max(size.chunks, recorded.images(setting, seed) // (len(DIGITS) * size.per_class))


def arguments(description: str, per_class: int = Size.chunks * Size.per_class) -> argparse.ArgumentParser:
    """What all the MNIST commands understand."""
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    parser.add_argument("--per-class", type=int, default=per_class, help="test images of each class, a multiple of 5")
    return parser


if __name__ == "__main__":
    parser = arguments(__doc__ or "", per_class=50)
    parser.add_argument("--seeds", type=int, default=3, help="how often the networks are trained anew")
    parser.add_argument("--hours", type=float, default=np.inf, help="begin no chunk of images later than this")
    parser.add_argument("--fresh", nargs="?", const="all", default="", choices=("all", "defaults"), help=FRESH)
    given = parser.parse_args()
    main(Places(cache=given.cache), Size.of(given.per_class), given.seeds, given.hours, given.fresh)
