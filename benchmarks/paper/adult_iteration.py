"""The paper's own iteration on Adult: `CFPROTO_DATA=<folder> python benchmarks/paper/adult_iteration.py`.

Losses A, B and C of its Breast Cancer list on embedded categories, as the reference runs them, beside the product's
answers for the same rows. The network is a function of raw rows, so that L_pred has numerical gradients through the
embedding: a category answers to them only if the step reaches half-way to its neighbour, so two steps are tried. Every
search has a file of its own below .cache/paper, and losses that stand in the committed adult_iteration_rows.csv are not
searched again, unless `--fresh` says so. Writes benchmarks/results/paper/adult_iteration*.csv and
docs/paper-adult-iteration.md.
"""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from adult import DISTANCES, RULES, Data, measured, network, poor
from adult import Size as Networks
from common import PACKAGES, Places, about, markdown, per_cent, plus_minus, write_csv, write_page
from paired import change
from protocol import REFERENCE
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Explanation, SearchConfig
from cfproto_plugin.metrics import MetricTable, summarise

SMALL, LARGE = 0.001, 0.5  # half the steps of differences, in standard deviations: the product's, and one that is felt
NEEDED = {"default": SearchConfig(), "typical": SearchConfig.typical()}
TEXT = """# Adult by the paper's own iteration

Losses A = L_pred + L1 + L2, B = A + L_proto with k-d trees and C = B without L_pred on Adult, {words}; beta 0.1, theta
100, k 1, categories embedded by ABDM. The model is a function of raw rows: L_pred has numerical gradients, and every
point is decoded to the nearest category and whole number before it is predicted. A difference of 0.001 standard
deviations hardly ever crosses to another one, and the gradient is then zero; with 0.5 neighbours are felt. `default`
and `typical` are the product's settings. {rows} rows of one network that it does not think rich, the same for all lines
and under the same rules as on [the page on Adult](paper-adult.md). EN is beta · L1 + L2 in the space of the search;
means with 95 % bounds are of the rows that a search finds, so that lines are not of the same rows. Typicality is that
of the product's [answers](explanation.md)."""
READING = """A needs differences that are felt. L_proto leads to some rows even where L_pred has no gradient, and alone,
as C, to few: the prototype is a rich row, but the rules keep most of its columns away. On the rows that two searches
both find, EN changes as follows."""
PAIRS = (
    ("B, differences of 0.5", "A, differences of 0.5"),
    ("default", "A, differences of 0.5"),
    ("default", "B, differences of 0.5"),
)
METRICS = {
    "distance": "EN",
    "changes": "columns changed",
    "categories": "categories changed",
    "typicality": "typicality",
    "n_steps": "gradient steps",
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    rows: int = 20
    iterations: int = REFERENCE.steps
    c_steps: int = REFERENCE.values_of_c
    epochs: int = Networks.epochs


def settings(size: Size) -> dict[str, SearchConfig]:
    """By the name in the table."""
    protocol = replace(REFERENCE, steps=size.iterations, values_of_c=size.c_steps)

    def of(loss: str, **changes: Any) -> SearchConfig:
        own = {"c_steps": 1} if loss == "C" else {}
        return SearchConfig.paper(loss, experiment="breast_cancer", **protocol.settings(**own, **changes))

    found = {f"{loss}, differences of {eps:g}": of(loss, eps=eps) for eps in (SMALL, LARGE) for loss in "AB"}
    return {**found, "C": of("C"), **NEEDED}


def searched(data: Data, model: Any, search: SearchConfig, rows: Any) -> Arrays:
    """Counterfactuals of the rows."""
    explainer = CounterfactualExplainer(model, features=RULES, distance=DISTANCES["abdm"](), search=search)
    return {"explanation": explainer.fit(data.train).explain(rows, target=1, progress=False).to_json()}


def values(e: Explanation, data: Data) -> Arrays:
    """One number per row and measure; NaN where there is no counterfactual."""
    found = measured(e, data)
    there = found["validity"] == 1
    return {
        "validity": found["validity"],
        "distance": np.where(there, e.distance, np.nan),
        "changes": found["changes"],
        "categories": found["categories"],
        "typicality": np.where(there, e.typicality, np.nan),
        "n_steps": np.where(there & (e.n_steps > 0), e.n_steps, np.nan),  # the product's searches count none
    }


def recorded(file: Path, size: Size) -> dict[str, Arrays]:
    """The losses of an earlier run, by name; not the product's answers, which may be others by now."""
    if not file.exists() or size != Size():
        return {}
    with file.open() as opened:
        lines = [line for line in csv.DictReader(opened) if line["search"] not in NEEDED]
    found: dict[str, Arrays] = {}
    for name in dict.fromkeys(line["search"] for line in lines):
        mine = [line for line in lines if line["search"] == name]
        found[name] = {
            column: np.array([float(line[column] or "nan") for line in mine])
            for column in mine[0]
            if column != "search"
        }
    return found


def main(places: Places, size: Size, data: Data | None = None, *, fresh: bool = False, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    data = data or Data.load()
    store, file = Store(places.cache / "adult"), places.results / "adult_iteration_rows.csv"
    model = network(store, data, 0, Networks(epochs=size.epochs))
    rows, found = poor(data, model, size.rows), {} if fresh else recorded(file, size)
    earlier = sum(float(line["seconds"][0]) for line in found.values())
    for name, search in tqdm(settings(size).items(), desc="adult", unit="search", disable=not progress):
        if name not in found:
            about_it = {"rows": size.rows, "epochs": size.epochs, "train": len(data.train), **asdict(search)}
            place, before = f"iteration/{name.replace(', ', '-').replace(' ', '-')}", store.seconds
            kept = store.get(place, about_it, lambda s=search: searched(data, model, s, rows))
            line = values(Explanation.from_json(str(kept["explanation"])), data)
            found[name] = {**line, "seconds": np.full(size.rows, store.seconds - before)}
    found = {name: found[name] for name in settings(size)}
    write_csv(
        file,
        [
            {"search": name, **{c: float(v[i]) for c, v in found[name].items()}}
            for name, i in product(found, range(size.rows))
        ],
    )
    measures = {name: {c: v for c, v in line.items() if c != "seconds"} for name, line in found.items()}
    records = [record for name, line in measures.items() for record in summarise(line, name=name)]
    write_csv(places.results / "adult_iteration.csv", [asdict(record) for record in records])
    table = MetricTable(tuple(records), 0.95)
    write_page(places.docs / "paper-adult-iteration.md", page(table, found, size, store.seconds + earlier))


def changes(found: dict[str, Arrays]) -> str:
    """Of EN, between searches on the rows that both find."""
    body = []
    for ours, base in PAIRS:
        one, other = (found[name]["distance"] for name in (ours, base))
        effect = change(one, other, np.arange(len(one)))
        bounds = f"{per_cent(effect.mean)} ({per_cent(effect.lower)} to {per_cent(effect.upper)})"
        body.append([f"EN of {ours}, against {base}", bounds, str(effect.n)])
    return markdown(["change", "here (95 % bounds)", "n"], body)


def page(table: MetricTable, found: dict[str, Arrays], size: Size, seconds: float) -> list[str]:
    """The parts of the page."""
    body = []
    for name in settings(size):
        valid = table.select(name, "validity")
        share = f"{valid.mean * valid.n:.0f} of {valid.n}"
        body.append([name, share, *(plus_minus(table.select(name, metric)) for metric in METRICS)])
    words = replace(REFERENCE, steps=size.iterations, values_of_c=size.c_steps).words
    return [
        TEXT.format(words=words, rows=table.select("C", "validity").n),
        markdown(["search", "found", *METRICS.values()], body),
        READING,
        changes(found),
        about("CFPROTO_DATA=<folder> python benchmarks/paper/adult_iteration.py", seconds, (*PACKAGES, "pandas"))
        + " The time is by the clock, on a machine that was busy with other work; losses that were on record were not "
        "searched again, and their time is that of the run that did.",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=Size().rows, help="rows that are explained")
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    parser.add_argument("--fresh", action="store_true", help="do not go on from the committed rows")
    arguments = parser.parse_args()
    main(Places(cache=arguments.cache), Size(rows=arguments.rows), fresh=arguments.fresh)
