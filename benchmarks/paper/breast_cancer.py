"""The paper's Breast Cancer experiment: `python benchmarks/paper/breast_cancer.py`.

Losses A, B and C on the last 19 rows, five seeds (each trains its networks anew: the search itself draws nothing), the
sweeps of theta and k, the settings that might explain a difference, and the defaults of the product. Every result has a
file of its own below .cache/paper, so that a run that was stopped goes on where it was. Writes
benchmarks/results/paper/breast_cancer*.csv and docs/paper-breast-cancer.md with its pictures.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are tiny: a second thread only waits for the first

import numpy as np
import torch
from breast_cancer_networks import Data, Networks, accuracy, networks
from common import Places
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.metrics import changed_attributes, measure

THETA, K = 100.0, 1  # the paper does not name the ones of its table
MNIST_LETTER = {"A": "A", "B": "C", "C": "E"}  # SearchConfig.paper counts the losses as the MNIST experiment does
PATH = {"theta": 5.0, "polish": False, "few_changes": 0.0, "min_typicality": 0.0, "min_stability": 0.0}
TIMED = 1  # rows of A, B and C whose whole search is timed alone: it takes seconds
POWERS = 10  # of ten that c takes at most, as many as the search has values of c
STEADY = 3  # rows that the time of a step is the median of


@dataclass(frozen=True)
class Size:
    """How much is run; smaller for trying out."""

    seeds: int = 5
    reasons_seeds: int = 2
    rows: int = 19
    epochs: int = 500
    iterations: int = 500
    c_steps: int = 10
    thetas: tuple[float, ...] = (10, 20, 50, 100, 150, 200)
    ks: tuple[int, ...] = (1, 2, 5, 10)


class Method(NamedTuple):
    """A way to search: its name in tables, and settings; loss None is the product's own."""

    name: str
    loss: str | None
    settings: dict[str, Any]
    timed: int = 0  # rows whose whole search is timed alone
    first_c: bool = False  # stop at the first value of c that works

    def search(self) -> SearchConfig:
        """The settings of the search."""
        if self.loss is None:
            return SearchConfig(**self.settings)
        return SearchConfig.paper(MNIST_LETTER[self.loss], **self.settings)


def methods(size: Size) -> list[Method]:
    """All that is searched with every seed."""
    base = {"max_iterations": size.iterations, "c_steps": size.c_steps, "momentum": False, "theta": THETA, "k": K}
    one_c = {**base, "c_steps": 1}
    found = [
        Method("A", "A", {**base, "theta": 0.0, "k": None}, TIMED),
        Method("B", "B", base, TIMED),
        Method("C", "C", one_c, TIMED),
        Method("path", None, PATH, size.rows),
        Method("path + polish", None, {}, size.rows),
    ]
    found += [Method(f"B theta={theta:g}", "B", {**base, "theta": theta}) for theta in size.thetas if theta != THETA]
    found += [Method(f"B k={k}", "B", {**base, "k": k}) for k in size.ks if k != K]
    return found


def reasons(size: Size) -> list[Method]:
    """A, B and C with one setting changed, to see what a difference comes from."""
    changes: dict[str, dict[str, Any]] = {
        "momentum": {"momentum": True},
        "twice the steps": {"max_iterations": 2 * size.iterations},
        "L1 as written": {"beta": 0.001},  # the shrinkage of a step of length 0.01 for a weight of 0.1
    }
    plain = methods(size)[:3]
    found = [
        Method(f"{m.name}, {name}", m.loss, {**m.settings, **change}) for name, change in changes.items() for m in plain
    ]
    return found + [Method(f"{m.name}, first c", m.loss, {**m.settings, "c_steps": 1}, first_c=True) for m in plain]


def search(data: Data, classifier: torch.nn.Module, method: Method) -> Arrays:
    """Explain all rows at once. Times are the processor's, not the clock's: other work does not lengthen them."""
    explainer = CounterfactualExplainer(classifier, features=Features(scale=None), search=method.search())
    explainer.fit(data.train)
    if method.timed:
        explainer.explain(data.x[:1], progress=False)  # what is loaded on first use does not count
    start = time.process_time()
    e = first_c(data, classifier, method) if method.first_c else explainer.explain(data.x, progress=False)
    batch = (time.process_time() - start) / len(e)
    alone = np.full(len(e), np.nan)
    for i, row in enumerate(data.x[: method.timed]):
        alone[i] = _processor_time(explainer, row)
    return {"explanation": e.to_json(), "alone_seconds": alone, "batch_seconds": np.full(len(e), batch)}


def first_c(data: Data, classifier: torch.nn.Module, method: Method) -> Explanation:
    """For every row the counterfactual of the first c of 1, 10, 100, ... that has one, without refining c."""
    best: Explanation | None = None
    for power in range(1 if method.loss == "C" else POWERS):
        c = 0.0 if method.loss == "C" else 10.0**power
        search = replace(method.search(), c_init=c)
        explainer = CounterfactualExplainer(classifier, features=Features(scale=None), search=search).fit(data.train)
        e = explainer.explain(data.x, progress=False)
        e = replace(e, n_steps=e.n_steps + power * search.max_iterations)
        best = e if best is None else merged(best, e)
    return best


