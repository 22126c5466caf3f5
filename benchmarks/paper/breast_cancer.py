"""The paper's Breast Cancer experiment: `python benchmarks/paper/breast_cancer.py`.

Losses A, B and C on the last 19 rows, five seeds (each trains its networks anew: the search itself draws nothing), by
both protocols of protocol.py, the sweeps of theta and k, the settings that might explain a difference, and the defaults
of the product. Every result has a file of its own below .cache/paper, so that a run that was stopped goes on where it
was. Writes benchmarks/results/paper/breast_cancer*.csv and docs/paper-breast-cancer.md with its pictures.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are tiny: a second thread only waits for the first

import numpy as np
import torch
from breast_cancer_networks import Data, Networks, accuracy, networks
from common import Places
from protocol import REFERENCE, TEXT, Protocol
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.metrics import changed_attributes, measure

THETA, K = 100.0, 1  # the paper does not name the ones of its table; these are those of SearchConfig.paper
PATH = {"theta": 5.0, "polish": False, "few_changes": 0.0, "min_typicality": 0.0, "min_stability": 0.0}
LOSSES = ("A", "B", "C")
TIMED = 3  # rows of A, B and C whose whole search is timed alone: it takes seconds
NOT_BY_LINE = {"classes", "class_names", "deviations", "feature_names", "meta", "row", "_source"}  # row stays
STEADY = 3  # rows that the time of a step is the median of


@dataclass(frozen=True)
class Size:
    """How much is run; smaller for trying out."""

    seeds: int = 5
    reasons_seeds: int = 2
    rows: int = 19
    epochs: int = 500
    iterations: int = TEXT.steps
    c_steps: int = TEXT.values_of_c
    thetas: tuple[float, ...] = (10, 20, 50, 100, 150, 200)
    ks: tuple[int, ...] = (1, 2, 5, 10)

    def of(self, protocol: Protocol) -> Protocol:
        """The protocol at this size."""
        return replace(protocol, steps=self.iterations, values_of_c=self.c_steps)


class Method(NamedTuple):
    """A way to search: its name in tables, and settings; loss None is the product's own."""

    name: str
    loss: str | None
    settings: dict[str, Any]
    timed: int = 0  # rows whose whole search is timed alone
    powers: int = 0  # of ten that c takes until one works; 0: c as the settings say

    def search(self) -> SearchConfig:
        """The settings of the search."""
        if self.loss is None:
            return SearchConfig(**self.settings)
        return SearchConfig.paper(self.loss, experiment="breast_cancer", **self.settings)


def method(loss: str, protocol: Protocol, name: str = "", timed: int = 0, **changes: Any) -> Method:
    """A loss by a protocol; loss C has no c."""
    settings = protocol.settings(**changes)
    if loss == "C":
        settings["c_steps"] = 1
    powers = protocol.values_of_c if protocol.first_c and loss != "C" else 0
    return Method(name or loss + protocol.suffix, loss, settings, timed, powers)


def methods(size: Size) -> list[Method]:
    """All that is searched with every seed."""
    text, reference = size.of(TEXT), size.of(REFERENCE)
    found = [method(loss, text, loss, TIMED) for loss in LOSSES]
    found += [Method("path", None, PATH, size.rows), Method("path + polish", None, {}, size.rows)]
    found += [method(loss, reference, loss + REFERENCE.suffix, TIMED) for loss in LOSSES]
    found += [method("B", text, f"B theta={theta:g}", theta=theta) for theta in size.thetas if theta != THETA]
    found += [method("B", text, f"B k={k}", k=k) for k in size.ks if k != K]
    return found


def reasons(size: Size) -> list[Method]:
    """A, B and C with one setting changed, to see what a difference comes from."""
    text = size.of(TEXT)
    changed = {
        "no momentum": replace(text, momentum=False),
        "all c": replace(text, first_c=False),
        "half the steps": replace(text, steps=size.iterations // 2),
    }
    found = [method(loss, protocol, f"{loss}, {name}") for name, protocol in changed.items() for loss in LOSSES]
    # the shrinkage of a step of length 0.01 for a weight of 0.1
    return found + [method(loss, text, f"{loss}, L1 as written", beta=0.001) for loss in LOSSES]


def solver(data: Data, classifier: torch.nn.Module, method: Method) -> Callable[[Any], Explanation]:
    """A function of rows (n, 30)."""

    def fitted(search: SearchConfig) -> CounterfactualExplainer:
        return CounterfactualExplainer(classifier, features=Features(scale=None), search=search).fit(data.train)

    if not method.powers:
        one = fitted(method.search())
        return lambda x: one.explain(x, progress=False)
    by_c = [fitted(replace(method.search(), c_init=10.0**power)) for power in range(method.powers)]
    return lambda x: first_c(by_c, x)


def search(data: Data, classifier: torch.nn.Module, method: Method) -> Arrays:
    """Explain all rows at once. Times are the processor's, not the clock's: other work does not lengthen them."""
    solve = solver(data, classifier, method)
    if method.timed:
        solve(data.x[:1])  # what is loaded on first use does not count
    start = time.process_time()
    e = solve(data.x)
    batch = (time.process_time() - start) / len(e)
    alone = np.full(len(e), np.nan)
    for i in range(min(method.timed, len(e))):
        alone[i] = _processor_time(solve, data.x[i : i + 1])
    return {"explanation": e.to_json(), "alone_seconds": alone, "batch_seconds": np.full(len(e), batch)}


def first_c(by_c: list[CounterfactualExplainer], x: Any) -> Explanation:
    """For every row the counterfactual of the first c that has one, without refining c."""
    best, steps = by_c[0].explain(x, progress=False), by_c[0].search.max_iterations
    for explainer in by_c[1:]:
        missing = np.flatnonzero(best.status != "found")
        if not len(missing):
            break
        e = explainer.explain(x[missing], progress=False)
        best = merged(best, replace(e, n_steps=e.n_steps + steps), missing)
        steps += explainer.search.max_iterations
    return best


def merged(first: Explanation, second: Explanation, missing: Any) -> Explanation:
    """The lines of the first; at the places `missing` those of the second, which has no others."""
    taken = {}
    for field in fields(first):
        old, new = getattr(first, field.name), getattr(second, field.name)
        if field.name in NOT_BY_LINE:
            continue
        taken[field.name] = old.astype(object) if old.dtype.kind == "O" or new.dtype.kind == "O" else old.copy()
        taken[field.name][missing] = new
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


def _processor_time(solve: Callable[[Any], Explanation], row: Any) -> float:
    start = time.process_time()
    solve(row)
    return time.process_time() - start


def seconds_per_step(data: Data, classifier: torch.nn.Module, method: Method) -> float:
    """Time of one gradient step of one row alone.

    From a single large c and without shrinkage, which costs nothing but could leave the row where it is, and a row that
    rests ends its search early.
    """
    c = 0.0 if method.loss == "C" else 1e4
    steady = {**method.settings, "c_init": c, "c_steps": 1, "beta": 0.0}
    solve = solver(data, classifier, method._replace(settings=steady, powers=0))
    times = [_processor_time(solve, data.x[i : i + 1]) for i in range(min(STEADY, len(data.x)))]
    return float(np.median(times)) / method.search().max_iterations


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
        settings |= {"powers": method.powers} if method.powers else {}
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