def merged(first: Explanation, second: Explanation) -> Explanation:
    """The lines of the first; where it found nothing, those of the second."""
    missing = np.flatnonzero(first.status != "found")
    taken = {}
    for field in fields(first):
        old, new = getattr(first, field.name), getattr(second, field.name)
        if field.name in {"classes", "class_names", "deviations", "feature_names", "meta", "_source"}:
            continue
        taken[field.name] = old.astype(object) if old.dtype.kind == "O" or new.dtype.kind == "O" else old.copy()
        taken[field.name][missing] = new[missing]
    return replace(first, **taken)


def measured(kept: Arrays, data: Data, nets: Networks, step: float | None) -> Arrays:
    """One number per row and measure, from what a search left.

    seconds: as the paper counts, gradient steps to the counterfactual times the time of a step; for the product's own
    settings, which count no steps, the time of explaining the row alone.
    """
    e = Explanation.from_json(str(kept["explanation"]))
    with torch.no_grad():
        labels = nets.classifier(torch.from_numpy(data.train)).argmax(dim=1).numpy()
    values = measure(e, autoencoders=nets.autoencoders, autoencoder=nets.autoencoder, reference=(data.train, labels))
    there = values["validity"] == 1
    counts = changed_attributes(np.where(there[:, None], e.delta, 0), data.attributes, threshold=1)
    values["malignant"] = np.where(there, e.original_class == 0, np.nan)
    values["features"] = np.where(there, counts.features, np.nan)
    values["attributes"] = np.where(there, counts.attributes, np.nan)
    values |= {name: kept[name] for name in ("alone_seconds", "batch_seconds")}
    values["seconds"] = kept["alone_seconds"] if step is None else values["n_steps"] * step
    return values


def _processor_time(explainer: CounterfactualExplainer, row: Any) -> float:
    start = time.process_time()
    explainer.explain(row, progress=False)
    return time.process_time() - start


def seconds_per_step(data: Data, classifier: torch.nn.Module, method: Method) -> float:
    """Time of one gradient step of one row alone.

    From a single large c and without shrinkage, which costs nothing but could leave the row where it is, and a row that
    rests ends its search early.
    """
    c = 0.0 if method.loss == "C" else 1e4
    steady = replace(method.search(), c_init=c, c_steps=1, beta=0.0)
    explainer = CounterfactualExplainer(classifier, features=Features(scale=None), search=steady).fit(data.train)
    times = [_processor_time(explainer, row) for row in data.x[:STEADY]]
    return float(np.median(times)) / steady.max_iterations


def step_times(store: Store, data: Data, seed: int, classifier: torch.nn.Module, size: Size) -> dict[str, float]:
    """Of each loss."""
    found = {}
    for method in methods(size)[:3]:
        settings = {"epochs": size.epochs, **asdict(method.search())}
        file = f"seed{seed}/step_{method.name}"
        kept = store.get(file, settings, lambda m=method: {"seconds": seconds_per_step(data, classifier, m)})
        found[method.name] = float(kept["seconds"])
    return found


def run(store: Store, size: Size, *, progress: bool = True) -> Iterator[tuple[int, str, Arrays]]:
    """Seed, name and measures of every search."""
    data = Data.load(size.rows)
    trained = trained_networks(store, data, size, progress=progress)
    steps = [step_times(store, data, seed, nets.classifier, size) for seed, nets in enumerate(trained)]
    work = [(seed, method) for seed in range(size.seeds) for method in methods(size)]
    work += [(seed, method) for seed in range(min(size.seeds, size.reasons_seeds)) for method in reasons(size)]
    for seed, method in tqdm(work, desc="breast cancer", unit="search", disable=not progress):
        classifier = trained[seed].classifier
        settings = {"epochs": size.epochs, "rows": size.rows, **asdict(method.search())}
        settings |= {"first_c": True} if method.first_c else {}
        file = f"seed{seed}/{method.name.replace(' ', '_')}"
        kept = store.get(file, settings, lambda c=classifier, m=method: search(data, c, m))
        yield seed, method.name, measured(kept, data, trained[seed], steps[seed].get(method.loss or ""))


def trained_networks(store: Store, data: Data, size: Size, *, progress: bool) -> list[Networks]:
    """Of every seed."""
    seeds = tqdm(range(size.seeds), desc="networks", unit="seed", disable=not progress)
    return [networks(store, data, seed, size.epochs) for seed in seeds]


def main(places: Places, size: Size, *, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    import breast_cancer_report

    torch.set_num_threads(1)
    store = Store(places.cache / "breast_cancer")
    found = list(run(store, size, progress=progress))
    seconds, data = store.seconds, Data.load(size.rows)
    accurate = [accuracy(nets, data) for nets in trained_networks(store, data, size, progress=False)]
    breast_cancer_report.write(found, accurate, size, places, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=Size().seeds, help="how often the networks are trained anew")
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    arguments = parser.parse_args()
    main(Places(cache=arguments.cache), Size(seeds=arguments.seeds))
